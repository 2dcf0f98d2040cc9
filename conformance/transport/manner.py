"""How the bytes of a message go out: version of HTTP, framing of the body, cuts by TCP. Sans-I/O.

Source: RFC 9112, 6 "Message Body" and 7.1 "Chunked Transfer Coding".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from urllib.parse import urlsplit

from conformance.transport.http_client import USER_AGENT
from conformance.transport.settings import Settings
from conformance.wire.request import Message


@dataclass(frozen=True, slots=True)
class Manner:
    """One way to send a message.

    Attributes:
        version: of HTTP.
        chunks: where the body is cut into chunks; None gives its length instead.
        upper: chunk sizes are written in upper case, behind a zero.
        extension: each chunk has an extension.
        trailer: a field stands behind the last chunk.
        segments: where TCP cuts what goes out behind the head.
        closing: the client says that it closes the connection after the answer.
    """

    version: str = "1.1"
    chunks: tuple[int, ...] | None = None
    upper: bool = False
    extension: bool = False
    trailer: bool = False
    segments: tuple[int, ...] = ()
    closing: bool = False

    @property
    def note(self) -> str:
        """What is unusual about it, for a person; empty where nothing is."""
        said = {
            f"HTTP/{self.version}": self.version != "1.1",
            f"body in {len(self.chunks or ()) + 1} chunks": self.chunks is not None,
            "chunk sizes in upper case": self.upper,
            "chunk extensions": self.extension,
            "a trailer field": self.trailer,
            f"body in {len(self.segments) + 1} TCP segments": bool(self.segments),
        }
        return ", ".join(text for text, holds in said.items() if holds)


PLAIN = Manner()


def pieces(settings: Settings, message: Message, manner: Manner) -> list[bytes]:
    """Return what goes out, cut as TCP is to cut it; the head is never cut."""
    head = render_head(settings, message, manner)
    if manner.chunks is None:
        first, *others = cut(message.body, manner.segments) or [b""]
        return [head, first, *others] if others else [head + first]
    chunks = [chunk(piece, manner) for piece in cut(message.body, manner.chunks)]
    last = b"0\r\nX-Trailer: walk\r\n\r\n" if manner.trailer else b"0\r\n\r\n"
    return [head + b"".join(chunks) + last]


def render_head(settings: Settings, message: Message, manner: Manner) -> bytes:
    """Return request line and headers; a header that the message names itself is not added."""
    parts = urlsplit(settings.url)
    chunked = manner.chunks is not None
    framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(message.body)))
    given = [*message.headers, *settings.headers]
    names = {name.lower() for name, _ in given}
    usual = [("Host", parts.netloc), ("User-Agent", USER_AGENT), ("Accept-Encoding", "identity"), framing]
    usual += [("Trailer", "X-Trailer")] if manner.trailer else []
    usual += [("Connection", "close")] if manner.closing else []
    headers = [*[header for header in usual if header[0].lower() not in names], *given]
    line = f"{message.method} {parts.path}{message.path} HTTP/{manner.version}"
    return "\r\n".join([line, *[f"{name}: {value}" for name, value in headers], "", ""]).encode("latin-1")


def chunk(data: bytes, manner: Manner = PLAIN) -> bytes:
    """Return `data` as one chunk of a chunked body."""
    size = f"0{len(data):X}" if manner.upper else f"{len(data):x}"
    return size.encode() + (b";walk=1" if manner.extension else b"") + b"\r\n" + data + b"\r\n"


def cut(body: bytes, places: Sequence[int]) -> list[bytes]:
    """Return the body in pieces, cut at the given offsets; empty pieces are left out."""
    edges = [0, *sorted(place for place in places if place < len(body)), len(body)]
    found = [body[start:end] for start, end in pairwise(edges)]
    return [piece for piece in found if piece]


def closing(manner: Manner) -> Manner:
    """Return the manner of a message that is the last one on its connection."""
    return replace(manner, closing=True)
