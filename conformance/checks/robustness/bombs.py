"""Small bodies that unpack to large ones."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from conformance.checks.robustness.octets import make_plain_request
from conformance.checks.robustness.survival import expect_settled, expect_still_serving
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.target import Target
from conformance.wire.request import Message

MIB = 1024 * 1024
GZIP = 16 + zlib.MAX_WBITS
BLANKS, ARRAYS = b" " * MIB, b"[]," * (MIB // 3)


def _packed(start: bytes, filling: bytes, times: int, end: bytes = b"") -> bytes:
    """Return gzip of a start, a filling so many times, and an end, none of it ever in memory unpacked."""
    packer = zlib.compressobj(1, zlib.DEFLATED, GZIP)

    def parts() -> Iterator[bytes]:
        yield packer.compress(start)
        for _ in range(times):
            yield packer.compress(filling)
        yield packer.compress(end) + packer.flush()

    return b"".join(parts())


def _row(identity: str, filling: bytes, size: int, codings: int = 1, *, dangerous: bool = False) -> Row:
    return Row(identity, (identity.replace("-", " "), filling, size, codings), dangerous=dangerous)


@check("robustness.bomb-is-answered-or-refused", answers="ROBUST-BOMB", role="identity_int32", infers=False)
@rows(
    _row("10-MiB-of-blanks", BLANKS, 10),
    _row("10-MiB-of-blanks-packed-twice", BLANKS, 10, 2),
    _row("3-MiB-of-empty-arrays", ARRAYS, 3),
    _row("1-GiB-of-blanks", BLANKS, 1024, dangerous=True),
    _row("1-GiB-of-blanks-packed-twice", BLANKS, 1024, 2, dangerous=True),
    _row("60-MiB-of-empty-arrays", ARRAYS, 60, dangerous=True),
)
def bomb_is_answered_or_refused(
    target: Target, model: Model, name: str, filling: bytes, size: int, codings: int
) -> None:
    """A small body that unpacks to a large one is answered or refused in time, or the connection is closed."""
    message = make_plain_request(model)
    ends = (b"[", b"[]]") if filling == ARRAYS else (message.body, b"")
    packed = _packed(ends[0], filling, size, ends[1])
    for _ in range(codings - 1):
        packed = _packed(packed, b"", 0)
    coding = ", ".join(["gzip"] * codings)
    bomb = Message(message.path, (*message.headers, ("Content-Encoding", coding)), packed)
    with expect_still_serving(target, model):
        expect_settled(target.send(bomb, fresh=True), f"{len(packed)} bytes that are {name}")
