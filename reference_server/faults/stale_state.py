"""What one request leaves for another: options, answers from a cache, tensors of raw requests."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server import members
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.framing import HEADER
from reference_server.models import Model
from reference_server.request import RequestedOutput

Object = dict[str, Any]
_last: dict[str, Any] = {}

# --- options of a refused request ------------------------------------------------------------------------------------


def _refused(original: Any, *arguments: Any) -> Any:
    """Run a step; note whether it refused."""
    try:
        found = original(*arguments)
    except InferenceError:
        _last["refused"] = True
        raise
    _last["refused"] = False
    return found


@fault("strict_json.parse_object", "request.parse", breaks="OIP-ISOLATION")
def binary_data_output_of_a_refused_request_left_over(original: Any, *arguments: Any) -> Any:
    """`binary_data_output` of a refused request is that of the next one that has no parameters."""
    if len(arguments) > 1:
        return _refused(original, *arguments)
    found: Object = original(*arguments)
    given = found.get("parameters")
    if _last.get("refused") and given is None and _last.get("parameters"):
        found = found | {"parameters": _last["parameters"]}
    _last["parameters"] = given if isinstance(given, dict) else None
    return found


@fault("request.parse_outputs", "request.parse", breaks="OIP-ISOLATION")
def wishes_of_a_refused_request_left_over(original: Any, *arguments: Any) -> Any:
    """The outputs that a refused request lists are those of the next one that lists none."""
    if len(arguments) > 2:
        return _refused(original, *arguments)
    model, request = arguments
    kept = _last.pop("outputs", None)
    if _last.get("refused") and not request.get("outputs") and kept and kept[0] == model.name:
        return original(model, request | {"outputs": kept[1]})
    known = {spec.name for spec in model.outputs}
    listed = [
        {"name": name}
        for name in {item.get("name"): None for item in members.objects(request, "outputs")}
        if name in known
    ]
    _last["outputs"] = (model.name, listed) if listed else None
    return original(model, request)


@fault("request.parse_json", "request.parse", breaks="OIP-ISOLATION")
def id_of_a_refused_request_left_over(original: Any, *arguments: Any) -> Any:
    """The id of a refused request is that of the next one that has none."""
    if len(arguments) > 2:
        return _refused(original, *arguments)
    found: Object = original(*arguments)
    if _last.get("refused") and "id" not in found and _last.get("id"):
        found = found | {"id": _last["id"]}
    _last["id"] = found.get("id")
    return found


@fault("request.parse_outputs", breaks="OIP-ISOLATION")
def classes_asked_for_until_the_next_request(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """A request that lists no outputs gets classes where the last one to the model asked for them and was refused."""
    before = _last.pop("classes", None)
    try:
        wishes: list[RequestedOutput] = original(model, request)
    except InferenceError:
        for entry in members.objects(request, "outputs"):
            if count := members.whole(members.parameters(entry), "classification", least=1):
                _last["classes"] = (model.name, entry.get("name"), count)
        raise
    if before and before[0] == model.name and not request.get("outputs"):
        return [replace(wish, classes=before[2]) if wish.name == before[1] else wish for wish in wishes]
    return wishes


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
async def answers_cached_by_the_ends_of_the_body(original: Any, service: Any, http: Request) -> Response:
    """A body is looked up in a cache by its path, its length, and what stands at its beginning and its end."""
    body = await http.body()
    key = (http.url.path, http.headers.get(HEADER), len(body), body[:PAGE], body[-512:])
    if len(body) <= PAGE:
        plain: Response = await original(service, http)
        return plain
    return await _cached(original, service, http, key)


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


@fault("app.Service.infer", breaks="OIP-ISOLATION")
async def classes_shared_by_requests_in_flight(original: Any, service: Any, http: Request) -> Response:
    """Requests for classes in flight together are read into one buffer."""
    shared = HEADER not in http.headers and b'"classification"' in await http.body()
    return await _in_one_buffer(original, service, http, shared=shared)


@fault("app.Service.infer", breaks="OIP-ISOLATION")
async def compressed_requests_in_flight_share_a_buffer(original: Any, service: Any, http: Request) -> Response:
    """Compressed requests to a model in flight together are unpacked into one buffer."""
    return await _in_one_buffer(original, service, http, shared="content-encoding" in http.headers)
