"""More members, fewer members, another order: what the documents leave to the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from reference_server.faults import fault as variation
from reference_server.request import InferRequest, RequestedOutput
from reference_server.tensors import Tensor

Answer = dict[str, Any]


@variation("response.encode")
def members_nobody_asked_for(original: Any, answer: Answer) -> bytes:
    """Answers and outputs have members and parameters that no document knows."""
    if "outputs" not in answer:
        return bytes(original(answer))
    outputs = [
        {"layout": "flat", **output, "parameters": {"x-time": 1.5, **output.get("parameters", {})}}
        for output in answer["outputs"]
    ]
    return bytes(original({"took": 3, **answer, "parameters": {"a": True}, "outputs": outputs, "warnings": []}))


@variation("response.encode", breaks="OIP-ID-EMPTY")
def empty_ids_count_as_none(original: Any, answer: Answer) -> bytes:
    """The server draws an id of its own in place of one without characters, as KServe does."""
    return bytes(original(answer | {"id": "drawn"} if answer.get("id") == "" else answer))


@variation("response.encode", breaks="OIP-NULL")
def absent_members_are_null(original: Any, answer: Answer) -> bytes:
    """Optional members that are absent are there with the value null."""
    if "outputs" not in answer:
        return bytes(original(answer))
    outputs = [{"data": None, "parameters": None, **output} for output in answer["outputs"]]
    return bytes(original({"id": None, **answer, "model_version": None, "parameters": None, "outputs": outputs}))


@variation("response.encode")
def no_model_version(original: Any, answer: Answer) -> bytes:
    """Answers do not name a model version."""
    return bytes(original({name: value for name, value in answer.items() if name != "model_version"}))


@variation("response.encode")
def model_version_is_a_word(original: Any, answer: Answer) -> bytes:
    """Models have a version that is no number."""
    return bytes(original({**answer, "model_version": "2026-11-blue"} if "outputs" in answer else answer))


@variation("response.encode")
def an_id_nobody_sent(original: Any, answer: Answer) -> bytes:
    """An answer has an id of the server's own where the request has none."""
    return bytes(original({"id": "d4f1a2", **answer} if "outputs" in answer else answer))


@variation("response.build")
def outputs_in_reverse(original: Any, model: Any, request: InferRequest, produced: Mapping[str, Tensor]) -> Response:
    """Outputs come in the reverse of the order in which they are asked for, and the bytes with them."""
    found: Response = original(model, InferRequest(request.id, request.inputs, request.outputs[::-1]), produced)
    return found


@variation("request.parse_outputs", breaks="OIP-OUTPUTS-ONLY")
def further_outputs_come_with_the_listed(original: Any, model: Any, request: Any) -> list[RequestedOutput]:
    """Beside the listed outputs come the others of the model, as JSON."""
    wishes: list[RequestedOutput] = original(model, request)
    listed = {wish.name for wish in wishes}
    return [*(RequestedOutput(spec.name, False) for spec in model.outputs if spec.name not in listed), *wishes]


@variation("metadata.server")
def metadata_with_more(original: Any) -> dict[str, Any]:
    """Server metadata list extensions and members that nobody knows."""
    found = original()
    return {**found, "extensions": ["sequence", *found["extensions"], "x-own"], "build": {"commit": "abc"}}


@variation("metadata.describe")
def model_metadata_with_more(original: Any, model: Any) -> dict[str, Any]:
    """Model metadata name a platform, versions and parameters of their own."""
    found: dict[str, Any] = original(model)
    inputs = [{**tensor, "parameters": {"content_type": "np"}} for tensor in found["inputs"]]
    return {**found, "platform": "onnxruntime_onnx", "inputs": inputs, "parameters": {}}


@variation("response.build")
def outputs_in_alphabetical_order(
    original: Any, model: Any, request: InferRequest, produced: Mapping[str, Tensor]
) -> Response:
    """Outputs come in alphabetical order, and the bytes with them."""
    ordered = sorted(request.outputs, key=lambda wish: wish.name)
    found: Response = original(model, InferRequest(request.id, request.inputs, ordered), produced)
    return found


@variation("response.build")
def binary_outputs_first(original: Any, model: Any, request: InferRequest, produced: Mapping[str, Tensor]) -> Response:
    """Binary outputs come before those in JSON."""
    ordered = sorted(request.outputs, key=lambda wish: not wish.binary)
    found: Response = original(model, InferRequest(request.id, request.inputs, ordered), produced)
    return found


@variation("response.encode", breaks="OIP-MODEL-NAME-ASKED")
def models_under_another_name(original: Any, answer: Answer) -> bytes:
    """Answers call the model by its name in a store."""
    return bytes(
        original({**answer, "model_name": f"store/{answer['model_name']}@7"} if "outputs" in answer else answer)
    )


@variation("response.encode")
def empty_parameters(original: Any, answer: Answer) -> bytes:
    """Answers and outputs without parameters have empty ones."""
    if "outputs" not in answer:
        return bytes(original(answer))
    outputs = [{"parameters": {}, **output} for output in answer["outputs"]]
    return bytes(original({"parameters": {}, **answer, "outputs": outputs}))


@variation("metadata.describe")
def model_metadata_with_little(original: Any, model: Any) -> dict[str, Any]:
    """Model metadata have no versions, and an empty platform."""
    return {name: value for name, value in original(model).items() if name != "versions"} | {"platform": ""}


# --- health -----------------------------------------------------------------------------------------------------------


@variation("app.Service.live", "app.Service.model_ready")
async def health_has_no_body(original: Any, service: Any, http: Any) -> Response:
    """That the server is live and a model is ready is a status alone."""
    found: Response = await original(service, http)
    return Response(None, found.status_code)


@variation("app.Service.ready")
async def server_is_not_ready(_original: Any, _service: Any, _http: Any) -> Response:
    """The server is not ready, since one of its models is not."""
    return Response(None, 503)


@variation("app.Service.model_ready")
async def unknown_models_are_not_ready(original: Any, service: Any, http: Any) -> Response:
    """That there is no model is said under status 200, as gRPC has it."""
    name = http.path_params["model"]
    if name in service.models:
        found: Response = await original(service, http)
        return found
    return JSONResponse({"name": name, "ready": False})
