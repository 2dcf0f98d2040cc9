"""Parses HTTP/1 messages from the bytes of one direction; h11 finds the end of each message. Sans-I/O.

Each message gets a new h11 connection, so that h11 does not enforce the order of requests and answers. A request
without Host is parsed as if it had Host, because the rules do not cover this header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import h11

from conformance.clients.recording.recorder import MAX_HEAD_BYTES, Body, Store

Headers = tuple[tuple[str, str], ...]
_REQUEST_LINE: Final = re.compile(rb"([!-~]+) ([^\r\n]*?)(?: HTTP/(\d\.\d))?\r?(?:\n|\Z)")
_FIELD: Final = re.compile(rb"^([^\s:]+)[ \t]*:[ \t]*([^\r\n]*?)[ \t]*\r?$", re.MULTILINE)
_END_OF_HEAD: Final = re.compile(rb"\r?\n\r?\n")
_HOST: Final = b"Host: absent\r\n"
SWITCHING: Final = 101
_UNREADABLE_STATUSES: Final = (
    431,
    501,
)  # the error hints of h11 for a head that is too long, and for an unsupported transfer coding


@dataclass(slots=True)
class HttpMessage:
    """An HTTP/1 request or answer, parsed to its end or as far as possible.

    Attributes:
        method: the method of a request; empty for an answer, or if the request line is invalid.
        path: the path of a request; empty for an answer, or if the request line is invalid.
        status: the status of an answer; 0 for a request.
        is_chunked: whether the body was sent in chunks; None if the head is invalid.
        trouble: why parsing stopped; empty if the message is complete and valid.
        is_reader_limit: whether parsing stopped at a limit of this reader, rather than at invalid HTTP.
    """

    body: Body
    method: str = ""
    path: str = ""
    status: int = 0
    version: str = ""
    headers: Headers = ()
    is_chunked: bool | None = None
    trouble: str = ""
    is_reader_limit: bool = False

    def values(self, name: str) -> list[str]:
        """Return the values of all header fields with this name, which is in lower case."""
        return [value for key, value in self.headers if key.lower() == name]


class MessageReader:
    """Parses the messages of one direction of a connection.

    Attributes:
        current: the message whose head has been parsed, but whose end has not; None between two messages.
        is_stuck: whether parsing has stopped for good, at invalid bytes or a switch to another protocol.
    """

    def __init__(self, store: Store, make_parser: Callable[[], h11.Connection]) -> None:
        self._store = store
        self._make_parser = make_parser
        self._parser: h11.Connection | None = None
        self._head = bytearray()  # bytes of the next message, until its head is parsed
        self.current: HttpMessage | None = None
        self.is_stuck = False

    @property
    def incomplete_head(self) -> bytes:
        """The bytes of the next message, if its head is incomplete; else empty."""
        return bytes(self._head) if self.current is None else b""

    def feed(self, data: bytes) -> Iterator[HttpMessage]:
        """Parse the next bytes; yield each message that is now complete, and a message that is invalid."""
        while data and not self.is_stuck:
            if self._parser is None:
                data = data.lstrip(b"\r\n")  # ignore empty lines before a message (RFC 9112 2.2)
                self._parser = self._make_parser() if data else None
            if self._parser is not None:
                read, data = self._parse_next(self._parser, data)
                yield from [read] if read else []

    def end(self) -> HttpMessage | None:
        """Parse the end of the direction; return the message that ends with the connection, or None."""
        if self._parser is None or self.is_stuck:
            return None
        return self._parse_next(self._parser, b"")[0]

    def _parse_next(self, parser: h11.Connection, data: bytes) -> tuple[HttpMessage | None, bytes]:
        """Parse bytes up to the end of a message; return the message, or None, and the remaining bytes.

        Empty bytes mean the end of the direction.
        """
        if self.current is None:
            self._head += data
        try:
            parser.receive_data(data)
            while (event := parser.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                    return self._finish_message(), parser.trailing_data[0]
                self._handle_event(event)
        except h11.RemoteProtocolError as error:
            if self.current is None and (repaired := _insert_host(bytes(self._head))):
                self._head.clear()
                self._parser = self._make_parser()
                return self._remove_host(self._parse_next(self._parser, repaired))
            return self._stop_parsing(error), b""
        return None, b""

    def _handle_event(self, event: Any) -> None:
        if isinstance(event, h11.Data) and self.current is not None:
            self.current.body.add(event.data)
        elif isinstance(event, h11.Request | h11.Response):
            self.current = _begin_message(event, Body(self._store))
        elif isinstance(event, h11.InformationalResponse) and event.status_code == SWITCHING:
            self.is_stuck = True

    def _remove_host(self, step: tuple[HttpMessage | None, bytes]) -> tuple[HttpMessage | None, bytes]:
        """Return the result of `_parse_next` without the Host header that `_insert_host` added to the request."""
        for read in (self.current, step[0]):
            if read is not None:
                read.headers = tuple(pair for pair in read.headers if pair != ("Host", "absent"))
        return step

    def _finish_message(self) -> HttpMessage | None:
        read, self.current, self._parser = self.current, None, None
        self._head.clear()
        return read

    def _stop_parsing(self, error: h11.RemoteProtocolError) -> HttpMessage:
        """Stop parsing for good; return the current message, or the readable parts of the invalid head."""
        self.is_stuck = True
        read, self.current = self.current or _salvage_head(bytes(self._head), Body(self._store)), None
        self._head.clear()
        read.trouble, read.is_reader_limit = _describe_error(error), error.error_status_hint in _UNREADABLE_STATUSES
        return read


def _describe_error(error: h11.RemoteProtocolError) -> str:
    """Return the message of an h11 error without the quoted request line, which may contain a credential."""
    return str(error).partition(": bytearray(")[0]


def _begin_message(event: Any, body: Body) -> HttpMessage:
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers.raw_items())
    version = f"HTTP/{event.http_version.decode('ascii')}"
    read = HttpMessage(body, version=version, headers=headers, is_chunked=False)
    read.is_chunked = bool(read.values("transfer-encoding"))
    if isinstance(event, h11.Request):
        read.method, read.path = event.method.decode("latin-1"), event.target.decode("latin-1")
    else:
        read.status = event.status_code
    return read


def _insert_host(head: bytes) -> bytes:
    """Return a head with a Host header inserted after the request line; empty if it has Host or is incomplete."""
    end, line = _END_OF_HEAD.search(head), _REQUEST_LINE.match(head)
    fields = head[: end.start() + 1] if end else b""
    if line is None or line[3] is None or not end or any(name.lower() == b"host" for name, _ in _FIELD.findall(fields)):
        return b""
    return head[: line.end()] + _HOST + head[line.end() :]


def _salvage_head(head: bytes, body: Body) -> HttpMessage:
    """Return the readable parts of a head that h11 rejects."""
    line = _REQUEST_LINE.match(head)
    if line is None or line[3] is None:
        body.add(head)
        return HttpMessage(body)
    end = _END_OF_HEAD.search(head)
    fields = _FIELD.findall(head[line.end() : end.start() + 1 if end else len(head)])
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in fields)
    method, path = line[1].decode("latin-1"), line[2].decode("latin-1")
    return HttpMessage(body, method, path, version=f"HTTP/{line[3].decode()}", headers=headers)


def make_request_reader(store: Store) -> MessageReader:
    """Return a reader of requests."""
    return MessageReader(store, lambda: h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES))


def make_answer_reader(store: Store, method: Callable[[], str]) -> MessageReader:
    """Return a reader of answers.

    `method` returns the method of the request to which the next answer belongs: answers to HEAD have no body.
    """

    def make_parser() -> h11.Connection:
        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        parser.send(h11.Request(method=method(), target="/", headers=[("Host", "h")]))
        parser.send(h11.EndOfMessage())
        return parser

    return MessageReader(store, make_parser)
