"""Makes gRPC calls with serialized messages, each with a deadline; a failure closes the connection.

The client does not parse answers, so that an invalid answer can be recorded as evidence. The client does not invent a
status for a call that ends without a status from the server (`grpc_connection`, `grpc_ending`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.transport.exchange import Exchange, FailureKind, TransportFailure, assign_connection_number
from conformance.transport.grpc_ending import finish_exchange
from conformance.transport.grpc_stream import Header, Stream
from conformance.transport.http_request import USER_AGENT
from conformance.transport.settings import DEADLINE_TIMEOUTS, Settings
from conformance.transport.unreachable import UnreachableError
from conformance.wire.request import Message

if TYPE_CHECKING:
    from conformance.transport.grpc_connection import GrpcConnection

MAX_ANSWER_BYTES = 64 * 1024 * 1024  # bytes, for all answers to concurrent calls together; grpc's own limit is 4 MiB
SMALL_WINDOW_BYTES = 65_535  # bytes of a stream in flight, as without any setting (RFC 9113, 6.9.2)
MAX_ATTEMPTS = 5  # for a call that the server reports as unprocessed (RFC 9113, 8.7)
_UNCOMPRESSED_FLAG = b"\0"
_LENGTH_BYTES = 4
_CANCELLED = TransportFailure(FailureKind.CLOSED, "cancelled by the client")


class GrpcClient:
    """A client of one target over gRPC; `window_bytes` is the window of each stream, by default a large one."""

    def __init__(self, settings: Settings, window_bytes: int | None = None) -> None:
        self.settings = settings
        self._window_bytes = window_bytes
        self._address = settings.grpc_address
        self._connection: GrpcConnection | None = None
        self._number = 0

    def send(self, message: Message, *, fresh: bool = False) -> Exchange:
        """Make a call and wait for its end.

        A call is repeated on a new connection if the kept connection turns out to be closed, or if the server reports
        that it has not processed the call.

        `fresh`: whether to use a new connection.

        Raises UnreachableError: the connection failed.
        """
        return self.send_together([message], fresh=fresh)[0]

    def send_together(self, messages: Sequence[Message], *, fresh: bool = False) -> list[Exchange]:
        """Make concurrent calls on one connection, and wait for the end of each; see `send`.

        All attempts share one deadline.
        """
        if fresh or self._connection is None or not self._connection.is_usable:
            self._open_connection()
            was_kept = False
        else:
            was_kept = True
        until = time.monotonic() + self.settings.deadline
        streams = self._make_calls(messages, until)
        for _ in range(MAX_ATTEMPTS - 1):
            retry_indices = _find_unprocessed(streams, was_kept=was_kept)
            if retry_indices and time.monotonic() < until:
                streams, was_kept = self._repeat_calls(messages, streams, retry_indices, until), False
        exchanges = [self._build_exchange(message, stream) for message, stream in zip(messages, streams, strict=True)]
        if any(exchange.failure for exchange in exchanges):
            self.close()
        return exchanges

    def cancel(self, message: Message, *, fresh: bool = False) -> Exchange:
        """Start a call and cancel it by resetting its stream; the connection stays open for the next call.

        Raises UnreachableError: the connection failed.
        """
        if fresh or self._connection is None or not self._connection.is_usable:
            self._open_connection()
        stream = Stream(self._build_headers(message), _frame_message(message.body))
        (self._connection or self._open_connection()).cancel(stream, time.monotonic() + self.settings.deadline)
        stream.failure = stream.failure or _CANCELLED
        return replace(self._build_exchange(message, stream), note=str(_CANCELLED))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _open_connection(self) -> GrpcConnection:
        from conformance.transport.grpc_connection import GrpcConnection  # its dependencies come with the extra

        self.close()
        self._connection = GrpcConnection(self.settings, self._window_bytes)
        self._number = assign_connection_number()
        return self._connection

    def _make_calls(self, messages: Sequence[Message], until: float) -> list[Stream]:
        """Make calls on the current connection, or on a new one if there is none."""
        streams = [Stream(self._build_headers(message), _frame_message(message.body)) for message in messages]
        (self._connection or self._open_connection()).call(streams, MAX_ANSWER_BYTES, until)
        return streams

    def _repeat_calls(
        self, messages: Sequence[Message], streams: Sequence[Stream], retry_indices: Sequence[int], until: float
    ) -> list[Stream]:
        """Repeat the calls with these indices on a new connection.

        If the connection fails, return the streams of the earlier attempt; but a single call is repeated later.

        Raises UnreachableError: the connection failed, and there is only one call.
        """
        try:
            self._open_connection()
        except UnreachableError as error:
            if len(messages) > 1:
                return list(streams)
            error.before = self._build_exchange(messages[0], streams[0])
            raise
        found = dict(zip(retry_indices, self._make_calls([messages[k] for k in retry_indices], until), strict=True))
        return [found.get(k, stream) for k, stream in enumerate(streams)]

    def _build_headers(self, message: Message) -> list[Header]:
        user_headers, deadline = self.settings.headers, DEADLINE_TIMEOUTS * self.settings.timeout
        timeout_ms = max(deadline, self.settings.deadline) * 1000
        host = next((value for name, value in user_headers if name.lower() == "host"), self._address.target)
        return [
            (":method", "POST"),
            (":scheme", "https" if self._address.tls else "http"),
            (":path", message.path),
            (":authority", host),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", message.header("User-Agent") or USER_AGENT),
            ("grpc-timeout", message.header("grpc-timeout") or f"{max(int(timeout_ms), 1)}m"),
            *[(name.lower(), value) for name, value in user_headers if name.lower() != "host"],
        ]

    def _build_exchange(self, message: Message, stream: Stream) -> Exchange:
        exchange = Exchange(0, message, self._address.url + message.path, connection=self._number)
        return finish_exchange(replace(exchange, elapsed=stream.elapsed), stream)


def _frame_message(body: bytes) -> bytes:
    """Return a message with its gRPC prefix: the compression flag (uncompressed), and the length."""
    return _UNCOMPRESSED_FLAG + len(body).to_bytes(_LENGTH_BYTES, "big") + body


def _find_unprocessed(streams: Sequence[Stream], *, was_kept: bool) -> list[int]:
    """Return the indices of calls that the server has not processed, or that a kept connection lost.

    A kept connection that was closed while idle breaks before any answer arrives. Bytes that are not HTTP/2 may belong
    to an earlier call on the connection.
    """
    return [
        index
        for index, stream in enumerate(streams)
        if stream.unprocessed or (was_kept and _has_failed_unanswered(stream))
    ]


def _has_failed_unanswered(stream: Stream) -> bool:
    kinds = (FailureKind.BROKEN, FailureKind.MALFORMED)
    return stream.failure is not None and stream.failure.kind in kinds and not stream.headers
