"""Valid servers that answer equal requests by one computation: caches, and requests in flight that share an answer."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

from starlette.responses import Response

from reference_server import app
from reference_server.faults import fault as variation
from reference_server.faults import steps
from reference_server.faults.shared_outputs import make_key
from reference_server.framing import HEADER
from reference_server.models import Model
from reference_server.request import InferRequest

MAX_CACHED = 1000
_cached: OrderedDict[object, Any] = OrderedDict()


def _keep(key: object, answer: Any) -> Any:
    """Keep an answer in place of the oldest one, and return it."""
    _cached[key] = answer
    if len(_cached) > MAX_CACHED:
        _cached.popitem(last=False)
    return answer


@variation(steps.BUILD)
def answers_are_cached(original: Any, model: Model, request: InferRequest, produced: Any) -> Response:
    """The server caches answers by the model, the id, the inputs, and the requested outputs with their forms."""
    key = make_key(model, request), repr(request.outputs)
    found = _cached[key] if key in _cached else _keep(key, original(model, request, produced))
    return Response(bytes(found.body), found.status_code, dict(found.headers))


@variation(steps.ANSWER_CALL)
def grpc_answers_are_cached(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """The server caches answers by the method and the whole message."""
    key = method.request, octets
    found: bytes = _cached[key] if key in _cached else _keep(key, original(models, method, octets))
    return found


_running: dict[object, asyncio.Task[Response]] = {}


@variation(steps.INFER)
async def equal_requests_in_flight_are_computed_once(original: Any, service: app.Service, http: Any) -> Response:
    """The server computes one answer for all requests in flight with the same path, inference header and body."""
    await http.body()  # it stays in the request, so that the server can read it again
    key = http.url.path, http.headers.get(HEADER), await service.read_body(http)
    if key not in _running:
        _running[key] = asyncio.ensure_future(original(service, http))
        _running[key].add_done_callback(lambda _: _running.pop(key))
    found = await asyncio.shield(_running[key])
    return Response(bytes(found.body), found.status_code, dict(found.headers))
