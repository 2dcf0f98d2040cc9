"""Sends requests in chosen TCP segments, chunks and pipelines, which an HTTP library would normalise.

h11 parses the answers and reports malformed ones.
"""

from __future__ import annotations

import re
import selectors
import socket
import struct
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import pairwise, zip_longest
from urllib.parse import urlsplit

import h11

from conformance.transport.exchange import Exchange, FailureKind, GoAhead, TransportFailure, assign_connection_number
from conformance.transport.http_client import USER_AGENT
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat, SendOptions
from conformance.transport.settings import Settings
from conformance.transport.unreachable import UnreachableError, is_certificate_error, is_refused_or_reset
from conformance.wire.request import Message

# Segment pauses after each turn of interleaved bodies: a busy server has to read from every connection meanwhile.
PAUSES_PER_TURN = 4
# For at least MANY_SEGMENTS segments the pause is divided, because some of them may be coalesced.
MANY_SEGMENTS, PAUSE_DIVISOR = 10, 5
# Bytes that are kept of an answer that is too long.
MAX_KEPT_BYTES = 1024 * 1024
# The interim answer that asks for the body (RFC 9110, 15.2.1).
CONTINUE_STATUS = 100


def render_head(
    settings: Settings,
    message: Message,
    *,
    chunked: bool = False,
    version: str = "1.1",
    more: Sequence[tuple[str, str]] = (),
) -> bytes:
    """Return the request line and headers; headers of the message and the target override the defaults and `more`."""
    parts = urlsplit(settings.url)
    framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(message.body)))
    given = [*message.headers, *settings.headers]
    names = {name.lower() for name, _ in given}
    usual = [("Host", parts.netloc), ("User-Agent", USER_AGENT), ("Accept-Encoding", "identity"), framing, *more]
    headers = [*[header for header in usual if header[0].lower() not in names], *given]
    line = f"{message.method} {parts.path}{message.path} HTTP/{version}"
    return "\r\n".join([line, *[f"{name}: {value}" for name, value in headers], "", ""]).encode("latin-1")


def split_head(head: bytes, offsets: Sequence[int]) -> list[bytes]:
    """Return the pieces of a head, cut at the negative offsets, which count from its end."""
    return split_at_offsets(head, [len(head) + offset for offset in offsets if offset < 0])


def split_at_offsets(body: bytes, offsets: Sequence[int]) -> list[bytes]:
    """Return the pieces of the body between the given offsets, without empty pieces."""
    edges = [0, *sorted(offsets), len(body)]
    pieces = [body[start:end] for start, end in pairwise(edges)]
    return [piece for piece in pieces if piece]


_REFUSAL = re.compile(rb"HTTP/1\.[01] [45]")


class Connection:
    """A connection to a target over HTTP, which sends bytes unchanged.

    Attributes:
        is_kept: whether the connection stays open after the last answer; False after HTTP/1.0 (RFC 9112 9.3).
    """

    def __init__(self, settings: Settings, raw: socket.socket) -> None:
        self._settings = settings
        self._socket = raw
        self._surplus = b""
        self._has_ended = False  # whether the server has closed its side
        self._number = assign_connection_number()
        self.is_kept = True

    @property
    def has_surplus_bytes(self) -> bool:
        """Whether bytes followed the last answer; they must not be read as the next answer."""
        return bool(self._surplus)

    @property
    def has_input(self) -> bool:
        """Whether bytes, or the end of the connection, have arrived and are unread."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return bool(selector.select(0))

    @property
    def has_second_refusal(self) -> bool:
        """Whether an error answer followed the last answer: the server parsed a part of a body as another request."""
        return _REFUSAL.match(self._surplus) is not None

    def send(self, pieces: Sequence[bytes]) -> TransportFailure | None:
        """Send each piece as a separate TCP segment; return a failure, or None if everything was sent."""
        pause = self._settings.segment_pause / (1 if len(pieces) < MANY_SEGMENTS else PAUSE_DIVISOR)
        self._socket.settimeout(self._settings.answer_timeout)
        try:
            for index, piece in enumerate(pieces):
                if index:
                    time.sleep(pause)
                self._socket.sendall(piece)
        except TimeoutError:
            text = f"the server stopped reading for {self._settings.answer_timeout:g} s"
            return TransportFailure(FailureKind.TIMEOUT, text)
        except OSError as error:
            text = f"connection broken while sending ({type(error).__name__})"
            return TransportFailure(FailureKind.BROKEN, text)
        return None

    def end_sending(self) -> None:
        """Close the sending side, but keep reading; ignore a connection that is already closed."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close the connection with a TCP reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def receive(self, message: Message) -> Exchange:
        """Read one answer to `message`; the bytes that follow the answer are kept for the next call."""
        parser = _build_parser(message)
        self._socket.settimeout(self._settings.answer_timeout)
        started = time.monotonic()
        url, body = self._settings.url + message.path, bytearray()
        exchange = Exchange(0, message, url, connection=self._number)
        try:
            for event in self._read_events(parser, started):
                if isinstance(event, h11.Response):
                    headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in event.headers.raw_items())
                    version = f"HTTP/{event.http_version.decode('ascii')}"
                    exchange = replace(exchange, status=event.status_code, headers=headers, version=version)
                elif isinstance(event, h11.Data):
                    body += event.data
        except _BrokenError as error:
            exchange = replace(exchange, failure=error.failure)
        self._surplus = parser.trailing_data[0]
        self.is_kept = parser.their_state is h11.DONE
        if len(body) > self._settings.max_answer:
            del body[MAX_KEPT_BYTES:]
        return replace(exchange, body=bytes(body), elapsed=time.monotonic() - started)

    def await_go_ahead(self, message: Message, max_wait_s: float) -> GoAhead:
        """Wait for 100 Continue or a final answer after a head was sent; `receive` reads the received bytes again."""
        parser, until = _build_parser(message), time.monotonic() + max_wait_s
        try:
            while True:
                event = parser.next_event()
                if event is h11.NEED_DATA:
                    left = until - time.monotonic()
                    if left <= 0:  # even if interim answers or parts of a head keep arriving
                        return GoAhead.WITHHELD
                    self._socket.settimeout(left)
                    data = self._read_data()
                    self._surplus += data
                    parser.receive_data(data)
                elif not isinstance(event, h11.InformationalResponse):
                    return GoAhead.NOT_NEEDED
                elif event.status_code == CONTINUE_STATUS:
                    return GoAhead.GIVEN
        except h11.RemoteProtocolError:
            return GoAhead.NOT_NEEDED  # not HTTP, or a closed connection: `receive` reports which
        except _BrokenError as error:
            late = error.failure.kind is FailureKind.TIMEOUT
            return GoAhead.WITHHELD if late else GoAhead.NOT_NEEDED

    def delay_reading(self, pause_s: float) -> None:
        """Wait for the first byte of the answer, and then for `pause_s` seconds, without reading."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.select(self._settings.answer_timeout)
        time.sleep(pause_s)

    def set_receive_buffer(self, size: int) -> None:
        """Set the size of the system's receive buffer in bytes."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)

    def _read_events(self, parser: h11.Connection, started: float) -> Iterator[h11.Event]:
        """Yield the events of one answer up to its end.

        Raises:
            _BrokenError: the answer is incomplete, exceeds a limit, or is not HTTP.
        """
        size = 0
        if self._surplus:
            parser.receive_data(self._surplus)
        while True:
            try:
                event = parser.next_event()
            except h11.RemoteProtocolError as error:
                if self._has_ended and size == 0 and not parser.trailing_data[0]:
                    raise _build_closed_error() from error
                raise _BrokenError(FailureKind.MALFORMED, f"malformed: {error}") from error
            if event is h11.NEED_DATA:
                data = self._read_data()
                size += len(data)
                if size > self._settings.max_answer or time.monotonic() - started > self._settings.deadline:
                    raise _BrokenError(FailureKind.ENDLESS, "endless answer")
                parser.receive_data(data)
            elif isinstance(event, h11.EndOfMessage):
                return
            elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                raise _build_closed_error()
            elif isinstance(event, h11.Event):
                yield event

    def _read_data(self) -> bytes:
        try:
            data = self._socket.recv(1 << 16)
        except TimeoutError as error:
            text = f"no answer within {self._settings.answer_timeout:g} s"
            raise _BrokenError(FailureKind.TIMEOUT, text) from error
        except OSError as error:
            text = f"connection broken ({type(error).__name__})"
            raise _BrokenError(FailureKind.BROKEN, text) from error
        self._has_ended = not data
        return data


def _build_parser(message: Message) -> h11.Connection:
    """Return an h11 parser for the answer to a message."""
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=256 * 1024)
    parser.send(h11.Request(method=message.method, target=b"/", headers=[("Host", "x")]))
    parser.send(h11.EndOfMessage())
    return parser


class _BrokenError(Exception):
    """An answer could not be read completely."""

    def __init__(self, kind: FailureKind, text: str) -> None:
        super().__init__(text)
        self.failure = TransportFailure(kind, text)


def _build_closed_error() -> _BrokenError:
    return _BrokenError(FailureKind.CLOSED, "connection closed without an answer")


@contextmanager
def connect(settings: Settings) -> Iterator[Connection]:
    """Open a connection to the target, with TLS for https; close it at the end of the context.

    Raises:
        UnreachableError: the connection failed.
    """
    parts = urlsplit(settings.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        raw = socket.create_connection((parts.hostname, port), timeout=settings.timeout)
    except OSError as error:
        is_refused = is_refused_or_reset(error)
        raise UnreachableError(f"cannot connect to {settings.url}: {error}", is_refused=is_refused) from error
    with raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parts.scheme != "https":
            yield Connection(settings, raw)
            return
        try:
            tls_socket = settings.build_ssl_context().wrap_socket(raw, server_hostname=parts.hostname)
        except OSError as error:
            raise UnreachableError(
                f"cannot connect to {settings.url}: {error}", is_untrusted=is_certificate_error(error)
            ) from error
        with tls_socket:
            yield Connection(settings, tls_socket)


# --- sending in pieces, with a delayed body, read late, pipelined -----------------------------------------------------

# Maximum wait with a held-back body, in seconds: a server should request it immediately (RFC 9110, 10.1.1).
MAX_GO_AHEAD_WAIT_S = 5.0
# The seconds for which an answer that has begun is left unread, and the size of the receive buffer meanwhile.
READ_PAUSE_S, RECEIVE_BUFFER_BYTES = 0.3, 65_536


def render_request(settings: Settings, message: Message, *, chunked: bool = False) -> bytes:
    """Return the bytes of a request, its body in one chunk or with Content-Length."""
    body = b"".join(PLAIN_CHUNKS.format_chunks([message.body])) if chunked else message.body
    return render_head(settings, message, chunked=chunked) + body


def send_in_pieces(
    settings: Settings, message: Message, offsets: Sequence[int], chunks: ChunkFormat | None, *, at_once: bool
) -> Exchange:
    """Send the body in TCP segments, or in chunks, cut at the given offsets; see `Target.send_in_pieces`."""
    pieces = split_at_offsets(message.body, [offset for offset in offsets if offset > 0])
    kind = "chunk" if chunks else "TCP segment"
    note = f"body in {len(pieces)} {kind}s, cut at {list(offsets)}" if offsets else f"body in one {kind}"
    note += (chunks.described if chunks else "") + (", all in one write" if at_once else "")
    sent = pieces if chunks is None else list(chunks.format_chunks(pieces))
    heads = split_head(render_head(settings, message, chunked=chunks is not None), offsets)
    note += f", head in {len(heads)} TCP segments" if len(heads) > 1 else ""
    with connect(settings) as connection:
        broken = connection.send([b"".join([*heads, *sent])] if at_once else [*heads, *sent])
        answer = connection.receive(message)
    failure = answer.failure if answer.status else broken or answer.failure
    options = SendOptions(segments=tuple(offsets)) if chunks is None else SendOptions("1.1", tuple(offsets), chunks)
    return replace(answer, failure=failure, note=note, send_options=options)


def send_interleaved(
    settings: Settings, messages: Sequence[Message], offsets: Sequence[int], chunks: ChunkFormat | None
) -> list[Exchange]:
    """Send each message on its own connection, with interleaved bodies; see `Target.send_interleaved`."""
    bodies = [split_at_offsets(message.body, offsets) for message in messages]
    pieces = bodies if chunks is None else [list(chunks.format_chunks(body)) for body in bodies]
    heads = [[render_head(settings, message, chunked=chunks is not None)] for message in messages]
    options = SendOptions(segments=tuple(offsets)) if chunks is None else SendOptions("1.1", tuple(offsets), chunks)
    note = f"body in {'chunks' if chunks else 'TCP segments'}, interleaved with {len(messages) - 1} other bodies"
    answers = []
    with ExitStack() as stack:
        opened = [stack.enter_context(ExitStack()) for _ in messages]
        connections = [own.enter_context(connect(settings)) for own in opened]
        for turn in zip_longest(*[head + body for head, body in zip(heads, pieces, strict=True)], fillvalue=b""):
            for connection, piece in zip(connections, turn, strict=True):
                connection.send([piece] if piece else [])
            time.sleep(PAUSES_PER_TURN * settings.segment_pause)
        for own, connection, message in zip(opened, connections, messages, strict=True):
            answers.append(replace(connection.receive(message), note=note, send_options=options))
            own.close()  # a server may serve one connection after the other
    return answers


def send_after_go_ahead(settings: Settings, message: Message, chunks: ChunkFormat | None) -> Exchange:
    """Send the body after the server requests it or the wait ends, but not after a final answer.

    See `Target.send_after_go_ahead`.
    """
    body = [message.body] if chunks is None else list(chunks.format_chunks([message.body]))
    broken = None
    with connect(settings) as connection:
        connection.send([render_head(settings, message, chunked=chunks is not None)])
        go_ahead = connection.await_go_ahead(message, min(MAX_GO_AHEAD_WAIT_S, settings.timeout))
        if go_ahead is not GoAhead.NOT_NEEDED:
            broken = connection.send(body)
        answer = connection.receive(message)
    failure = answer.failure if answer.status else broken or answer.failure
    note, chunked = "body held back after Expect: 100-continue", None if chunks is None else ()
    options = SendOptions(chunked=chunked, chunk_format=chunks or PLAIN_CHUNKS)
    return replace(answer, failure=failure, go_ahead=go_ahead, note=note, send_options=options)


def send_and_read_late(settings: Settings, message: Message) -> Exchange:
    """Send a message, and read the answer after a pause, with a small receive buffer."""
    with connect(settings) as connection:
        connection.set_receive_buffer(RECEIVE_BUFFER_BYTES)
        connection.send([render_request(settings, message)])
        connection.delay_reading(READ_PAUSE_S)
        return replace(connection.receive(message), note="answer read after a pause")


def send_on_one_connection(
    settings: Settings,
    messages: Sequence[Message],
    *,
    pipelined: bool,
    chunked: Collection[int],
    pause_s: float = 0.0,
) -> list[Exchange]:
    """Send messages on one connection, until the server closes it; see `Target.send_on_one_connection`.

    Pause for `pause_s` seconds before each message but the first, unless they are pipelined.
    """
    texts = [render_request(settings, message, chunked=place in chunked) for place, message in enumerate(messages)]
    note = f"{'pipelined' if pipelined else 'one after the other'} on one connection"
    answers: list[Exchange] = []
    with connect(settings) as connection:
        if pipelined:
            connection.send([b"".join(texts)])
        for place, (text, message) in enumerate(zip(texts, messages, strict=True)):
            if not pipelined:
                time.sleep(pause_s if place else 0)
                connection.send([text])
            options = SendOptions(chunked=() if place in chunked else None, pipelined=pipelined)
            answers.append(replace(connection.receive(message), note=note, send_options=options))
            if answers[-1].status is None or not connection.is_kept:
                break
    return answers
