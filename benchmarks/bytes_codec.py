"""How fast BYTES tensors are encoded and decoded, beside tritonclient doing the same in the same process.

Run `python benchmarks/bytes_codec.py` from the checkout's root, with `tritonclient[http]` installed. Times are the best
of several runs, in milliseconds, for a million elements; the goal is a ratio of at most 0.50.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tritonclient.utils import deserialize_bytes_tensor, serialize_byte_tensor

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.wire import strings
from conformance.wire.tensor import Tensor, decode

ELEMENTS = 1_000_000
RUNS = 7


def best(work: Callable[[], Any]) -> float:
    """Return the shortest of `RUNS` runs, in milliseconds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def compare(title: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """Print one line: both times and their ratio."""
    mine, other = best(ours), best(theirs)
    print(f"{title:<32} {mine:8.1f} {other:14.1f} {mine / other:8.2f}")


def measure(name: str, elements: list[bytes]) -> None:
    """Compare encoding and decoding of `elements`, after checking that both sides write and read the same."""
    array = np.array(elements, dtype=object)
    tensor = Tensor("T", "BYTES", array.shape, array)
    data = strings.encode(elements)
    assert data == serialize_byte_tensor(array).item()
    assert strings.decode(data, len(elements)) == elements
    compare(f"encode {name}", lambda: strings.encode(elements), lambda: serialize_byte_tensor(array))
    compare(f"decode {name}", lambda: strings.decode(data, len(elements)), lambda: deserialize_bytes_tensor(data))
    compare(f"Tensor.to_bytes {name}", tensor.to_bytes, lambda: serialize_byte_tensor(array))
    compare(
        f"decode to array {name}", lambda: decode("BYTES", array.shape, data), lambda: deserialize_bytes_tensor(data)
    )


def main() -> None:
    """Run all comparisons."""
    source = random.Random(1)
    print(f"{ELEMENTS} elements, ms{'':<12} {'ours':>8} {'tritonclient':>14} {'ratio':>8}")
    measure("16 bytes", [source.randbytes(16) for _ in range(ELEMENTS)])
    measure("0 to 32 bytes", [source.randbytes(source.randrange(33)) for _ in range(ELEMENTS)])


if __name__ == "__main__":
    main()
