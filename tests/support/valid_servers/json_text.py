"""Answers with other JSON text of the same meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from reference_server.faults import fault as variation
from reference_server.tensors import Tensor

Answer = dict[str, Any]


@variation("response.encode")
def json_is_indented(_: Any, answer: Answer) -> bytes:
    """The server indents the JSON of answers."""
    return json.dumps(answer, ensure_ascii=False, indent=2).encode()


@variation("response.encode")
def json_is_escaped(_: Any, answer: Answer) -> bytes:
    """The server escapes all slashes and non-ASCII characters."""
    return json.dumps(answer).replace("/", "\\/").encode()


@variation("response.encode")
def members_are_sorted_backwards(_: Any, answer: Answer) -> bytes:
    """The server writes the members of every object in reverse alphabetical order."""
    return json.dumps(_backwards(answer), ensure_ascii=False).encode()


def _backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _backwards(value[name]) for name in sorted(value, reverse=True)}
    return [_backwards(item) for item in value] if isinstance(value, list) else value


@variation("response.encode")
def blanks_stand_around_the_json(original: Any, answer: Answer) -> bytes:
    """The server writes white space around the JSON, and the inference header counts the white space."""
    return b" \n" + bytes(original(answer)) + b"\r\n\t "


@variation("tensors.encode_json")
def data_are_nested(original: Any, tensor: Tensor) -> list[Any]:
    """The server nests JSON data like the shape."""
    items = iter(original(tensor))
    return list(_nested(tensor.shape, items)) if tensor.shape else list(items)


@variation("tensors.encode_json", "tensors.decode_json")
def fp16_in_json_has_five_digits(original: Any, *arguments: Any) -> Any:
    """The server reads FP16 elements in JSON, and writes them with five significant digits."""
    return _carry_fp16(original, arguments, lambda element: float(f"{element:.5g}"))


@variation("tensors.encode_json", "tensors.decode_json")
def fp16_in_json_is_widened(original: Any, *arguments: Any) -> Any:
    """The server reads FP16 elements in JSON, and writes all digits of their values."""
    return _carry_fp16(original, arguments, float)


def _carry_fp16(original: Any, arguments: tuple[Any, ...], write: Callable[[Any], float]) -> Any:
    if isinstance(tensor := arguments[0], Tensor):  # encode_json
        is_fp16 = tensor.datatype == "FP16" and np.isfinite(tensor.elements).all()
        return [write(element) for element in tensor.elements] if is_fp16 else original(tensor)
    datatype, shape, data = arguments
    if datatype != "FP16":
        return original(*arguments)
    return Tensor(datatype, shape, original("FP64", shape, data).elements.astype("<f2"))


def _nested(shape: Sequence[int], items: Iterator[Any]) -> Any:
    return [_nested(shape[1:], items) for _ in range(shape[0])] if shape else next(items)


def _respelled(answer: bytes, pattern: str, spelling: str) -> bytes:
    """Return the JSON with the numbers of its data in another spelling."""
    return re.sub(rb'"data":\[[^"]*?\]', lambda data: re.sub(pattern.encode(), spelling.encode(), data.group()), answer)


@variation("response.encode")
def integers_have_a_point(original: Any, answer: Answer) -> bytes:
    """The server writes integers in JSON data with a decimal point, such as 1.0."""
    return _respelled(original(answer), r"(?<![\d.e+-])(-?\d{1,15})(?=[,\]])", r"\1.0")


@variation("response.encode")
def integers_have_an_exponent(original: Any, answer: Answer) -> bytes:
    """The server writes integers in JSON data with an exponent, such as 1e0."""
    return _respelled(original(answer), r"(?<![\d.e+-])(-?\d{1,15})(?=[,\]])", r"\1e0")


@variation("response.encode")
def whole_floats_have_no_point(original: Any, answer: Answer) -> bytes:
    """The server writes floats without a fraction as integers in JSON data."""
    return _respelled(original(answer), r"(?<![\d.e-])([1-9]\d{0,14})\.0(?=[,\]])", r"\1")


@variation("tensors.encode_json")
def fp32_has_nine_digits(original: Any, tensor: Tensor) -> list[Any]:
    """The server writes FP32 into JSON with nine digits, which is enough to read the same value."""
    items: list[Any] = original(tensor)
    return [float(f"{item:.9g}") for item in items] if tensor.datatype == "FP32" else items


@variation("tensors.encode_json", breaks="OIP-NUMBER-EXACT")
def fp32_of_six_digits(original: Any, tensor: Tensor) -> list[Any]:
    """The server writes FP32 into JSON with six significant digits, the default of C++ streams."""
    items: list[Any] = original(tensor)
    return [float(f"{item:.6g}") for item in items] if tensor.datatype == "FP32" else items


@variation("response.encode")
def json_is_indented_with_tabs(_: Any, answer: Answer) -> bytes:
    """The server indents the JSON of answers with tabs, and ends its lines with CR LF."""
    return json.dumps(answer, ensure_ascii=False, indent="\t").replace("\n", "\r\n").encode()


@variation("response.encode")
def zero_is_negative(original: Any, answer: Answer) -> bytes:
    """The server writes the integer 0 in JSON data as -0."""
    return _respelled(original(answer), r"(?<![\d.e-])(0)(?=[,\]])", r"-\1")


@variation("tensors.encode_json")
def fp64_has_seventeen_digits(original: Any, tensor: Tensor) -> list[Any]:
    """The server writes FP64 into JSON with seventeen digits."""
    items: list[Any] = original(tensor)
    return [float(f"{item:.17g}") for item in items] if tensor.datatype == "FP64" else items
