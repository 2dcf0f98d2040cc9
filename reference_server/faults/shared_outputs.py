"""Faults where a request gets the outputs, or the form of the outputs, that another request lists."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server import request, response
from reference_server.errors import InferenceError
from reference_server.faults import Fault, fault, steps
from reference_server.framing import HEADER
from reference_server.models import Model
from reference_server.request import InferRequest, RequestedOutput
from reference_server.tensors import Tensor

Message = Any
Outputs = list[RequestedOutput]
OVERLAP_S, POLL_S = 0.02, 0.0005  # how long a slow request waits for another, and how often it looks


def make_key(model: Model, found: InferRequest) -> object:
    """Return the key of a cache that tells versions, ids and inputs apart, and leaves out the requested outputs."""
    inputs = [(name, each.datatype, tuple(each.shape), each.elements.tolist()) for name, each in found.inputs.items()]
    return repr((model.name, model.version, found.id, sorted(inputs)))


# --- caches -----------------------------------------------------------------------------------------------------------

_answers: dict[object, Response] = {}
_lists: dict[object, Outputs] = {}


@fault(steps.BUILD, breaks="OIP-ISOLATION")
def answers_cached_by_model_and_inputs(
    original: Any, model: Model, request: InferRequest, produced: Mapping[str, Tensor]
) -> Response:
    """The server caches an answer by the model, the id and the inputs, but not by the requested outputs."""
    key = make_key(model, request)
    if key not in _answers:
        _answers[key] = original(model, request, produced)
    found = _answers[key]
    return Response(bytes(found.body), found.status_code, dict(found.headers))


@fault(steps.BUILD, breaks="OIP-ISOLATION")
def lists_of_outputs_cached_with_the_inputs(
    original: Any, model: Model, request: InferRequest, produced: Mapping[str, Tensor]
) -> Response:
    """The server caches outputs by the model and the inputs, so that a later request gets those of the first list."""
    return original(model, replace(request, outputs=_use_first_list(model, request)), produced)


@fault(steps.BUILD, breaks="OIP-ISOLATION")
def other_numbers_of_outputs_than_cached_refused(
    original: Any, model: Model, request: InferRequest, produced: Mapping[str, Tensor]
) -> Response:
    """The server caches outputs by the model and the inputs, and refuses a later request for fewer or more outputs."""
    if len(request.outputs) != len(_use_first_list(model, request)):
        raise InferenceError("the number of outputs does not match")
    return original(model, request, produced)


def _use_first_list(model: Model, request: InferRequest) -> Outputs:
    """Return the outputs that the first request with these inputs listed, each as this request asks for it."""
    own = {output.name: output for output in request.outputs}
    first = _lists.setdefault(make_key(model, replace(request, id=None)), request.outputs)
    return [own.get(output.name, RequestedOutput(output.name, request.outputs[0].binary)) for output in first]


# --- concurrent requests ----------------------------------------------------------------------------------------------

_wanted: dict[object, Outputs] = {}


def _find_name(model: Model, _: InferRequest) -> str:
    return model.name


def share_in_flight(
    choose: Callable[[Outputs, Outputs], Outputs], *, min_bytes: int = 0, find_key: Callable[..., object] = _find_name
) -> Fault:
    """Return a fault: a request with an id gets the outputs that `choose` makes of its own list and of the last one.

    It waits for another request of the same key if its body has `min_bytes`.
    """

    async def body(_original: Any, service: Any, http: Request) -> Response:
        data = await service.read_body(http)
        model = service.find_model(http)
        inference = request.parse(model, http.headers.getlist(HEADER), data)
        key, own = find_key(model, inference), inference.outputs
        _wanted[key] = own
        end = time.monotonic() + (OVERLAP_S if inference.id and len(data) >= min_bytes else 0)
        while _wanted[key] is own and time.monotonic() < end:
            await asyncio.sleep(POLL_S)
        return response.build(model, replace(inference, outputs=choose(own, _wanted[key])), model.run(inference.inputs))

    return Fault("", (steps.INFER,), ("OIP-ISOLATION",), body)


def _use_forms(own: Outputs, last: Outputs) -> Outputs:
    forms = {output.name: output.binary for output in last}
    return [replace(output, binary=forms.get(output.name, output.binary)) for output in own]


lists_of_outputs_shared_by_requests_in_flight = share_in_flight(lambda _, last: last).says(
    "If requests to a model overlap, the server answers the first with the outputs that the second lists."
)
lists_of_outputs_of_large_requests_replaced = share_in_flight(lambda _, last: last, min_bytes=64 * 1024).says(
    "The server answers a request of over 64 KiB with the outputs that a request beside it lists."
)
lists_of_outputs_shared_by_equal_inputs_in_flight = share_in_flight(
    lambda _, last: last, find_key=lambda model, found: make_key(model, replace(found, id=None))
).says("If requests with the same inputs overlap, the server computes one answer, with the outputs that one lists.")
forms_of_outputs_shared_by_requests_in_flight = share_in_flight(_use_forms).says(
    "If requests to a model overlap, the server answers the first in the form that the second asks for."
)


# --- over gRPC --------------------------------------------------------------------------------------------------------


@fault(steps.BUILD_RESPONSE, breaks="OIP-ISOLATION/grpc")
def grpc_lists_of_outputs_cached_with_the_inputs(original: Any, model: Model, request: Any, produced: Any) -> Message:
    """The server caches outputs by the model and the inputs, so that a later call gets those of the first list."""
    return original(model, replace(request, outputs=_use_first_list(model, request)), produced)


_responses: dict[object, Message] = {}


@fault(steps.BUILD_RESPONSE, breaks="OIP-ISOLATION/grpc")
def grpc_answers_cached_by_model_and_inputs(original: Any, model: Model, request: Any, produced: Any) -> Message:
    """The server caches an answer by the model, the id and the inputs, but not by the requested outputs."""
    key = make_key(model, request)
    if key not in _responses:
        _responses[key] = original(model, request, produced)
    return _responses[key]


@fault(steps.PARSE_CALL_OUTPUTS, breaks="OIP-ISOLATION/grpc")
def grpc_lists_of_outputs_in_flight_are_shared(original: Any, model: Model, message: Message) -> Outputs:
    """If calls to a model overlap, the server answers the first with the outputs that the second lists."""
    own = _wanted[model.name] = original(model, message)
    end = time.monotonic() + (OVERLAP_S if message.id else 0)
    while _wanted[model.name] is own and time.monotonic() < end:
        time.sleep(POLL_S)
    return _wanted[model.name]
