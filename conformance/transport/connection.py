"""A persistent connection to the target: kept between messages, and reopened after it ends."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace

from conformance.transport import sockets
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.send_options import PLAIN, SendOptions
from conformance.transport.settings import Settings
from conformance.wire.request import Message


class PersistentConnection:
    """Sends messages on one connection at a time. Its methods raise `UnreachableError` if they cannot connect."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = ExitStack()
        self._current: sockets.Connection | None = None

    def exchange(self, message: Message, options: SendOptions = PLAIN) -> Exchange:
        """Send a message, and read its answer.

        A server may close a connection between two messages (RFC 9112, 9.3). If it did, the message is sent again on a
        new connection.
        """
        was_kept = self._current is not None
        found = self._send_once(message, options)
        if was_kept and Reply(found).has_ended_unanswered:
            found = self._send_once(message, options)
        return replace(found, note=options.note, send_options=options)

    def _send_once(self, message: Message, options: SendOptions) -> Exchange:
        connection = self._current or self._stack.enter_context(sockets.connect(self._settings))
        self._current = connection
        broken = connection.send(cut_segments(self._settings, message, options))
        found = connection.receive(message)
        if found.status is None and broken:
            found = replace(found, failure=broken)
        # The next request reads a second refusal: whether the suite notices the refusal must not depend on timing.
        is_spoilt = connection.has_surplus_bytes and not connection.has_second_refusal
        if found.failure or is_spoilt or not connection.is_kept or options.closing:
            self.close()
        return found

    @property
    def is_idle(self) -> bool:
        """Whether a connection is open between two messages, as far as the server has not closed it."""
        return self._current is not None and not self._current.has_input

    def close_idle(self) -> None:
        """Close the idle connection; the next message opens a new connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; the next message opens a new connection."""
        self._stack.close()
        self._current = None


def send_alone(settings: Settings, message: Message, options: SendOptions = PLAIN) -> Exchange:
    """Send a message on a connection of its own, and read its answer."""
    connection = PersistentConnection(settings)
    try:
        return connection.exchange(message, options)
    finally:
        connection.close()


def exchange_after_idling(settings: Settings, pair: tuple[Message, Message], idle_s: float) -> list[Exchange]:
    """Send the first message, leave the connection idle, send the second message on it; return both exchanges."""
    connection = PersistentConnection(settings)
    try:
        first = connection.exchange(pair[0])
        time.sleep(idle_s)
        return [first, connection.exchange(pair[1])]
    finally:
        connection.close()


def cut_segments(settings: Settings, message: Message, options: SendOptions) -> list[bytes]:
    """Return the bytes of a request, one item for each TCP segment."""
    chunked = options.chunked is not None
    more = (("Connection", "close"),) if options.closing else ()
    head = sockets.render_head(settings, message, chunked=chunked, version=options.version, more=more)
    if options.chunked is not None:
        return [b"".join([head, *options.chunk_format.format_chunks(_split_body(message.body, options.chunked))])]
    parts = _split_body(message.body, options.segments)
    return [*sockets.split_head(head, options.segments), *parts] if options.segments else [head + message.body]


def _split_body(body: bytes, offsets: tuple[int, ...]) -> list[bytes]:
    return sockets.split_at_offsets(body, [offset for offset in offsets if 0 < offset < len(body)])
