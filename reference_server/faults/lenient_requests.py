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


# --- twice -----------------------------------------------------------------------------------------------------------


def _once(entries: Any) -> Any:
    """Return objects, the first of each name alone."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return entries
    names = [entry.get("name") for entry in entries]
    return [entry for index, entry in enumerate(entries) if entry.get("name") not in names[:index]]


@fault("request.parse_inputs", breaks="OIP-TWICE")
def first_of_equal_inputs_taken(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """Of inputs that have one name the first is taken."""
    inputs = request.get("inputs")
    return original(model, request | {"inputs": _once(inputs)} if inputs else request, rest)


# --- HTTP ------------------------------------------------------------------------------------------------------------


@fault("app.not_routed", breaks="OIP-ERROR-ELSEWHERE")
async def unknown_path_answered_with_detail(original: Any, http: Any, exception: Any) -> Response:
    """An unknown path is answered with an object of another form."""
    if exception.status_code == 404:
        return PlainTextResponse('{"detail":"Not Found"}', 404, media_type="application/json")
    answer: Response = await original(http, exception)
    return answer
