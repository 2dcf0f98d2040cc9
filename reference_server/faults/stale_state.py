"""Faults where one request affects a later request or a concurrent request."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from reference_server import request, response
from reference_server.errors import InferenceError
from reference_server.faults import Fault, fault, steps
from reference_server.faults.edits import replace_body
from reference_server.framing import HEADER
from reference_server.http_protocol import OipHttpProtocol
from reference_server.models import Model
from reference_server.request import InferRequest
from reference_server.tensors import Tensor

_last: dict[str, Any] = {}


# --- caches -----------------------------------------------------------------------------------------------------------

PAGE_BYTES = 4096


def cache_answers(make_key: Callable[[Request, bytes], object], *, size: int = 1, walks: str = "") -> Fault:
    """Return a fault: the server caches so many answers by the key that it makes of a request; None is not cached."""
    answers: dict[object, Response] = {}

    async def body(original: Any, service: Any, http: Request) -> Response:
        await http.body()  # it stays in the request, so that the server can read it again
        key = make_key(http, await service.read_body(http))
        if key is None:
            return await original(service, http)
        if key not in answers:
            if len(answers) >= size:
                answers.clear()
            answers[key] = await original(service, http)
        found = answers[key]
        return Response(bytes(found.body), found.status_code, dict(found.headers))

    return Fault("", (steps.INFER,), ("OIP-ISOLATION",), body, walks=walks)


def _use_first_page(http: Request, body: bytes) -> object:
    key = (http.url.path, http.headers.get(HEADER), len(body), body[:PAGE_BYTES])
    return key if len(body) > PAGE_BYTES else None


answers_cached_by_the_first_page_of_the_body = cache_answers(_use_first_page).says(
    "The server caches an answer by the path and by the length and the first 4 KiB of the body."
)
answers_cached_without_the_inference_header = cache_answers(
    lambda http, body: (http.url.path, body) if http.headers.get(HEADER, "").isdecimal() else None
).says("The server caches an answer by the path and the body, but not by the inference header.")
answers_cached_without_the_shape = cache_answers(
    lambda http, body: (http.url.path, http.headers.get(HEADER), re.sub(rb'"shape": ?\[[1-9][0-9, ]*\]', b"", body))
).says("The server caches an answer by the path and the body, but not by the shapes in the body.")
answers_cached_without_the_path = cache_answers(
    lambda http, body: (http.headers.get(HEADER), body) if PAGE_BYTES < len(body) <= 16 * PAGE_BYTES else None
).says("The server caches answers to bodies of 4 to 64 KiB without the path, so all models share them.")

_inputs_by_model: dict[str, dict[str, Tensor]] = {}


@fault(steps.PARSE, breaks="OIP-ISOLATION")
def inputs_that_look_alike_taken_for_those_before(
    original: Any, model: Model, values: Sequence[str], body: bytes
) -> InferRequest:
    """The server takes inputs for those before if the joined strings, or the numbers by ==, are the same."""
    found: InferRequest = original(model, values, body)
    before = _inputs_by_model.get(model.name, {})
    _inputs_by_model[model.name] = found.inputs
    are_alike = {name: make_careless_key(tensor) for name, tensor in before.items()} == {
        name: make_careless_key(tensor) for name, tensor in found.inputs.items()
    }
    return replace(found, inputs=before) if are_alike else found


def make_careless_key(tensor: Tensor) -> tuple[Any, ...]:
    """Return a key that does not tell all tensors apart: borders of strings, and zeros of different signs."""
    values = tensor.elements.ravel().tolist()
    return (tuple(tensor.shape), b"".join(values) if tensor.datatype == "BYTES" else values)


# --- buffers and workers ----------------------------------------------------------------------------------------------

_buffers: dict[str, dict[str, Tensor]] = {}


@fault(steps.PARSE, breaks=("OIP-ISOLATION", "HTTP-PIPELINE"))
def binary_inputs_used_again_for_json(original: Any, model: Model, values: Sequence[str], body: bytes) -> InferRequest:
    """If a request has an id, the server overwrites the start of JSON inputs with earlier binary inputs."""
    found: InferRequest = original(model, values, body)
    before = _buffers.pop(model.name, None)
    if found.id is None:
        return found
    if values:
        _buffers[model.name] = dict(found.inputs)
    elif before is not None:
        return replace(
            found, inputs={name: _overwrite_elements(found.inputs[name], before[name]) for name in found.inputs}
        )
    return found


def _overwrite_elements(tensor: Tensor, before: Tensor) -> Tensor:
    elements = tensor.elements.copy()
    count = min(elements.size, before.elements.size)
    elements[:count] = before.elements[:count]
    return replace(tensor, elements=elements)


_strings: set[int] = set()  # connections with an unanswered request to identity_bytes


@fault(steps.DATA_RECEIVED, breaks="OIP-ERROR")
def strings_that_are_to_be_ranked_end_the_connection(original: Any, protocol: Any, data: bytes) -> None:
    """The server closes the connection without an answer if a client asks to classify BYTES."""
    if data.startswith(b"POST "):
        _strings.discard(id(protocol))
        _strings.update({id(protocol)} if b"/identity_bytes/" in data else ())
    if id(protocol) in _strings and b'"classification"' in data:
        _strings.discard(id(protocol))
        protocol.transport.close()
        return
    original(protocol, data)


# --- concurrent requests, ids and buffers ---------------------------------------------------------------------------


@fault(steps.INFER, breaks="OIP-ISOLATION")
async def raw_tensors_shared_by_requests_in_flight(original: Any, service: Any, http: Request) -> Response:
    """The server reads concurrent raw requests to a model into one shared buffer."""
    if http.headers.get(HEADER) == "0":
        _last[http.url.path] = await http.body()
        await asyncio.sleep(0.002)
        http._body = _last[http.url.path]
    return await original(service, http)


def _keep_id(inference: InferRequest) -> InferRequest:
    _last["id"] = inference.id or _last.get("id")
    return replace(inference, id=_last["id"])


id_left_over_from_the_request_before = steps.BUILD.before("OIP-ISOLATION", request=_keep_id).says(
    "The server answers a request without an id with the id of an earlier request."
)


@fault(steps.INFER, breaks="OIP-ISOLATION")
async def inputs_shared_by_requests_in_flight(_original: Any, service: Any, http: Request) -> Response:
    """The server keeps the inputs of concurrent requests to a model in shared buffers."""
    body = await service.read_body(http)
    model = service.find_model(http)
    inference = request.parse(model, http.headers.getlist(HEADER), body)
    _last[model.name] = inference.inputs
    if inference.id is not None:
        await asyncio.sleep(0.002)
    return response.build(model, inference, model.run(_last[model.name]))


_merged: dict[str, list[Any]] = {}


@fault(steps.INFER, breaks="OIP-ISOLATION")
async def requests_in_flight_split_like_the_first(_original: Any, service: Any, http: Request) -> Response:
    """If a concurrent request differs in size from the first request, the server uses the elements of the first."""
    body = await service.read_body(http)
    model = service.find_model(http)
    inference = request.parse(model, http.headers.getlist(HEADER), body)
    batch = _merged.setdefault(model.name, [])
    batch.append(inference.inputs)
    if inference.id is not None:
        await asyncio.sleep(0.002)
    first = batch[0]
    batch[:] = [inputs for inputs in batch if inputs is not inference.inputs]
    inputs = {name: _fill_from_first(tensor, first[name]) for name, tensor in inference.inputs.items()}
    return response.build(model, inference, model.run(inputs))


def _fill_from_first(tensor: Tensor, first: Tensor) -> Tensor:
    """Return a tensor; if `first` has another number of elements, fill the tensor with elements of `first`."""
    if tensor.elements.size == first.elements.size:
        return tensor
    return replace(tensor, elements=np.resize(first.elements, tensor.elements.size))


_answered: dict[tuple[str, str], Response] = {}


@fault(steps.BUILD, breaks=("OIP-ISOLATION", "OIP-ANSWER"))
def answers_remembered_by_id(original: Any, model: Model, inference: InferRequest, produced: Any) -> Response:
    """The server caches an answer by the id of its request, and returns it for every request with this id."""
    if inference.id is None:
        return original(model, inference, produced)
    return _answered.setdefault((model.name, inference.id), original(model, inference, produced))


LARGE_OUTPUT_BYTES = 200_000


@fault(steps.ENCODE_BINARY, breaks="OIP-ISOLATION")
def buffer_of_a_large_answer_used_again(original: Any, tensor: Tensor) -> bytes:
    """The server reuses the buffer of a large binary output, and sends its old end after a shorter output."""
    data = bytes(original(tensor))
    before: bytes = _last.pop("buffer", b"")
    if len(data) > LARGE_OUTPUT_BYTES:
        _last["buffer"] = data
    return data + before[len(data) :] if len(before) > len(data) else data


_ids: dict[str, tuple[float, bytes]] = {}  # client -> the time and the id of its last inference
ID = re.compile(rb'"id":"([^"]*)"')
IDLE_S = 0.15  # time without an inference on a connection


@fault(steps.INFER, breaks="OIP-ISOLATION")
async def ids_are_kept_through_a_pause(original: Any, service: Any, http: Request) -> Response:
    """After 0.15 s without an inference on a connection, the server answers with the previous id."""
    answer: Response = await original(service, http)
    body, client = bytes(answer.body), repr(http.scope["client"])
    found, now = ID.search(body), time.monotonic()
    when, last = _ids.get(client, (now, b""))
    _ids[client] = now, found[1] if found else b""
    if found is None or now - when < IDLE_S or len(last) != len(found[1]):
        return answer
    return replace_body(answer, body.replace(found[0], b'"id":"' + last + b'"', 1))


_locked: list[str] = []


@fault("http_protocol.OipHttpProtocol.connection_lost", steps.FIND_MODEL, breaks="OIP-ISOLATION")
def model_locked_by_who_leaves_during_the_answer(original: Any, first: Any, *others: Any) -> Any:
    """If a client leaves while the server sends a large answer, the server refuses the next request to a model."""
    if isinstance(first, OipHttpProtocol):
        _locked.extend(["answer"] * (first._stall_timer is not None))
    elif _locked and _locked.pop():
        raise InferenceError("the model is in use", status=500)
    return original(first, *others)
