"""BYTES: bytes written by hand, tritonclient as the other encoder, and every way in which elements can be broken."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.utils import deserialize_bytes_tensor, serialize_byte_tensor

from conformance.wire import strings
from conformance.wire.finding import DecodeError, Finding

HAND = [
    ([], ""),
    ([b""], "00000000"),
    ([b"", b""], "00000000 00000000"),
    ([b"a\x00b", b"\xff\xfe"], "03000000 610062 02000000 fffe"),
    ([b"\x01\x00\x00\x00"], "04000000 01000000"),
    ([b"ab", b"\x00\x00", b"zz"], "02000000 6162 02000000 0000 02000000 7a7a"),
    # As long as three elements of the first one's length would be, and not three of that length.
    ([b"ab", b"c", b"xyz"], "02000000 6162 01000000 63 03000000 78797a"),
]


@pytest.mark.parametrize(("elements", "text"), HAND)
def test_elements_and_bytes(elements: list[bytes], text: str) -> None:
    assert strings.encode(elements) == bytes.fromhex(text)
    assert strings.decode(bytes.fromhex(text), len(elements)) == elements


@pytest.mark.parametrize(("length", "prefix"), [(255, "ff000000"), (256, "00010000"), (65536, "00000100")])
def test_lengths_of_more_than_a_byte(length: int, prefix: str) -> None:
    data = bytes.fromhex(prefix) + b"x" * length
    assert strings.encode([b"x" * length]) == data
    assert strings.decode(data, 1) == [b"x" * length]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_elements_are_bytes_whatever_the_buffer(kind: type) -> None:
    (element,) = strings.decode(kind(bytes.fromhex("01000000 61")), 1)
    assert type(element) is bytes


def test_offsets_are_those_of_the_prefixes() -> None:
    data = bytes.fromhex("03000000 616263 00000000 02000000 3132")
    assert strings.find_offsets(data, 3) == [0, 7, 11]
    assert strings.find_offsets(data, 2) == [0, 7]
    assert strings.find_offsets(data + b"\x01\x00") == [0, 7, 11]
    assert strings.find_offsets(bytes.fromhex("ffffffff 00")) == [0]


# buffer, count, kind, field, offset, expected, actual
BROKEN = [
    ("010000", 1, "bytes-prefix-truncated", "element 0", 0, "a length prefix of 4 bytes", "3 bytes"),
    ("01000000 61 00", 2, "bytes-prefix-truncated", "element 1", 5, "a length prefix of 4 bytes", "1 bytes"),
    ("05000000 6162", 1, "bytes-past-end", "element 0", 0, "a length of at most 2", "a length of 5 with 2 bytes left"),
    (
        "00000000 ffffffff",
        2,
        "bytes-past-end",
        "element 1",
        4,
        "a length of at most 0",
        "a length of 4294967295 with 0 bytes left",
    ),
    ("", 1, "bytes-count", "tensor", 0, "1 elements", "0 elements"),
    ("01000000 61", 3, "bytes-count", "tensor", 5, "3 elements", "1 elements"),
    ("01000000 61 00000000", 1, "bytes-count", "tensor", 5, "1 elements", "2 elements"),
    ("00000000", 0, "bytes-count", "tensor", 0, "0 elements", "1 elements"),
    ("01000000 61 0000", 1, "bytes-stray", "tensor", 5, "the end of the tensor after 1 elements", "2 more bytes"),
    ("01000000 61 ffffffff", 1, "bytes-stray", "tensor", 5, "the end of the tensor after 1 elements", "4 more bytes"),
    ("ff", 0, "bytes-stray", "tensor", 0, "the end of the tensor after 0 elements", "1 more bytes"),
    ("00000000", 10**30, "bytes-count", "tensor", 4, f"{10**30} elements", "1 elements"),
]


@pytest.mark.parametrize(("text", "count", "kind", "field", "offset", "expected", "actual"), BROKEN)
def test_broken_elements(text: str, count: int, kind: str, field: str, offset: int, expected: str, actual: str) -> None:
    with pytest.raises(DecodeError) as caught:
        strings.decode(bytes.fromhex(text), count)
    finding = caught.value.finding
    assert (finding.kind, finding.field, finding.offset) == (kind, field, offset)
    assert (finding.expected, finding.actual) == (expected, actual)
    assert str(caught.value) == str(finding)


@given(st.lists(st.binary(max_size=40)))
def test_round_trip_and_agreement_with_tritonclient(elements: list[bytes]) -> None:
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    data = strings.encode(elements)
    assert strings.decode(data, len(elements)) == elements
    assert deserialize_bytes_tensor(data).tolist() == elements
    if elements:
        assert serialize_byte_tensor(array).item() == data


@given(st.binary(max_size=40), st.integers(min_value=0, max_value=12))
def test_any_buffer_is_decoded_whole_or_refused(buffer: bytes, count: int) -> None:
    outcome = outcome_of(buffer, count)
    if isinstance(outcome, Finding):
        assert outcome.kind.startswith("bytes-")
        assert outcome.offset is not None
        assert 0 <= outcome.offset <= len(buffer)
    else:
        assert len(outcome) == count
        assert strings.encode(outcome) == buffer


def outcome_of(buffer: bytes, count: int) -> list[bytes] | Finding:
    try:
        return strings.decode(buffer, count)
    except DecodeError as error:
        return error.finding
