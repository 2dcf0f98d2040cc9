"""Bytes of HTTP, as the bundled server reads them off a connection, and as the judge reads those of watched clients."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from functools import cache
from typing import Any
from unittest.mock import Mock

import h11
import uvicorn
from uvicorn.server import ServerState

from conformance.clients.recording import message_reader
from conformance.clients.recording.message_reader import HttpMessage
from conformance.clients.recording.recorder import Store
from reference_server import app, models
from reference_server.uvicorn_server import make_uvicorn_config
from tests.fuzz.http_input import HttpInput, golden_requests

REFUSALS = {501, 505}  # they say what HTTP the server does not know, not that it failed
ALIKE = dict.fromkeys(REFUSALS, 400)  # what it is that cannot be read shows only where its line came whole
SECONDS = 5.0  # for an answer in process; it is there within a few milliseconds


def make_connection() -> Mock:
    """Return the server's end of a connection that keeps in `written` what goes out until it is closed."""
    connection = Mock(spec=asyncio.Transport)
    connection.written, connection.is_closing.return_value = bytearray(), False
    connection.write.side_effect = lambda data: connection.is_closing() or connection.written.extend(data)
    connection.close.side_effect = lambda: setattr(connection.is_closing, "return_value", True)
    connection.get_extra_info.return_value = None  # there is no socket
    connection.get_write_buffer_size.return_value = 0
    return connection


@cache
def _served() -> tuple[uvicorn.Config, asyncio.Runner]:
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    config = make_uvicorn_config(
        app.create(models.load()), log_level="critical", keep_alive_seconds=5, shutdown_seconds=1
    )
    config.load()
    return config, asyncio.Runner()


async def _answers(config: uvicorn.Config, pieces: list[bytes]) -> bytes:
    """Return what the server writes to a client that sends these pieces and goes away when all is answered."""
    made: Any = config.http_protocol_class
    protocol = made(config=config, server_state=ServerState(), app_state={})
    connection, before = make_connection(), asyncio.all_tasks()
    protocol.connection_made(connection)
    for piece in pieces:
        if piece and not connection.is_closing():
            protocol.data_received(piece)
            await asyncio.sleep(0)
    for _ in range(50):  # as often as an answer takes; a request that is not whole waits for more
        await asyncio.sleep(0)
    protocol.connection_lost(ConnectionResetError())
    tasks = asyncio.all_tasks() - before
    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*tasks)
    return bytes(connection.written)


def server_heads(data: bytes) -> None:
    """What the server writes is HTTP, no failure of its own, and the same however the bytes are divided.

    But for the last request, which is refused where it cannot be read, unless it was answered before that showed.
    """
    cut = data[0] % max(len(data), 1) if data else 0
    config, runner = _served()
    whole = runner.run(_answers(config, [data]))
    divided = runner.run(_answers(config, [data[:cut], data[cut:]]))
    statuses = _statuses(whole)
    assert not {status for status in statuses if status >= 500} - REFUSALS
    others = _statuses(divided)
    assert len(others) == len(statuses)
    assert others[:-1] == statuses[:-1]
    assert others == statuses or max(others[-1], statuses[-1]) >= 400


def _statuses(written: bytes) -> list[int]:
    """Return the status of each answer; the last may be cut short by the client's end."""
    found: list[int] = []
    reader = h11.Connection(h11.CLIENT)
    if written:  # no bytes are the end, to h11
        reader.receive_data(written)
    while True:
        reader.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
        reader.send(h11.EndOfMessage())
        while not isinstance(event := reader.next_event(), h11.EndOfMessage):
            if event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
                return found
            if isinstance(event, h11.Response):
                found.append(ALIKE.get(event.status_code, event.status_code))
        if reader.their_state is not h11.DONE:
            return found
        reader.start_next_cycle()


def watched_requests(data: bytes) -> None:
    """The requests of a watched client are read, and are the same however their bytes are divided.

    Of one that cannot be read, less may have come when that shows.
    """
    cut = data[0] % max(len(data), 1) if data else 0
    assert _read([data]) == _read([data[:cut], data[cut:]])


def _read(pieces: list[bytes]) -> list[tuple[object, ...]]:
    reader = message_reader.make_request_reader(Store())
    found = [read for piece in pieces for read in reader.feed(piece)]
    return [_told(read) for read in found]


def _told(read: HttpMessage) -> tuple[object, ...]:
    body = b"" if read.trouble else read.body.release()
    return read.method, read.path, read.version, read.headers, read.is_chunked, bool(read.trouble), body


def streams() -> Iterator[bytes]:
    """Yield golden requests as they go over a connection, and heads that no client should send."""
    for place, data in enumerate(golden_requests()):
        if place % 8 == 0:
            yield _stream(HttpInput.from_bytes(data))
    yield b"GET /v2 HTTP/1.1\r\nHost: h\r\n\r\nGET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n"
    yield (
        b"POST /v2/models/identity_int32/infer HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
        b"Expect: 100-continue\r\n\r\n2\r\n{}\r\n0\r\nHost: x\r\n\r\n"
    )
    yield b"GET /v2 HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield b"GET /v2 HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"


def _stream(given: HttpInput) -> bytes:
    received = given.received()
    lines = [f"{name}: {value}\r\n" for name, value in received.headers]
    head = f"POST {received.path} HTTP/1.1\r\nHost: h\r\nContent-Length: {len(given.body)}\r\n{''.join(lines)}\r\n"
    return head.encode("latin-1") + given.body
