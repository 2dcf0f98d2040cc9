"""Parameters and members taken where no document defines them; elements of another type taken for nothing."""

from __future__ import annotations

import json
from typing import Any

from reference_server.faults import fault
from reference_server.members import Object
from reference_server.models import Model
from reference_server.tensors import Tensor


def get_parameters(owner: object) -> Object:
    """Return the parameters of an object; empty where there are none."""
    found = owner.get("parameters") if isinstance(owner, dict) else None
    return found if isinstance(found, dict) else {}


def set_default(request: Object, value: object) -> Object:
    """Return a request with another value of binary_data_output."""
    return request | {"parameters": {**get_parameters(request), "binary_data_output": value}}


def get_entries(request: Object, name: str) -> list[Object]:
    """Return the objects of an array; none where there is no array."""
    entries = request.get(name)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


# --- the form of outputs ---------------------------------------------------------------------------------------------


@fault("request.parse_outputs", breaks="BIN-ALL-TRUE")
def binary_data_on_the_request_taken_for_all(original: Any, model: Model, request: Object) -> Any:
    """`binary_data` on the request is taken for `binary_data_output`."""
    value = get_parameters(request).get("binary_data")
    return original(model, request if value is None else set_default(request, value))


@fault("request.parse_outputs", breaks="BIN-OUTPUT-TRUE")
def binary_data_output_on_an_output_taken(original: Any, model: Model, request: Object) -> Any:
    """`binary_data_output` on an output is taken for its `binary_data`."""
    outputs = [
        entry | {"parameters": {**found, "binary_data": found["binary_data_output"]}}
        if "binary_data_output" in (found := get_parameters(entry))
        else entry
        for entry in get_entries(request, "outputs")
    ]
    return original(model, request | {"outputs": outputs} if outputs else request)


# --- classes ---------------------------------------------------------------------------------------------------------


@fault("request.parse_outputs", breaks="CLS-ONLY")
def classification_on_the_request_counted_from_0(original: Any, model: Model, request: Object) -> Any:
    """`classification` on the request classifies every output, and returns one class more than it says."""
    count = get_parameters(request).get("classification")
    if not isinstance(count, int):
        return original(model, request)
    outputs = get_entries(request, "outputs") or [{"name": spec.name} for spec in model.outputs]
    more = [entry | {"parameters": {"classification": count + 1, **get_parameters(entry)}} for entry in outputs]
    return original(model, request | {"outputs": more})


# --- elements --------------------------------------------------------------------------------------------------------


@fault("tensors.decode_json", breaks="OIP-COERCE")
def numbers_among_booleans_are_false(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """A number among booleans counts as false, since it is not the word true."""
    if datatype == "BOOL" and isinstance(data, list):
        data = [False if type(item) in (int, float) else item for item in data]
    found: Tensor = original(datatype, shape, data)
    return found


@fault("tensors.encode_json", "response.encode", breaks="OIP-JSON-NAN")
def nan_written_as_a_bare_word(original: Any, given: Any) -> Any:
    """NaN and infinities are written into JSON data as bare words."""
    if not isinstance(given, Tensor):
        return json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()
    return given.elements.tolist() if given.datatype in ("FP32", "FP64") else original(given)


@fault("tensors.encode_json", "response.encode", breaks="OIP-JSON")
def nan_written_as_the_c_library_does(original: Any, given: Any) -> Any:
    """NaN and infinities are written into JSON data as `nan` and `inf`."""
    if isinstance(given, Tensor):
        return given.elements.tolist() if given.datatype in ("FP32", "FP64") else original(given)
    text = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    for word, written in (("NaN", "nan"), ("Infinity", "inf")):
        text = (
            text.replace(f"[{word}", f"[{written}")
            .replace(f",{word}", f",{written}")
            .replace(f"-{word}", f"-{written}")
        )
    return text.encode()
