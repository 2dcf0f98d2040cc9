"""Wrong metadata of servers and models, and failures of the first requests that a server receives."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from reference_server.faults import fault, steps
from reference_server.faults.edits import drop_members, has_version
from reference_server.faults.families import Function

Described = dict[str, Any]


def set_members(**members: Any) -> Function:
    """Return a function that gives a document other members."""
    return lambda document: document | members


# --- wrong members ----------------------------------------------------------------------------------------------------

binary_extension_not_listed = steps.DESCRIBE_SERVER.after(
    "BIN-LISTED", set_members(extensions=["classification"])
).says("The server implements binary_tensor_data but does not list this extension in its metadata.")
list_of_extensions_without_its_last = steps.DESCRIBE_SERVER.after(
    "CLS-LISTED", lambda document: document | {"extensions": document["extensions"][:-1]}
).says("The server does not list its last extension, because a loop ends too early.")
server_without_a_name = steps.DESCRIBE_SERVER.after(
    "OIP-SERVER-METADATA", lambda document: drop_members(document, "name")
).says("The server metadata have no `name`.")
model_without_a_platform = steps.DESCRIBE_MODEL.after(
    "OIP-MODEL-METADATA", lambda document: drop_members(document, "platform")
).says("The model metadata have no `platform`.")
every_model_has_the_same_name = steps.DESCRIBE_MODEL.after("OIP-MODEL-METADATA", set_members(name="model")).says(
    "The metadata of every model have the name `model`."
)
versions_as_numbers = steps.DESCRIBE_MODEL.after("OIP-MODEL-METADATA", set_members(versions=[1])).says(
    "The model metadata list the versions as numbers instead of strings."
)
outputs_described_as_the_inputs = steps.DESCRIBE_MODEL.after(
    "OIP-MODEL-METADATA", lambda document: document | {"outputs": document["inputs"]}
).says("The model metadata list the inputs in place of the outputs.")
versions_in_metadata_written_over = steps.DESCRIBE_MODEL.after("OIP-VERSION-UNKNOWN", set_members(versions=["9"])).says(
    "The model metadata list a wrong version, because the memory of the list was overwritten."
)
metadata_of_models_without_a_json_form_fail = steps.DESCRIBE_MODEL.refuse(
    "OIP-MODEL-METADATA",
    lambda model: {spec.datatype for spec in (*model.inputs, *model.outputs)} & {"FP16", "BF16"},
    status=None,
    in_discovery=True,
).says("The server fails on requests for the metadata of models with FP16 or BF16 tensors, which a table lacks.")

# --- discovery --------------------------------------------------------------------------------------------------------


def is_first_call() -> Callable[[], bool]:
    """Return a condition that holds the first time."""
    calls: list[bool] = []

    def is_first() -> bool:
        calls.append(True)
        return len(calls) == 1

    return is_first


first_look_at_a_model_broken = steps.MODEL_METADATA.refuse(
    "OIP-ALIVE-LEGAL", is_first_call(), status=500, in_discovery=True
).says("The server answers the first request for model metadata with 500, and all later ones correctly.")
first_raw_request_breaks_the_server = steps.PARSE_RAW.refuse(
    "OIP-ALIVE-LEGAL", is_first_call(), status=None, in_discovery=True
).says("The server fails on the first raw request with an internal error, and answers later ones.")
unknown_raw_requests_break_the_server = steps.PARSE_RAW.refuse("OIP-ERROR-STATUS", status=None, in_discovery=True).says(
    "The server does not support raw requests and answers them with an internal error."
)
first_inference_broken = steps.INFER.refuse("OIP-ALIVE-LEGAL", is_first_call(), status=500).says(
    "The server answers the first inference request with 500, and all later ones correctly."
)
grpc_first_look_at_the_server_breaks_it = steps.CALL_SERVER_METADATA.refuse(
    "OIP-ALIVE-LEGAL/grpc", is_first_call(), status=None, in_discovery=True
).says("The server fails on the first ServerMetadata call with an internal error, and answers later ones.")
inputs_described_twice = steps.DESCRIBE_MODEL.after(
    "OIP-MODEL-METADATA", lambda document: document | {"inputs": [*document["inputs"], *document["inputs"]]}
).says("The model metadata list each input twice.")

# --- at the path of a version -----------------------------------------------------------------------------------------

_described: dict[str, Response] = {}


@fault(steps.MODEL_METADATA, breaks="OIP-MODEL-METADATA")
async def metadata_kept_by_the_end_of_the_path(original: Any, service: Any, http: Any) -> Response:
    """The server caches model metadata by the last path segment, so all models share the entry of a version."""
    described = await original(service, http)
    return _described.setdefault(http.url.path.rsplit("/", 1)[1], described)


def _name_version(described: Response, http: Request) -> Response:
    return JSONResponse(json.loads(bytes(described.body)) | {"name": http.path_params["version"]})


versions_are_numbers_at_the_path_of_a_version = steps.MODEL_METADATA.after(
    "OIP-MODEL-METADATA",
    lambda described: JSONResponse(json.loads(bytes(described.body)) | {"versions": [1]}),
    when=has_version,
).says("The model metadata at the path of a version list the versions as numbers instead of strings.")
version_named_instead_of_the_model = steps.MODEL_METADATA.after(
    "OIP-MODEL-METADATA", _name_version, when=has_version
).says("The model metadata at the path of a version have the version as `name`.")
