"""HTTP/1.1 over a socket: a request goes out, an answer comes in, all of it before a deadline."""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress

from tests.clients.honest.answer import Answer
from tests.clients.honest.caller import MalformedError, RefusedError
from tests.clients.honest.request import Request

PIECE = 65536
MAX_LINE_BYTES = 65536
Fields = tuple[tuple[str, str], ...]


class Connection:
    """A connection; what is received is kept until it is read."""

    def __init__(self, host: str, port: int, deadline: float) -> None:
        self.host, self.port, self.deadline = host, port, deadline
        try:
            self.socket = socket.create_connection((host, port), timeout=self.left())
        except OSError as error:
            raise RefusedError(f"no connection: {error}") from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.is_kept = False

    def left(self) -> float:
        """Return the seconds that are left; raises RefusedError when there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise RefusedError("no answer in time")
        return left

    def send(self, data: bytes) -> None:
        try:
            self.socket.settimeout(self.left())
            self.socket.sendall(data)
        except OSError as error:
            raise RefusedError(f"the connection ended: {error or 'no time left'}") from error

    def receive(self) -> bytes:
        try:
            self.socket.settimeout(self.left())
            return self.socket.recv(PIECE)
        except OSError as error:
            raise RefusedError(f"the connection ended: {error or 'no time left'}") from error

    def is_usable(self) -> bool:
        """Whether the peer has said nothing since the last answer; an end shows as something to read."""
        return not self.received and not select.select([self.socket], [], [], 0)[0]

    def close(self) -> None:
        with suppress(OSError):
            self.socket.close()


def exchanged(connection: Connection, request: Request) -> Answer:
    """Send a request and return its answer; raises RefusedError and MalformedError."""
    connection.is_kept = False
    send_request(connection, request)
    version, status, reason, fields = read_final_head(connection)
    body, has_end = read_body(connection, status, fields)
    connection.is_kept = has_end and stays_open(version, fields)
    return Answer(status, reason, fields, body)


def send_request(connection: Connection, request: Request) -> None:
    connection.send(head(connection, request) + framed(request.body))


def head(connection: Connection, request: Request) -> bytes:
    fields = [
        ("Host", f"{connection.host}:{connection.port}"),
        ("User-Agent", "honest-client/1"),
        *request.headers,
        *framing(request.body),
    ]
    lines = [f"{request.method} {request.target} {version_line()}", *(f"{name}: {value}" for name, value in fields)]
    return spelled("\r\n".join([*lines, "", ""]))


def spelled(text: str) -> bytes:
    return text.encode("latin-1")


def version_line() -> str:
    return "HTTP/1.1"


def framing(body: bytes) -> list[tuple[str, str]]:
    return [("Content-Length", str(len(body)))]


def framed(body: bytes) -> bytes:
    return body


def read_line(connection: Connection) -> str:
    while b"\n" not in connection.received:
        if len(connection.received) > MAX_LINE_BYTES:
            raise MalformedError("a line without end")
        connection.received += _more(connection)
    line, _, connection.received = connection.received.partition(b"\n")
    return line.removesuffix(b"\r").decode("latin-1")


def read_exactly(connection: Connection, length: int) -> bytes:
    pieces, missing = [connection.received], length - len(connection.received)
    while missing > 0:
        pieces.append(_more(connection))
        missing -= len(pieces[-1])
    found = b"".join(pieces)
    connection.received = found[length:]
    return found[:length]


def read_to_end(connection: Connection) -> bytes:
    pieces = [connection.received]
    while pieces[-1] or len(pieces) == 1:
        pieces.append(connection.receive())
    connection.received = b""
    return b"".join(pieces)


def _more(connection: Connection) -> bytes:
    piece = connection.receive()
    if not piece:
        raise RefusedError("the connection was closed before the answer was whole")
    return piece


def read_final_head(connection: Connection) -> tuple[str, int, str, Fields]:
    """Return version, status, reason and headers of the answer, behind those that only say to wait."""
    while True:
        version, status, reason, fields = read_head(connection)
        if status >= 200:
            return version, status, reason, fields


def read_head(connection: Connection) -> tuple[str, int, str, Fields]:
    version, _, rest = read_line(connection).partition(" ")
    code, _, reason = rest.partition(" ")
    if not version.startswith("HTTP/1.") or not (code.isdigit() and len(code) == 3):
        raise MalformedError("no answer of HTTP/1")
    fields = []
    while line := read_line(connection):
        name, colon, value = line.partition(":")
        if not colon:
            raise MalformedError("a line in the head that is no header")
        fields.append((field_name(name), value.strip()))
    return version, int(code), reason, tuple(fields)


def field_name(name: str) -> str:
    return name.lower()


def values(fields: Fields, name: str) -> list[str]:
    return [one.strip() for key, value in fields if key == name for one in value.split(",")]


def read_body(connection: Connection, status: int, fields: Fields) -> tuple[bytes, bool]:
    """Return the body, and whether it has an end of its own."""
    if status in (204, 304):
        return b"", True
    if [coding.lower() for coding in values(fields, "transfer-encoding")][-1:] == ["chunked"]:
        return read_chunks(connection), True
    lengths = set(values(fields, "content-length"))
    if not lengths:
        return read_to_end(connection), False
    length = lengths.pop()
    if lengths or not (length.isascii() and length.isdigit()):
        raise MalformedError("Content-Length is no number")
    return read_exactly(connection, int(length)), True


def read_chunks(connection: Connection) -> bytes:
    pieces: list[bytes] = []
    while length := chunk_size(read_line(connection)):
        pieces.append(read_exactly(connection, length))
        if read_line(connection):
            raise MalformedError("a chunk that is longer than it says")
    while read_line(connection):
        pass
    return b"".join(pieces)


def chunk_size(line: str) -> int:
    digits = line.partition(";")[0].strip()
    try:
        return int(digits, 16)
    except ValueError as error:
        raise MalformedError("a chunk without a size") from error


def stays_open(version: str, fields: Fields) -> bool:
    options = {option.lower() for option in values(fields, "connection")}
    return "close" not in options and (version != "HTTP/1.0" or "keep-alive" in options)
