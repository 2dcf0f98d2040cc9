"""Tensors: bytes and JSON to elements and back, by the judge's codec and by the bundled server's."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator

from conformance.wire import strings
from conformance.wire import tensor as ours
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import DecodeError
from conformance.wire.json_data import from_json
from conformance.wire.json_text import parse_json
from conformance.wire.tensor import Tensor
from reference_server import tensors as theirs
from reference_server.errors import InferenceError
from reference_server.tensors import BINARY_ONLY
from tests.fuzz.subjects.http_messages import expect_equal, expect_shown

NAMES = tuple(DATATYPES)


def binary_tensors(data: bytes) -> None:
    """Both decoders take the same bytes for the same elements, and encoding them gives the bytes back."""
    datatype, shape, body = split_input(data)
    try:
        array = ours.decode(datatype, shape, body)
    except DecodeError:
        array = None
    try:
        theirs.check_size(datatype, shape, len(body))
        elements = theirs.decode_binary(datatype, shape, memoryview(body)).elements
    except InferenceError:
        # BOOL bytes other than 0 and 1 the judge reads, and reports.
        assert array is None or ours.find_bool_faults(array)
        return
    assert array is not None
    expect_equal(array, elements)
    made = Tensor.from_values("T", datatype, array, shape)
    assert bytes(made.to_bytes()) == body
    assert made.size == len(body)
    assert bytes(theirs.encode_binary(theirs.Tensor(datatype, shape, elements))) == body
    assert ours.find_first_difference(array, made.array, datatype) is None
    expect_survives_json(made)


def expect_survives_json(made: Tensor) -> None:
    """Assert that a tensor written as JSON and read again is the same, where JSON can carry it."""
    try:
        text = json.dumps(made.to_json(nested=bool(made.shape)))
    except ValueError:
        return
    data = parse_json(text.encode()).value
    again = from_json(made.datatype, made.shape, data)
    assert ours.find_first_difference(made.array, again, made.datatype) is None


def json_tensors(data: bytes) -> None:
    """JSON data that the strict server takes for a tensor are the same tensor to the judge."""
    datatype, shape, text = split_input(data)
    parsed = parse_json(text)
    if not parsed.is_json or parsed.findings:
        return
    try:
        array = from_json(datatype, shape, parsed.value)
    except DecodeError:
        array = None
    if datatype in BINARY_ONLY:
        return
    try:
        elements = theirs.decode_json(datatype, shape, json.loads(text)).elements
    except (InferenceError, UnicodeEncodeError):
        return
    assert array is not None
    expect_equal(array, elements)


def byte_elements(data: bytes) -> None:
    """The two readers of BYTES agree, and where they refuse, the finding has a place in the buffer."""
    count, buffer = (data[0] if data else 0), data[1:]
    try:
        elements = strings.decode(buffer, count)
    except DecodeError as error:
        expect_shown((error.finding,), len(buffer))
        elements = None
    try:
        split_up = theirs.split_elements(memoryview(buffer), count).tolist()
    except InferenceError:
        split_up = None
    assert elements == split_up
    if elements is not None:
        assert strings.encode(elements) == buffer
        assert strings.measure_size(buffer, count) == len(buffer)
        assert len(strings.find_offsets(buffer)) == count


def split_input(data: bytes) -> tuple[str, tuple[int, ...], bytes]:
    """Return datatype, shape and the rest: one byte, one byte for the rank, one for each dimension."""
    head = data[:2].ljust(2, b"\0")
    rank = head[1] % 4
    shape = tuple(data[2 : 2 + rank].ljust(rank, b"\0"))
    return NAMES[head[0] % len(NAMES)], shape, data[2 + rank :]


def whole_tensors() -> Iterator[bytes]:
    """Yield a tensor of each datatype in binary form."""
    for place, info in enumerate(DATATYPES.values()):
        for shape in ((), (2,), (1, 3), (2, 0)):
            count = math.prod(shape)
            body = struct.pack("<I2s", 2, b"ab") * count if info.size is None else b"\1" * info.size * count
            yield bytes((place, len(shape), *shape)) + body


def whole_json() -> Iterator[bytes]:
    """Yield a tensor of each datatype as JSON."""
    texts = ("[1,0]", "[1.0,2e0]", "[[1],[0]]", '["a","\\u00e9"]', "[true,false]", "[-1,3.4e38]", "[65504,65520]")
    for place in range(len(NAMES)):
        yield from (bytes((place, 1, 2)) + text.encode() for text in texts)
