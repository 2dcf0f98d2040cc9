"""Requests with `Expect: 100-continue`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from reference_server.errors import InferenceError
from reference_server.faults import fault


@fault("http_body.read", breaks="HTTP-EXPECT")
async def expect_100_continue_refused(original: Any, http: Request, limit: int) -> bytes:
    """A request with Expect is refused with 400, as if it asked for something unknown."""
    body: bytes = await original(http, limit)
    if "expect" in http.headers:
        raise InferenceError("Expect is not known")
    return body


# --- the go-ahead ----------------------------------------------------------------------------------------------------

HEADER_READ = "http_protocol.OipHttpProtocol.on_header"


@fault(HEADER_READ, breaks="HTTP-GO-AHEAD")
def go_ahead_never_given(original: Any, protocol: Any, name: bytes, value: bytes) -> None:
    """Expect is passed over: no 100 Continue is sent, and the body waited for."""
    original(protocol, name, value)
    protocol.expect_100_continue = False
