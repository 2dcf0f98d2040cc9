"""Parses HTTP/1 answers: plain ones by a pattern, which is fast, and all others with h11. Sans-I/O.

A plain answer has a status line, headers in the usual spelling, and one Content-Length. Any other answer (chunks,
several lengths, folded lines, interim answers, HTTP/1.0, unusual bytes) goes to h11, with the bytes received so far;
so does a plain one that ends early. h11 alone decides what is malformed.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Final

import h11

from conformance.transport.exchange import FailureKind, TransportFailure

MAX_HEAD_BYTES: Final = 256 * 1024
MAX_KEPT_BYTES: Final = 1 << 20  # bytes that are kept of an answer that is too long
_PLAIN_HEAD: Final = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9]{2})(?: [ -~]*)?\r\n((?:[!#-'*+.^-z|~0-9A-Z-]+: [!-~](?:[ -~]*[!-~])?\r\n)+)\r\n"
)
_BODILESS_STATUSES: Final = (204, 304)
_MAX_LENGTH_DIGITS: Final = 15

Headers = tuple[tuple[str, str], ...]


class BrokenAnswerError(Exception):
    """An answer could not be read completely."""

    def __init__(self, kind: FailureKind, text: str) -> None:
        super().__init__(text)
        self.failure = TransportFailure(kind, text)


class AnswerParser:
    """Parses one answer.

    `max_bytes`: the maximum length of the body.

    Attributes:
        status: the status; None before the head is complete.
        received_bytes: the number of bytes parsed so far, with those that followed the answer.
        surplus: the bytes that followed the complete answer.
        is_kept: whether the connection stays open after the complete answer; False after HTTP/1.0 (RFC 9112 9.3).
    """

    def __init__(self, method: str, max_bytes: int) -> None:
        self.status: int | None = None
        self.headers: Headers = ()
        self.version = "HTTP/1.1"
        self.received_bytes = 0
        self.surplus = b""
        self.is_kept = False
        self._method, self._max_bytes = method, max_bytes
        self._head, self._missing = b"", 0
        self._body = BytesIO()  # returns its content without a copy, unlike joined parts
        self._h11: h11.Connection | None = None

    @property
    def body(self) -> bytes:
        """The body as far as it was received."""
        return self._body.getvalue()

    def feed(self, data: bytes) -> bool:
        """Parse the next bytes, or b"" at the end of the connection; return whether the answer is complete.

        Raises BrokenAnswerError: the answer is malformed, too long, or ended early.
        """
        self.received_bytes += len(data)
        if self._h11 is not None:
            return self._feed_h11(self._h11, data)
        if self.status is not None and data:
            return self._add_plain_body(data)
        if self.status is None and (match := _PLAIN_HEAD.match(data)) and self._parse_plain_head(match):
            return self._add_plain_body(data[match.end() :])
        self._h11 = build_h11_parser(self._method)
        received, self._body = self._head + self.body, BytesIO()
        if received:
            self._feed_h11(self._h11, received)
        return self._feed_h11(self._h11, data)

    # --- plain answers ---

    def _parse_plain_head(self, match: re.Match[bytes]) -> bool:
        """Take status, headers and length from a head; return False if h11 has to parse it."""
        lines = match[2].decode("ascii").split("\r\n")
        headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines[:-1])]
        lengths = []
        for name, value in headers:
            lower = name.lower()
            if lower == "content-length":
                lengths.append(value)
            elif lower == "transfer-encoding" or (lower == "connection" and value.lower() != "keep-alive"):
                return False
        status = int(match[1])
        has_length = len(lengths) == 1 and lengths[0].isdecimal() and len(lengths[0]) <= _MAX_LENGTH_DIGITS
        if not has_length or status in _BODILESS_STATUSES or self._method in ("HEAD", "CONNECT"):
            return False
        self.status, self.headers, self._head, self._missing = status, tuple(headers), match[0], int(lengths[0])
        return True

    def _add_plain_body(self, data: bytes) -> bool:
        if len(data) > self._missing:
            data, self.surplus = data[: self._missing], data[self._missing :]
        self._missing -= len(data)
        self._add_to_body(data)
        self.is_kept = not self._missing
        return self.is_kept

    def _add_to_body(self, data: bytes) -> None:
        self._body.write(data)
        if self._body.tell() > self._max_bytes:
            self._body.truncate(MAX_KEPT_BYTES)
            raise BrokenAnswerError(FailureKind.ENDLESS, f"answer longer than {self._max_bytes} bytes")

    # --- all others ---

    def _feed_h11(self, parser: h11.Connection, data: bytes) -> bool:
        if not data and self.status is None:
            raise self._build_closed_error()
        parser.receive_data(data)
        while True:
            try:
                event = parser.next_event()
            except h11.RemoteProtocolError as error:
                raise BrokenAnswerError(FailureKind.MALFORMED, f"malformed HTTP answer: {error}") from error
            if event is h11.NEED_DATA:
                return False
            if isinstance(event, h11.Response):
                self.status, self.version = event.status_code, f"HTTP/{event.http_version.decode('ascii')}"
                items = event.headers.raw_items()
                self.headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in items)
            elif isinstance(event, h11.Data):
                self._add_to_body(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self.surplus = parser.trailing_data[0]
                self.is_kept = parser.their_state is h11.DONE
                return True
            elif not isinstance(event, h11.InformationalResponse):
                raise self._build_closed_error()

    def _build_closed_error(self) -> BrokenAnswerError:
        if self.received_bytes:
            return BrokenAnswerError(FailureKind.BROKEN, "connection closed before the head of the answer was complete")
        return BrokenAnswerError(FailureKind.CLOSED, "connection closed without an answer")


def build_h11_parser(method: str) -> h11.Connection:
    """Return an h11 parser for the answer to a request with this method."""
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
    parser.send(h11.Request(method=method, target=b"/", headers=[("Host", "x")]))
    parser.send(h11.EndOfMessage())
    return parser
