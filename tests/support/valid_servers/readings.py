"""Other readings of points that the documents leave open."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import Fault, steps
from reference_server.faults import fault as variation
from reference_server.faults.edits import get_entries, get_parameters
from reference_server.request import RequestedOutput


def _read_listed_as_json(requested: list[RequestedOutput], request: Any) -> list[RequestedOutput]:
    listed = {
        entry["name"] for entry in get_entries(request, "outputs") if get_parameters(entry).get("binary_data") is None
    }
    return [replace(output, binary=output.binary and output.name not in listed) for output in requested]


def write_nan(write: Callable[[float], object]) -> Fault:
    """Return a server that writes NaN and infinities into JSON in some form."""
    return steps.ENCODE_JSON.instead(
        (),
        lambda tensor: [item if np.isfinite(item) else write(item) for item in tensor.elements.tolist()],
        when=lambda tensor: tensor.datatype in ("FP32", "FP64"),
    )


listed_outputs_are_json_by_default = steps.PARSE_OUTPUTS.after((), _read_listed_as_json).says(
    "The server returns a listed output without `binary_data` as JSON, whatever `binary_data_output` says."
)
whole_numbers_may_have_a_point = steps.GET_INTEGER.before(
    (),
    given=lambda given, name: given | {name: int(given[name])},
    when=lambda given, name: isinstance(given.get(name), float) and given[name].is_integer(),
).says("The server reads a size of 16.0 as 16, and a number of classes of 2.0 as 2.")
no_classes_means_the_tensor = steps.GET_INTEGER.instead(
    (), lambda: None, when=lambda given, name: name == "classification" and given.get(name) == 0
).says("The server returns the output itself if the number of classes is 0.")
bytes_left_over_are_ignored = steps.REFUSE_SURPLUS.instead("BIN-BODY-LONG", lambda: None).says(
    "The server ignores bytes after the last tensor of a request."
)


@variation(steps.PARSE, breaks="BIN-HEADER-WRONG-ON-JSON")
def headers_count_beside_binary_data_alone(original: Any, model: Any, values: Sequence[str], body: bytes) -> Any:
    """The server ignores an inference header other than 0 if the whole body is JSON."""
    if values == ["0"] or not body.endswith(b"}"):
        return original(model, values, body)
    try:
        document = json.loads(body)
    except ValueError:
        return original(model, values, body)
    return original(model, [] if isinstance(document, dict) else values, body)


@variation(steps.PARSE_BODY)
def raw_strings_have_a_prefix(original: Any, model: Any, body: bytes) -> Any:
    """The server expects a length prefix in a raw body for the only input of a model, if that is BYTES."""
    if len(model.inputs) != 1 or model.inputs[0].datatype != "BYTES":
        return original(model, body)
    if int.from_bytes(body[:4], "little") != len(body) - 4:
        raise InferenceError("the body is no string behind its length")
    return original(model, body[4:])


bool_bytes_other_than_zero_are_true = steps.DECODE_BOOLS.instead(
    (), lambda data: np.frombuffer(data, np.uint8) != 0
).says("The server reads every byte other than 0 in a binary BOOL input as true.")
binary_outputs_have_an_empty_array_of_data = steps.ENCODE_OUTPUT.change_entry(
    (), lambda entry: entry | {"data": []}, when=lambda output: output.binary
).says("The server adds an empty `data` to binary outputs, since the base protocol does not call it optional.")
nan_is_null = write_nan(lambda _: None).says("The server writes NaN and infinities into JSON as null.")
nan_is_a_string = write_nan(str).says("The server writes NaN and infinities into JSON as strings.")


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


def _write_hexadecimal(item: bytes) -> str:
    try:
        return item.decode()
    except UnicodeDecodeError:
        return f"hex:{item.hex()}"


elements_are_coerced = steps.DECODE_JSON.before(
    (),
    data=lambda data, datatype: [_coerced(datatype, item) for item in data],
    when=lambda data: isinstance(data, list) and not any(isinstance(item, list) for item in data),
).says("The server converts elements of JSON data to their datatype wherever it can.")
strings_are_mended = steps.DECODE_TEXT.instead("OIP-BYTES-EXACT", lambda item: item.decode("utf-8", "replace")).says(
    "The server replaces bytes of BYTES that are not UTF-8 with U+FFFD in JSON."
)
strings_that_are_no_utf_8_are_numbers = steps.DECODE_TEXT.instead((), _write_hexadecimal).says(
    "The server writes BYTES that are not UTF-8 into JSON as hexadecimal digits."
)
first_of_two_headers_counts = steps.PARSE_LENGTH.before("BIN-HEADER-TWICE", values=lambda values: values[:1]).says(
    "The server uses the first of two inference headers."
)
last_of_two_headers_counts = steps.PARSE_LENGTH.before("BIN-HEADER-TWICE", values=lambda values: values[-1:]).says(
    "The server uses the last of two inference headers."
)
two_headers_are_refused = steps.PARSE_LENGTH.refuse(when=lambda values: len(values) > 1).says(
    "The server refuses two inference headers, even if they are equal."
)
empty_raw_bodies_are_refused = steps.PARSE_BODY.refuse(when=lambda body: not body).says(
    "The server refuses a raw request with an empty body."
)
