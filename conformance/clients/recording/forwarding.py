"""Forwards one connection, byte for byte, and passes copies of the bytes to a tap.

A tap gets bytes before they are forwarded, so that it knows a request before its answer can arrive. Half-closes and
resets are forwarded as well.
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
    """A server.

    Attributes:
        path: the path prefix of `/v2`. A client has to send it: the proxy adds nothing to requests.
        tls: the TLS context, or None.
        url: the URL, for messages.
    """

    host: str
    port: int
    path: str = ""
    tls: ssl.SSLContext | None = None
    url: str = ""


def read_http_upstream(settings: Settings) -> Upstream:
    """Return the upstream for HTTP.

    Raises:
        SettingsError: its certificates cannot be read.
    """
    parts = urlsplit(settings.url)
    tls = settings.build_ssl_context() if parts.scheme == "https" else None
    return Upstream(parts.hostname or "", parts.port or PORTS[parts.scheme], parts.path, tls, settings.url)


def read_grpc_upstream(settings: Settings) -> Upstream:
    """Return the upstream for gRPC.

    Raises:
        SettingsError: the server has no such address, or its certificates cannot be read.
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
    """Reads one connection."""

    def sent(self, data: bytes) -> None:
        """Process bytes from the client."""

    def came(self, data: bytes) -> None:
        """Process bytes from the server."""

    def left(self) -> None:
        """Handle a reset of the connection by the client; `ended` follows."""

    def ended(self) -> None:
        """Handle the end of the connection in both directions."""


MAX_CONNECT_S: Final = 10.0  # seconds to connect to the server
MAX_UNSERVED_S: Final = 5.0  # seconds to read from a client whose server cannot be reached
MAX_CLOSE_S: Final = 2.0
_PIECE: Final = 64 * 1024
_RESET: Final = struct.pack("ii", 1, 0)

MAX_TLS_LINGER_S: Final = 30.0  # seconds for an answer after the client's half-close, which TLS cannot forward


class Connection:
    """One connection of a client.

    Args:
        tap: gets copies of the bytes.
        heard: awaited after each piece from the client, so that judging it delays the next piece; returns the number of
            requests so far.
        trouble: called with the reason why the connection cannot be forwarded or read.
    """

    def __init__(self, tap: Tap, heard: Callable[[], Awaitable[int]], trouble: Callable[[str], None]) -> None:
        self._tap: Tap | None = tap
        self._heard = heard
        self._trouble = trouble

    async def forward(self, reader: StreamReader, writer: StreamWriter, upstream: Upstream) -> None:
        """Forward until both sides have ended; call `ended` of the tap in any case."""
        try:
            server = await _connected(upstream)
            if isinstance(server, str):
                self._trouble(server)
                await self._listen_alone(reader)
                _reset(writer)
            else:
                await self._both(reader, writer, *server)
        finally:
            self._read_along(lambda tap: tap.ended())
            await self._heard()
            await _closed(writer)

    async def _both(self, reader: StreamReader, writer: StreamWriter, back: StreamReader, forth: StreamWriter) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._guarded(self._forth(reader, forth), writer, forth))
                tasks.create_task(self._guarded(self._back(back, writer), writer, forth))
        finally:
            await _closed(forth)

    async def _forth(self, reader: StreamReader, forth: StreamWriter) -> None:
        while piece := await self._read_from_client(reader):
            self._read_along(lambda tap, piece=piece: tap.sent(piece))  # type: ignore[misc]
            forth.write(piece)
            await forth.drain()
            await self._heard()
        _pass_end_on(forth)

    async def _read_from_client(self, reader: StreamReader) -> bytes:
        try:
            return await reader.read(_PIECE)
        except ConnectionResetError:
            self._read_along(lambda tap: tap.left())
            raise

    async def _back(self, back: StreamReader, writer: StreamWriter) -> None:
        while piece := await back.read(_PIECE):
            self._read_along(lambda tap, piece=piece: tap.came(piece))  # type: ignore[misc]
            writer.write(piece)
            await writer.drain()
        _pass_end_on(writer)

    async def _guarded(self, direction: Awaitable[None], *both: StreamWriter) -> None:
        """Forward one direction; reset both ends if either is reset."""
        try:
            await direction
        except OSError:
            for writer in both:
                _reset(writer)

    def _read_along(self, take: Callable[[Tap], None]) -> None:
        """Call the tap; forwarding goes on even if it fails."""
        if self._tap is None:
            return
        try:
            take(self._tap)
        except Exception as error:  # a bug of the suite must not affect the connection
            self._tap = None
            self._trouble(f"a connection is not read any further: {type(error).__name__}: {error}")

    async def _listen_alone(self, reader: StreamReader) -> None:
        """Read from a client whose server cannot be reached: its requests are judged all the same."""
        try:
            async with asyncio.timeout(MAX_UNSERVED_S):
                while piece := await reader.read(_PIECE):
                    self._read_along(lambda tap, piece=piece: tap.sent(piece))  # type: ignore[misc]
                    if await self._heard():
                        return
        except (OSError, TimeoutError):
            return


def _pass_end_on(writer: StreamWriter) -> None:
    """Forward a half-close; over TLS, abort the connection after a delay instead."""
    if writer.can_write_eof():
        writer.write_eof()
    else:
        asyncio.get_running_loop().call_later(MAX_TLS_LINGER_S, writer.transport.abort)


async def _connected(upstream: Upstream) -> tuple[StreamReader, StreamWriter] | str:
    """Connect to the server; return an error message on failure."""
    name = upstream.host if upstream.tls else None
    try:
        async with asyncio.timeout(MAX_CONNECT_S):
            return await asyncio.open_connection(upstream.host, upstream.port, ssl=upstream.tls, server_hostname=name)
    except TimeoutError:
        return f"{upstream.url} cannot be reached: no connection within {MAX_CONNECT_S:g} s"
    except OSError as error:
        return f"{upstream.url} cannot be reached: {error.strerror or error}"


def _reset(writer: StreamWriter) -> None:
    """Reset a connection."""
    found = writer.get_extra_info("socket")
    if found is not None and found.fileno() >= 0:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


async def _closed(writer: StreamWriter) -> None:
    writer.close()
    try:
        async with asyncio.timeout(MAX_CLOSE_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()
