"""Connections of httpcore with one time limit for a whole exchange: interim answers, head and body.

httpcore restarts its timeout with each read. An answer that sends a byte at a time, or endless interim answers, would
never end. Here every read is limited by the remaining time of the exchange.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterable
from math import inf
from typing import Any, Final

import h11
import httpcore

# All errors that httpcore raises about a peer.
ERRORS: Final = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException)
MAX_CONNECTIONS, MAX_KEPT_CONNECTIONS = 8, 4


class EndlessError(httpcore.ReadTimeout):
    """An exchange exceeded its total time limit."""


class Clock(threading.local):
    """The state of the current exchange of this thread.

    Attributes:
        until: the deadline, on the clock of `time.monotonic`.
        received_bytes: the number of bytes received in the exchange.
        has_more: whether bytes followed the complete answer.
        is_write_broken: whether the connection broke while the request was written; httpcore still reads then, and
            finds the end of the connection in place of its reset.
    """

    until = inf
    received_bytes = 0
    has_more = False
    is_write_broken = False

    def start(self, seconds: float) -> None:
        """Start an exchange with this time limit."""
        self.until, self.received_bytes = time.monotonic() + seconds, 0
        self.has_more = self.is_write_broken = False

    def compute_remaining_s(self) -> float:
        """Return the remaining seconds.

        Raises:
            EndlessError: no time remains.
        """
        left = self.until - time.monotonic()
        if left <= 0:
            raise EndlessError
        return left


def make_pool(context: ssl.SSLContext, clock: Clock) -> httpcore.ConnectionPool:
    """Return a connection pool whose reads and writes respect the clock."""
    return httpcore.ConnectionPool(
        ssl_context=context,
        max_connections=MAX_CONNECTIONS,
        max_keepalive_connections=MAX_KEPT_CONNECTIONS,
        network_backend=_ClockedBackend(clock),
    )


class _ClockedBackend(httpcore.SyncBackend):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def connect_tcp(self, *arguments: Any, **options: Any) -> httpcore.NetworkStream:
        return _ClockedStream(super().connect_tcp(*arguments, **options), self._clock)


class _ClockedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._read_in_time(max_bytes, timeout)
        self._clock.received_bytes += len(data)
        return data

    def _read_in_time(self, max_bytes: int, timeout: float | None) -> bytes:
        left = self._clock.compute_remaining_s()
        if timeout is not None and timeout <= left:
            return self._stream.read(max_bytes, timeout)
        try:
            return self._stream.read(max_bytes, left)
        except httpcore.ReadTimeout as error:
            raise EndlessError from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # httpcore's implementation restarts its timeout with each part that is sent, however small.
        raw: socket.socket = self._stream.get_extra_info("socket")
        left = self._clock.compute_remaining_s()
        raw.settimeout(left if timeout is None else min(timeout, left))
        try:
            raw.sendall(buffer)
        except TimeoutError as error:
            raise httpcore.WriteTimeout from error
        except OSError as error:
            self._clock.is_write_broken = True
            raise httpcore.WriteError from error

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _ClockedStream(self._stream.start_tls(ssl_context, server_hostname, timeout), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def has_more(response: httpcore.Response) -> bool:
    """Return whether bytes follow a complete answer; a kept connection would take them for the next answer.

    httpcore leaves them in its h11 reader silently, and has no public access to them.
    """
    connection = getattr(getattr(response.stream, "_stream", None), "_connection", None)
    state = getattr(connection, "_h11_state", None)
    return isinstance(state, h11.Connection) and bool(state.trailing_data[0])


def encode_headers(given: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Encode headers for httpcore."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given]
