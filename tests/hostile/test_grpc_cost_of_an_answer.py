"""What a message costs that is made to be dear: a few bytes of protobuf can stand for much memory.

The bounds are many times what was measured: they are there to tell linear from quadratic.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest

from conformance.wire.grpc_answer import MAX_ELEMENTS, parse, parse_message
from conformance.wire.grpc_fields import MAX_MESSAGE_BYTES

SIZE = 1_000_000
SECONDS, BYTES = 3.0, 40_000_000


def varint(number: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def field(number: int, value: bytes) -> bytes:
    """Return a field of bytes."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def repeated(piece: bytes) -> bytes:
    return piece * (SIZE // len(piece))


def output(datatype: str, *more: bytes) -> bytes:
    return field(5, field(1, b"O") + field(2, datatype.encode()) + b"".join(more))


def entries() -> bytes:
    before, _, behind = field(4, field(1, b"0000000") + field(2, b"\x08\x01")).partition(b"0000000")
    return b"".join(before + b"%07d" % number + behind for number in range(SIZE // 18))


# Name -> what makes the body, of a megabyte or more, for one test alone.
TAKEN = {
    "long-unknown-fields": lambda: repeated(field(100, bytes(1000))),
    "a-name": lambda: output("INT32", field(1, b"n" * SIZE)),
    "parameters-of-an-output": lambda: output("INT32", entries()),
    "integers": lambda: output("INT32", field(3, varint(SIZE)), field(5, field(2, b"\1" * SIZE))),
    "texts": lambda: output("BYTES", field(3, varint(SIZE // 2)), field(5, repeated(b"\x42\0"))),
    "negative-dimensions": lambda: output("INT32", field(3, varint(2**64 - 1))),
    "more-elements-than-there-are": lambda: output("BYTES", field(3, varint(2**62))) + field(6, bytes(1000)),
}
TOO_LARGE = {
    "unknown-fields": lambda: repeated(varint(100 << 3) + b"\1"),
    "empty-outputs": lambda: repeated(b"\x2a\0"),
    "empty-raw-contents": lambda: repeated(b"\x32\0"),
    "fields-of-the-wrong-type": lambda: repeated(b"\x28\1"),
    "parameters": entries,
    "groups": lambda: repeated(b"\xa3\6\xa4\6"),
    "outputs": lambda: output("INT32") * 1001,
    "dimensions": lambda: output("INT32", field(3, b"\1" * (MAX_ELEMENTS + 1))),
    "contents": lambda: output("INT32", field(5, field(2, b"\1" * (MAX_ELEMENTS + 1)))),
    "texts-in-raw-contents": lambda: output("BYTES", field(3, varint(2**40))) + field(6, bytes(4 * MAX_ELEMENTS + 8)),
    "bytes-beside-raw-contents": lambda: field(100, bytes(MAX_MESSAGE_BYTES + 1)),
}
NO_MESSAGE = {
    "deep-groups": lambda: b"\xa3\6" * 100_000 + b"\xa4\6" * 100_000,
    "no-utf-8": lambda: output("INT32", field(1, b"\xff")),
    "a-length-beyond-all": lambda: field(5, b"")[:1] + varint(2**63),
    "an-endless-number": lambda: b"\xff" * SIZE,
}
ALL = {**TAKEN, **TOO_LARGE, **NO_MESSAGE}


@pytest.mark.parametrize("make_body", ALL.values(), ids=ALL)
def test_an_answer_takes_little_time_and_memory(make_body: Callable[[], bytes]) -> None:
    body = make_body()
    parse_message(b"")  # imports
    started = time.process_time()
    parse(body)
    assert time.process_time() - started < SECONDS
    tracemalloc.start()
    parse(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < BYTES


@pytest.mark.parametrize("make_body", TAKEN.values(), ids=TAKEN)
def test_unusual_message_is_parsed(make_body: Callable[[], bytes]) -> None:
    body = make_body()
    answer = parse(body)
    assert answer.document is not None
    assert len(answer.outputs) == (1 if b"O" in body else 0)


@pytest.mark.parametrize("make_body", TOO_LARGE.values(), ids=TOO_LARGE)
def test_oversized_message_is_one_finding(make_body: Callable[[], bytes]) -> None:
    body = make_body()
    answer = parse(body)
    assert (answer.document, answer.outputs) == (None, ())
    assert [finding.kind for finding in answer.findings] in (["message-too-large"], ["outputs-too-many"])


@pytest.mark.parametrize("make_body", NO_MESSAGE.values(), ids=NO_MESSAGE)
def test_undecodable_message_has_no_document(make_body: Callable[[], bytes]) -> None:
    body = make_body()
    answer = parse(body)
    assert (answer.document, answer.outputs, parse_message(body)) == (None, (), None)


def test_raw_contents_behind_a_group_are_found_and_those_within_are_none() -> None:
    group = b"\xa3\6" + field(6, b"no") + b"\xa4\6"
    body = output("INT8", field(3, b"\1")) + group + field(6, b"\7")
    (found,) = parse(body).outputs
    assert found.array is not None
    assert found.array.tolist() == [7]
