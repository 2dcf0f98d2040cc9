"""Faults in handling headers that common clients and proxies add to a request."""

from __future__ import annotations

import json
import zlib
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.faults.request_bodies import replace_body
from reference_server.framing import HEADER

INFER_STEP, INFER_CODED_STEP, HEADERS_REQUIREMENT = (
    "app.Service.infer",
    "app.Service.infer_coded",
    "OIP-REQUEST-HEADERS",
)
PAGE_BYTES = 4096


@fault(INFER_CODED_STEP, breaks=HEADERS_REQUIREMENT)
async def weights_of_identity_are_no_numbers(original: Any, service: Any, http: Request) -> Response:
    """The server fails on a fractional weight of identity in Accept-Encoding, because it expects an integer."""
    _, weighted, weight = http.headers.get("accept-encoding", "").partition("identity;q=")
    if weighted:
        int(weight.partition(",")[0])
    return await original(service, http)


@fault(INFER_CODED_STEP, breaks=HEADERS_REQUIREMENT)
async def list_of_codings_comes_back(original: Any, service: Any, http: Request) -> Response:
    """The server lists several codings in Content-Encoding if a client accepts more than two."""
    answer: Response = await original(service, http)
    accepted = http.headers.get("accept-encoding", "")
    if "content-encoding" in answer.headers and accepted.count(",") > 1 and "q=" not in accepted:
        answer.headers["content-encoding"] = "gzip, deflate"
    return answer


@fault(INFER_CODED_STEP, breaks=HEADERS_REQUIREMENT)
async def any_coding_is_not_named(original: Any, service: Any, http: Request) -> Response:
    """The server compresses an answer for `Accept-Encoding: *`, but omits Content-Encoding."""
    answer: Response = await original(service, http)
    if http.headers.get("accept-encoding") == "*" and "content-encoding" not in answer.headers:
        return replace_body(answer, zlib.compress(bytes(answer.body), wbits=31))
    return answer


@fault("request.parse", INFER_STEP, breaks=HEADERS_REQUIREMENT)
def form_of_outputs_follows_accept(original: Any, *arguments: Any) -> Any:
    """The server ignores `binary_data` of outputs if the Accept header begins with application/json."""
    if len(arguments) == 2:
        _accepted[:] = [arguments[1].headers.get("accept", "")]
        return original(*arguments)
    model, values, body = arguments
    if _accepted[0].startswith("application/json"):
        body, values = _request_json_outputs(body, values)
    return original(model, values, body)


_accepted = [""]


def _request_json_outputs(body: bytes, values: Any) -> tuple[bytes, Any]:
    """Return the request with `binary_data` of each output set to false."""
    length = int(values[0]) if values else len(body)
    if not length:
        return body, values
    document = json.loads(body[:length])
    for output in document.get("outputs", ()):
        if output.get("parameters", {}).get("binary_data"):
            output["parameters"]["binary_data"] = False
    head = json.dumps(document).encode()
    return head + body[length:], [str(len(head))] if values else values


def _make_refusal(status: int, text: str) -> InferenceError:
    return InferenceError(text, status=status)


@fault(INFER_STEP, breaks=HEADERS_REQUIREMENT)
async def second_line_of_accept_fails(original: Any, service: Any, http: Request) -> Response:
    """The server fails with an internal error if a request has two Accept lines."""
    if len(http.headers.getlist("accept")) > 1:
        raise _make_refusal(500, "expected a string, got a list")
    return await original(service, http)


@fault(INFER_STEP, breaks=HEADERS_REQUIREMENT)
async def accept_of_several_types_refused(original: Any, service: Any, http: Request) -> Response:
    """The server refuses with 406 an Accept header that lists several media types, such as `application/json, */*`."""
    if "," in http.headers.get("accept", ""):
        raise _make_refusal(406, "no such type is written")
    return await original(service, http)


@fault(INFER_STEP, breaks=HEADERS_REQUIREMENT)
async def quoted_cookies_fail(original: Any, service: Any, http: Request) -> Response:
    """The server fails with an internal error if a cookie has a quoted value."""
    if '="' in http.headers.get("cookie", ""):
        raise _make_refusal(500, "no such cookie")
    return await original(service, http)


@fault(INFER_STEP, breaks=HEADERS_REQUIREMENT)
async def credentials_fail_without_users(original: Any, service: Any, http: Request) -> Response:
    """The server fails with an internal error on Basic credentials, because it has no table of users."""
    if http.headers.get("authorization", "").startswith("Basic "):
        raise _make_refusal(500, "there is no table of users")
    return await original(service, http)


@fault(INFER_STEP, breaks=HEADERS_REQUIREMENT)
async def trace_of_another_vendor_refused(original: Any, service: Any, http: Request) -> Response:
    """The server refuses a `tracestate` header with more than one vendor."""
    if "," in http.headers.get("tracestate", ""):
        raise _make_refusal(400, "tracestate has more than one vendor")
    return await original(service, http)


@fault(INFER_STEP, breaks=HEADERS_REQUIREMENT)
async def proxied_requests_redirected(original: Any, service: Any, http: Request) -> Response:
    """The server redirects a request with X-Forwarded-Host to the host in this header."""
    if host := http.headers.get("x-forwarded-host"):
        await http.body()
        return Response(status_code=308, headers={"Location": f"https://{host}{http.url.path}"})
    return await original(service, http)


@fault(INFER_STEP, breaks=HEADERS_REQUIREMENT)
async def time_that_a_mesh_allows_is_over(original: Any, service: Any, http: Request) -> Response:
    """The server reads the timeout header of Envoy as a deadline in the past, and answers 504."""
    if "x-envoy-expected-rq-timeout-ms" in http.headers:
        raise _make_refusal(504, "the deadline has passed")
    return await original(service, http)


@fault(INFER_STEP, breaks=HEADERS_REQUIREMENT)
async def headers_over_a_page_fail(original: Any, service: Any, http: Request) -> Response:
    """The server fails with an internal error if a header value exceeds 4 KiB."""
    if any(len(value) > PAGE_BYTES for value in http.headers.values()):
        raise _make_refusal(500, "the header buffer is full")
    return await original(service, http)


# --- only with a certain framing or form of the request -------------------------------------------------------------


@fault(INFER_STEP, breaks=HEADERS_REQUIREMENT, walks="raw")
async def answers_to_a_proxy_of_http_1_0_are_cut(original: Any, service: Any, http: Request) -> Response:
    """The server cuts an answer after 4 KiB if a proxy forwards the request in HTTP/1.0."""
    answer: Response = await original(service, http)
    is_buffered = "x-real-ip" in http.headers and http.scope["http_version"] == "1.0"
    return replace_body(answer, bytes(answer.body)[:PAGE_BYTES]) if is_buffered else answer


@fault("app.Service.read_body", breaks=HEADERS_REQUIREMENT, walks="json")
async def traced_chunks_lost(original: Any, service: Any, http: Request) -> bytes:
    """The server keeps only the first 64 bytes of a chunked body if the request has a `traceparent` header."""
    body: bytes = await original(service, http)
    is_traced = "traceparent" in http.headers and "transfer-encoding" in http.headers
    return body[:64] if is_traced else body


@fault(INFER_STEP, breaks=HEADERS_REQUIREMENT, walks="binary")
async def binary_answers_behind_proxies_lose_their_header(original: Any, service: Any, http: Request) -> Response:
    """The server omits the inference header of a binary answer if the request came through two proxies."""
    answer: Response = await original(service, http)
    if "," in http.headers.get("via", "") and HEADER in answer.headers:
        del answer.headers[HEADER]
    return answer
