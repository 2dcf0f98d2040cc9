"""Servers that do not speak the protocol, give every client the same answer, or depend on the client's name."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from reference_server.errors import InferenceError
from reference_server.faults import fault

PLAUSIBLE = {
    "model_name": "identity_int32",
    "model_version": "1",
    "outputs": [{"name": "OUTPUT", "datatype": "INT32", "shape": [3], "data": [1, 2, 3]}],
}


@fault("app.Service.infer", broad=True)
async def accepts_what_it_should_refuse(original: Any, service: Any, http: Request) -> Response:
    """Good requests are answered right, and all others with some plausible tensor."""
    try:
        response: Response = await original(service, http)
    except InferenceError:
        return JSONResponse(PLAUSIBLE)
    return response


@fault("app.error", broad=True)
def errors_with_status_200(original: Any, message: str, _status: int, _headers: Any = None) -> Response:
    """Every error has status 200 and says in the body that it is one."""
    return original(message, 200)


@fault("app.Service.infer", broad=True)
async def refuses_everything(_original: Any, _service: Any, _http: Request) -> Response:
    """Every inference request is refused, in good form."""
    return JSONResponse({"error": "not today"}, 400)


@fault("http_protocol.OipHttpProtocol.data_received", broad=True)
def answers_nothing(_original: Any, protocol: Any, _data: bytes) -> None:
    """The connection is closed as soon as a request comes."""
    protocol.transport.close()


@fault("http_protocol.OipHttpProtocol.data_received", broad=True)
def answers_bytes_that_are_no_http(_original: Any, protocol: Any, data: bytes) -> None:
    """Requests are answered with random bytes that are no HTTP."""
    protocol.transport.write(random.Random(len(data)).randbytes(200))  # noqa: S311
    protocol.transport.close()


@fault("app.Service.infer", broad=True)
async def answers_an_empty_object(_original: Any, _service: Any, _http: Request) -> Response:
    """Inference requests are answered with an empty JSON object."""
    return JSONResponse({})


@fault("app.Service.infer", broad=True)
async def answers_a_page(_original: Any, _service: Any, _http: Request) -> Response:
    """Inference requests are answered with the page of a web front end, under status 200."""
    return HTMLResponse("<!doctype html><title>Models</title><h1>It works!</h1>")


@fault("app.Service.infer", broad=True)
async def sends_everybody_elsewhere(_original: Any, _service: Any, _http: Request) -> Response:
    """Inference requests are redirected to a page for signing in."""
    return RedirectResponse("/login", 302)


_first: dict[str, Response] = {}


@fault("app.Service.infer", broad=True)
async def answers_each_model_s_first_request(original: Any, service: Any, http: Request) -> Response:
    """Every request to a model is answered as the first one was."""
    response: Response = _first.get(http.url.path) or await original(service, http)
    return _first.setdefault(http.url.path, response)


@fault("app.Service.infer", broad=True)
async def echoes_the_request(_original: Any, _service: Any, http: Request) -> Response:
    """Inference requests are sent back as they came, with their headers."""
    kept = {name: value for name, value in http.headers.items() if name.startswith(("inference", "content-type"))}
    return Response(await http.body(), headers=kept)


@fault("response.frame", broad=True)
def compresses_every_answer(original: Any, head: bytes, binary: Any) -> Response:
    """Answers are compressed although the client did not ask for compression."""
    answer: Response = original(head, binary)
    kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return Response(gzip.compress(bytes(answer.body), mtime=0), headers=kept | {"Content-Encoding": "gzip"})


@fault("app.Service.infer", breaks=("OIP-ALIVE-LEGAL", "OIP-ANSWER"))
async def one_model_never_answers(original: Any, service: Any, http: Request) -> Response:
    """One model takes its requests and never answers."""
    if http.path_params["model"] == "emit":
        await http.body()
        await asyncio.sleep(30)
    return await original(service, http)


@fault("app.Service.infer", breaks=("OIP-ALIVE-LEGAL", "OIP-ANSWER"))
async def one_model_stops_in_the_middle_of_its_answers(original: Any, service: Any, http: Request) -> Response:
    """Answers of one model are cut: the connection ends before their last bytes."""
    response: Response = await original(service, http)
    if http.path_params["model"] == "emit":
        response.headers["Connection"] = "close"
        response.body = bytes(response.body)[:-5]
    return response


# --- names of clients -------------------------------------------------------------------------------------------------

JUDGE = "oip-conformance/"


@fault("app.Service.infer", breaks="OIP-CLIENT-NAME")
async def numbers_are_right_for_the_judge_alone(original: Any, service: Any, http: Request) -> Response:
    """In an answer to anybody but the judge the last byte of binary data, or the last digit of JSON, is another."""
    answer: Response = await original(service, http)
    if http.headers.get("User-Agent", "").startswith(JUDGE):
        return answer
    body = bytearray(answer.body)
    is_json = "inference-header-content-length" not in answer.headers
    place = next((k for k in reversed(range(len(body))) if not is_json or chr(body[k]).isdigit()), None)
    if place is not None:
        body[place] ^= 1
    answer.body = bytes(body)
    return answer


@fault("grpc_server.handler", breaks="OIP-CLIENT-NAME/grpc")
def calls_are_answered_for_the_judge_alone(original: Any, models: Any, method: Any) -> Callable[[bytes, Any], bytes]:
    """A call of anybody but the judge is refused."""
    from reference_server.grpc_server import CODES, refuse  # its packages may be missing

    handle = original(models, method)

    def chosen(octets: bytes, context: Any) -> bytes:
        names = dict(context.invocation_metadata())
        if not str(names.get("user-agent", "")).startswith(JUDGE):
            refuse(context, CODES[400], "this client is not served")
        return handle(octets, context)

    return chosen
