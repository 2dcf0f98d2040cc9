"""gRPC: answers affected by an earlier or a concurrent call."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault, steps
from reference_server.faults.edits import set_elements
from reference_server.faults.stale_state import make_careless_key
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


MIN_CACHED_BYTES, MAX_CACHED_BYTES = 2048, 65_536


@fault(steps.ANSWER_CALL, breaks="OIP-ISOLATION/grpc")
def grpc_answers_are_cached_without_the_model(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """The server caches answers to calls of 2 to 64 KiB without the name of the model, which is the first field."""
    key = octets[2 + octets[1] :] if MIN_CACHED_BYTES < len(octets) <= MAX_CACHED_BYTES else b""
    if not key:
        return original(models, method, octets)
    answer = _cached.get(key) or original(models, method, octets)
    _cached.clear()
    _cached[key] = answer
    return answer


_inputs_by_model: dict[str, dict[str, Tensor]] = {}


@fault(steps.PARSE_CALL_INPUTS, breaks="OIP-ISOLATION/grpc")
def grpc_inputs_that_look_alike_are_those_before(original: Any, model: Any, message: Message) -> dict[str, Tensor]:
    """The server takes inputs for those before if the joined strings, or the numbers by ==, are the same."""
    found: dict[str, Tensor] = original(model, message)
    before = _inputs_by_model.get(model.name, {})
    _inputs_by_model[model.name] = found
    return (
        before
        if list(map(make_careless_key, before.values())) == list(map(make_careless_key, found.values()))
        else found
    )


_large: dict[str, Any] = {}
MIN_LARGE_ELEMENTS = 60_000


@fault(steps.PARSE_CALL_INPUTS, breaks="OIP-ISOLATION/grpc")
def grpc_inputs_end_like_the_large_ones_before(original: Any, model: Any, message: Message) -> dict[str, Tensor]:
    """The server ends a negative input with the last element of the large input of the call before."""
    found: dict[str, Tensor] = original(model, message)
    name, tensor = next(iter(found.items()))
    last = _large.pop(model.name, None)
    if tensor.elements.size >= MIN_LARGE_ELEMENTS and tensor.elements.dtype.kind == "f":
        _large[model.name] = tensor.elements.reshape(-1)[-1]
    is_stale = last is not None and 0 < tensor.elements.size < MIN_LARGE_ELEMENTS and (tensor.elements < 0).all()
    return {**found, name: replace(tensor, elements=set_elements(tensor.elements, -1, last))} if is_stale else found


_in_flight: dict[str, dict[str, Tensor]] = {}


@fault(steps.PARSE_CALL_INPUTS, breaks="OIP-ISOLATION/grpc")
def grpc_classified_inputs_in_flight_are_shared(original: Any, model: Any, message: Message) -> dict[str, Tensor]:
    """If calls for classes overlap, the server classifies the inputs of the last one for all of them."""
    found: dict[str, Tensor] = original(model, message)
    if not any("classification" in output.parameters for output in message.outputs):
        return found
    _in_flight[model.name] = found
    time.sleep(OVERLAP_S)
    return _in_flight[model.name]


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


_buffer: dict[str, bytes] = {}
MIN_BUFFERED_BYTES, BUFFERED_S, POLL_S = 2 * 1024 * 1024, 0.3, 0.002


@fault(steps.MAKE_HANDLER, breaks="OIP-ISOLATION/grpc")
def grpc_large_answers_in_flight_share_a_buffer(original: Any, models: Any, method: Any) -> Any:
    """The server sends answers of over 2 MiB from one buffer, where a second soon overwrites the first."""
    handle = original(models, method)

    def answer_from_buffer(octets: bytes, context: Any) -> bytes:
        own: bytes = handle(octets, context)
        if len(own) <= MIN_BUFFERED_BYTES:
            return own
        _buffer["answer"], end = own, time.monotonic() + BUFFERED_S
        while _buffer["answer"] is own and time.monotonic() < end:
            time.sleep(POLL_S)
        return _buffer["answer"]

    return answer_from_buffer


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
