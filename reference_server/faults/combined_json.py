"""Faults that appear only if a certain kind of request spells its JSON in a certain way."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import InferRequest, RequestedOutput
from reference_server.tensors import Tensor, TensorSpec

PARSE_STEP, PARSE_INPUT_STEP, PARSE_OUTPUTS_STEP = "request.parse", "request.parse_input", "request.parse_outputs"


def _split_json(values: Sequence[str], body: bytes) -> tuple[bytes, int]:
    """Return the JSON of a request and its length; both are empty for a raw request."""
    length = int(values[0]) if values and values[0].isdecimal() else len(body)
    return body[:length], length


@fault(PARSE_STEP, breaks="OIP-ANSWER", walks="json")
def escaped_names_not_recognised(original: Any, model: Model, values: Sequence[str], body: bytes) -> InferRequest:
    """The server does not find the member `inputs` if the JSON spells its name with escapes."""
    if b'"\\u0069nputs"' in body or b'"\\u0069\\u006e' in body:
        raise InferenceError("inputs is missing")
    return original(model, values, body)


@fault(PARSE_STEP, breaks="BIN-HEADER-I", walks="binary")
def escapes_beside_binary_data_refused(original: Any, model: Model, values: Sequence[str], body: bytes) -> InferRequest:
    """The server refuses a request with binary data if its JSON contains a Unicode escape."""
    head, length = _split_json(values, body)
    if values and length and b"\\u" in head:
        raise InferenceError("the JSON contains a backslash")
    return original(model, values, body)


@fault(PARSE_OUTPUTS_STEP, breaks="BIN-OUTPUT-TRUE", walks="binary")
def wishes_before_inputs_forgotten(original: Any, model: Model, request: dict[str, Any]) -> list[RequestedOutput]:
    """If the JSON lists `outputs` before `inputs`, the server returns every output as JSON."""
    found: list[RequestedOutput] = original(model, request)
    names = list(request)
    if "outputs" in names and names.index("outputs") < names.index("inputs"):
        return [replace(output, binary=False) for output in found]
    return found


@fault(PARSE_INPUT_STEP, breaks="BIN-SIZE-I", walks="binary")
def parameters_before_the_shape_forgotten(
    original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any
) -> Tensor:
    """The server ignores the `parameters` of an input, such as binary_data_size, if they precede `shape`."""
    names = list(entry)
    if "parameters" in names and names.index("parameters") < names.index("shape"):
        entry = {name: value for name, value in entry.items() if name != "parameters"}
    return original(model, spec, entry, rest)


@fault(PARSE_STEP, breaks="BIN-HEADER-I", walks="binary")
def header_taken_for_utf_16_units(original: Any, model: Model, values: Sequence[str], body: bytes) -> InferRequest:
    """To find the end of the JSON, the server counts a character beyond U+FFFF as two bytes instead of four."""
    head, length = _split_json(values, body)
    more = sum(character > "\uffff" for character in head.decode("utf-8", "replace"))
    if values and length and more:
        values = [str(length - 2 * more)]
    return original(model, values, body)


@fault(PARSE_STEP, breaks="BIN-HEADER-I", walks="binary")
def header_taken_for_characters(original: Any, model: Model, values: Sequence[str], body: bytes) -> InferRequest:
    """To find the end of the JSON, the server counts a character of three bytes as one byte."""
    head, length = _split_json(values, body)
    more = sum("\u07ff" < character <= "\uffff" for character in head.decode("utf-8", "replace"))
    return original(model, [str(length - 2 * more)] if values and length and more else values, body)


@fault(PARSE_STEP, breaks="BIN-HEADER-I", walks="binary")
def line_breaks_in_front_of_binary_data_not_counted(
    original: Any, model: Model, values: Sequence[str], body: bytes
) -> InferRequest:
    """The server removes CRLF line breaks from the JSON, but still uses the length in the inference header."""
    head, length = _split_json(values, body)
    if values and length and b"\r\n" in head:
        body = head.replace(b"\r\n", b"") + body[length:]
    return original(model, values, body)


@fault("tensors.flatten", breaks="OIP-DATA", walks="json")
def long_nested_data_read_by_columns(original: Any, data: list[Any], shape: tuple[int, ...]) -> Any:
    """The server reads nested JSON data in column-major order if a dimension is larger than 8."""
    items = original(data, shape)
    if len(shape) < 2 or max(shape) <= 8 or not isinstance(data[0], list):
        return items
    boxes = np.empty(len(items), dtype=object)
    boxes[:] = items
    return boxes.reshape(shape, order="F").reshape(-1).tolist()


@fault(PARSE_STEP, breaks="OIP-ID", walks="json")
def ids_lose_their_second_surrogate(original: Any, model: Model, values: Sequence[str], body: bytes) -> InferRequest:
    """If the JSON contains the escaped surrogate D83D, the server drops the first character of the id."""
    found: InferRequest = original(model, values, body)
    head, _ = _split_json(values, body)
    return replace(found, id=found.id[1:]) if found.id and re.search(rb"\\ud83d", head, re.IGNORECASE) else found


@fault(PARSE_STEP, breaks="OIP-ID", walks="json")
def long_ids_cut(original: Any, model: Model, values: Sequence[str], body: bytes) -> InferRequest:
    """The server cuts an id after 64 characters."""
    found: InferRequest = original(model, values, body)
    return replace(found, id=found.id and found.id[:64])


@fault("response.build", breaks="BIN-ORDER-O", walks="binary")
def declared_order_of_bytes_with_an_id(original: Any, model: Model, request: InferRequest, produced: Any) -> Any:
    """If a request has an id and three or more outputs, the binary data of the answer follow the model's order."""
    from reference_server import response

    if request.id is None or len(request.outputs) < 3:
        return original(model, request, produced)
    place = {spec.name: index for index, spec in enumerate(model.outputs)}
    parts = [(output, *response.encode_output(model, output, produced[output.name])) for output in request.outputs]
    ordered = sorted(parts, key=lambda part: place[part[0].name])
    answer = json.loads(original(model, replace(request, outputs=[]), produced).body)
    answer["outputs"] = [entry for _, entry, _ in parts]
    return response.frame(response.encode(answer), [data for _, _, data in ordered if data is not None])


@fault("response.build", breaks=("BIN-OUTPUT-TRUE", "BIN-ALL-TRUE"), walks="binary")
def binary_outputs_forgotten_beside_an_id(original: Any, model: Model, request: InferRequest, produced: Any) -> Any:
    """If a request with an id asks for all of several outputs as binary data, the server returns them as JSON."""
    if request.id is None or len(model.outputs) == 1 or len(request.outputs) != len(model.outputs):
        return original(model, request, produced)
    if not all(output.binary for output in request.outputs) or [output.name for output in request.outputs] != [
        spec.name for spec in model.outputs
    ]:
        return original(model, request, produced)
    outputs = [replace(output, binary=False) for output in request.outputs]
    return original(model, replace(request, outputs=outputs), produced)


@fault("request.parse_inputs", breaks="BIN-MIXED-I", walks="binary")
def json_inputs_take_bytes_in_another_order(
    original: Any, model: Model, request: Object, rest: Any
) -> dict[str, Tensor]:
    """If a request mixes JSON and binary inputs, the server reads the binary data in declared order."""
    entries = request.get("inputs")
    if rest is None or not isinstance(entries, list) or not any("data" in entry for entry in entries):
        return original(model, request, rest)
    place = {spec.name: index for index, spec in enumerate(model.inputs)}
    ordered = sorted(entries, key=lambda entry: place.get(entry.get("name"), 0))
    return original(model, {**request, "inputs": ordered}, rest)
