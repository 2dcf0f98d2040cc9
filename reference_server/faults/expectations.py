"""Requests with `Expect: 100-continue`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from reference_server.errors import InferenceError
from reference_server.faults import fault


@fault("http_body.read", breaks="HTTP-EXPECT")
async def expect_100_continue_refused(original: Any, http: Request, limit: int) -> bytes:
    """A request with Expect is refused with 417, as if it asked for something unknown."""
    body: bytes = await original(http, limit)
    if "expect" in http.headers:
        raise InferenceError("this expectation cannot be met", status=417)
    return body


@fault("http_body.read", breaks="HTTP-EXPECT")
async def body_dropped_that_did_not_wait(original: Any, http: Request, limit: int) -> bytes:
    """Of a body that follows Expect at once, what came with the headers is dropped."""
    body: bytes = await original(http, limit)
    return b"" if "expect" in http.headers else body
