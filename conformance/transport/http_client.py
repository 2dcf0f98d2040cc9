"""Sends messages on kept connections: as usual clients do, or with chosen options."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from conformance.transport.connection import Connection, open_connection
from conformance.transport.exchange import Exchange, assign_connection_number
from conformance.transport.http_request import cut_segments, render_usual_head
from conformance.transport.send_options import PLAIN, SendOptions
from conformance.transport.settings import Settings
from conformance.transport.unreachable import UnreachableError
from conformance.wire.request import Message


class _KeptConnection:
    """Keeps one connection between messages.

    A server may close a connection between two messages (RFC 9112 9.3). If it did, the subclasses send the message
    again on a new connection.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._kept: Connection | None = None

    @property
    def is_idle(self) -> bool:
        """Whether a connection is open between two messages, as far as the server has not closed it."""
        return self._kept is not None and not self._kept.has_input

    def close(self) -> None:
        """Close the kept connection; the next message opens a new connection."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _send_again_if_unused(self, send_once: Callable[[], Exchange]) -> Exchange:
        """Send a message; if the kept connection has ended before its answer, send it again on a new connection.

        Raises UnreachableError: the connection failed; `before` is the evidence, if the server does not come back.
        """
        kept = self._kept
        found = send_once()
        if kept is None or not kept.has_ended_unused:
            return found
        try:
            return send_once()
        except UnreachableError as error:
            error.before = found
            raise


class HttpClient(_KeptConnection):
    """Sends messages as usual clients do; threads may share it for messages on new connections."""

    def send(self, message: Message, *, fresh: bool = False, share: int = 1) -> Exchange:
        """Send a message and read the complete answer.

        A connection is not reused after an error status, because some servers then close it without notice. A
        connection is not reused either if bytes followed the answer: they would be read as the next answer.

        `fresh`: whether to use a new connection.
        `share`: the number of concurrent messages, which share the limit of answer bytes.

        Raises UnreachableError: the connection failed.
        """
        if fresh:
            started = time.monotonic()
            with closing(open_connection(self.settings)) as connection:
                return self._exchange(connection, message, started, share)
        if not self.is_idle:
            self.close()
        return self._send_again_if_unused(lambda: self._send_once(message))

    def _send_once(self, message: Message) -> Exchange:
        started = time.monotonic()
        connection = self._kept = self._kept or open_connection(self.settings)
        found = self._exchange(connection, message, started)
        if found.failure or (found.status or 0) >= 400 or connection.has_surplus_bytes or not connection.is_kept:
            self.close()
        return found

    def _exchange(self, connection: Connection, message: Message, started: float, share: int = 1) -> Exchange:
        connection.send_request(render_usual_head(self.settings, message), message.body)
        return connection.receive(message, started=started, share=share)


class PersistentConnection(_KeptConnection):
    """Sends messages with chosen options. Its methods raise `UnreachableError` if they cannot connect."""

    def exchange(self, message: Message, options: SendOptions = PLAIN) -> Exchange:
        """Send a message, and read its answer."""
        return self._send_again_if_unused(lambda: self._send_once(message, options))

    def _send_once(self, message: Message, options: SendOptions) -> Exchange:
        connection = self._kept = self._kept or open_connection(self.settings, assign_connection_number())
        connection.send(cut_segments(self.settings, message, options))
        found = connection.receive(message, note=options.note, send_options=options)
        # The next request reads a second refusal: whether the suite notices the refusal must not depend on timing.
        is_spoilt = connection.has_surplus_bytes and not connection.has_second_refusal
        if found.failure or is_spoilt or not connection.is_kept or options.closing:
            self.close()
        return found


def send_alone(settings: Settings, message: Message, options: SendOptions = PLAIN) -> Exchange:
    """Send a message on a connection of its own, and read its answer."""
    with closing(PersistentConnection(settings)) as connection:
        return connection.exchange(message, options)


def exchange_after_idling(settings: Settings, pair: tuple[Message, Message], idle_s: float) -> list[Exchange]:
    """Send the first message, leave the connection idle, send the second message on it; return both exchanges."""
    with closing(PersistentConnection(settings)) as connection:
        first = connection.exchange(pair[0])
        time.sleep(idle_s)
        return [first, connection.exchange(pair[1])]
