"""What one request leaves for another: options, answers from a cache, tensors of raw requests."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server.faults import fault
from reference_server.framing import HEADER

_last: dict[str, Any] = {}


# --- caches ----------------------------------------------------------------------------------------------------------

_answers: dict[Any, Response] = {}
PAGE = 4096


async def _cached(original: Any, service: Any, http: Request, key: Any) -> Response:
    answer: Response = _answers.get(key) or await original(service, http)
    _answers.clear()
    _answers[key] = answer
    return answer


@fault("app.Service.infer", breaks="OIP-ISOLATION")
async def answers_cached_by_the_first_page_of_the_body(original: Any, service: Any, http: Request) -> Response:
    """A body is looked up in a cache by its path, its length and its first 4 KiB."""
    body = await http.body()
    if len(body) <= PAGE:
        plain: Response = await original(service, http)
        return plain
    return await _cached(original, service, http, (http.url.path, http.headers.get(HEADER), len(body), body[:PAGE]))


@fault("app.Service.infer", breaks="OIP-ISOLATION")
async def answers_cached_without_the_inference_header(original: Any, service: Any, http: Request) -> Response:
    """A body is looked up in a cache by its path and its bytes, whatever the inference header says of them."""
    length = http.headers.get(HEADER)
    if not length or not length.isdecimal():
        plain: Response = await original(service, http)
        return plain
    return await _cached(original, service, http, (http.url.path, await http.body()))


@fault("app.Service.infer", breaks="OIP-ISOLATION")
async def answers_cached_without_the_path(original: Any, service: Any, http: Request) -> Response:
    """A long body is looked up in a cache that all models share."""
    body = await http.body()
    if len(body) <= PAGE:
        plain: Response = await original(service, http)
        return plain
    return await _cached(original, service, http, (http.headers.get(HEADER), body))


# --- in flight -------------------------------------------------------------------------------------------------------


async def _in_one_buffer(original: Any, service: Any, http: Request, *, shared: bool) -> Response:
    """Answer a request; where the body is shared, it is the last one that a model was sent meanwhile."""
    if shared:
        _last[http.url.path] = await http.body()
        await asyncio.sleep(0.002)
        http._body = _last[http.url.path]
    answer: Response = await original(service, http)
    return answer


@fault("app.Service.infer", breaks="OIP-ISOLATION")
async def raw_tensors_shared_by_requests_in_flight(original: Any, service: Any, http: Request) -> Response:
    """Raw requests to a model in flight together are read into one buffer."""
    return await _in_one_buffer(original, service, http, shared=http.headers.get(HEADER) == "0")
