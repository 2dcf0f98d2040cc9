"""Where the documents leave a point open, the other reading."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import fault as variation
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor

Answer = dict[str, Any]


@variation("request.parse_outputs")
def listed_outputs_are_json_by_default(original: Any, model: Any, request: Any) -> list[RequestedOutput]:
    """A listed output without binary_data is JSON, whatever binary_data_output says."""
    listed = {entry.get("name"): entry.get("parameters") or {} for entry in request.get("outputs") or []}
    return [
        RequestedOutput(wish.name, wish.binary, wish.classes)
        if wish.name not in listed or listed[wish.name].get("binary_data") is not None
        else RequestedOutput(wish.name, False, wish.classes)
        for wish in original(model, request)
    ]


@variation("members.whole")
def whole_numbers_may_have_a_point(original: Any, given: Any, name: str, least: int) -> Any:
    """A size of 16.0 is 16, and a number of classes of 2.0 is 2."""
    value = given.get(name)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return original(given, name, least)


@variation("members.whole")
def no_classes_means_the_tensor(original: Any, given: Any, name: str, least: int) -> Any:
    """A number of 0 classes turns classification off."""
    return None if name == "classification" and given.get(name) == 0 else original(given, name, least)


@variation("framing.BinaryData.finish", breaks="BIN-BODY-LONG")
def bytes_left_over_are_ignored(_: Any, binary: Any) -> None:
    """Bytes behind the last tensor of a request are ignored."""


@variation("request.parse", breaks="BIN-HEADER-WRONG-ON-JSON")
def headers_count_beside_binary_data_alone(original: Any, model: Any, values: Sequence[str], body: bytes) -> Any:
    """An inference header is not looked at where the whole body is JSON, but for one of 0."""
    if values == ["0"] or not body.endswith(b"}"):
        return original(model, values, body)
    try:
        document = json.loads(body)
    except ValueError:
        return original(model, values, body)
    return original(model, [] if isinstance(document, dict) else values, body)


@variation("request.parse_body")
def raw_strings_have_a_prefix(original: Any, model: Any, body: bytes) -> Any:
    """The body of a raw request to a model of one string is the string behind its length."""
    if len(model.inputs) != 1 or model.inputs[0].datatype != "BYTES":
        return original(model, body)
    if int.from_bytes(body[:4], "little") != len(body) - 4:
        raise InferenceError("the body is no string behind its length")
    return original(model, body[4:])


@variation("response.output_part")
def binary_outputs_have_an_empty_array_of_data(original: Any, *arguments: Any) -> Any:
    """A binary output has an array without elements, since the base protocol does not call `data` optional."""
    entry, data = original(*arguments)
    return entry | ({} if data is None else {"data": []}), data


@variation("tensors.encode_json")
def nan_is_null(original: Any, tensor: Tensor) -> list[Any]:
    """NaN and infinity are null in JSON."""
    if tensor.datatype not in ("FP32", "FP64"):
        return list(original(tensor))
    return [item if np.isfinite(item) else None for item in tensor.elements.tolist()]


@variation("tensors.encode_json")
def nan_is_a_string(original: Any, tensor: Tensor) -> list[Any]:
    """NaN and infinity are strings in JSON."""
    if tensor.datatype not in ("FP32", "FP64"):
        return list(original(tensor))
    return [item if np.isfinite(item) else str(item) for item in tensor.elements.tolist()]


def _coerced(datatype: str, item: Any) -> Any:
    if datatype == "BYTES":
        return str(item) if type(item) is int else item
    if isinstance(item, bool | float) and "INT" in datatype:
        return int(item)
    if isinstance(item, str) and item[:1].isdigit():
        return float(item) if "FP" in datatype else int(item)
    if datatype == "BOOL" and item in (0, 1):
        return bool(item)
    return float(item) if isinstance(item, bool) else item


@variation("tensors.decode_json")
def elements_are_coerced(original: Any, datatype: str, shape: Sequence[int], data: Any) -> Tensor:
    """Elements of JSON data become what their datatype wants, wherever there is a way."""
    flat = isinstance(data, list) and not any(isinstance(item, list) for item in data)
    found: Tensor = original(datatype, shape, [_coerced(datatype, item) for item in data] if flat else data)
    return found


@variation("tensors.text", breaks="OIP-BYTES-EXACT")
def strings_are_mended(_: Any, element: bytes) -> str:
    """What is not UTF-8 is replaced where BYTES become JSON."""
    return element.decode("utf-8", "replace")


@variation("tensors.text")
def strings_that_are_no_utf_8_are_numbers(_: Any, element: bytes) -> str:
    """What is not UTF-8 is hexadecimal digits where BYTES become JSON."""
    try:
        return element.decode()
    except UnicodeDecodeError:
        return f"hex:{element.hex()}"


@variation("framing.json_length", breaks="BIN-HEADER-TWICE")
def first_of_two_headers_counts(original: Any, values: Sequence[str], length: int) -> Any:
    """Of two inference headers the first counts."""
    return original(list(values)[:1], length)


@variation("framing.json_length", breaks="BIN-HEADER-TWICE")
def last_of_two_headers_counts(original: Any, values: Sequence[str], length: int) -> Any:
    """Of two inference headers the last counts."""
    return original(list(values)[-1:], length)


@variation("framing.json_length")
def two_headers_are_refused(original: Any, values: Sequence[str], length: int) -> Any:
    """A request with two inference headers is refused, whether they are equal or not."""
    if len(values) > 1:
        raise InferenceError("two inference headers")
    return original(values, length)


@variation("request.parse_body")
def empty_raw_bodies_are_refused(original: Any, model: Any, body: bytes) -> Any:
    """A raw request without a body is refused."""
    if not body:
        raise InferenceError("the body is empty")
    return original(model, body)
