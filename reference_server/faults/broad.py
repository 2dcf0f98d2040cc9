"""Servers that break nearly everything, and servers that treat the conformance suite unlike other clients."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from reference_server.faults import fault, steps

PLAUSIBLE_ANSWER = {
    "model_name": "identity_int32",
    "model_version": "1",
    "outputs": [{"name": "OUTPUT", "datatype": "INT32", "shape": [3], "data": [1, 2, 3]}],
}

accepts_what_it_should_refuse = steps.INFER.on_refusal((), lambda _: JSONResponse(PLAUSIBLE_ANSWER), broad=True).says(
    "The server answers each invalid request with the same plausible tensor instead of an error."
)
errors_with_status_200 = steps.MAKE_ERROR.before((), status=lambda _: 200, broad=True).says(
    "The server sends every error object with status 200."
)
refuses_everything = steps.INFER.instead((), lambda: JSONResponse({"error": "not today"}, 400), broad=True).says(
    "The server refuses every inference request with status 400 and a valid error object."
)


@fault(steps.DATA_RECEIVED, broad=True)
def answers_nothing(_original: Any, protocol: Any, _data: bytes) -> None:
    """The server closes the connection as soon as it receives a request."""
    protocol.transport.close()


@fault(steps.DATA_RECEIVED, broad=True)
def answers_bytes_that_are_no_http(_original: Any, protocol: Any, data: bytes) -> None:
    """The server answers every request with random bytes that are not HTTP."""
    protocol.transport.write(random.Random(len(data)).randbytes(200))  # noqa: S311
    protocol.transport.close()


answers_an_empty_object = steps.INFER.instead((), lambda: JSONResponse({}), broad=True).says(
    "The server answers every inference request with an empty JSON object."
)
answers_a_page = steps.INFER.instead(
    (), lambda: HTMLResponse("<!doctype html><title>Models</title><h1>It works!</h1>"), broad=True
).says("The server answers every inference request with an HTML page and status 200.")
sends_everybody_elsewhere = steps.INFER.instead((), lambda: RedirectResponse("/login", 302), broad=True).says(
    "The server redirects every inference request to a login page."
)

_first: dict[str, Response] = {}


@fault(steps.INFER, broad=True)
async def answers_each_model_s_first_request(original: Any, service: Any, http: Request) -> Response:
    """The server repeats its first answer for a model in response to every later request to the model."""
    response: Response = _first.get(http.url.path) or await original(service, http)
    return _first.setdefault(http.url.path, response)


@fault(steps.INFER, broad=True)
async def echoes_the_request(_original: Any, _service: Any, http: Request) -> Response:
    """The server answers an inference request with the body and content headers of the request."""
    kept = {name: value for name, value in http.headers.items() if name.startswith(("inference", "content-type"))}
    return Response(await http.body(), headers=kept)


@fault(steps.FRAME, broad=True)
def compresses_every_answer(original: Any, head: bytes, binary: Any) -> Response:
    """The server compresses every inference answer with gzip, even if the client did not accept gzip."""
    answer: Response = original(head, binary)
    kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return Response(gzip.compress(bytes(answer.body), mtime=0), headers=kept | {"Content-Encoding": "gzip"})


@fault(steps.INFER, breaks="OIP-ALIVE-LEGAL")
async def one_model_never_answers(original: Any, service: Any, http: Request) -> Response:
    """One model leaves every request unanswered for 30 seconds."""
    if http.path_params["model"] == "emit":
        await http.body()
        await asyncio.sleep(30)
    return await original(service, http)


@fault(steps.INFER, breaks="HTTP-LENGTH")
async def one_model_stops_in_the_middle_of_its_answers(original: Any, service: Any, http: Request) -> Response:
    """The server closes the connection before it sends the last five bytes of an answer from one model."""
    response: Response = await original(service, http)
    if http.path_params["model"] == "emit":
        response.headers["Connection"] = "close"
        response.body = bytes(response.body)[:-5]
    return response


# --- clients told apart by User-Agent ---------------------------------------------------------------------------------

SUITE_USER_AGENT = "oip-conformance/"


@fault(steps.INFER, breaks="OIP-CLIENT-NAME")
async def numbers_are_right_for_the_judge_alone(original: Any, service: Any, http: Request) -> Response:
    """For clients other than the conformance suite, the server changes the last binary byte or JSON digit."""
    answer: Response = await original(service, http)
    if http.headers.get("User-Agent", "").startswith(SUITE_USER_AGENT):
        return answer
    body = bytearray(answer.body)
    is_json = "inference-header-content-length" not in answer.headers
    place = next((k for k in reversed(range(len(body))) if not is_json or chr(body[k]).isdigit()), None)
    if place is not None:
        body[place] ^= 1
    answer.body = bytes(body)
    return answer


@fault(steps.MAKE_HANDLER, breaks="OIP-CLIENT-NAME/grpc")
def calls_are_answered_for_the_judge_alone(original: Any, models: Any, method: Any) -> Callable[[bytes, Any], bytes]:
    """The server refuses gRPC calls from clients other than the conformance suite."""
    from reference_server.grpc_server import CODES, refuse  # its packages may be missing

    handle = original(models, method)

    def chosen(octets: bytes, context: Any) -> bytes:
        names = dict(context.invocation_metadata())
        if not str(names.get("user-agent", "")).startswith(SUITE_USER_AGENT):
            refuse(context, CODES[400], "this client is not served")
        return handle(octets, context)

    return chosen
