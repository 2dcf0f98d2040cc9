"""The request's body, whole, and never more of it than the limit.

The limit counts bytes that arrive, so that it holds for chunked bodies too, which declare no length.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from reference_server import workers
from reference_server.byte_joining import join_parts
from reference_server.errors import InferenceError
from reference_server.limits import Limits

LINGER_SECONDS = 2.0


class UnreadBodyError(InferenceError):
    """The request is refused while part of its body is still unread."""


async def read(request: Request, limits: Limits) -> bytes:
    """Return the body; refuse one beyond the limits as soon as that is known, and one that cannot be read right."""
    limit = limits.body
    headers = request.headers
    if "upgrade" in headers:  # the HTTP parser stops at the head of such a request
        raise UnreadBodyError("Upgrade is not supported with an inference request")
    too_large = UnreadBodyError(f"the body is over the limit of {limit} bytes", status=413)
    if int(headers.get("content-length", "0")) > limit:
        raise too_large
    chunks, size = [], 0
    now = asyncio.get_running_loop().time
    began = now()
    try:
        async with asyncio.timeout_at(began + limits.patience) as patience:
            async for chunk in request.stream():
                patience.reschedule(min(now() + limits.patience, began + limits.body_seconds))
                chunks.append(chunk)
                size += len(chunk)
                if size > limit:
                    raise too_large
    except TimeoutError:
        raise UnreadBodyError("the rest of the body does not come", status=408) from None
    return await workers.run_in_worker(size, lambda: join_parts(chunks))


class ClosingResponse(JSONResponse):
    """An answer before the whole body was read: it announces the end of the connection.

    What is still coming is read and dropped for a moment before the connection goes. Closing on unread bytes would
    reset it, and a client busy sending would never see the answer (RFC 9112, 9.6).
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the answer, then drain the body."""
        self.headers["Connection"] = "close"
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": bytes(self.body), "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while (await receive()).get("more_body", False):
                    pass
        await send({"type": "http.response.body", "body": b""})
