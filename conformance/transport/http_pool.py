"""A connection pool of httpcore with one time limit for a whole exchange: interim answers, head and body.

httpcore restarts its timeout with each read. So a server that sends one byte at a time, or endless interim answers,
would never run into the timeout. Here every read is limited by the remaining time of the exchange.
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


class ExchangeState(threading.local):
    """The deadline and the observations of the current exchange; each thread has its own.

    Attributes:
        until: the deadline, on the clock of `time.monotonic`.
        received_bytes: the number of bytes received in the exchange.
        has_surplus_bytes: whether bytes followed the complete answer.
        is_write_broken: whether the connection broke while the request was written. httpcore then reads on, and reports
            a closed connection instead of the error of the write.
    """

    until = inf
    received_bytes = 0
    has_surplus_bytes = False
    is_write_broken = False

    def start(self, seconds: float) -> None:
        """Start an exchange: set its deadline, and reset the observations."""
        self.until, self.received_bytes = time.monotonic() + seconds, 0
        self.has_surplus_bytes = self.is_write_broken = False

    def compute_remaining_s(self) -> float:
        """Return the seconds until the deadline.

        Raises:
            EndlessError: no time remains.
        """
        left = self.until - time.monotonic()
        if left <= 0:
            raise EndlessError
        return left


def make_pool(context: ssl.SSLContext, state: ExchangeState) -> httpcore.ConnectionPool:
    """Return a connection pool whose reads and writes end at the deadline of `state`."""
    return httpcore.ConnectionPool(
        ssl_context=context,
        max_connections=MAX_CONNECTIONS,
        max_keepalive_connections=MAX_KEPT_CONNECTIONS,
        network_backend=_LimitedBackend(state),
    )


class _LimitedBackend(httpcore.SyncBackend):
    def __init__(self, state: ExchangeState) -> None:
        super().__init__()
        self._state = state

    def connect_tcp(self, *arguments: Any, **options: Any) -> httpcore.NetworkStream:
        return _LimitedStream(super().connect_tcp(*arguments, **options), self._state)


class _LimitedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, state: ExchangeState) -> None:
        self._stream = stream
        self._state = state

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._read_in_time(max_bytes, timeout)
        self._state.received_bytes += len(data)
        return data

    def _read_in_time(self, max_bytes: int, timeout: float | None) -> bytes:
        left = self._state.compute_remaining_s()
        if timeout is not None and timeout <= left:
            return self._stream.read(max_bytes, timeout)
        try:
            return self._stream.read(max_bytes, left)
        except httpcore.ReadTimeout as error:
            raise EndlessError from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # httpcore's implementation restarts its timeout with each part that is sent, however small.
        raw: socket.socket = self._stream.get_extra_info("socket")
        left = self._state.compute_remaining_s()
        raw.settimeout(left if timeout is None else min(timeout, left))
        try:
            raw.sendall(buffer)
        except TimeoutError as error:
            raise httpcore.WriteTimeout from error
        except OSError as error:
            self._state.is_write_broken = True
            raise httpcore.WriteError from error

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _LimitedStream(self._stream.start_tls(ssl_context, server_hostname, timeout), self._state)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def has_surplus_bytes(response: httpcore.Response) -> bool:
    """Return whether bytes follow a complete answer; on a kept connection they would be read as the next answer.

    httpcore leaves these bytes in its h11 reader, and has no public access to them.
    """
    connection = getattr(getattr(response.stream, "_stream", None), "_connection", None)
    state = getattr(connection, "_h11_state", None)
    return isinstance(state, h11.Connection) and bool(state.trailing_data[0])


def encode_headers(given: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Encode headers for httpcore."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given]
