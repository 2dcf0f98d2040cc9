"""Wrong metadata of servers and models, and failures of the first requests that a server receives."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse, Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.models import Model

Described = dict[str, Any]


@fault("metadata.describe_server", breaks="BIN-LISTED")
def binary_extension_not_listed(original: Any) -> Described:
    """The server implements binary_tensor_data but does not list this extension in its metadata."""
    return original() | {"extensions": ["classification"]}


@fault("metadata.describe_server", breaks="CLS-LISTED")
def list_of_extensions_without_its_last(original: Any) -> Described:
    """The server does not list its last extension, because a loop ends too early."""
    document: Described = original()
    return document | {"extensions": document["extensions"][:-1]}


@fault("metadata.describe_server", breaks="OIP-SERVER-METADATA")
def server_without_a_name(original: Any) -> Described:
    """The server metadata have no `name`."""
    document: Described = original()
    return {member: value for member, value in document.items() if member != "name"}


@fault("metadata.describe_model", breaks="OIP-MODEL-METADATA")
def model_without_a_platform(original: Any, model: Model) -> Described:
    """The model metadata have no `platform`."""
    return {member: value for member, value in original(model).items() if member != "platform"}


@fault("metadata.describe_model", breaks="OIP-MODEL-METADATA")
def every_model_has_the_same_name(original: Any, model: Model) -> Described:
    """The metadata of every model have the name `model`."""
    return original(model) | {"name": "model"}


@fault("metadata.describe_model", breaks="OIP-MODEL-METADATA")
def versions_as_numbers(original: Any, model: Model) -> Described:
    """The model metadata list the versions as numbers instead of strings."""
    return original(model) | {"versions": [1]}


@fault("metadata.describe_model", breaks="OIP-MODEL-METADATA")
def outputs_described_as_the_inputs(original: Any, model: Model) -> Described:
    """The model metadata list the inputs in place of the outputs."""
    document: Described = original(model)
    return document | {"outputs": document["inputs"]}


@fault("metadata.describe_model", breaks="OIP-VERSION-UNKNOWN")
def versions_in_metadata_written_over(original: Any, model: Model) -> Described:
    """The model metadata list a wrong version, because the memory of the list was overwritten."""
    return original(model) | {"versions": ["9"]}


@fault("metadata.describe_model", breaks="OIP-MODEL-METADATA", surveyed=True)
def metadata_of_models_without_a_json_form_fail(original: Any, model: Model) -> Described:
    """The server fails on requests for the metadata of models with FP16 or BF16 tensors, which a table lacks."""
    if {spec.datatype for spec in (*model.inputs, *model.outputs)} & {"FP16", "BF16"}:
        raise KeyError("FP16")
    return original(model)


# --- discovery --------------------------------------------------------------------------------------------------------

_called_names: set[str] = set()


def _is_first_call(name: str) -> bool:
    """Say whether no earlier call had this name."""
    is_first = name not in _called_names
    _called_names.add(name)
    return is_first


@fault("app.Service.model_metadata", breaks="OIP-ALIVE-LEGAL", surveyed=True)
async def first_look_at_a_model_broken(original: Any, service: Any, http: Any) -> Any:
    """The server answers the first request for model metadata with 500, and all later ones correctly."""
    if _is_first_call("metadata"):
        raise InferenceError("not now", status=500)
    return await original(service, http)


@fault("request.parse_raw", breaks="OIP-ALIVE-LEGAL", surveyed=True)
def first_raw_request_breaks_the_server(original: Any, *arguments: Any) -> Any:
    """The server fails on the first raw request with an internal error, and answers later ones."""
    if _is_first_call("raw"):
        raise RuntimeError("no buffer")
    return original(*arguments)


@fault("request.parse_raw", breaks="OIP-ERROR-STATUS", surveyed=True)
def unknown_raw_requests_break_the_server(_original: Any, *_arguments: Any) -> Any:
    """The server does not support raw requests and answers them with an internal error."""
    raise RuntimeError("not JSON")


@fault("app.Service.infer", breaks="OIP-ALIVE-LEGAL")
async def first_inference_broken(original: Any, service: Any, http: Any) -> Any:
    """The server answers the first inference request with 500, and all later ones correctly."""
    if _is_first_call("inference"):
        raise InferenceError("loading", status=500)
    return await original(service, http)


@fault("grpc_methods.server_metadata", breaks="OIP-ALIVE-LEGAL/grpc", surveyed=True)
def grpc_first_look_at_the_server_breaks_it(original: Any, models: Any, message: Any) -> Any:
    """The server fails on the first ServerMetadata call with an internal error, and answers later ones."""
    if _is_first_call("grpc-metadata"):
        raise RuntimeError("no cache")
    return original(models, message)


@fault("metadata.describe_model", breaks="OIP-MODEL-METADATA")
def inputs_described_twice(original: Any, model: Any) -> dict[str, Any]:
    """The model metadata list each input twice."""
    found: dict[str, Any] = original(model)
    return {**found, "inputs": [*found["inputs"], *found["inputs"]]}


# --- at the path of a version -----------------------------------------------------------------------------------------

_described: dict[str, Response] = {}


@fault("app.Service.model_metadata", breaks="OIP-MODEL-METADATA")
async def metadata_kept_by_the_end_of_the_path(original: Any, service: Any, http: Any) -> Response:
    """The server caches model metadata by the last path segment, so all models share the entry of a version."""
    described = await original(service, http)
    return _described.setdefault(http.url.path.rsplit("/", 1)[1], described)


@fault("app.Service.model_metadata", breaks="OIP-MODEL-METADATA")
async def version_named_instead_of_the_model(original: Any, service: Any, http: Any) -> Response:
    """The model metadata at the path of a version have the version as `name`."""
    described: Response = await original(service, http)
    if "version" not in http.path_params:
        return described
    return JSONResponse(json.loads(bytes(described.body)) | {"name": http.path_params["version"]})
