"""What an answer costs that is made to be dear: time and memory grow with its size, and with nothing else.

The bounds are many times what was measured: they are there to tell linear from quadratic.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest

from conformance.wire.response import parse

SIZE = 300_000
SECONDS, BYTES = 2.0, 15_000_000


def repeated(piece: bytes) -> bytes:
    """Return a piece again and again, with commas between, of the size of an answer."""
    return b",".join([piece] * (SIZE // (len(piece) + 1)))


def outputs(piece: bytes) -> bytes:
    return b'{"outputs":[' + repeated(piece) + b"]}"


def output(datatype: str, piece: bytes) -> bytes:
    """Return an answer of one output whose data are one piece, again and again."""
    data = repeated(piece)
    shape = data.count(b",") + 1
    return b'{"outputs":[{"name":"O","datatype":"%s","shape":[%d],"data":[%s]}]}' % (datatype.encode(), shape, data)


ANSWERS: dict[str, Callable[[], bytes]] = {
    "empty-outputs": lambda: outputs(b"{}"),
    "outputs-that-are-null": lambda: outputs(b"null"),
    "outputs-that-are-arrays": lambda: outputs(b"[]"),
    "outputs-of-one-name": lambda: outputs(b'{"name":"a"}'),
    "binary-outputs": lambda: outputs(
        b'{"name":"a","datatype":"INT8","shape":[1],"parameters":{"binary_data_size":1}}'
    ),
    "one-member-again-and-again": lambda: b"{" + repeated(b'"a":1') + b"}",
    "open-brackets": lambda: b"[" * SIZE,
    "objects-in-objects": lambda: b'{"a":' * (SIZE // 6) + b"1" + b"}" * (SIZE // 6),
    "brackets-in-a-string": lambda: b'{"outputs":["' + b"[" * SIZE + b'"]}',
    "integers": lambda: output("INT32", b"1"),
    "numbers-beyond-integers": lambda: output("FP64", b"1e300"),
    "numbers-beyond-doubles": lambda: output("FP64", b"1e99999"),
    "one-element-arrays": lambda: output("INT32", b"[1]"),
    "escaped-quotes": lambda: b'{"outputs":["' + b'\\"' * (SIZE // 2) + b'"]}',
    "digits": lambda: b'{"outputs":' + b"1" * SIZE + b"}",
    "dimensions": lambda: b'{"outputs":[{"name":"O","datatype":"INT8","shape":[' + repeated(b"1") + b'],"data":[1]}]}',
    "a-string-without-an-end": lambda: b'{"a":"' + b"x" * SIZE,
    "backslashes": lambda: b'{"a":"' + b"\\" * SIZE,
}


@pytest.mark.parametrize("with_header", [False, True], ids=["alone", "with-the-header"])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_takes_little_time(answer: Callable[[], bytes], with_header: bool) -> None:
    body = answer()
    started = time.process_time()
    parse(body, str(len(body)) if with_header else None)
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_takes_little_memory(answer: Callable[[], bytes]) -> None:
    body = answer()
    tracemalloc.start()
    parse(body, str(len(body)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < BYTES
