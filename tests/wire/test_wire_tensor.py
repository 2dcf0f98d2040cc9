"""Tensors: memory is shared, not copied; shapes of every rank; JSON values; what a caller may not do."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from conformance.wire.datatypes import DATATYPES, FLOATS
from conformance.wire.finding import DecodeError
from conformance.wire.tensor import Tensor, decode, find_bool_faults, find_first_difference, from_json
from tests.support.tables import on_each

NATIVE = [name for name, datatype in DATATYPES.items() if datatype.size is not None]
SHAPES = [(), (6,), (2, 3), (1, 2, 3, 1), (0,), (2, 0, 3)]


@on_each(list(product(NATIVE, SHAPES)))
def test_encoding_shares_the_arrays_memory(datatype: str, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype=DATATYPES[datatype].dtype)
    tensor = Tensor.from_values("T", datatype, array)
    assert tensor.array is array
    written = np.frombuffer(tensor.to_bytes(), dtype=np.uint8)
    assert np.shares_memory(written, array) == bool(array.size)
    assert written.size == tensor.size == array.size * array.itemsize


@on_each(list(product(NATIVE, SHAPES, [bytes, bytearray, memoryview])))
def test_decoding_shares_the_buffers_memory(datatype: str, shape: tuple[int, ...], kind: Any) -> None:
    buffer = kind(bytes(math.prod(shape) * DATATYPES[datatype].dtype.itemsize))
    array = decode(datatype, shape, buffer)
    assert array.shape == shape
    assert np.shares_memory(array, np.frombuffer(buffer, dtype=np.uint8)) == bool(array.size)


def test_an_array_in_another_order_is_written_row_major() -> None:
    tensor = Tensor.from_values("T", "INT16", np.arange(6, dtype="<i2").reshape(2, 3).T)
    assert bytes(tensor.to_bytes()).hex(" ", 2) == "0000 0300 0100 0400 0200 0500"
    assert tensor.to_json() == [0, 3, 1, 4, 2, 5]


# datatype, values, shape given, shape expected, bytes
MADE = [
    ("INT32", 7, None, (), "07000000"),
    ("INT32", [1, 2], (2, 1), (2, 1), "01000000 02000000"),
    ("INT32", [], (0, 3), (0, 3), ""),
    ("UINT8", np.arange(3), None, (3,), "00 01 02"),
    ("FP16", np.array([1.5]), None, (1,), "003e"),
    ("BYTES", "a", None, (), "01000000 61"),
    ("BYTES", [["a"], [b"\xff"]], None, (2, 1), "01000000 61 01000000 ff"),
    ("BYTES", np.array([b"ab", b""], dtype=object), (1, 2), (1, 2), "02000000 6162 00000000"),
    ("BYTES", [], (2, 0), (2, 0), ""),
    ("BOOL", [[True], [False]], None, (2, 1), "01 00"),
]


@pytest.mark.parametrize(("datatype", "values", "shape", "expected", "text"), MADE)
def test_from_values(
    datatype: str, values: Any, shape: tuple[int, ...] | None, expected: tuple[int, ...], text: str
) -> None:
    tensor = Tensor.from_values("T", datatype, values, shape)
    assert tensor.shape == expected
    assert tensor.elements == math.prod(expected)
    assert bytes(tensor.to_bytes()) == bytes.fromhex(text)
    assert tensor.size == len(bytes.fromhex(text))


@pytest.mark.parametrize(
    ("datatype", "values", "shape"),
    [
        ("UINT8", np.array([256]), None),
        ("UINT8", np.array([-1]), None),
        ("INT32", np.array([1.5]), None),
        ("INT32", [1.5], None),
        ("INT8", [128], None),
        ("INT32", [1, 2, 3], (2,)),
        ("BYTES", [1], None),
        ("STRING", ["a"], None),
    ],
)
def test_from_values_refuses(datatype: str, values: Any, shape: tuple[int, ...] | None) -> None:
    with pytest.raises((ValueError, OverflowError)):
        Tensor.from_values("T", datatype, values, shape)


def test_array_shape_and_datatype_must_belong_together() -> None:
    array = np.zeros(2, dtype="<i4")
    with pytest.raises(ValueError, match="is not INT64"):
        Tensor("T", "INT64", (2,), array)
    with pytest.raises(ValueError, match="is not INT32"):
        Tensor("T", "INT32", (1, 2), array)


# datatype, elements, flat JSON text
JSON_TEXTS = [
    ("BOOL", [True, False], "[true, false]"),
    ("INT64", [2**53 + 1, -(2**63)], "[9007199254740993, -9223372036854775808]"),
    ("UINT64", [2**64 - 1], "[18446744073709551615]"),
    ("FP32", [0.1, -0.0, 6.8], "[0.10000000149011612, -0.0, 6.800000190734863]"),
    ("FP16", [0.1], "[0.0999755859375]"),
    ("BF16", [0.1], "[0.10009765625]"),
    ("FP64", [0.1, 5e-324], "[0.1, 5e-324]"),
    ("FP64", [math.nan, math.inf, -math.inf], "[NaN, Infinity, -Infinity]"),
    ("BYTES", ["ü", "", "a\0"], '["\\u00fc", "", "a\\u0000"]'),
]


@pytest.mark.parametrize(("datatype", "elements", "text"), JSON_TEXTS)
def test_to_json(datatype: str, elements: list[Any], text: str) -> None:
    tensor = Tensor.from_values("T", datatype, elements)
    assert json.dumps(tensor.to_json()) == text
    again = from_json(datatype, tensor.shape, json.loads(text))
    assert find_first_difference(tensor.array, again, datatype) is None


@pytest.mark.parametrize(("datatype", "value"), [("INT16", 5), ("BYTES", "a"), ("BF16", 1.5)])
def test_json_nests_as_the_shape_does(datatype: str, value: Any) -> None:
    assert Tensor.from_values("T", datatype, [[value], [value]]).to_json(nested=True) == [[value], [value]]
    assert Tensor.from_values("T", datatype, [[value], [value]]).to_json() == [value, value]
    assert Tensor.from_values("T", datatype, value).to_json(nested=True) == [value]
    assert Tensor.from_values("T", datatype, [], (2, 0)).to_json(nested=True) == [[], []]


def test_bytes_that_are_not_utf8_have_no_json() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        Tensor.from_values("T", "BYTES", [b"\xff"]).to_json()


# datatype, shape, data, elements
READ = [
    ("INT32", [2, 2], [1, 2, 3, 4], [[1, 2], [3, 4]]),
    ("INT32", [2, 2], [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
    ("INT32", [4], [[[1], [2]], 3, [[4]]], [1, 2, 3, 4]),
    ("INT32", [], [7], 7),
    ("INT32", [], 7, 7),
    ("INT32", [0, 2], [], []),
    ("INT32", [0, 2], [[], []], []),
    ("INT8", [3], [1, 1.0, 1e0], [1, 1, 1]),
    ("FP32", [3], [1, 2.5, -0.0], [1.0, 2.5, -0.0]),
    ("FP32", [2], [3.4028235e38, 0.1], [3.4028234663852886e38, 0.10000000149011612]),
    ("FP16", [2], [65519.0, 65504], [65504.0, 65504.0]),
    ("FP64", [2], [2**53 + 1, -math.inf], [2.0**53, -math.inf]),
    ("BOOL", [2], [True, False], [True, False]),
    ("BYTES", [2], ["ü", ""], [b"\xc3\xbc", b""]),
    ("BYTES", [1], ["a\udcff"], [b"a\xff"]),
]


@pytest.mark.parametrize(("datatype", "shape", "data", "elements"), READ)
def test_from_json(datatype: str, shape: list[int], data: Any, elements: Any) -> None:
    array = from_json(datatype, shape, data)
    assert array.tolist() == elements
    assert array.shape == tuple(shape)
    assert array.dtype == DATATYPES[datatype].dtype


# datatype, shape, data, kind, field, expected, actual
REFUSED = [
    ("INT8", [2], [1, 128], "data-value", "data element 1", "INT8: an integer from -128 to 127", "128"),
    ("UINT8", [1], [-1], "data-value", "data element 0", "UINT8: an integer from 0 to 255", "-1"),
    ("UINT8", [1], [1.5], "data-value", "data element 0", "UINT8: an integer from 0 to 255", "1.5"),
    ("UINT8", [1], [math.nan], "data-value", "data element 0", "UINT8: an integer from 0 to 255", "NaN"),
    ("UINT8", [1], [math.inf], "data-value", "data element 0", "UINT8: an integer from 0 to 255", "Infinity"),
    ("UINT8", [1], [True], "data-value", "data element 0", "UINT8: an integer from 0 to 255", "true"),
    ("UINT8", [1], ["1"], "data-value", "data element 0", "UINT8: an integer from 0 to 255", '"1"'),
    ("FP32", [2], [[0], [1e39]], "data-value", "data element 1", "FP32: a number within its range", "1e+39"),
    ("FP16", [1], [65520], "data-value", "data element 0", "FP16: a number within its range", "65520"),
    ("BF16", [1], [3.4e38], "data-value", "data element 0", "BF16: a number within its range", "3.4e+38"),
    (
        "FP64",
        [1],
        [10**400],
        "data-value",
        "data element 0",
        "FP64: a number within its range",
        "an integer of 1329 bits",
    ),
    ("FP64", [1], [None], "data-value", "data element 0", "FP64: a number within its range", "null"),
    ("FP64", [1], [False], "data-value", "data element 0", "FP64: a number within its range", "false"),
    ("BOOL", [1], [2], "data-value", "data element 0", "BOOL: true or false", "2"),
    ("BYTES", [1], [1], "data-value", "data element 0", "BYTES: a string that can be encoded as UTF-8", "1"),
    (
        "BYTES",
        [1],
        ["\ud800"],
        "data-value",
        "data element 0",
        "BYTES: a string that can be encoded as UTF-8",
        '"\\ud800"',
    ),
    ("INT8", [1], [{}], "data-value", "data element 0", "INT8: an integer from -128 to 127", "an object"),
    ("INT8", [1], 5, "data-value", "data", "an array", "5"),
    ("INT8", [], {}, "data-value", "data", "an array", "an object"),
    ("INT8", [2], [1], "data-count", "data", "2 elements for the shape [2]", "1 elements"),
    ("INT8", [2, 0], [1], "data-count", "data", "0 elements for the shape [2, 0]", "1 elements"),
    (
        "INT8",
        [2**62, 8],
        [1],
        "data-count",
        "data",
        "36893488147419103232 elements for the shape [4611686018427387904, 8]",
        "1 elements",
    ),
]


@pytest.mark.parametrize(("datatype", "shape", "data", "kind", "field", "expected", "actual"), REFUSED)
def test_from_json_refuses(
    datatype: str, shape: list[int], data: Any, kind: str, field: str, expected: str, actual: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        from_json(datatype, shape, data)
    finding = caught.value.finding
    assert (finding.kind, finding.field, finding.offset) == (kind, field, None)
    assert (finding.expected, finding.actual) == (expected, actual)


def test_decode_refuses_another_size() -> None:
    with pytest.raises(DecodeError) as caught:
        decode("INT32", [2, 2**60], bytes(7))
    assert caught.value.finding.kind == "size-mismatch"
    assert caught.value.finding.actual == "7 bytes"


def test_a_bool_byte_of_2_is_decoded_and_reported() -> None:
    array = decode("BOOL", [2, 2], bytes.fromhex("01 00 02 ff"))
    (finding,) = find_bool_faults(array)
    assert (finding.kind, finding.field, finding.offset) == ("bool-byte", "element 2", 2)
    assert (finding.expected, finding.actual) == ("00 or 01", "02")
    assert array.tolist() == [[True, False], [True, True]]
    assert find_bool_faults(decode("BOOL", [2], bytes.fromhex("01 00"))) == ()


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Return tensors of every datatype and small shapes, with any bit pattern and any bytes."""
    datatype = draw(st.sampled_from(sorted(DATATYPES)))
    shape = draw(npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    size = math.prod(shape)
    if datatype == "BYTES":
        return Tensor.from_values(
            "T", datatype, draw(st.lists(st.binary(max_size=9), min_size=size, max_size=size)), shape
        )
    if datatype == "BOOL":
        return Tensor.from_values("T", datatype, draw(st.lists(st.booleans(), min_size=size, max_size=size)), shape)
    dtype = DATATYPES[datatype].dtype
    raw = draw(st.binary(min_size=size * dtype.itemsize, max_size=size * dtype.itemsize))
    return Tensor("T", datatype, shape, np.frombuffer(raw, dtype=dtype).reshape(shape))


@given(tensors())
def test_binary_round_trip(tensor: Tensor) -> None:
    written = tensor.to_bytes()
    assert len(written) == tensor.size
    again = decode(tensor.datatype, tensor.shape, written)
    assert again.shape == tensor.shape
    assert bytes(Tensor("T", tensor.datatype, tensor.shape, again).to_bytes()) == bytes(written)


@given(tensors(), st.booleans())
def test_json_round_trip(tensor: Tensor, nested: bool) -> None:
    try:
        text = json.dumps(tensor.to_json(nested=nested))
    except UnicodeDecodeError:
        assert tensor.datatype == "BYTES"
        return
    again = from_json(tensor.datatype, tensor.shape, json.loads(text))
    assert find_first_difference(tensor.array, again, tensor.datatype) is None
    assert again.shape == tensor.shape


def test_the_rows_cover_every_floating_point_datatype() -> None:
    assert {row[0] for row in REFUSED} >= {*FLOATS, "BF16"}
    assert DATATYPES["BF16"].dtype == ml_dtypes.bfloat16
