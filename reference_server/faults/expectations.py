"""Requests with `Expect: 100-continue`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.framing import HEADER


@fault("http_body.read", breaks="HTTP-EXPECT")
async def expect_100_continue_refused(original: Any, http: Request, limit: int) -> bytes:
    """A request with Expect is refused with 400, as if it asked for something unknown."""
    body: bytes = await original(http, limit)
    if "expect" in http.headers:
        raise InferenceError("Expect is not known")
    return body


@fault("http_body.read", breaks="HTTP-EXPECT")
async def body_dropped_that_did_not_wait(original: Any, http: Request, limit: int) -> bytes:
    """Of a body that follows Expect at once, what came with the headers is dropped."""
    body: bytes = await original(http, limit)
    return b"" if "expect" in http.headers else body


@fault("http_body.read", breaks="HTTP-EXPECT")
async def raw_body_dropped_behind_expect(original: Any, http: Request, limit: int) -> bytes:
    """The body of a raw request with Expect is taken to be empty."""
    body: bytes = await original(http, limit)
    return b"" if "expect" in http.headers and http.headers.get(HEADER) == "0" else body


@fault("http_body.read", breaks="HTTP-EXPECT")
async def expectation_in_another_case_refused(original: Any, http: Request, limit: int) -> bytes:
    """A request with Expect is refused with 400 unless its value is in lower case."""
    body: bytes = await original(http, limit)
    if http.headers.get("expect", "").lower() != http.headers.get("expect", ""):
        raise InferenceError("this expectation is not known")
    return body


# --- the go-ahead ----------------------------------------------------------------------------------------------------

HEADER_READ = "http_protocol.OipHttpProtocol.on_header"


@fault(HEADER_READ, breaks="HTTP-GO-AHEAD")
def go_ahead_never_given(original: Any, protocol: Any, name: bytes, value: bytes) -> None:
    """Expect is passed over: no 100 Continue is sent, and the body waited for."""
    original(protocol, name, value)
    protocol.expect_100_continue = False


@fault(HEADER_READ, breaks="HTTP-GO-AHEAD")
def go_ahead_for_lower_case_alone(original: Any, protocol: Any, name: bytes, value: bytes) -> None:
    """No 100 Continue is sent where the value of Expect is not in lower case."""
    original(protocol, name, value)
    if name.lower() == b"expect" and value != value.lower():
        protocol.expect_100_continue = False


@fault("http_protocol.OipHttpProtocol.on_headers_complete", breaks="HTTP-GO-AHEAD")
def go_ahead_for_json_alone(original: Any, protocol: Any) -> None:
    """No 100 Continue is sent to requests with an inference header."""
    if HEADER.lower().encode() in dict(protocol.headers):
        protocol.expect_100_continue = False
    original(protocol)
