"""Large tensors to bytes and back."""

from __future__ import annotations

import random
import sys
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.children import bundled, run
from benchmarks.ratio import CannotMeasureError, Measured, benchmark, in_turns
from conformance.wire import strings
from conformance.wire.request import frame
from conformance.wire.tensor import Tensor, decode, find_first_difference

MIB = 1 << 20
NUMERIC = 64 * MIB
ELEMENTS = 1_000_000
MEMORY = 256 * MIB


def _tensor(size: int = NUMERIC) -> Tensor:
    values = np.random.default_rng(1).random(size // 4, dtype=np.float32)
    return Tensor("T", "FP32", values.shape, values)


@benchmark("encode-64MiB", "64 MiB of FP32 to bytes", "numpy's copy of them", reach=0.01)
def encode() -> Measured:
    """No copy is made, so that hardly any time is needed."""
    tensor = _tensor()
    return in_turns(tensor.to_bytes, tensor.array.copy)


@benchmark("decode-64MiB", "64 MiB of FP32 from bytes", "numpy's copy of them", reach=0.01)
def decoding() -> Measured:
    """Nor here."""
    tensor = _tensor()
    data = bytes(tensor.to_bytes())
    return in_turns(lambda: decode("FP32", tensor.shape, data), tensor.array.copy)


@benchmark("compare-64MiB", "two tensors of 64 MiB compared", "numpy's copy of one", reach=2.0)
def comparing() -> Measured:
    """Equal ones, which is what honest answers are."""
    tensor = _tensor()
    equal = partial(find_first_difference, tensor.array, tensor.array.copy(), "FP32")
    assert equal() is None
    return in_turns(equal, tensor.array.copy)


@benchmark("frame-64MiB", "64 MiB of FP32 made a request", "numpy's copy of them", reach=2.0)
def framing() -> Measured:
    """JSON and binary data are put together once."""
    tensor = _tensor()
    return in_turns(partial(frame, "/", {}, [tensor]), tensor.array.copy)


class _Texts:
    """A million elements of 16 bytes: as a list, as a tensor, as binary data, and what tritonclient does with them."""

    def __init__(self) -> None:
        try:
            from tritonclient.utils import deserialize_bytes_tensor, serialize_byte_tensor
        except ImportError as error:
            raise CannotMeasureError("pip install 'tritonclient[http]'") from error
        source = random.Random(1)
        self.elements = [source.randbytes(16) for _ in range(ELEMENTS)]
        self.tensor = Tensor.from_values("T", "BYTES", self.elements)
        self.data = strings.encode(self.elements)
        self.encoded_by_them = partial(serialize_byte_tensor, self.tensor.array)
        self.decoded_by_them = partial(deserialize_bytes_tensor, self.data)
        assert self.data == self.encoded_by_them().item()


@benchmark("bytes-encode", "a million BYTES elements of 16 bytes encoded", "tritonclient", reach=0.25)
def bytes_encode() -> Measured:
    """From a list."""
    texts = _Texts()
    return in_turns(lambda: strings.encode(texts.elements), texts.encoded_by_them)


@benchmark("bytes-encode-array", "the same from an array", "tritonclient", reach=0.25)
def bytes_encode_array() -> Measured:
    """As the suite has them."""
    texts = _Texts()
    return in_turns(texts.tensor.to_bytes, texts.encoded_by_them)


@benchmark("bytes-decode", "a million BYTES elements of 16 bytes decoded", "tritonclient", reach=0.25)
def bytes_decode() -> Measured:
    """Into a list."""
    texts = _Texts()
    return in_turns(lambda: strings.decode(texts.data, ELEMENTS), texts.decoded_by_them)


@benchmark("bytes-decode-array", "the same into an array", "tritonclient", reach=0.25)
def bytes_decode_array() -> Measured:
    """As the suite has them."""
    texts = _Texts()
    return in_turns(lambda: decode("BYTES", (ELEMENTS,), texts.data), texts.decoded_by_them)


@benchmark("memory-256MiB", "most memory for a 256 MiB tensor there and back", "its size", reach=2.5)
def memory() -> Measured:
    """Of this side alone; what a process with a small tensor takes is taken off."""
    command = (sys.executable, "-m", "benchmarks.there_and_back")
    with bundled(f"--max-body={2 * MEMORY}") as server:
        large, small = (float(run(*command, server.url, str(size), folder=Path.cwd())[1]) for size in (MEMORY, 1024))
    return Measured(large - small, MEMORY / MIB, "MB")
