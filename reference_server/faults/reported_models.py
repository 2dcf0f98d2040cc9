"""Faults that real servers had with several versions of a model, with transposed outputs, and with several zeros."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server.faults import Fault, fault, steps
from reference_server.faults.element_layout import write_by_columns
from reference_server.models import Model
from reference_server.request import InferRequest

# --- versions ---------------------------------------------------------------------------------------------------------

_OVERLAP_S = 0.003  # time in which concurrent requests overlap
_latest: dict[str, str] = {}


def _get_default(model: Model) -> Model:
    return list(model.versions.values())[-1]


earlier_versions_computed_by_the_default = steps.FIND_MODEL.after("OIP-VERSIONED", _get_default).says(
    "The server looks up the version in a path, but runs the default version of the model."
)
grpc_earlier_versions_computed_by_the_default = steps.FIND_CALLED_MODEL.after("OIP-VERSIONED/grpc", _get_default).says(
    "The server looks up the version in a call, but runs the default version of the model."
)


def cache_outputs(step: str, requirement: str) -> Fault:
    """Return a fault: the server caches the last outputs of a model by its name and inputs, but not by its version."""
    cached: dict[str, tuple[str, Any]] = {}

    def body(original: Any, model: Model, request: InferRequest, produced: Any) -> Any:
        key = repr([(name, tensor.shape, tensor.elements.tolist()) for name, tensor in request.inputs.items()])
        if cached.get(model.name, ("",))[0] != key:
            cached[model.name] = key, produced
        return original(model, request, cached[model.name][1])

    return Fault("", (step,), (requirement,), body)


outputs_cached_without_the_version = cache_outputs(steps.BUILD, "OIP-VERSIONED").says(
    "The server caches outputs by the name of the model and the inputs, but not by the version."
)
grpc_outputs_cached_without_the_version = cache_outputs(steps.BUILD_RESPONSE, "OIP-VERSIONED/grpc").says(
    "The server caches outputs by the name of the model and the inputs, but not by the version."
)


@fault(steps.INFER, breaks="OIP-VERSIONED")
async def versions_in_flight_computed_by_the_last(original: Any, service: Any, http: Request) -> Response:
    """If requests to a model overlap, the server computes all of them by the version of the last one."""
    await http.body()
    model = service.find_model(http)
    _latest[model.name] = model.version
    if len(model.versions) > 1:
        await asyncio.sleep(_OVERLAP_S)
    http.path_params["version"] = _latest[model.name]
    return await original(service, http)


@fault(steps.BUILD_RESPONSE, breaks="OIP-VERSIONED/grpc")
def grpc_versions_in_flight_computed_by_the_last(
    original: Any, model: Model, request: InferRequest, produced: Any
) -> Any:
    """If calls to a model overlap, the server computes all of them by the version of the last one."""
    if len(model.versions) > 1:
        _latest[model.name] = model.version
        time.sleep(_OVERLAP_S)
        produced = model.versions[_latest[model.name]].run(request.inputs)
    return original(model, request, produced)


# --- transposed outputs, and several zeros in a shape -----------------------------------------------------------------

transposed_numbers_in_memory_order = steps.ENCODE_OUTPUT.before(
    "BIN-ROW-MAJOR-O",
    tensor=write_by_columns,
    when=lambda model, output: model.compute == "transpose" and output.binary and output.name == "NUMBERS",
).says("The server copies the memory of a transposed output, whose elements are in the order of the input.")
transposed_texts_in_memory_order = steps.ENCODE_OUTPUT.before(
    ("OIP-DATA", "OIP-ANSWER"),
    tensor=write_by_columns,
    when=lambda model, output: model.compute == "transpose" and not output.binary and output.name == "TEXTS",
).says("The server writes the strings of a transposed output into JSON in the order of their memory.")
grpc_transposed_outputs_in_memory_order = steps.CLASSIFY_OUTPUT.after(
    ("GRPC-TYPED", "GRPC-RAW", "GRPC-SAME-AS-HTTP"), write_by_columns, when=lambda model: model.compute == "transpose"
).says("The server copies the memory of a transposed output, whose elements are in the order of the input.")
several_zeros_in_a_shape_become_one = steps.ENCODE_OUTPUT.change_entry(
    "OIP-SHAPE", lambda entry: entry | {"shape": [0]}, when=lambda tensor: tensor.shape.count(0) > 1
).says("The server writes the shape [0] for an output with more than one dimension of 0.")
grpc_several_zeros_in_a_shape_become_one = steps.CLASSIFY_OUTPUT.after(
    ("GRPC-TYPED", "GRPC-RAW"),
    lambda tensor: replace(tensor, shape=(0,)),
    when=lambda tensor: tensor.shape.count(0) > 1,
).says("The server writes the shape [0] for an output with more than one dimension of 0.")
