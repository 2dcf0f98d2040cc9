"""Requests that are incomplete, or say something twice, taken all the same; errors of HTTP in their own form."""

from __future__ import annotations

from typing import Any

from starlette.responses import PlainTextResponse, Response

from reference_server.faults import fault
from reference_server.members import Object
from reference_server.models import Model
from reference_server.signature import TensorSpec

# --- members ---------------------------------------------------------------------------------------------------------


@fault("request.parse_input", breaks="OIP-MEMBER-MISSING")
def datatype_taken_from_the_model(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """An input without a datatype has that of the model."""
    return original(model, spec, {"datatype": spec.datatype, **entry}, rest)


@fault("request.parse_input", breaks="OIP-MEMBER-MISSING")
def shape_taken_from_the_data(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """An input without a shape has one dimension, as long as its data."""
    data = entry.get("data")
    shaped = {"shape": [len(data)], **entry} if isinstance(data, list) else entry
    return original(model, spec, shaped, rest)


@fault("request.parse_inputs", breaks="OIP-MEMBER-MISSING")
def names_of_inputs_taken_by_place(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """An input without a name is the one that the model declares at its place."""
    entries = request.get("inputs")
    if isinstance(entries, list) and len(entries) == len(model.inputs):
        named = [
            {"name": spec.name, **entry} if isinstance(entry, dict) else entry
            for spec, entry in zip(model.inputs, entries, strict=True)
        ]
        request = request | {"inputs": named}
    return original(model, request, rest)


@fault("request.parse_outputs", breaks="OIP-MEMBER-MISSING")
def outputs_without_name_passed_over(original: Any, model: Model, request: Object) -> Any:
    """A requested output without a name is passed over."""
    entries = request.get("outputs")
    if isinstance(entries, list):
        entries = [entry for entry in entries if not isinstance(entry, dict) or "name" in entry]
        request = request | {"outputs": entries}
    return original(model, request)


# --- twice -----------------------------------------------------------------------------------------------------------


def _once(entries: Any) -> Any:
    """Return objects, the first of each name alone."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return entries
    names = [entry.get("name") for entry in entries]
    return [entry for index, entry in enumerate(entries) if entry.get("name") not in names[:index]]


@fault("request.parse_outputs", breaks="OIP-TWICE")
def outputs_listed_twice_returned_once(original: Any, model: Model, request: Object) -> Any:
    """An output that is listed twice is returned once."""
    return original(model, request | {"outputs": _once(request.get("outputs"))})


@fault("request.parse_inputs", breaks="OIP-TWICE")
def first_of_equal_inputs_taken(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """Of inputs that have one name the first is taken."""
    inputs = request.get("inputs")
    return original(model, request | {"inputs": _once(inputs)} if inputs else request, rest)


# --- HTTP ------------------------------------------------------------------------------------------------------------


@fault("app.not_routed", breaks="OIP-ERROR-ELSEWHERE")
async def wrong_method_answered_in_plain_text(original: Any, http: Any, exception: Any) -> Response:
    """A method that the path does not take is answered in plain text."""
    if exception.status_code == 405:
        return PlainTextResponse("Method Not Allowed", 405)
    answer: Response = await original(http, exception)
    return answer


@fault("app.not_routed", breaks="OIP-ERROR-ELSEWHERE")
async def unknown_path_answered_with_detail(original: Any, http: Any, exception: Any) -> Response:
    """An unknown path is answered with an object of another form."""
    if exception.status_code == 404:
        return PlainTextResponse('{"detail":"Not Found"}', 404, media_type="application/json")
    answer: Response = await original(http, exception)
    return answer
