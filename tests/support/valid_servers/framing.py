"""Other valid headers of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server.faults import fault as variation
from reference_server.framing import HEADER

Answer = dict[str, Any]


@variation("response.frame")
def inference_header_on_json_answers(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server sends the length of the JSON as inference header, even without binary data."""
    found: Response = original(head, binary)
    found.headers[HEADER] = str(len(head))
    return found


@variation("response.frame", breaks="BIN-HEADER-ON-JSON-O")
def inference_header_0_on_json_answers(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server sends an inference header of 0 if an answer has no binary data."""
    found: Response = original(head, binary)
    if not binary:
        found.headers[HEADER] = "0"
    return found


@variation("response.frame")
def empty_outputs_without_inference_header(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server sends an answer whose binary outputs are all empty as JSON, without an inference header."""
    found: Response = original(head, [] if not any(map(len, binary)) else binary)
    return found


@variation("response.frame")
def headers_nobody_asked_for(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server adds headers of proxies and monitors to answers."""
    found: Response = original(head, binary)
    found.headers.update({"Via": "1.1 proxy", "X-Request-Id": "7", "Server": "x", "Cache-Control": "no-store"})
    return found


@variation("app.Service.infer")
async def answers_name_the_client(original: Any, service: Any, http: Request) -> Response:
    """The server repeats the User-Agent in a header of the answer, and sends `Vary: User-Agent`."""
    found: Response = await original(service, http)
    found.headers.update({"X-Client": http.headers.get("User-Agent", ""), "Vary": "User-Agent"})
    return found


class _InCapitals(Response):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.raw_headers = [(name.upper(), value) for name, value in self.raw_headers]
        await super().__call__(scope, receive, send)


@variation("response.frame")
def headers_in_capitals(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server writes the names of headers in capitals."""
    found: Response = original(head, binary)
    return _InCapitals(bytes(found.body), headers=dict(found.headers))


@variation("response.frame", breaks="BIN-NOT-CHUNKED")
def answers_are_chunked(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server sends answers in chunks, without Content-Length."""
    found: Response = original(head, binary)
    del found.headers["content-length"]
    return found


@variation("response.frame", breaks=("BIN-CONTENT-TYPE-O", "BIN-CONTENT-TYPE-OF-JSON"))
def answers_without_content_type(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server sends answers without Content-Type."""
    found: Response = original(head, binary)
    del found.headers["content-type"]
    return found


@variation("response.frame")
def json_with_a_charset(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server adds a charset to the Content-Type of JSON."""
    found: Response = original(head, binary)
    if not binary:
        found.headers["content-type"] = "Application/JSON; charset=utf-8"
    return found


@variation("response.frame")
def content_types_with_parameters(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server writes Content-Type in other letter case and with a parameter."""
    found: Response = original(head, binary)
    found.headers["content-type"] = found.headers["content-type"].title() + "; version=2"
    return found


@variation("response.frame")
def empty_outputs_are_counted_as_json(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """If all binary outputs are empty, the server sends application/json with the length as inference header."""
    found: Response = original(head, binary)
    if binary and not any(map(len, binary)):
        found.headers["content-type"] = "application/json"
    return found
