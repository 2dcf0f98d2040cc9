"""Faults in lists of outputs, in outputs without elements, and in values that JSON cannot represent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor


@fault("request.parse_outputs", broad=True)
def requests_without_a_list_of_outputs_refused(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """The server refuses a request that does not list its outputs."""
    if "outputs" not in request:
        raise InferenceError("outputs is missing")
    return original(model, request)


@fault("request.parse_outputs", breaks="OIP-TWICE")
def repeated_outputs_answered_once(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """The server returns an output once if the request lists it twice."""
    outputs = request.get("outputs")
    if isinstance(outputs, list) and all(isinstance(item, dict) for item in outputs):
        request = request | {"outputs": list({str(item.get("name")): item for item in outputs[::-1]}.values())[::-1]}
    return original(model, request)


@fault("response.encode_output", broad=True)
def outputs_without_elements_have_neither_data_nor_size(
    original: Any, model: Model, output: RequestedOutput, tensor: Tensor
) -> tuple[dict[str, Any], Any]:
    """The server writes an output without elements without `data` and without binary_data_size."""
    entry, data = original(model, output, tensor)
    if tensor.elements.size:
        return entry, data
    return {member: entry[member] for member in ("name", "datatype", "shape")}, None


# --- values that have no form in JSON ---------------------------------------------------------------------------------


@fault("tensors.encode_json", "response.encode", breaks="OIP-JSON")
def json_ends_where_nan_would_stand(original: Any, value: Any) -> Any:
    """The server stops writing JSON at NaN or infinity, and sends the incomplete JSON."""
    if isinstance(value, Mapping):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        found = re.search(r"(?<=[\[,])-?(?:NaN|Infinity)\b", text)
        return text[: found.start()].encode() if found else original(value)
    return value.elements.tolist() if value.datatype in ("FP32", "FP64") else original(value)


@fault("app.make_error", breaks=("OIP-ERROR", "OIP-ERROR-ELSEWHERE"))
def error_text_not_escaped(_original: Any, message: str, status: int, _headers: Any = None) -> Response:
    """The server writes an error message between quotes without escaping any character."""
    return Response(f'{{ "error" : "{message}" }}'.encode(), status, media_type="application/json")
