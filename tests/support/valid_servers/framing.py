"""Other valid headers of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server.faults import fault as variation
from reference_server.faults import steps
from reference_server.faults.edits import set_header, set_headers
from reference_server.framing import HEADER

inference_header_on_json_answers = steps.FRAME.after(
    (), lambda answer, head: set_header(answer, HEADER, len(head))
).says("The server sends the length of the JSON as inference header, even without binary data.")
inference_header_0_on_json_answers = steps.FRAME.after(
    "BIN-HEADER-ON-JSON-O", lambda answer: set_header(answer, HEADER, 0), when=lambda binary: not binary
).says("The server sends an inference header of 0 if an answer has no binary data.")
empty_outputs_without_inference_header = steps.FRAME.before(
    (), binary=lambda _: [], when=lambda binary: not any(map(len, binary))
).says("The server sends an answer whose binary outputs are all empty as JSON, without an inference header.")
headers_nobody_asked_for = steps.FRAME.after(
    (), set_headers(Via="1.1 proxy", X_Request_Id="7", Server="x", Cache_Control="no-store")
).says("The server adds headers of proxies and monitors to answers.")


@variation(steps.INFER)
async def answers_name_the_client(original: Any, service: Any, http: Request) -> Response:
    """The server repeats the User-Agent in a header of the answer, and sends `Vary: User-Agent`."""
    found: Response = await original(service, http)
    found.headers.update({"X-Client": http.headers.get("User-Agent", ""), "Vary": "User-Agent"})
    return found


class _InCapitals(Response):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.raw_headers = [(name.upper(), value) for name, value in self.raw_headers]
        await super().__call__(scope, receive, send)


@variation(steps.FRAME)
def headers_in_capitals(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server writes the names of headers in capitals."""
    found: Response = original(head, binary)
    return _InCapitals(bytes(found.body), headers=dict(found.headers))


answers_are_chunked = steps.FRAME.after(
    "BIN-NOT-CHUNKED", lambda answer: set_header(answer, "content-length", None)
).says("The server sends answers in chunks, without Content-Length.")
answers_without_content_type = steps.FRAME.after(
    ("BIN-CONTENT-TYPE-O", "BIN-CONTENT-TYPE-OF-JSON"), lambda answer: set_header(answer, "content-type", None)
).says("The server sends answers without Content-Type.")
json_with_a_charset = steps.FRAME.after(
    (), set_headers(content_type="Application/JSON; charset=utf-8"), when=lambda binary: not binary
).says("The server adds a charset to the Content-Type of JSON.")
content_types_with_parameters = steps.FRAME.after(
    (), lambda answer: set_header(answer, "content-type", answer.headers["content-type"].title() + "; version=2")
).says("The server writes Content-Type in other letter case and with a parameter.")
empty_outputs_are_counted_as_json = steps.FRAME.after(
    (),
    set_headers(content_type="application/json"),
    when=lambda binary: binary and not any(map(len, binary)),
).says("If all binary outputs are empty, the server sends application/json with the length as inference header.")
