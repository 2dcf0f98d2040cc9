"""Answers with other JSON text of the same meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from reference_server.faults import Fault, steps
from reference_server.faults import fault as variation
from reference_server.tensors import Tensor


def _backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _backwards(value[name]) for name in sorted(value, reverse=True)}
    return [_backwards(item) for item in value] if isinstance(value, list) else value


def _nested(shape: Sequence[int], items: Iterator[Any]) -> Any:
    return [_nested(shape[1:], items) for _ in range(shape[0])] if shape else next(items)


def respell_numbers(pattern: str, spelling: str) -> Fault:
    """Return a server that writes the numbers of JSON data in another spelling."""

    def respell(answer: bytes) -> bytes:
        data = re.compile(rb'"data":\[[^"]*?\]')
        return data.sub(lambda found: re.sub(pattern.encode(), spelling.encode(), found.group()), answer)

    return steps.ENCODE.after((), respell)


def write_digits(datatype: str, count: int, breaks: str = "") -> Fault:
    """Return a server that writes floats of a datatype with so many significant digits."""
    return steps.ENCODE_JSON.after(
        breaks or (),
        lambda items: [float(f"{item:.{count}g}") for item in items],
        when=lambda tensor: tensor.datatype == datatype,
    )


json_is_indented = steps.ENCODE.instead(
    (), lambda answer: json.dumps(answer, ensure_ascii=False, indent=2).encode()
).says("The server indents the JSON of answers.")
json_is_escaped = steps.ENCODE.instead((), lambda answer: json.dumps(answer).replace("/", "\\/").encode()).says(
    "The server escapes all slashes and non-ASCII characters."
)
members_are_sorted_backwards = steps.ENCODE.instead(
    (), lambda answer: json.dumps(_backwards(answer), ensure_ascii=False).encode()
).says("The server writes the members of every object in reverse alphabetical order.")
blanks_stand_around_the_json = steps.ENCODE.after((), lambda answer: b" \n" + answer + b"\r\n\t ").says(
    "The server writes white space around the JSON, and the inference header counts the white space."
)
data_are_nested = steps.ENCODE_JSON.after(
    (), lambda items, tensor: list(_nested(tensor.shape, iter(items))), when=lambda tensor: tensor.shape
).says("The server nests JSON data like the shape.")


@variation(steps.ENCODE_JSON, steps.DECODE_JSON)
def fp16_in_json_has_five_digits(original: Any, *arguments: Any) -> Any:
    """The server reads FP16 elements in JSON, and writes them with five significant digits."""
    return _carry_fp16(original, arguments, lambda element: float(f"{element:.5g}"))


@variation(steps.ENCODE_JSON, steps.DECODE_JSON)
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


integers_have_a_point = respell_numbers(r"(?<![\d.e+-])(-?\d{1,15})(?=[,\]])", r"\1.0").says(
    "The server writes integers in JSON data with a decimal point, such as 1.0."
)
integers_have_an_exponent = respell_numbers(r"(?<![\d.e+-])(-?\d{1,15})(?=[,\]])", r"\1e0").says(
    "The server writes integers in JSON data with an exponent, such as 1e0."
)
whole_floats_have_no_point = respell_numbers(r"(?<![\d.e-])([1-9]\d{0,14})\.0(?=[,\]])", r"\1").says(
    "The server writes floats without a fraction as integers in JSON data."
)
fp32_has_nine_digits = write_digits("FP32", 9).says(
    "The server writes FP32 into JSON with nine digits, which is enough to read the same value."
)
fp32_of_six_digits = write_digits("FP32", 6, "OIP-NUMBER-EXACT").says(
    "The server writes FP32 into JSON with six significant digits, the default of C++ streams."
)
json_is_indented_with_tabs = steps.ENCODE.instead(
    (), lambda answer: json.dumps(answer, ensure_ascii=False, indent="\t").replace("\n", "\r\n").encode()
).says("The server indents the JSON of answers with tabs, and ends its lines with CR LF.")
zero_is_negative = respell_numbers(r"(?<![\d.e-])(0)(?=[,\]])", r"-\1").says(
    "The server writes the integer 0 in JSON data as -0."
)
fp64_has_seventeen_digits = write_digits("FP64", 17).says("The server writes FP64 into JSON with seventeen digits.")
