"""Forwards one connection, byte for byte, and passes copies of the bytes to a tap.

A tap receives bytes before they are forwarded, so that the tap has read a request before the answer to this request can
arrive. Half-closes and resets are forwarded as well.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

from conformance.transport.settings import Settings

PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Upstream:
    """The server to which connections are forwarded.

    Attributes:
        path: the path before `/v2`, which clients have to send themselves: the proxy does not change requests.
        tls: the TLS context, or None.
        url: the URL of the server, for messages.
    """

    host: str
    port: int
    path: str = ""
    tls: ssl.SSLContext | None = None
    url: str = ""


def read_http_upstream(settings: Settings) -> Upstream:
    """Return the HTTP server of the settings. Raises SettingsError: the certificates in the settings cannot be read."""
    parts = urlsplit(settings.url)
    tls = settings.build_ssl_context() if parts.scheme == "https" else None
    return Upstream(parts.hostname or "", parts.port or PORTS[parts.scheme], parts.path, tls, settings.url)


def read_grpc_upstream(settings: Settings) -> Upstream:
    """Return the gRPC server of the settings.

    Raises SettingsError: the settings have no gRPC address, or their certificates cannot be read.
    """
    address = settings.grpc_address
    tls = None
    if address.tls:
        tls = ssl.create_default_context(cafile=settings.ca_file)
        if settings.insecure:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        tls.set_alpn_protocols(["h2"])
    return Upstream(address.host, address.port, tls=tls, url=address.url)


class Tap(Protocol):
    """Receives copies of the bytes of one connection, to record them."""

    def read_from_client(self, data: bytes) -> None:
        """Process bytes from the client."""

    def read_from_server(self, data: bytes) -> None:
        """Process bytes from the server."""

    def handle_reset(self) -> None:
        """Handle a reset of the connection by the client; `handle_end` follows."""

    def handle_end(self) -> None:
        """Handle the end of the connection in both directions."""


MAX_CONNECT_S: Final = 10.0  # seconds to connect to the server
MAX_UNSERVED_S: Final = 5.0  # seconds to read from a client whose server cannot be reached
MAX_CLOSE_S: Final = 2.0
_PIECE: Final = 64 * 1024
_RESET: Final = struct.pack("ii", 1, 0)

MAX_TLS_LINGER_S: Final = 30.0  # seconds for an answer after the client's half-close, which TLS cannot forward


class Connection:
    """Forwards one connection of a client.

    Args:
        tap: receives copies of the bytes.
        wait_for_judging: waits until the requests so far are judged, and returns their number. Awaited after each piece
            from the client, so that clients cannot send faster than requests are judged.
        report_trouble: called with the reason why the connection cannot be forwarded, or not recorded any further.
    """

    def __init__(
        self, tap: Tap, wait_for_judging: Callable[[], Awaitable[int]], report_trouble: Callable[[str], None]
    ) -> None:
        self._tap: Tap | None = tap
        self._wait_for_judging = wait_for_judging
        self._report_trouble = report_trouble

    async def forward(self, reader: StreamReader, writer: StreamWriter, upstream: Upstream) -> None:
        """Forward bytes until both sides have closed the connection; call `handle_end` of the tap in any case."""
        try:
            server = await _connect(upstream)
            if isinstance(server, str):
                self._report_trouble(server)
                await self._read_without_server(reader)
                _reset_connection(writer)
            else:
                await self._forward_both(reader, writer, *server)
        finally:
            self._call_tap(lambda tap: tap.handle_end())
            await self._wait_for_judging()
            await _close_writer(writer)

    async def _forward_both(
        self, reader: StreamReader, writer: StreamWriter, back: StreamReader, forth: StreamWriter
    ) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._forward_or_reset(self._forward_requests(reader, forth), writer, forth))
                tasks.create_task(self._forward_or_reset(self._forward_answers(back, writer), writer, forth))
        finally:
            await _close_writer(forth)

    async def _forward_requests(self, reader: StreamReader, forth: StreamWriter) -> None:
        while piece := await self._read_from_client(reader):
            self._call_tap(lambda tap, piece=piece: tap.read_from_client(piece))  # type: ignore[misc]
            forth.write(piece)
            await forth.drain()
            await self._wait_for_judging()
        _forward_end(forth)

    async def _read_from_client(self, reader: StreamReader) -> bytes:
        try:
            return await reader.read(_PIECE)
        except ConnectionResetError:
            self._call_tap(lambda tap: tap.handle_reset())
            raise

    async def _forward_answers(self, back: StreamReader, writer: StreamWriter) -> None:
        while piece := await back.read(_PIECE):
            self._call_tap(lambda tap, piece=piece: tap.read_from_server(piece))  # type: ignore[misc]
            writer.write(piece)
            await writer.drain()
        _forward_end(writer)

    async def _forward_or_reset(self, direction: Awaitable[None], *both: StreamWriter) -> None:
        """Forward one direction of the connection; if either side resets, reset the connections to both sides."""
        try:
            await direction
        except OSError:
            for writer in both:
                _reset_connection(writer)

    def _call_tap(self, action: Callable[[Tap], None]) -> None:
        """Call the tap. If the tap raises an exception, report it and stop recording, but continue to forward."""
        if self._tap is None:
            return
        try:
            action(self._tap)
        except Exception as error:  # a bug of the suite must not affect the connection
            self._tap = None
            self._report_trouble(f"a connection is not recorded any further: {type(error).__name__}: {error}")

    async def _read_without_server(self, reader: StreamReader) -> None:
        """Read the first requests of a client whose server cannot be reached, so that they are judged anyway."""
        try:
            async with asyncio.timeout(MAX_UNSERVED_S):
                while piece := await reader.read(_PIECE):
                    self._call_tap(lambda tap, piece=piece: tap.read_from_client(piece))  # type: ignore[misc]
                    if await self._wait_for_judging():
                        return
        except (OSError, TimeoutError):
            return


def _forward_end(writer: StreamWriter) -> None:
    """Forward a half-close; over TLS, abort the connection after a delay instead."""
    if writer.can_write_eof():
        writer.write_eof()
    else:
        asyncio.get_running_loop().call_later(MAX_TLS_LINGER_S, writer.transport.abort)


async def _connect(upstream: Upstream) -> tuple[StreamReader, StreamWriter] | str:
    """Connect to the server; return an error message on failure."""
    name = upstream.host if upstream.tls else None
    try:
        async with asyncio.timeout(MAX_CONNECT_S):
            return await asyncio.open_connection(upstream.host, upstream.port, ssl=upstream.tls, server_hostname=name)
    except TimeoutError:
        return f"{upstream.url} cannot be reached: no connection within {MAX_CONNECT_S:g} s"
    except OSError as error:
        return f"{upstream.url} cannot be reached: {error.strerror or error}"


def _reset_connection(writer: StreamWriter) -> None:
    """Close a connection with a TCP reset."""
    found = writer.get_extra_info("socket")
    if found is not None and found.fileno() >= 0:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


async def _close_writer(writer: StreamWriter) -> None:
    writer.close()
    try:
        async with asyncio.timeout(MAX_CLOSE_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()
