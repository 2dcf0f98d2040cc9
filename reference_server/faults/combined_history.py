"""Faults where only requests that combine certain features affect the next request or a concurrent request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import fault, steps
from reference_server.faults.edits import is_chunked, is_raw, replace_body, set_classes
from reference_server.faults.stale_state import cache_answers
from reference_server.framing import HEADER
from reference_server.models import Model
from reference_server.request import InferRequest

ISOLATION_REQUIREMENT = "OIP-ISOLATION"


async def _read_body(service: Any, http: Request) -> bytes:
    """Return the decoded body; the raw body stays cached, so that it can be read again."""
    await http.body()
    body: bytes = await service.read_body(http)
    return body


# --- consecutive requests -------------------------------------------------------------------------------------------

CACHED_ANSWERS = 9


def _use_json(http: Request, body: bytes) -> object:
    length = http.headers.get(HEADER, "")
    head = body[: int(length)] if length.isdecimal() else b""
    return (http.url.path, head) if head and len(body) >= len(head) + 64 else None


answers_cached_by_the_first_4_kib = cache_answers(
    lambda http, body: (http.url.path, len(body), body[:4096]) if len(body) > 4096 else None,
    size=CACHED_ANSWERS,
    walks="json",
).says("The server gives two bodies over 4 KiB the same answer if their length and first 4 KiB are equal.")
answers_cached_by_their_json = cache_answers(_use_json, size=CACHED_ANSWERS, walks="binary").says(
    "The server gives two requests with 64 or more bytes of binary data the same answer if their JSON is equal."
)
raw_answers_cached_by_both_ends = cache_answers(
    lambda http, body: (http.url.path, len(body), body[:128]) if is_raw(http) and len(body) > 255 else None,
    size=CACHED_ANSWERS,
    walks="raw",
).says("The server gives two raw bodies over 255 bytes the same answer if length and first 128 bytes are equal.")

_carried_state: dict[str, Any] = {}


@fault(steps.PARSE, breaks=ISOLATION_REQUIREMENT, walks="json")
def id_of_a_refused_request_kept(original: Any, model: Model, values: Sequence[str], body: bytes) -> InferRequest:
    """After a refused request, the server returns that request's id in the next answer that should have no id."""
    try:
        found: InferRequest = original(model, values, body)
    except InferenceError:
        _carried_state["id"] = b'"refused-before"' in body
        raise
    return replace(found, id="refused-before") if _carried_state.pop("id", False) and found.id is None else found


@fault(steps.PARSE, breaks=ISOLATION_REQUIREMENT, walks="classes")
def count_of_classes_kept(original: Any, model: Model, values: Sequence[str], body: bytes) -> InferRequest:
    """After a request for one class, the server returns one class for the next classification request."""
    found: InferRequest = original(model, values, body)
    before = _carried_state.get("classes")
    _carried_state["classes"] = [output.classes for output in found.outputs]
    if before == [1] and any(output.classes for output in found.outputs):
        return replace(found, outputs=set_classes(found.outputs, lambda output: output.classes and 1))
    return found


@fault(steps.INFER, breaks="OIP-ALIVE", walks="json")
async def unknown_models_are_sticky(original: Any, service: Any, http: Request) -> Response:
    """If a request with an id follows a request to an unknown model, the server answers both with status 404."""
    body = await _read_body(service, http)
    if _carried_state.pop("model", None) and b'"id"' in body:
        raise InferenceError("there is no such model", status=404)
    if http.path_params["model"] not in service.models:
        _carried_state["model"] = True
    return await original(service, http)


@fault(steps.PARSE, breaks=ISOLATION_REQUIREMENT, walks="binary")
def bytes_left_over_go_to_the_next(original: Any, model: Model, values: Sequence[str], body: bytes) -> InferRequest:
    """The server puts the last three bytes of a refused binary request before the binary data of the next one."""
    extra = _carried_state.pop("extra", b"")
    if extra and values and values[0].isdecimal() and values[0] != "0":
        end = int(values[0])
        data = body[end:]
        body = body[:end] + (extra + data)[: len(data)]
    try:
        return original(model, values, body)
    except InferenceError:
        _carried_state["extra"] = body[-3:] if values else b""
        raise


@fault(steps.PARSE_BODY, breaks=ISOLATION_REQUIREMENT, walks="raw")
def raw_bodies_filled_up_from_the_last(original: Any, model: Model, body: bytes) -> Any:
    """If a raw body under 16 bytes follows one over 16, its last byte is read from the longer body."""
    before = _carried_state.get(model.name, b"")
    _carried_state[model.name] = body
    is_written_over = 0 < len(body) < 16 < len(before)
    return original(model, body[:-1] + before[len(body) - 1 : len(body)] if is_written_over else body)


@fault(steps.READ_BODY, breaks=ISOLATION_REQUIREMENT, walks="binary")
async def body_cut_off_leaves_its_length(original: Any, service: Any, http: Request) -> bytes:
    """After a client disconnects within a body, the server reads the next binary request's last 4 bytes as zeros."""
    is_after_one = _carried_state.pop("cut", False)
    try:
        body: bytes = await original(service, http)
    except ClientDisconnect:
        _carried_state["cut"] = True
        raise
    return body[:-4] + bytes(4) if is_after_one and HEADER in http.headers and len(body) > 4 else body


@fault(steps.INFER, breaks=ISOLATION_REQUIREMENT, walks="raw")
async def unread_answer_goes_to_the_next(original: Any, service: Any, http: Request) -> Response:
    """If a client disconnects before it gets the answer to a raw request, the next raw request gets that answer."""
    unread = _carried_state.pop("unread", None)
    answer: Response = await original(service, http)
    if not is_raw(http):
        return answer
    if unread is not None:
        return replace_body(answer, unread)
    await asyncio.sleep(0.005)
    if await http.is_disconnected():
        _carried_state["unread"] = bytes(answer.body)
    return answer


# --- concurrent requests --------------------------------------------------------------------------------------------

_bodies: dict[str, bytes] = {}


async def _use_shared_buffer(key: str, body: bytes) -> bytes:
    """Write a body to a shared buffer, wait while concurrent requests may overwrite it, and return the contents."""
    _bodies[key] = body
    await asyncio.sleep(0.005)
    return _bodies[key]


@fault(steps.READ_BODY, breaks=ISOLATION_REQUIREMENT, walks="raw")
async def raw_requests_share_a_buffer(original: Any, service: Any, http: Request) -> bytes:
    """Concurrent raw requests share one buffer, so the server reads the last body for all of them."""
    body: bytes = await original(service, http)
    return await _use_shared_buffer("raw", body) if is_raw(http) else body


@fault(steps.READ_BODY, breaks=ISOLATION_REQUIREMENT, walks="binary")
async def chunked_binary_requests_share_a_buffer(original: Any, service: Any, http: Request) -> bytes:
    """Concurrent chunked binary requests share one buffer, so the server reads the last body for all of them."""
    body: bytes = await original(service, http)
    return await _use_shared_buffer("chunks", body) if is_chunked(http) and HEADER in http.headers else body


_in_flight: list[bytes] = []


@fault(steps.READ_BODY, breaks=ISOLATION_REQUIREMENT, walks="binary")
async def eighth_in_flight_reads_the_first_buffer(original: Any, service: Any, http: Request) -> bytes:
    """Of eight concurrent binary requests, the server reads the last one from the buffer of the first."""
    body: bytes = await original(service, http)
    if HEADER not in http.headers:
        return body
    _in_flight.append(body)
    found = _in_flight[0] if len(_in_flight) == 8 else body
    await asyncio.sleep(0.02)
    _in_flight.remove(body)
    return found


@fault(steps.INFER, breaks=ISOLATION_REQUIREMENT, walks="classes")
async def classes_in_flight_mixed(original: Any, service: Any, http: Request) -> Response:
    """Concurrent requests with an id all get the answer that the server finished last."""
    answer: Response = await original(service, http)
    if b'"id"' not in bytes(answer.body)[:8]:
        return answer
    return replace_body(answer, await _use_shared_buffer("classes", bytes(answer.body)))
