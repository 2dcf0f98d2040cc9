"""gRPC: answers affected by an earlier or a concurrent call."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault, steps
from reference_server.faults.edits import set_elements
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor

Message = Any
OVERLAP_S = 0.003  # time in which concurrent calls overlap
CANCELLABLE_S = 0.02  # time in which a client cancels a call
MIN_REMAINING_S = 1.0  # a call that ends with more time until its deadline was cancelled by its client
IDLE_S = 0.15  # time without a call

_answers: dict[str, Any] = {"last": b"", "refused": False}


@fault(steps.GET_STATUS, steps.MODEL_INFER, breaks="OIP-ALIVE/grpc")
def grpc_call_after_a_refusal_gets_the_answer_before_it(original: Any, *arguments: Any) -> Any:
    """After a refused call, the server repeats its last answer if the next inference is to the same model."""
    if len(arguments) == 1:
        _answers["refused"] = True
        return original(*arguments)
    response, last = original(*arguments), _answers["last"]
    was_refused, _answers["refused"], _answers["last"] = _answers["refused"], False, response
    return last if was_refused and last and last.model_name == response.model_name else response


_lists: dict[str, list[RequestedOutput]] = {}


@fault(steps.PARSE_CALL_OUTPUTS, breaks=("OIP-ISOLATION/grpc", "CLS-ONLY/grpc"))
def grpc_lists_of_outputs_stick(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """If a call lists no outputs, the server uses the list of the previous call, including `classification`."""
    requested: list[RequestedOutput] = original(model, message)
    kept = _lists.pop("", [])
    if message.outputs:
        _lists[""] = requested
        return requested
    own = {spec.name for spec in model.outputs}
    return kept if kept and {output.name for output in kept} < own else requested


_before: dict[str, Any] = {}
MIN_LONG_ELEMENTS = 900  # an input of this many elements is long


@fault(steps.PARSE_CALL_INPUTS, breaks="OIP-ISOLATION/grpc")
def grpc_short_inputs_begin_like_the_long_one_before(original: Any, model: Any, message: Message) -> dict[str, Tensor]:
    """In a call with an id, the server starts an input with the first element of a long previous input."""
    found: dict[str, Tensor] = original(model, message)
    name, tensor = next(iter(found.items()))
    last = _before.get(model.name, tensor.elements)
    _before[model.name] = tensor.elements
    is_stale = bool(message.id) and last.size >= MIN_LONG_ELEMENTS and 0 < tensor.elements.size < last.size
    return {**found, name: _replace_first_element(tensor, last[0])} if is_stale else found


_raw_before: dict[str, Any] = {}


@fault(steps.PARSE_CALL_INPUTS, breaks="OIP-ISOLATION/grpc")
def grpc_typed_inputs_begin_like_the_raw_one_before(original: Any, model: Any, message: Message) -> dict[str, Tensor]:
    """In a call with an id, the server starts an input with the first element of the previous, shorter raw input."""
    found: dict[str, Tensor] = original(model, message)
    name, tensor = next(iter(found.items()))
    last = _raw_before.pop(model.name, None)
    if message.raw_input_contents:
        _raw_before[model.name] = tensor.elements
    is_stale = bool(message.id) and last is not None and 0 < last.size < tensor.elements.size
    return {**found, name: _replace_first_element(tensor, last[0])} if is_stale and last is not None else found


def _replace_first_element(tensor: Tensor, element: Any) -> Tensor:
    return replace(tensor, elements=set_elements(tensor.elements, 0, element))


_cached: dict[bytes, bytes] = {}


@fault(steps.ANSWER_CALL, breaks="OIP-ISOLATION/grpc")
def grpc_answers_are_cached_by_4_kib(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """The server repeats an answer if a later message has the same length and the same first 4 KiB."""
    if len(octets) <= 4096:
        return original(models, method, octets)
    key = octets[:4096] + len(octets).to_bytes(8, "big")
    if key not in _cached:
        _cached.clear()
        _cached[key] = original(models, method, octets)
    return _cached[key]


_shared: dict[str, str] = {}


@fault(steps.BUILD_RESPONSE, breaks="OIP-ISOLATION/grpc")
def grpc_ids_in_flight_are_exchanged(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """If calls with ids overlap, the server answers all of them with the id of the last call."""
    _shared["id"] = request.id or ""
    time.sleep(OVERLAP_S)
    identity = _shared["id"]
    response = original(model, request, produced)
    response.id = identity if request.id else ""
    return response


_cancelled: dict[str, bytes] = {}


@fault(steps.MAKE_HANDLER, breaks="OIP-ISOLATION/grpc", walks="calls")
def grpc_answers_of_cancelled_calls_go_to_the_next(_original: Any, models: Any, method: Any) -> Any:
    """The server sends the answer to a call that its client cancelled to the next call of the same method."""
    from reference_server import grpc_server  # its packages may be missing

    async def handle(octets: bytes, context: Any) -> bytes:
        if last := _cancelled.pop(method.call.__name__, b""):
            return last
        try:
            answer = grpc_server.answer(models, method, octets)
        except InferenceError as error:
            await context.abort(*grpc_server.get_status(error))
        try:
            await asyncio.sleep(CANCELLABLE_S)
        except asyncio.CancelledError:
            if context.time_remaining() > MIN_REMAINING_S:
                _cancelled[method.call.__name__] = answer
            raise
        return answer

    return handle


_last_inference: dict[str, Any] = {"time": 0.0, "id": ""}


@fault(steps.MODEL_INFER, breaks="OIP-ISOLATION/grpc")
def grpc_ids_are_kept_through_a_pause(original: Any, models: Any, request: Message) -> Message:
    """After 0.15 s without an inference, the server answers the next inference with the id of the previous one."""
    answer = original(models, request)
    last, is_late = _last_inference["id"], time.monotonic() - _last_inference["time"] > IDLE_S
    _last_inference.update(id=request.id, time=time.monotonic())
    if last and request.id and is_late:
        answer.id = last
    return answer
