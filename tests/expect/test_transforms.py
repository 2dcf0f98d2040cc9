"""What a wrong tensor is, where it is the right one in another guise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.expect.difference import find_difference
from conformance.expect.transforms import describe_misplacement, describe_transform
from conformance.wire.response import parse
from conformance.wire.tensor import Tensor


def array(datatype: str, elements: list[Any], shape: tuple[int, ...] | None = None) -> np.ndarray[Any, Any]:
    return Tensor.from_values("X", datatype, elements, shape or (len(elements),)).array


@pytest.mark.parametrize(
    ("datatype", "shape", "right", "wrong", "words"),
    [
        ("INT16", (2,), [1, 2], [256, 512], "with the bytes of each element reversed (big-endian)"),
        ("INT8", (2, 3), [1, 2, 3, 4, 5, 6], [1, 4, 2, 5, 3, 6], "in column-major order"),
        ("FP32", (4,), [1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0], "in reverse order"),
        ("FP64", (1,), [0.1], [0.10000000149011612], "rounded to 32 bits"),
        ("INT64", (1,), [2**53 + 1], [2**53], "rounded to double precision"),
        ("INT64", (2,), [2**32 + 7, 1], [7, 1], "truncated to 32 bits"),
        ("INT32", (4,), [1, 2, 3, 4], [4, 1, 2, 3], "shifted by 1 element towards the end"),
        ("INT32", (5,), [1, 2, 3, 4, 5], [3, 4, 5, 1, 2], "shifted by 2 elements towards the beginning"),
        ("INT32", (5,), [1, 2, 3, 4, 5], [1, 2, 3, 4, 0], "truncated after 4 elements and filled with zeros"),
        ("INT32", (4,), [1, 2, 3, 4], [0, 0, 0, 0], "with all elements zero"),
        ("INT64", (5,), [1, 2, 0, 2, 1], [1, 0, 0, 0, 0], ""),  # classes of samples
        ("INT64", (5,), [1, 2, 0, 2, 1], [0, 0, 0, 0, 0], ""),
        ("INT64", (4,), [0, 1, 0, 1], [1, 0, 1, 0], ""),
        ("BYTES", (2,), [b"a\0b", b"c"], [b"a", b"c"], "with each string truncated at its first NUL"),
        ("BYTES", (1,), ["é".encode()], ["Ã©".encode()], "decoded as Latin-1 instead of UTF-8 and encoded again"),
        ("INT32", (2,), [1, 2], [5, 9], ""),
        ("INT32", (2,), [7, 7], [7, 8], ""),
        ("FP32", (1,), [float("nan")], [1.0], ""),
    ],
)
def test_what_is_recognised(
    datatype: str, shape: tuple[int, ...], right: list[Any], wrong: list[Any], words: str
) -> None:
    assert describe_transform(array(datatype, right, shape), array(datatype, wrong, shape), datatype) == words


def test_a_signalling_nan_is_compared_without_a_warning() -> None:
    bits = [np.array(elements, "<u2").view(array("BF16", [1.0]).dtype) for elements in ([0x7F81, 1], [0x7FC1, 2])]
    assert describe_transform(bits[0], bits[1], "BF16") == ""


def test_other_shapes_are_not_compared() -> None:
    assert describe_transform(array("INT32", [1, 2]), array("INT32", [1, 2, 3]), "INT32") == ""


def test_bytes_that_stand_elsewhere() -> None:
    assert describe_misplacement(b"abcd", b"{}....abcd", 2) == "its bytes are at offset 6 of the answer, not at 2"
    assert [
        describe_misplacement(*case) for case in ((b"abcd", b"abcd", 0), (b"abcd", b"x", 0), (b"ab", b"{}ab", 0))
    ] == ["", "", ""]


def test_the_message_says_so() -> None:
    head = b'{"outputs":[{"name":"X","datatype":"INT32","shape":[2],"parameters":{"binary_data_size":8}}]}'
    body = head + bytes.fromhex("00000001 00000002")
    answer = parse(body, str(len(head)))
    found = find_difference(Tensor.from_values("X", "INT32", [1, 2]), answer.output("X"), body)
    assert found is not None
    assert found.actual.endswith("; it is the expected tensor with the bytes of each element reversed (big-endian)")
