"""A connection to a target over HTTP: sends bytes unchanged, and reads answers within limits of size and time.

There is no client library between: the suite must not apply redirects, cookies, credentials or proxies that the user
did not configure, it sends what such a library would correct, and it limits the time of a whole exchange.
"""

from __future__ import annotations

import re
import selectors
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from urllib.parse import urlsplit

import h11

from conformance.spec.extensions import HTTP
from conformance.transport.exchange import Exchange, FailureKind, GoAhead, TransportFailure, assign_connection_number
from conformance.transport.http_answer import AnswerParser, BrokenAnswerError, build_h11_parser
from conformance.transport.send_options import PLAIN, SendOptions
from conformance.transport.settings import Settings
from conformance.transport.unreachable import (
    UnreachableError,
    describe_missing_tls,
    is_certificate_error,
    is_refused_or_ended,
)
from conformance.wire.request import Message

# For at least MANY_SEGMENTS segments the pause is divided, because some of them may be coalesced.
MANY_SEGMENTS, PAUSE_DIVISOR = 10, 5
# Bytes to read at a time.
READ_BYTES = 64 * 1024
# The failures that occur if the peer has closed the connection.
_CONNECTION_ENDS = (FailureKind.CLOSED, FailureKind.BROKEN)
# The interim answer that asks for the body (RFC 9110, 15.2.1).
CONTINUE_STATUS = 100
# Bytes of a body that are sent in one write with the head; the rest of a longer body is not copied.
MAX_JOINED_BYTES = 64 * 1024
_REFUSAL = re.compile(rb"HTTP/1\.[01] [45]")
# Unlike the default selector, none of these needs a file descriptor.
_Selector: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)


class Connection:
    """An open connection to a target.

    Attributes:
        is_kept: whether the connection stays open after the last answer; False after HTTP/1.0 (RFC 9112 9.3).
        has_ended_unused: whether the connection ended before the first byte of the last answer, as a kept connection
            may at any time.
    """

    def __init__(self, settings: Settings, raw: socket.socket, number: int = 0) -> None:
        self._settings = settings
        self._socket = raw
        self._surplus = b""
        self._number = number
        self._timeout: float | None = None
        self._selector = _Selector()
        self._selector.register(raw, selectors.EVENT_READ)
        self._send_failure: TransportFailure | None = None
        self.is_kept = True
        self.has_ended_unused = False

    @property
    def has_surplus_bytes(self) -> bool:
        """Whether bytes followed the last answer; they must not be read as the next answer."""
        return bool(self._surplus)

    @property
    def has_input(self) -> bool:
        """Whether bytes, or the end of the connection, have arrived and are unread."""
        return bool(self._selector.select(0))

    @property
    def has_second_refusal(self) -> bool:
        """Whether an error answer followed the last answer: the server parsed a part of a body as another request."""
        return _REFUSAL.match(self._surplus) is not None

    def send(self, pieces: Sequence[bytes]) -> None:
        """Send each piece as a separate TCP segment; `receive` reports if the connection broke meanwhile."""
        pause = self._settings.segment_pause / (1 if len(pieces) < MANY_SEGMENTS else PAUSE_DIVISOR)
        with self._note_send_failure():
            for index, piece in enumerate(pieces):
                if index:
                    time.sleep(pause)
                self._socket.sendall(piece)

    def send_request(self, head: bytes, body: bytes) -> None:
        """Send a request, a short one in one write; `receive` reports if the connection broke meanwhile."""
        with self._note_send_failure():
            self._socket.sendall(head + body[:MAX_JOINED_BYTES])
            if len(body) > MAX_JOINED_BYTES:
                self._socket.sendall(memoryview(body)[MAX_JOINED_BYTES:])

    @contextmanager
    def _note_send_failure(self) -> Iterator[None]:
        timeout = self._settings.answer_timeout
        self._set_timeout(timeout)
        try:
            yield
        except TimeoutError:
            self._send_failure = TransportFailure(FailureKind.TIMEOUT, f"the server stopped reading for {timeout:g} s")
        except OSError:
            self._send_failure = TransportFailure(FailureKind.BROKEN, "connection broken while the request was sent")

    def _set_timeout(self, seconds: float) -> None:
        if seconds != self._timeout:  # each change is a call of the system
            self._socket.settimeout(seconds)
            self._timeout = seconds

    def end_sending(self) -> None:
        """Close the sending side, but keep reading; ignore a connection that is already closed."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close the connection with a TCP reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def receive(
        self,
        message: Message,
        *,
        started: float | None = None,
        share: int = 1,
        note: str = "",
        send_options: SendOptions = PLAIN,
    ) -> Exchange:
        """Read one answer to `message`; the bytes that follow the answer are kept for the next call.

        `started`: the time when the exchange began, by `time.monotonic`; None: it begins now.
        `share`: the number of concurrent messages, which share the limit of answer bytes.
        `note`: see `Exchange.note`.
        """
        started = time.monotonic() if started is None else started
        parser, failure = AnswerParser(message.method, self._settings.max_answer // share), None
        try:
            self._read_answer(parser, started + self._settings.deadline)
        except BrokenAnswerError as error:
            failure = error.failure
            self.has_ended_unused = failure.kind in _CONNECTION_ENDS and not parser.received_bytes
            if parser.status is None and failure.kind is not FailureKind.MALFORMED:
                failure = self._send_failure or failure
        self._surplus, self.is_kept = parser.surplus, parser.is_kept and self._send_failure is None
        return Exchange(
            0,
            message,
            self._settings.url + message.path,
            parser.status,
            parser.headers,
            parser.body,
            failure,
            time.monotonic() - started,
            note=note,
            version=parser.version,
            send_options=send_options,
            connection=self._number,
            surplus=len(self._surplus),
        )

    def _read_answer(self, parser: AnswerParser, until: float) -> None:
        """Read an answer up to its end.

        Raises BrokenAnswerError: the answer is incomplete, exceeds a limit, or is not HTTP.
        """
        timeout = self._settings.answer_timeout
        is_complete = bool(self._surplus) and parser.feed(self._surplus)
        while not is_complete:
            is_complete = parser.feed(self._read(timeout, until))

    def _read(self, timeout: float, until: float) -> bytes:
        """Return the next bytes, or b"" at the end of the connection.

        Raises BrokenAnswerError: nothing arrives in time, or the connection is broken.
        """
        left = until - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            self._set_timeout(min(left, timeout))
            return self._socket.recv(READ_BYTES)
        except TimeoutError as error:
            if left < timeout:
                text = f"answer not complete within {self._settings.deadline:g} s"
                raise BrokenAnswerError(FailureKind.ENDLESS, text) from error
            raise BrokenAnswerError(FailureKind.TIMEOUT, f"no answer within {round(timeout, 3):g} s") from error
        except OSError as error:
            text = f"connection broken ({type(error).__name__})"
            raise BrokenAnswerError(FailureKind.BROKEN, text) from error

    def await_go_ahead(self, message: Message, max_wait_s: float) -> GoAhead:
        """Wait for 100 Continue or a final answer after a head was sent; `receive` reads the received bytes again."""
        parser, until = build_h11_parser(message.method), time.monotonic() + max_wait_s
        try:
            while True:
                event = parser.next_event()
                if event is h11.NEED_DATA:
                    data = self._read(max_wait_s, until)  # even if interim answers or parts of a head keep arriving
                    self._surplus += data
                    parser.receive_data(data)
                elif not isinstance(event, h11.InformationalResponse):
                    return GoAhead.NOT_NEEDED
                elif event.status_code == CONTINUE_STATUS:
                    return GoAhead.GIVEN
        except h11.RemoteProtocolError:
            return GoAhead.NOT_NEEDED  # not HTTP, or a closed connection: `receive` reports which
        except BrokenAnswerError as error:
            is_late = error.failure.kind in (FailureKind.TIMEOUT, FailureKind.ENDLESS)
            return GoAhead.WITHHELD if is_late else GoAhead.NOT_NEEDED

    def delay_reading(self, pause_s: float) -> None:
        """Wait for the first byte of the answer, and then for `pause_s` seconds, without reading."""
        self._selector.select(self._settings.answer_timeout)
        time.sleep(pause_s)

    def set_receive_buffer(self, size: int) -> None:
        """Set the size of the system's receive buffer in bytes."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)


def open_connection(settings: Settings, number: int = 0, receive_buffer: int | None = None) -> Connection:
    """Open a connection to the target, with TLS for https; `number` is the `Exchange.connection` of its exchanges.

    `receive_buffer` is the size of the system's receive buffer in bytes, which also limits the server's first window.

    Raises UnreachableError: the connection failed.
    """
    parts = urlsplit(settings.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        opened = _connect_socket(parts.hostname or "", port, settings.timeout, receive_buffer)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parts.scheme == "https":
            with opened:  # the socket with TLS takes it over
                opened = settings.build_ssl_context().wrap_socket(opened, server_hostname=parts.hostname)
    except OSError as error:
        raise UnreachableError(
            f"cannot connect to {settings.url}: {error}{describe_missing_tls(error, HTTP)}",
            is_untrusted=is_certificate_error(error),
            is_refused=is_refused_or_ended(error),
        ) from error
    return Connection(settings, opened, number)


def _connect_socket(host: str, port: int, timeout: float, receive_buffer: int | None) -> socket.socket:
    """Return a socket that is connected to the first address of the host that accepts; the last failure is raised."""
    if receive_buffer is None:
        return socket.create_connection((host, port), timeout=timeout)
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        opened = socket.socket(family, kind, protocol)
        try:
            opened.settimeout(timeout)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            opened.connect(address)
        except OSError as error:
            opened.close()
            failure = error
        else:
            return opened
    raise failure


@contextmanager
def connect(settings: Settings, receive_buffer: int | None = None) -> Iterator[Connection]:
    """Open a connection with a number of its own; close it at the end of the context. See `open_connection`.

    Raises UnreachableError: the connection failed.
    """
    with closing(open_connection(settings, assign_connection_number(), receive_buffer)) as connection:
        yield connection
