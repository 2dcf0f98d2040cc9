"""Every datatype against bytes written by hand, and against the encoders of tritonclient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tritonclient.http import InferInput

from conformance.wire import tensor
from conformance.wire.datatypes import DATATYPES, FLOATS, INTEGERS, OIP_DATATYPES, lookup
from conformance.wire.tensor import Tensor, decode, find_first_difference

# datatype, elements, their binary form; little-endian, so that 1 in 16 bits is "0100"
HAND = [
    ("BOOL", [True, False, True], "01 00 01"),
    ("UINT8", [0, 1, 255], "00 01 ff"),
    ("UINT16", [1, 0x0102, 65535], "0100 0201 ffff"),
    ("UINT32", [1, 0x01020304, 2**32 - 1], "01000000 04030201 ffffffff"),
    ("UINT64", [0x0102030405060708, 2**53 + 1, 2**64 - 1], "0807060504030201 0100000000002000 ffffffffffffffff"),
    ("INT8", [-128, -1, 127], "80 ff 7f"),
    ("INT16", [-32768, -2, 0x0102], "0080 feff 0201"),
    ("INT32", [-(2**31), -2, 0x01020304], "00000080 feffffff 04030201"),
    ("INT64", [-(2**63), -2, 2**53 + 1], "0000000000000080 feffffffffffffff 0100000000002000"),
    ("FP16", [1.5, -2.0, 65504.0], "003e 00c0 ff7b"),
    ("FP16", [-0.0, 2.0**-24, math.inf, -math.inf], "0080 0100 007c 00fc"),
    ("FP32", [1.0, -2.5, 0.10000000149011612], "0000803f 000020c0 cdcccc3d"),
    ("FP32", [-0.0, 2.0**-149, math.inf, -math.inf], "00000080 01000000 0000807f 000080ff"),
    ("FP64", [1.0, -2.5, 0.1], "000000000000f03f 00000000000004c0 9a9999999999b93f"),
    ("FP64", [-0.0, 5e-324, math.inf], "0000000000000080 0100000000000000 000000000000f07f"),
    ("BF16", [1.5, -2.0, 3.140625], "c03f 00c0 4940"),
    ("BF16", [-0.0, 2.0**-133, math.inf, -math.inf], "0080 0100 807f 80ff"),
    ("BYTES", ["abc", "", b"\x00\xff"], "03000000 616263 00000000 02000000 00ff"),
    ("BYTES", ["ü", b"12"], "02000000 c3bc 02000000 3132"),
]

NANS = [("FP16", "007e"), ("FP16", "01fd"), ("FP32", "0000c07f"), ("FP32", "010080ff"), ("FP64", "010000000000f87f")]


@pytest.mark.parametrize(("datatype", "elements", "text"), HAND)
def test_elements_become_these_bytes(datatype: str, elements: list[Any], text: str) -> None:
    tensor = Tensor.from_values("T", datatype, elements)
    assert bytes(tensor.to_bytes()) == bytes.fromhex(text)
    assert tensor.size == len(bytes.fromhex(text))


@pytest.mark.parametrize(("datatype", "elements", "text"), HAND)
def test_bytes_become_these_elements(datatype: str, elements: list[Any], text: str) -> None:
    array = decode(datatype, [len(elements)], bytes.fromhex(text))
    if datatype == "BYTES":
        elements = [element.encode() if isinstance(element, str) else element for element in elements]
    assert array.tolist() == elements
    assert array.dtype == DATATYPES[datatype].dtype
    if datatype in FLOATS:
        assert np.signbit(array).tolist() == [math.copysign(1, element) < 0 for element in elements]


@pytest.mark.parametrize(("datatype", "text"), [*NANS, ("BF16", "c07f")])
def test_nan_payloads_pass_unchanged(datatype: str, text: str) -> None:
    array = decode(datatype, [1], bytes.fromhex(text))
    assert np.isnan(array).all()
    assert bytes(Tensor("T", datatype, (1,), array).to_bytes()) == bytes.fromhex(text)


@pytest.mark.parametrize(("datatype", "elements", "text"), HAND)
def test_tritonclient_writes_the_same(datatype: str, elements: list[Any], text: str) -> None:
    tensor = Tensor.from_values("T", datatype, elements)
    other = InferInput("T", list(tensor.shape), datatype)
    other.set_data_from_numpy(tensor.array)
    assert other._get_binary_data() == bytes.fromhex(text) == bytes(tensor.to_bytes())


def test_the_table_has_the_protocols_names_sizes_and_order() -> None:
    sizes = {name: datatype.size for name, datatype in DATATYPES.items()}
    assert list(sizes.items()) == [
        ("BOOL", 1),
        ("UINT8", 1),
        ("UINT16", 2),
        ("UINT32", 4),
        ("UINT64", 8),
        ("INT8", 1),
        ("INT16", 2),
        ("INT32", 4),
        ("INT64", 8),
        ("FP16", 2),
        ("FP32", 4),
        ("FP64", 8),
        ("BYTES", None),
        ("BF16", 2),
    ]
    assert len(OIP_DATATYPES) == 13
    assert set(OIP_DATATYPES) == {*INTEGERS, *FLOATS, "BOOL", "BYTES"}


@pytest.mark.parametrize("name", ["STRING", "int32", "", "FP8"])
def test_an_unknown_datatype_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown datatype '{name}'"):
        lookup(name)


# expected, actual, the first difference in binary data, and in JSON data
DIFFERENCES = [
    ("FP32", [0.0, 1.0], [-0.0, 1.0], 0, None),
    ("FP16", [0.0, 1.0], [-0.0, 2.0], 0, 1),
    ("BF16", [1.0, -0.0], [1.0, 0.0], 1, None),
    ("FP64", [math.nan, 1.0], [-math.nan, 1.0], None, None),
    ("FP64", [math.nan, 1.0], [1.0, 1.0], 0, 0),
    ("BF16", [math.nan], [math.nan], None, None),
    ("INT64", [2**53, 5], [2**53 + 1, 5], 0, 0),
    ("BOOL", [True, False], [True, True], 1, 1),
    ("BYTES", [b"a", b"b\x00"], [b"a", b"b"], 1, 1),
    ("BYTES", [b"a", b""], [b"a", b""], None, None),
    ("INT32", [], [], None, None),
    ("INT32", [1, 2], [1], 1, 1),
    ("INT32", [1], [1, 2], 1, 1),
]


@pytest.mark.parametrize(("datatype", "expected", "actual", "binary", "json"), DIFFERENCES)
def test_first_difference(
    datatype: str, expected: list[Any], actual: list[Any], binary: int | None, json: int | None
) -> None:
    left, right = Tensor.from_values("T", datatype, expected).array, Tensor.from_values("T", datatype, actual).array
    assert find_first_difference(left, right, datatype) == binary
    assert find_first_difference(left, right, datatype, json=True) == json


@pytest.mark.parametrize("datatype", ["FP32", "INT8", "BYTES"])
@pytest.mark.parametrize("place", [0, 2, 3, 9])
def test_first_difference_is_found_in_any_block(datatype: str, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor, "BLOCK_ELEMENTS", 3)
    left = Tensor.from_values("T", datatype, [b"x"] * 10 if datatype == "BYTES" else [1] * 10)
    right = left.array.copy()
    assert find_first_difference(left.array, right, datatype) is None
    right[place:] = b"y" if datatype == "BYTES" else 2
    assert find_first_difference(left.array, right, datatype) == place


def test_first_difference_counts_in_row_major_order_whatever_the_memory_order() -> None:
    left = np.arange(6, dtype="<i4").reshape(2, 3)
    right = np.asfortranarray(left)
    assert find_first_difference(left, right, "INT32") is None
    changed = right.copy(order="F")
    changed[1, 0] = 9
    assert find_first_difference(left, changed, "INT32") == 3


def test_nans_with_different_payloads_are_equal() -> None:
    left, right = decode("FP32", [1], bytes.fromhex("0000c07f")), decode("FP32", [1], bytes.fromhex("010080ff"))
    assert find_first_difference(left, right, "FP32") is None
