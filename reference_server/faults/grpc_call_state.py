"""gRPC: what another call leaves in an answer, one before it or one in flight beside it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor

Message = Any
OVERLAP_S = 0.003  # seconds; calls in flight together overlap for so long

# --- before it -------------------------------------------------------------------------------------------------------

_answers: dict[str, Any] = {"last": b"", "refused": False}


@fault("grpc_server.status", "grpc_methods.model_infer", breaks="OIP-ALIVE/grpc")
def grpc_call_after_a_refusal_gets_the_answer_before_it(original: Any, *arguments: Any) -> Any:
    """The first call after a refused one is answered with what the one before that was."""
    if len(arguments) == 1:
        _answers["refused"] = True
        return original(*arguments)
    response, last = original(*arguments), _answers["last"]
    was_refused, _answers["refused"], _answers["last"] = _answers["refused"], False, response
    return last if was_refused and last and last.model_name == response.model_name else response


_lists: dict[str, list[RequestedOutput]] = {}


@fault("grpc_request.parse_outputs", breaks="OIP-ISOLATION/grpc")
def grpc_lists_of_outputs_stick(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """A call that lists no outputs gets those that the call before it listed, classified as they were there."""
    wishes: list[RequestedOutput] = original(model, message)
    kept = _lists.pop("", [])
    if message.outputs:
        _lists[""] = wishes
        return wishes
    own = {spec.name for spec in model.outputs}
    return kept if kept and {wish.name for wish in kept} < own else wishes


@fault("grpc_request.parse_outputs", breaks="OIP-ALIVE/grpc")
def grpc_counts_of_refused_calls_stick(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """The call after one that was refused for its list of outputs has the classes that were asked for there."""
    try:
        wishes: list[RequestedOutput] = original(model, message)
    except InferenceError:
        _lists["refused"] = [
            RequestedOutput(entry.name, False, entry.parameters["classification"].int64_param)
            for entry in message.outputs
            if "classification" in entry.parameters
        ]
        raise
    stuck = {wish.name: wish.classes for wish in _lists.pop("refused", [])}
    return [replace(wish, classes=wish.classes or stuck.get(wish.name)) for wish in wishes]


_before: dict[str, tuple[bool, Any]] = {}
MIN_LONG_ELEMENTS = 900  # elements


def _with_first(tensor: Tensor, element: Any) -> Tensor:
    elements = tensor.elements.copy()
    elements[0] = element
    return replace(tensor, elements=elements)


@fault("grpc_request.parse_inputs", breaks="OIP-ISOLATION/grpc")
def grpc_short_inputs_begin_like_the_long_one_before(original: Any, model: Any, message: Message) -> dict[str, Tensor]:
    """A buffer grown for a long input is not begun anew: its first element stays in a shorter one with an id."""
    found: dict[str, Tensor] = original(model, message)
    name, tensor = next(iter(found.items()))
    _, last = _before.get(model.name, (False, tensor.elements))
    _before[model.name] = False, tensor.elements
    is_stale = bool(message.id) and last.size >= MIN_LONG_ELEMENTS and 0 < tensor.elements.size < last.size
    return {**found, name: _with_first(tensor, last[0])} if is_stale else found


@fault("grpc_request.parse_inputs", breaks="OIP-ISOLATION/grpc")
def grpc_typed_inputs_begin_like_the_raw_one_before(original: Any, model: Any, message: Message) -> dict[str, Tensor]:
    """A typed input of a call with an id, longer than the raw one before it, has the first element of that."""
    found: dict[str, Tensor] = original(model, message)
    name, tensor = next(iter(found.items()))
    is_raw = bool(message.raw_input_contents)
    was_raw, last = _before.get(model.name, (False, tensor.elements))
    _before[model.name] = is_raw, tensor.elements
    is_stale = bool(message.id) and was_raw and not is_raw and 0 < last.size < tensor.elements.size
    return {**found, name: _with_first(tensor, last[0])} if is_stale else found


_cached: dict[bytes, Any] = {}


@fault("grpc_server.answer", breaks="OIP-ISOLATION/grpc")
def grpc_answers_are_cached_by_4_kib(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """A call that begins with the same 4 KiB as one before it, and is as long, gets the answer to that."""
    if len(octets) <= 4096:
        return bytes(original(models, method, octets))
    key = octets[:4096] + len(octets).to_bytes(8, "big")
    if key not in _cached:
        _cached.clear()
        _cached[key] = original(models, method, octets)
    return bytes(_cached[key])


# --- beside it -------------------------------------------------------------------------------------------------------

_shared: dict[str, Any] = {}


def _kept_for_a_moment(name: str, value: Any) -> Any:
    """Return what stands in a place that all calls share, a moment after it was put there."""
    _shared[name] = value
    time.sleep(OVERLAP_S)
    return _shared[name]


@fault("grpc_response.build", breaks="OIP-ISOLATION/grpc")
def grpc_ids_in_flight_are_exchanged(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """Calls in flight together have the id of the one that came last."""
    identity = _kept_for_a_moment("id", request.id or "")
    response = original(model, request, produced)
    response.id = identity if request.id else ""
    return response


@fault("grpc_request.raw_contents", breaks="OIP-ISOLATION/grpc")
def grpc_raw_contents_in_flight_are_exchanged(original: Any, message: Message) -> Any:
    """Raw contents of calls in flight together are kept in one place."""
    contents = original(message)
    if not message.raw_input_contents:
        return contents
    found = _kept_for_a_moment("raw", contents)
    return found if len(found) == len(contents) else contents


@fault("grpc_contents.decode_typed", breaks="OIP-ISOLATION/grpc")
def grpc_typed_contents_in_flight_are_exchanged(original: Any, datatype: str, shape: Any, contents: Message) -> Any:
    """Typed contents of calls in flight together are kept in one place."""
    found = _kept_for_a_moment("typed", (datatype, shape, contents))
    return original(datatype, shape, found[2] if found[:2] == (datatype, shape) else contents)


@fault("grpc_request.parse_outputs", breaks="OIP-ISOLATION/grpc")
def grpc_counts_in_flight_are_exchanged(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """Calls for classes in flight together have the number of the one that came last."""
    wishes: list[RequestedOutput] = original(model, message)
    if not any(wish.classes for wish in wishes):
        return wishes
    counts = _kept_for_a_moment("counts", [wish.classes for wish in wishes])
    if len(counts) != len(wishes):
        return wishes
    return [replace(wish, classes=count) for wish, count in zip(wishes, counts, strict=True)]


@fault("grpc_methods.find", breaks="OIP-ISOLATION/grpc")
def grpc_models_in_flight_are_exchanged(original: Any, models: Any, name: str, version: str) -> Any:
    """Calls in flight together go to the model of the one that came last, where it takes the same inputs."""
    model = original(models, name, version)
    other = _kept_for_a_moment("model", model)
    alike = [(spec.name, spec.shape) for spec in other.inputs] == [(spec.name, spec.shape) for spec in model.inputs]
    return other if alike else model
