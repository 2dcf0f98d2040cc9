"""HTTP in other manners: closed connections, HTTP/1.0, chunks, compression, slow answers."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from starlette.responses import Response, StreamingResponse

from reference_server import app
from reference_server.errors import InferenceError
from reference_server.faults import fault as variation


@variation("response.frame")
def answers_close_the_connection(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The connection is closed after every answer, and the answer says so."""
    found: Response = original(head, binary)
    found.headers["Connection"] = "close"
    return found


@variation("app.Service.infer")
async def answers_come_late(original: Any, service: app.Service, http: Any) -> Response:
    """Every answer takes a moment."""
    await asyncio.sleep(0.002)
    found: Response = await original(service, http)
    return found


class _Dribbling(Response):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = bytes(self.body)
        for start in range(0, min(len(body), 40), 4):
            await send({"type": "http.response.body", "body": body[start : start + 4], "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": body[40:]})


@variation("response.frame")
def answers_dribble(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The first bytes of an answer come in small pieces."""
    found: Response = original(head, binary)
    return _Dribbling(bytes(found.body), headers=dict(found.headers))


class _Rewriting:
    """A connection on which the heads of answers pass through `change`."""

    def __init__(self, transport: Any, change: Callable[[bytes], bytes]) -> None:
        self._transport = transport
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write data, changed if they begin an answer."""
        self._transport.write(self._change(bytes(data)) if data.startswith(b"HTTP/1.1 ") else data)


def _old(head: bytes) -> bytes:
    return head.replace(b"HTTP/1.1 ", b"HTTP/1.0 ", 1)


def _old_without_length(head: bytes) -> bytes:
    if b"inference-header-content-length" in head:
        return _old(head)
    return re.sub(rb"\r\ncontent-length: [0-9]+", b"", _old(head), count=1)


CLOSING = ("http_protocol.OipHttpProtocol.connection_made", "http_protocol.OipHttpProtocol.on_headers_complete")


def _ends_each(original: Any, protocol: Any, arguments: tuple[Any, ...], change: Callable[[bytes], bytes]) -> None:
    """Do one of the steps of `CLOSING` for connections that end with their first answer."""
    if arguments:
        original(protocol, _Rewriting(arguments[0], change))
    else:
        original(protocol)
        protocol.cycle.keep_alive = False


@variation(*CLOSING)
def answers_in_http_1_0(original: Any, protocol: Any, *arguments: Any) -> None:
    """Answers are HTTP/1.0: they give their length, and the connection is closed after each without a word."""
    _ends_each(original, protocol, arguments, _old)


@variation(*CLOSING)
def json_ends_with_the_connection(original: Any, protocol: Any, *arguments: Any) -> None:
    """Answers are HTTP/1.0, and those without binary data end where the connection does."""
    _ends_each(original, protocol, arguments, _old_without_length)


@variation("app.Service.infer")
async def answers_are_compressed_when_asked_for(original: Any, service: app.Service, http: Any) -> Response:
    """Answers are compressed for clients that accept gzip."""
    found: Response = await original(service, http)
    if "gzip" not in http.headers.get("accept-encoding", ""):
        return found
    headers = {name: value for name, value in found.headers.items() if name != "content-length"}
    return Response(
        gzip.compress(bytes(found.body)), headers=headers | {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    )


@variation("http_body.read")
async def compressed_requests_are_decoded(original: Any, http: Any, limit: int) -> bytes:
    """Requests may be compressed."""
    if http.headers.get("content-encoding") != "gzip":
        return bytes(await original(http, limit))
    try:
        return gzip.decompress(await http.body())
    except (OSError, EOFError) as error:
        raise InferenceError("the body is not in the gzip coding") from error


@variation("response.frame", breaks="BIN-CL-CHUNKED")
def answers_come_in_small_chunks(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """Answers come in chunks that end anywhere."""
    body = bytes(original(head, binary).body)
    step = 7 if len(body) < 5000 else 4099
    pieces = [body[start : start + step] for start in range(0, len(body), step)]
    headers = {name: value for name, value in original(head, binary).headers.items() if name != "content-length"}
    return StreamingResponse(_each(pieces), headers=headers)


async def _each(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
