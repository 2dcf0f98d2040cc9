"""Renders HTTP/1 requests: as a usual client sends them, or in chosen TCP segments and chunks. Sans-I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from urllib.parse import quote, urlsplit

from conformance.spec.version import __version__
from conformance.transport.send_options import PLAIN_CHUNKS, SendOptions
from conformance.transport.settings import Settings
from conformance.wire.request import Message

USER_AGENT = f"oip-conformance/{__version__}"

# Characters that a path or query may contain literally (RFC 3986, 3.3 and 3.4); a percent sign only if it begins an
# escape.
_SAFE_CHARACTERS = "!$&'()*+,;=:@/?%~"
_BARE_PER_CENT = re.compile("%(?![0-9A-Fa-f]{2})")


@lru_cache(maxsize=256)
def _split_url(url: str) -> tuple[str, str]:
    """Return the escaped path of a URL, and the value of its Host header."""
    parts = urlsplit(url)
    host = (parts.hostname or "").encode("idna").decode()
    written = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    name = f"[{host}]" if ":" in host else host
    is_usual = parts.port in (None, {"http": 80, "https": 443}[parts.scheme])
    target = quote(_BARE_PER_CENT.sub("%25", written), safe=_SAFE_CHARACTERS)
    return target, name if is_usual else f"{name}:{parts.port}"


def render_usual_head(settings: Settings, message: Message) -> bytes:
    """Return request line and headers as usual clients send them: with an escaped path, and lengths only of bodies."""
    target, host = _split_url(settings.url + message.path)
    usual = [("Host", host), ("User-Agent", USER_AGENT), ("Accept", "*/*"), ("Accept-Encoding", "identity")]
    if message.body or message.method == "POST":
        usual.append(("Content-Length", str(len(message.body))))
    return _join_head(f"{message.method} {target} HTTP/1.1", usual, (*message.headers, *settings.headers))


def render_head(
    settings: Settings,
    message: Message,
    *,
    chunked: bool = False,
    version: str = "1.1",
    more: Sequence[tuple[str, str]] = (),
) -> bytes:
    """Return the request line, with the path as it is, and headers, with a length or chunks even without a body."""
    parts = urlsplit(settings.url)
    framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(message.body)))
    usual = [("Host", parts.netloc), ("User-Agent", USER_AGENT), ("Accept-Encoding", "identity"), framing, *more]
    line = f"{message.method} {parts.path}{message.path} HTTP/{version}"
    return _join_head(line, usual, (*message.headers, *settings.headers))


def _join_head(line: str, usual: Iterable[tuple[str, str]], given: Sequence[tuple[str, str]]) -> bytes:
    """Return a head; headers of the message and the target override the usual ones. Host is first (RFC 9110, 7.2)."""
    names = {name.lower() for name, _ in given}
    headers = [*[header for header in usual if header[0].lower() not in names], *given]
    if "host" in names:
        headers.sort(key=lambda header: header[0].lower() != "host")
    return "\r\n".join([line, *[f"{name}: {value}" for name, value in headers], "", ""]).encode("latin-1")


def render_request(settings: Settings, message: Message, *, chunked: bool = False) -> bytes:
    """Return the bytes of a request, its body in one chunk or with Content-Length."""
    body = b"".join(PLAIN_CHUNKS.format_chunks([message.body])) if chunked else message.body
    return render_head(settings, message, chunked=chunked) + body


def cut_segments(settings: Settings, message: Message, options: SendOptions) -> list[bytes]:
    """Return the bytes of a request, one item for each TCP segment."""
    chunked = options.chunked is not None
    more = (("Connection", "close"),) if options.closing else ()
    head = render_head(settings, message, chunked=chunked, version=options.version, more=more)
    if options.chunked is not None:
        return [b"".join([head, *options.chunk_format.format_chunks(_split_body(message.body, options.chunked))])]
    parts = _split_body(message.body, options.segments)
    return [*split_head(head, options.segments), *parts] if options.segments else [head + message.body]


def _split_body(body: bytes, offsets: Sequence[int]) -> list[bytes]:
    return split_at_offsets(body, [offset for offset in offsets if 0 < offset < len(body)])


def split_head(head: bytes, offsets: Sequence[int]) -> list[bytes]:
    """Return the pieces of a head, cut at the negative offsets, which count from its end."""
    return split_at_offsets(head, [len(head) + offset for offset in offsets if offset < 0])


def split_at_offsets(body: bytes, offsets: Sequence[int]) -> list[bytes]:
    """Return the pieces of the body between the given offsets, without empty pieces."""
    edges = [0, *sorted(offsets), len(body)]
    pieces = [body[start:end] for start, end in pairwise(edges)]
    return [piece for piece in pieces if piece]
