"""Other readings of points that the documents leave open."""

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
    """The server returns a listed output without `binary_data` as JSON, whatever `binary_data_output` says."""
    listed = {entry.get("name"): entry.get("parameters") or {} for entry in request.get("outputs") or []}
    return [
        RequestedOutput(wish.name, wish.binary, wish.classes)
        if wish.name not in listed or listed[wish.name].get("binary_data") is not None
        else RequestedOutput(wish.name, False, wish.classes)
        for wish in original(model, request)
    ]


@variation("members.get_integer")
def whole_numbers_may_have_a_point(original: Any, given: Any, name: str, minimum: int) -> Any:
    """The server reads a size of 16.0 as 16, and a number of classes of 2.0 as 2."""
    value = given.get(name)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return original(given, name, minimum)


@variation("members.get_integer")
def no_classes_means_the_tensor(original: Any, given: Any, name: str, minimum: int) -> Any:
    """The server returns the output itself if the number of classes is 0."""
    return None if name == "classification" and given.get(name) == 0 else original(given, name, minimum)


@variation("framing.BinaryData.refuse_surplus", breaks="BIN-BODY-LONG")
def bytes_left_over_are_ignored(_: Any, binary: Any) -> None:
    """The server ignores bytes after the last tensor of a request."""


@variation("request.parse", breaks="BIN-HEADER-WRONG-ON-JSON")
def headers_count_beside_binary_data_alone(original: Any, model: Any, values: Sequence[str], body: bytes) -> Any:
    """The server ignores an inference header other than 0 if the whole body is JSON."""
    if values == ["0"] or not body.endswith(b"}"):
        return original(model, values, body)
    try:
        document = json.loads(body)
    except ValueError:
        return original(model, values, body)
    return original(model, [] if isinstance(document, dict) else values, body)


@variation("request.parse_body")
def raw_strings_have_a_prefix(original: Any, model: Any, body: bytes) -> Any:
    """The server expects a length prefix in a raw body for the only input of a model, if that is BYTES."""
    if len(model.inputs) != 1 or model.inputs[0].datatype != "BYTES":
        return original(model, body)
    if int.from_bytes(body[:4], "little") != len(body) - 4:
        raise InferenceError("the body is no string behind its length")
    return original(model, body[4:])


@variation("response.encode_output")
def binary_outputs_have_an_empty_array_of_data(original: Any, *arguments: Any) -> Any:
    """The server adds an empty `data` to binary outputs, since the base protocol does not call it optional."""
    entry, data = original(*arguments)
    return entry | ({} if data is None else {"data": []}), data


@variation("tensors.encode_json")
def nan_is_null(original: Any, tensor: Tensor) -> list[Any]:
    """The server writes NaN and infinities into JSON as null."""
    if tensor.datatype not in ("FP32", "FP64"):
        return list(original(tensor))
    return [item if np.isfinite(item) else None for item in tensor.elements.tolist()]


@variation("tensors.encode_json")
def nan_is_a_string(original: Any, tensor: Tensor) -> list[Any]:
    """The server writes NaN and infinities into JSON as strings."""
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
    """The server converts elements of JSON data to their datatype wherever it can."""
    flat = isinstance(data, list) and not any(isinstance(item, list) for item in data)
    found: Tensor = original(datatype, shape, [_coerced(datatype, item) for item in data] if flat else data)
    return found


@variation("tensors.decode_text", breaks="OIP-BYTES-EXACT")
def strings_are_mended(_: Any, element: bytes) -> str:
    """The server replaces bytes of BYTES that are not UTF-8 with U+FFFD in JSON."""
    return element.decode("utf-8", "replace")


@variation("tensors.decode_text")
def strings_that_are_no_utf_8_are_numbers(_: Any, element: bytes) -> str:
    """The server writes BYTES that are not UTF-8 into JSON as hexadecimal digits."""
    try:
        return element.decode()
    except UnicodeDecodeError:
        return f"hex:{element.hex()}"


@variation("framing.parse_json_length", breaks="BIN-HEADER-TWICE")
def first_of_two_headers_counts(original: Any, values: Sequence[str], length: int) -> Any:
    """The server uses the first of two inference headers."""
    return original(list(values)[:1], length)


@variation("framing.parse_json_length", breaks="BIN-HEADER-TWICE")
def last_of_two_headers_counts(original: Any, values: Sequence[str], length: int) -> Any:
    """The server uses the last of two inference headers."""
    return original(list(values)[-1:], length)


@variation("framing.parse_json_length")
def two_headers_are_refused(original: Any, values: Sequence[str], length: int) -> Any:
    """The server refuses two inference headers, even if they are equal."""
    if len(values) > 1:
        raise InferenceError("two inference headers")
    return original(values, length)


@variation("request.parse_body")
def empty_raw_bodies_are_refused(original: Any, model: Any, body: bytes) -> Any:
    """The server refuses a raw request with an empty body."""
    if not body:
        raise InferenceError("the body is empty")
    return original(model, body)
