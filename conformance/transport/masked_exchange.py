"""An exchange as it is judged, recorded and shown: what the server repeated of the user's secrets is masked in it.

It is masked once, as soon as it came and before anything is cut off or taken apart. So a run judges the same bytes that
its recording has, and that `verify` judges again.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from conformance.transport.credentials import hide, hide_bytes
from conformance.transport.exchange import Exchange, TransportFailure
from conformance.wire.request import Message

COOKIE_HEADER: Final = "set-cookie"
HIDDEN: Final = "..."
_MAX_DECODED_BYTES: Final = 16 * 1024 * 1024  # bytes that a coded body is looked at for
_GZIP, _ZLIB = 31, 15
_WINDOWS: Final = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}


def mask_exchange(exchange: Exchange, secrets: Sequence[str]) -> Exchange:
    """Return an exchange without secrets, and without the values of the server's cookies."""
    headers = tuple((name, HIDDEN if name.lower() == COOKIE_HEADER else value) for name, value in exchange.headers)
    if not secrets:
        return exchange if headers == exchange.headers else replace(exchange, headers=headers)
    failure, sent = exchange.failure, _sent(exchange.message)
    return replace(
        exchange,
        headers=tuple((hide(name, secrets), hide(value, secrets)) for name, value in headers),
        body=_body(exchange, secrets, sent),
        details=hide(exchange.details, secrets),
        version=hide(exchange.version, secrets),
        failure=failure and TransportFailure(failure.kind, hide(failure.text, secrets)),
    )


def _sent(message: Message) -> bytes:
    """Return what the suite asked, which holds no secret, and which an honest server may repeat."""
    values = [value for _, value in message.headers]
    return "\n".join([message.path, *values]).encode("utf-8", "replace") + b"\n" + message.body


def _body(exchange: Exchange, secrets: Sequence[str], sent: bytes) -> bytes:
    """Return the body without secrets; one that is coded is packed anew where it holds one."""
    plain = hide_bytes(exchange.body, secrets, sent)
    codings = [value.strip().lower() for name, value in exchange.headers if name.lower() == "content-encoding"]
    window = _WINDOWS.get(codings[0]) if len(codings) == 1 else None
    if window is None or not exchange.body:
        return plain
    unpacker = zlib.decompressobj(wbits=window)
    try:
        inside = unpacker.decompress(exchange.body, _MAX_DECODED_BYTES)
    except zlib.error:
        return plain
    if not unpacker.eof or unpacker.unused_data or (hidden := hide_bytes(inside, secrets, sent)) == inside:
        return plain
    packer = zlib.compressobj(wbits=window)
    return packer.compress(hidden) + packer.flush()
