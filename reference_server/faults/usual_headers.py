"""Faults in handling headers that common clients and proxies add to a request."""

from __future__ import annotations

import json
import zlib
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server.faults import fault, steps
from reference_server.faults.edits import is_binary, is_chunked, replace_body, set_header
from reference_server.framing import HEADER

HEADERS_REQUIREMENT = "OIP-REQUEST-HEADERS"
PAGE_BYTES = 4096


@fault(steps.INFER_CODED, breaks=HEADERS_REQUIREMENT)
async def weights_of_identity_are_no_numbers(original: Any, service: Any, http: Request) -> Response:
    """The server fails on a fractional weight of identity in Accept-Encoding, because it expects an integer."""
    _, weighted, weight = http.headers.get("accept-encoding", "").partition("identity;q=")
    if weighted:
        int(weight.partition(",")[0])
    return await original(service, http)


@fault(steps.INFER_CODED, breaks=HEADERS_REQUIREMENT)
async def list_of_codings_comes_back(original: Any, service: Any, http: Request) -> Response:
    """The server lists several codings in Content-Encoding if a client accepts more than two."""
    answer: Response = await original(service, http)
    accepted = http.headers.get("accept-encoding", "")
    if "content-encoding" in answer.headers and accepted.count(",") > 1 and "q=" not in accepted:
        answer.headers["content-encoding"] = "gzip, deflate"
    return answer


@fault(steps.INFER_CODED, breaks=HEADERS_REQUIREMENT)
async def any_coding_is_not_named(original: Any, service: Any, http: Request) -> Response:
    """The server compresses an answer for `Accept-Encoding: *`, but omits Content-Encoding."""
    answer: Response = await original(service, http)
    if http.headers.get("accept-encoding") == "*" and "content-encoding" not in answer.headers:
        return replace_body(answer, zlib.compress(bytes(answer.body), wbits=31))
    return answer


@fault(steps.PARSE, steps.INFER, breaks=HEADERS_REQUIREMENT)
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


second_line_of_accept_fails = steps.INFER.refuse(
    HEADERS_REQUIREMENT, lambda http: len(http.headers.getlist("accept")) > 1, status=500
).says("The server fails with an internal error if a request has two Accept lines.")
accept_of_several_types_refused = steps.INFER.refuse(
    HEADERS_REQUIREMENT, lambda http: "," in http.headers.get("accept", ""), status=406
).says("The server refuses with 406 an Accept header that lists several media types, such as `application/json, */*`.")
quoted_cookies_fail = steps.INFER.refuse(
    HEADERS_REQUIREMENT, lambda http: '="' in http.headers.get("cookie", ""), status=500
).says("The server fails with an internal error if a cookie has a quoted value.")
credentials_fail_without_users = steps.INFER.refuse(
    HEADERS_REQUIREMENT, lambda http: http.headers.get("authorization", "").startswith("Basic "), status=500
).says("The server fails with an internal error on Basic credentials, because it has no table of users.")
trace_of_another_vendor_refused = steps.INFER.refuse(
    HEADERS_REQUIREMENT, lambda http: "," in http.headers.get("tracestate", "")
).says("The server refuses a `tracestate` header with more than one vendor.")
proxied_requests_redirected = steps.INFER.instead(
    HEADERS_REQUIREMENT,
    lambda http: Response(
        status_code=308, headers={"Location": f"https://{http.headers['x-forwarded-host']}{http.url.path}"}
    ),
    when=lambda http: http.headers.get("x-forwarded-host"),
).says("The server redirects a request with X-Forwarded-Host to the host in this header.")
time_that_a_mesh_allows_is_over = steps.INFER.refuse(
    HEADERS_REQUIREMENT, lambda http: "x-envoy-expected-rq-timeout-ms" in http.headers, status=504
).says("The server reads the timeout header of Envoy as a deadline in the past, and answers 504.")
headers_over_a_page_fail = steps.INFER.refuse(
    HEADERS_REQUIREMENT, lambda http: any(len(value) > PAGE_BYTES for value in http.headers.values()), status=500
).says("The server fails with an internal error if a header value exceeds 4 KiB.")


# --- only with a certain framing or form of the request -------------------------------------------------------------

answers_to_a_proxy_of_http_1_0_are_cut = steps.INFER.after(
    HEADERS_REQUIREMENT,
    lambda answer: replace_body(answer, bytes(answer.body)[:PAGE_BYTES]),
    when=lambda http: "x-real-ip" in http.headers and http.scope["http_version"] == "1.0",
    walks="raw",
).says("The server cuts an answer after 4 KiB if a proxy forwards the request in HTTP/1.0.")
traced_chunks_lost = steps.READ_BODY.after(
    HEADERS_REQUIREMENT,
    lambda body: body[:64],
    when=lambda http: "traceparent" in http.headers and is_chunked(http),
    walks="json",
).says("The server keeps only the first 64 bytes of a chunked body if the request has a `traceparent` header.")
binary_answers_behind_proxies_lose_their_header = steps.INFER.after(
    HEADERS_REQUIREMENT,
    lambda answer: set_header(answer, HEADER, None),
    when=lambda http, result: "," in http.headers.get("via", "") and is_binary(result),
    walks="binary",
).says("The server omits the inference header of a binary answer if the request came through two proxies.")
