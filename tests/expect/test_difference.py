"""Where a value ends that JSON may bring near, and what a message says of one that is not: rows with the exact text."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from conformance.expect.difference import are_distinct, are_outputs_reordered, find_difference, find_largest_error
from conformance.transport.exchange import Exchange, Reply
from conformance.wire.finding import Finding
from conformance.wire.outputs import Output
from conformance.wire.request import INFERENCE_HEADER, Message
from conformance.wire.tensor import Tensor, decode

MAX_FINITE = {"FP16": 65504.0, "BF16": (2 - 2**-7) * 2.0**127, "FP32": 3.4028235e38, "FP64": 1.7976931348623157e308}


def output(tensor: Tensor) -> Output:
    """Return the tensor as an output that came as JSON."""
    return Output(0, tensor.name, tensor.datatype, tensor.shape, False, None, array=tensor.array)


def differ(datatype: str, expected: float, actual: float) -> bool:
    right, wrong = (Tensor.from_values("OUT", datatype, [value]) for value in (expected, actual))
    return find_difference(right, output(wrong), b"", through_json=True) is not None


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("datatype", MAX_FINITE)
def test_nothing_finite_is_near_infinity(datatype: str, sign: int) -> None:
    infinite, largest = sign * math.inf, sign * MAX_FINITE[datatype]
    assert differ(datatype, infinite, largest)
    assert differ(datatype, largest, infinite)
    assert differ(datatype, infinite, 1.0)
    assert differ(datatype, 1.0, infinite)
    assert differ(datatype, infinite, -infinite)
    assert differ(datatype, infinite, math.nan)
    assert differ(datatype, largest, -largest)
    assert not differ(datatype, infinite, infinite)
    assert not differ(datatype, largest, largest)


# A NaN whose quiet bit is not set: a server that reads a tensor at the wrong place answers with any bits.
SIGNALLING = {"FP16": b"\x01\x7c", "BF16": b"\xa0\x7f", "FP32": b"\0\0\xa0\x7f", "FP64": b"\1\0\0\0\0\0\xf0\x7f"}


@pytest.mark.parametrize("datatype", SIGNALLING)
def test_a_signalling_nan_is_compared_without_a_warning(datatype: str) -> None:
    nan = Tensor("OUT", datatype, (1,), decode(datatype, (1,), SIGNALLING[datatype]))
    one = Tensor.from_values("OUT", datatype, [1.0])
    assert find_difference(nan, output(nan), b"", through_json=True) is None
    assert find_difference(one, output(nan), b"", through_json=True) is not None
    assert find_difference(nan, output(one), b"", through_json=True) is not None


@pytest.mark.parametrize(
    ("datatype", "expected", "actual", "apart"),
    [
        ("FP32", 3.4028235e38, 3.402823e38, False),
        ("FP32", 3.4028235e38, 3.402821e38, False),
        ("FP32", 3.4028235e38, 3.40282e38, False),
        ("FP32", 3.4028235e38, 3.4028e38, True),
        ("FP32", 3.4028235e38, 3.4027e38, True),
        ("FP64", 1.7976931348623157e308, 1.797693134862315e308, False),
        ("FP64", 1.7976931348623157e308, 1.79769313486e308, True),
        ("FP32", 1e-45, 0.0, False),
        ("FP32", 1e-44, 0.0, True),
        ("FP16", 65504.0, 65472.0, False),
        ("FP16", 65504.0, 65408.0, True),
    ],
)
def test_huge_and_tiny_values_are_near_within_the_tolerance_or_a_unit_in_the_last_place(
    datatype: str, expected: float, actual: float, apart: bool
) -> None:
    assert differ(datatype, expected, actual) == apart


COUNT = Tensor.from_values("OUT", "INT32", list(range(1, 11)))
MATRIX = Tensor.from_values("OUT", "INT16", [[1, 2, 3], [4, 5, 6]])
LONG = b"x" * 50

# right, wrong; what the message expects, and what it says has come
TOLD = [
    (
        COUNT,
        Tensor.from_values("OUT", "INT32", [1, 2, 3, 4, 5, 6, 7, -8, 9, 10]),
        "element 7 of OUT INT32 [10] to be 8, in [... from element 5: 6, 7, 8, 9, ...]",
        "-8, in [... from element 5: 6, 7, -8, 9, ...]",
    ),
    (
        MATRIX,
        Tensor.from_values("OUT", "INT16", [[1, 4, 2], [5, 3, 6]]),
        "element [0, 1] of OUT INT16 [2, 3] to be 2, in [1, 2, 3, 4, ...]",
        "4, in [1, 4, 2, 5, ...]; it is the expected tensor in column-major order",
    ),
    (
        Tensor.from_values("OUT", "FP16", [65504.0, 0.1]),
        Tensor.from_values("OUT", "FP16", [7.5, 0.1]),
        "OUT FP16 [2] = [65504.0, 0.0999755859375]",
        "[7.5, 0.0999755859375]: element 0 differs",
    ),
    (
        Tensor.from_values("OUT", "BYTES", ["é\n", b"\xff\xfe"]),
        Tensor.from_values("OUT", "BYTES", [b"\xe9\n", b"\xff\xfe"]),
        'OUT BYTES [2] = ["é\\n", bytes ff fe]',
        "[bytes e9 0a, bytes ff fe]: element 0 differs",
    ),
    (
        Tensor.from_values("OUT", "BYTES", [LONG + b"a"]),
        Tensor.from_values("OUT", "BYTES", [LONG + b"b"]),
        'OUT BYTES [1] = ["xxxxxxxxxxxxxxxx"... (51 bytes)]',
        '["xxxxxxxxxxxxxxxx"... (51 bytes)]: element 0 differs from byte 50 on',
    ),
    (
        Tensor.from_values("OUT", "BYTES", ["x" * 15 + "é"]),
        Tensor.from_values("OUT", "BYTES", ["x" * 15]),
        'OUT BYTES [1] = ["xxxxxxxxxxxxxxx"... (17 bytes)]',
        '["xxxxxxxxxxxxxxx"]',
    ),
    (
        Tensor.from_values("OUT", "BOOL", [True, False]),
        Tensor("OUT", "BOOL", (2,), np.array([0x3C, 0], np.uint8).view(np.bool_)),
        "OUT BOOL [2] = [true, false]",
        "[byte 3c, false]: element 0 differs",
    ),
    (COUNT, Tensor.from_values("OUT", "INT32", [1]), "OUT with shape [10]", "shape [1]"),
    (COUNT, Tensor.from_values("OUT", "INT64", COUNT.array), "OUT with datatype INT32", "datatype INT64"),
    (COUNT, MATRIX, "OUT with datatype INT32 and shape [10]", "datatype INT16 and shape [2, 3]"),
]


@pytest.mark.parametrize(("right", "wrong", "expected", "actual"), TOLD)
def test_a_message_shows_the_first_wrong_element(right: Tensor, wrong: Tensor, expected: str, actual: str) -> None:
    found = find_difference(right, output(wrong), b"", through_json=False)
    assert found is not None
    assert (found.expected, found.actual) == (expected, actual)


def test_a_message_says_what_stands_where_there_is_no_datatype_or_shape() -> None:
    wrong = Finding("shape-invalid", "outputs[0].shape", None, "an array of dimensions", "[-1]")
    found = find_difference(COUNT, Output(0, "OUT", "", None, False, None, findings=(wrong,)), b"")
    assert found is not None
    assert (found.expected, found.actual) == ("OUT with datatype INT32 and shape [10]", "no datatype and shape [-1]")


NARROWER = {"FP16": "BF16", "FP32": "FP16", "FP64": "FP32"}


@pytest.mark.parametrize("value", [0.1, -3.0, 1e-6, 60000.0, "largest"])
@pytest.mark.parametrize("datatype", MAX_FINITE)
def test_a_computed_float_may_be_off_in_its_last_places(datatype: str, value: float | str) -> None:
    right = Tensor.from_values("OUT", datatype, [MAX_FINITE[datatype] if value == "largest" else value])
    bits = right.array.view(f"<i{right.array.itemsize}")
    for ulps, is_allowed in ((0, True), (-1, True), (-2, True), (-3, False)):
        found = output(replace(right, array=(bits + ulps).astype(bits.dtype).view(right.array.dtype)))
        computed, moved = (replace(right, is_computed=one) for one in (True, False))
        assert (find_difference(computed, found, b"", through_json=False) is None) is is_allowed
        assert (find_difference(moved, found, b"", through_json=False) is None) is (ulps == 0)


@pytest.mark.parametrize("datatype", NARROWER)
def test_a_computed_float_of_less_precision_is_wrong(datatype: str) -> None:
    right = replace(Tensor.from_values("OUT", datatype, [0.1, 1 / 3, 2 / 3, 100.1, 3.141]), is_computed=True)
    narrow = Tensor.from_values("", NARROWER[datatype], right.array.astype("<f8")).array
    found = output(replace(right, array=narrow.astype(right.array.dtype)))
    assert find_difference(right, found, b"", through_json=False) is not None


def test_computed_integers_and_strings_are_exact() -> None:
    one, other = (Tensor.from_values("OUT", "INT32", [value], ()) for value in (2, 3))
    assert find_difference(replace(one, is_computed=True), output(other), b"") is not None
    assert find_largest_error(replace(one, is_computed=True)) == 0


@pytest.mark.parametrize(
    ("second", "differs", "distinct"),
    [([1.0, 0.009], False, False), ([1.0, 0.05], True, False), ([1.0, 0.2], True, True), ([1.0], True, True)],
)
def test_noise_is_neither_a_difference_nor_a_distinction(second: list[float], differs: bool, distinct: bool) -> None:
    first, other = (
        Tensor("OUT", "FP32", (len(values),), np.array(values, "<f4"), is_approximate=True, tolerance=0.01)
        for values in ([1.0, 0.0], second)
    )
    assert (find_difference(first, output(other), b"") is not None) is differs
    assert are_distinct(first, other) is distinct


def test_outputs_in_another_order_are_found_though_their_last_bits_vary() -> None:
    sent = [Tensor.from_values(name, "FP32", values) for name, values in {"A": [1.5, 2.5], "B": [-3.0]}.items()]
    computed = [replace(tensor, is_computed=True) for tensor in sent]
    near = [replace(tensor, array=np.nextafter(tensor.array, np.float32(9))) for tensor in sent]
    members = [
        {"name": one.name, "datatype": "FP32", "shape": [*one.shape], "parameters": {"binary_data_size": one.size}}
        for one in sent
    ]
    text = json.dumps({"model_name": "m", "outputs": members}).encode()

    def answer(*tensors: Tensor) -> Reply:
        body = text + b"".join(bytes(tensor.to_bytes()) for tensor in tensors)
        return Reply(Exchange(0, Message("/p"), "http://x/p", 200, ((INFERENCE_HEADER, str(len(text))),), body))

    assert are_outputs_reordered(computed, answer(*near[::-1]))
    assert not are_outputs_reordered(sent, answer(*near[::-1]))
    assert not are_outputs_reordered(computed, answer(*near))
    assert not are_outputs_reordered(computed, answer(near[1], near[1]))
