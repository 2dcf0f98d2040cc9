"""Further members, fewer members, another order: choices that the documents leave to the server."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from reference_server.faults import Fault, steps
from reference_server.faults import fault as variation
from reference_server.faults.answers import list_all
from reference_server.faults.edits import change_members, drop_members, has_version
from reference_server.faults.families import Function
from reference_server.models import Model
from reference_server.tensors import TensorSpec

Answer = dict[str, Any]


def change_answer(change: Function, breaks: str = "") -> Fault:
    """Return a server that changes the JSON of answers to inference requests."""
    return steps.ENCODE.before(breaks or (), answer=change, when=lambda answer: "outputs" in answer)


def sort_outputs(key: Function) -> Fault:
    """Return a server that sends outputs and their binary data in another order."""
    return steps.BUILD.before((), request=lambda request: replace(request, outputs=sorted(request.outputs, key=key)))


def _add_members(answer: Answer) -> Answer:
    """Add members and parameters everywhere."""
    outputs = [
        {"layout": "flat", **output, "parameters": {"x-time": 1.5, **output.get("parameters", {})}}
        for output in answer["outputs"]
    ]
    return {"took": 3, **answer, "parameters": {"a": True}, "outputs": outputs, "warnings": []}


def _add_null(answer: Answer) -> Answer:
    absent = {"data": None, "parameters": None}
    changed = change_members(answer, lambda output: absent | output, "outputs")
    return {"id": None, **changed, "model_version": None, "parameters": None}


def _add_parameters(answer: Answer) -> Answer:
    more = {"text": "", "count": 0, "part": -0.5e3, "last": True}
    outputs = [{**output, "parameters": {**more, **output.get("parameters", {})}} for output in answer["outputs"]]
    return {**answer, "parameters": more, "outputs": outputs}


def _describe_more(found: Answer) -> Answer:
    inputs = [{**tensor, "parameters": {"content_type": "np"}} for tensor in found["inputs"]]
    return {**found, "platform": "onnxruntime_onnx", "inputs": inputs, "parameters": {}}


members_nobody_asked_for = change_answer(_add_members).says(
    "The server adds members and parameters that no document defines to answers and outputs."
)
empty_ids_count_as_none = steps.ENCODE.before(
    "OIP-ID-EMPTY", answer=lambda answer: answer | {"id": "drawn"}, when=lambda answer: answer.get("id") == ""
).says("The server generates an id in place of an empty one, as KServe does.")
absent_members_are_null = change_answer(_add_null, "OIP-NULL").says(
    "The server writes absent optional members with the value null."
)
no_model_version = change_answer(lambda answer: drop_members(answer, "model_version")).says(
    "The server omits `model_version` in answers."
)
model_version_is_a_word = change_answer(lambda answer: {**answer, "model_version": "2026-11-blue"}).says(
    "The server answers with a `model_version` that is not a number."
)
an_id_nobody_sent = change_answer(lambda answer: {"id": "d4f1a2", **answer}).says(
    "The server adds an id to an answer if the request has none."
)
outputs_in_reverse = steps.BUILD.before(
    (), request=lambda request: replace(request, outputs=request.outputs[::-1])
).says("The server sends outputs and their binary data in the reverse of the requested order.")
further_outputs_come_with_the_listed = steps.PARSE_OUTPUTS.after(
    "OIP-OUTPUTS-ONLY",
    lambda requested, model: [*list_all(requested, model, binary=False)[len(requested) :], *requested],
).says("The server returns all outputs of a model, and those that the request does not list as JSON.")
metadata_with_more = steps.DESCRIBE_SERVER.after(
    (), lambda found: {**found, "extensions": ["sequence", *found["extensions"], "x-own"], "build": {"commit": "abc"}}
).says("The server metadata list extensions and members that no document defines.")
model_metadata_with_more = steps.DESCRIBE_MODEL.after((), _describe_more).says(
    "The model metadata name another platform, and have parameters that no document defines."
)
outputs_in_alphabetical_order = sort_outputs(lambda output: output.name).says(
    "The server sends outputs and their binary data in alphabetical order."
)
binary_outputs_first = sort_outputs(lambda output: not output.binary).says(
    "The server sends binary outputs before JSON outputs."
)
models_under_another_name = change_answer(
    lambda answer: {**answer, "model_name": f"store/{answer['model_name']}@7"}, "OIP-MODEL-NAME-ASKED"
).says("The server answers with another `model_name`, the path of the model in a store.")
empty_parameters = change_answer(
    lambda answer: {"parameters": {}, **change_members(answer, lambda output: {"parameters": {}, **output}, "outputs")}
).says("The server writes empty `parameters` into answers and outputs that have none.")
parameters_of_every_type = change_answer(_add_parameters).says(
    "The server adds parameters of each type of the protocol to answers and outputs."
)
model_metadata_under_another_name = steps.DESCRIBE_MODEL.after(
    "OIP-MODEL-NAME-ASKED", lambda found, model: {**found, "name": f"store/{model.name}"}
).says("The model metadata have another `name`, the path of the model in a store.")
model_metadata_with_little = steps.DESCRIBE_MODEL.after(
    (), lambda found: drop_members(found, "versions") | {"platform": ""}
).says("The model metadata have no `versions`, and an empty `platform`.")


@variation(steps.FIND_MODEL, in_discovery=True)
def scores_is_a_model_of_the_vendor(original: Any, service: Any, http: Any) -> Model:
    """The server has another model with the name of a role, under other tensor names."""
    found: Model = original(service, http)
    inputs, outputs = (TensorSpec("features", "FP32", (-1,)),), (TensorSpec("risk", "FP32", (-1,)),)
    return replace(found, inputs=inputs, outputs=outputs) if found.name == "scores" else found


# --- health -----------------------------------------------------------------------------------------------------------


def _name_version(answer: Response, http: Request) -> Response:
    document = json.loads(bytes(answer.body))
    return JSONResponse({**document, "name": f"{document['name']}:{http.path_params['version']}"})


metadata_name_the_version_of_their_path = steps.MODEL_METADATA.after((), _name_version, when=has_version).says(
    "The model metadata at the path of a version name model and version, as `name:version`."
)


@variation(steps.LIVE, steps.MODEL_READY)
async def health_has_no_body(original: Any, service: Any, http: Any) -> Response:
    """The server answers health requests with a status and no body."""
    found: Response = await original(service, http)
    return Response(None, found.status_code)


server_is_not_ready = steps.READY.instead((), lambda: Response(None, 503)).says(
    "The server says that it is not ready, because one of its models is not."
)
server_is_not_ready_with_500 = steps.READY.instead((), lambda: JSONResponse({"ready": False}, 500)).says(
    "The server says by status 500 and a body that it is not ready, because one of its models is not."
)
unknown_models_are_not_ready = steps.MODEL_READY.instead(
    (),
    lambda http: JSONResponse({"name": http.path_params["model"], "ready": False}),
    when=lambda self, http: http.path_params["model"] not in self.models,
).says("The server answers a readiness request for an unknown model with 200 and `ready: false`, as over gRPC.")
