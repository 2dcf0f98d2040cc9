"""Further members, fewer members, another order: choices that the documents leave to the server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import JSONResponse, Response

from reference_server.faults import fault as variation
from reference_server.models import Model
from reference_server.request import InferRequest, RequestedOutput
from reference_server.tensors import Tensor, TensorSpec

Answer = dict[str, Any]


@variation("response.encode")
def members_nobody_asked_for(original: Any, answer: Answer) -> bytes:
    """The server adds members and parameters that no document defines to answers and outputs."""
    if "outputs" not in answer:
        return bytes(original(answer))
    outputs = [
        {"layout": "flat", **output, "parameters": {"x-time": 1.5, **output.get("parameters", {})}}
        for output in answer["outputs"]
    ]
    return bytes(original({"took": 3, **answer, "parameters": {"a": True}, "outputs": outputs, "warnings": []}))


@variation("response.encode", breaks="OIP-ID-EMPTY")
def empty_ids_count_as_none(original: Any, answer: Answer) -> bytes:
    """The server generates an id in place of an empty one, as KServe does."""
    return bytes(original(answer | {"id": "drawn"} if answer.get("id") == "" else answer))


@variation("response.encode", breaks="OIP-NULL")
def absent_members_are_null(original: Any, answer: Answer) -> bytes:
    """The server writes absent optional members with the value null."""
    if "outputs" not in answer:
        return bytes(original(answer))
    outputs = [{"data": None, "parameters": None, **output} for output in answer["outputs"]]
    return bytes(original({"id": None, **answer, "model_version": None, "parameters": None, "outputs": outputs}))


@variation("response.encode")
def no_model_version(original: Any, answer: Answer) -> bytes:
    """The server omits `model_version` in answers."""
    return bytes(original({name: value for name, value in answer.items() if name != "model_version"}))


@variation("response.encode")
def model_version_is_a_word(original: Any, answer: Answer) -> bytes:
    """The server answers with a `model_version` that is not a number."""
    return bytes(original({**answer, "model_version": "2026-11-blue"} if "outputs" in answer else answer))


@variation("response.encode")
def an_id_nobody_sent(original: Any, answer: Answer) -> bytes:
    """The server adds an id to an answer if the request has none."""
    return bytes(original({"id": "d4f1a2", **answer} if "outputs" in answer else answer))


@variation("response.build")
def outputs_in_reverse(original: Any, model: Any, request: InferRequest, produced: Mapping[str, Tensor]) -> Response:
    """The server sends outputs and their binary data in the reverse of the requested order."""
    found: Response = original(model, InferRequest(request.id, request.inputs, request.outputs[::-1]), produced)
    return found


@variation("request.parse_outputs", breaks="OIP-OUTPUTS-ONLY")
def further_outputs_come_with_the_listed(original: Any, model: Any, request: Any) -> list[RequestedOutput]:
    """The server returns all outputs of a model, and those that the request does not list as JSON."""
    wishes: list[RequestedOutput] = original(model, request)
    listed = {wish.name for wish in wishes}
    return [*(RequestedOutput(spec.name, False) for spec in model.outputs if spec.name not in listed), *wishes]


@variation("metadata.describe_server")
def metadata_with_more(original: Any) -> dict[str, Any]:
    """The server metadata list extensions and members that no document defines."""
    found = original()
    return {**found, "extensions": ["sequence", *found["extensions"], "x-own"], "build": {"commit": "abc"}}


@variation("metadata.describe_model")
def model_metadata_with_more(original: Any, model: Any) -> dict[str, Any]:
    """The model metadata name another platform, and have parameters that no document defines."""
    found: dict[str, Any] = original(model)
    inputs = [{**tensor, "parameters": {"content_type": "np"}} for tensor in found["inputs"]]
    return {**found, "platform": "onnxruntime_onnx", "inputs": inputs, "parameters": {}}


@variation("response.build")
def outputs_in_alphabetical_order(
    original: Any, model: Any, request: InferRequest, produced: Mapping[str, Tensor]
) -> Response:
    """The server sends outputs and their binary data in alphabetical order."""
    ordered = sorted(request.outputs, key=lambda wish: wish.name)
    found: Response = original(model, InferRequest(request.id, request.inputs, ordered), produced)
    return found


@variation("response.build")
def binary_outputs_first(original: Any, model: Any, request: InferRequest, produced: Mapping[str, Tensor]) -> Response:
    """The server sends binary outputs before JSON outputs."""
    ordered = sorted(request.outputs, key=lambda wish: not wish.binary)
    found: Response = original(model, InferRequest(request.id, request.inputs, ordered), produced)
    return found


@variation("response.encode", breaks="OIP-MODEL-NAME-ASKED")
def models_under_another_name(original: Any, answer: Answer) -> bytes:
    """The server answers with another `model_name`, the path of the model in a store."""
    return bytes(
        original({**answer, "model_name": f"store/{answer['model_name']}@7"} if "outputs" in answer else answer)
    )


@variation("response.encode")
def empty_parameters(original: Any, answer: Answer) -> bytes:
    """The server writes empty `parameters` into answers and outputs that have none."""
    if "outputs" not in answer:
        return bytes(original(answer))
    outputs = [{"parameters": {}, **output} for output in answer["outputs"]]
    return bytes(original({"parameters": {}, **answer, "outputs": outputs}))


@variation("response.encode")
def parameters_of_every_type(original: Any, answer: Answer) -> bytes:
    """The server adds parameters of each type of the protocol to answers and outputs."""
    if "outputs" not in answer:
        return bytes(original(answer))
    more = {"text": "", "count": 0, "part": -0.5e3, "last": True}
    outputs = [{**output, "parameters": {**more, **output.get("parameters", {})}} for output in answer["outputs"]]
    return bytes(original({**answer, "parameters": more, "outputs": outputs}))


@variation("metadata.describe_model", breaks="OIP-MODEL-NAME-ASKED")
def model_metadata_under_another_name(original: Any, model: Any) -> dict[str, Any]:
    """The model metadata have another `name`, the path of the model in a store."""
    return {**original(model), "name": f"store/{model.name}"}


@variation("metadata.describe_model")
def model_metadata_with_little(original: Any, model: Any) -> dict[str, Any]:
    """The model metadata have no `versions`, and an empty `platform`."""
    return {name: value for name, value in original(model).items() if name != "versions"} | {"platform": ""}


@variation("app.Service.find_model", surveyed=True)
def scores_is_a_model_of_the_vendor(original: Any, service: Any, http: Any) -> Model:
    """The server has another model with the name of a role, under other tensor names."""
    found: Model = original(service, http)
    inputs, outputs = (TensorSpec("features", "FP32", (-1,)),), (TensorSpec("risk", "FP32", (-1,)),)
    return replace(found, inputs=inputs, outputs=outputs) if found.name == "scores" else found


# --- health -----------------------------------------------------------------------------------------------------------


@variation("app.Service.model_metadata")
async def metadata_name_the_version_of_their_path(original: Any, service: Any, http: Any) -> Response:
    """The model metadata at the path of a version name model and version, as `name:version`."""
    answer: Response = await original(service, http)
    if version := http.path_params.get("version"):
        document = json.loads(bytes(answer.body))
        return JSONResponse({**document, "name": f"{document['name']}:{version}"})
    return answer


@variation("app.Service.live", "app.Service.model_ready")
async def health_has_no_body(original: Any, service: Any, http: Any) -> Response:
    """The server answers health requests with a status and no body."""
    found: Response = await original(service, http)
    return Response(None, found.status_code)


@variation("app.Service.ready")
async def server_is_not_ready(_original: Any, _service: Any, _http: Any) -> Response:
    """The server says that it is not ready, because one of its models is not."""
    return Response(None, 503)


@variation("app.Service.ready")
async def server_is_not_ready_with_500(_original: Any, _service: Any, _http: Any) -> Response:
    """The server says by status 500 and a body that it is not ready, because one of its models is not."""
    return JSONResponse({"ready": False}, 500)


@variation("app.Service.model_ready")
async def unknown_models_are_not_ready(original: Any, service: Any, http: Any) -> Response:
    """The server answers a readiness request for an unknown model with 200 and `ready: false`, as over gRPC."""
    name = http.path_params["model"]
    if name in service.models:
        found: Response = await original(service, http)
        return found
    return JSONResponse({"name": name, "ready": False})
