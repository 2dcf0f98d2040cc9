"""The steps of every check of this area: a plain request, something hostile, and another plain request."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Row
from conformance.spec.text import escape_text
from conformance.transport.exchange import FailureKind, Reply
from conformance.transport.peer import Peer
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.request import Message

MAX_TRIES = 6  # at the plain request before: a server may still have to do with what another row has sent
# Statuses of a server that has enough to do, and seconds in which it may be done with what was sent before.
BUSY_STATUSES = (429, 503)
PAUSES_S = (0.1, 0.2, 0.4, 0.8)
CLOSED_KINDS = (FailureKind.CLOSED, FailureKind.BROKEN)
# What leaves a client waiting. What comes and cannot be read, such as a head of a megabyte, is an end, too.
WAITING_KINDS = (FailureKind.TIMEOUT, FailureKind.ENDLESS, FailureKind.STATUSLESS)


@contextmanager
def expect_still_serving(target: Peer, model: Model) -> Iterator[None]:
    """Expect of a server that answers a plain request that it answers another one after what is sent inside.

    Raises:
        Unmet: it does not, or it is gone.
        Blocked: it answered none before.
        TargetLost: it was gone before.
    """
    _expect_ready(target, model)
    try:
        yield
        for salt in (2, 3):  # what a server does of its own at an end it may do behind the first
            _expect_served_soon(target, model, salt)
    except TargetLostError as lost:
        last = Reply(target.exchanges[-1])
        said = f"the server died: {lost}" if lost.has_died else str(lost)
        target.hope()
        raise UnmetError("a server that goes on answering", said, last) from lost


def _expect_ready(target: Peer, model: Model) -> None:
    for left in reversed(range(MAX_TRIES)):
        try:
            _expect_served_soon(target, model, 1)
        except TargetLostError:
            if left:
                target.hope()
            if target.is_lost:
                raise
        except UnmetError as unmet:
            if not (left and unmet.reply and unmet.reply.has_failed(FailureKind.TIMEOUT)):
                raise BlockedError(f"a plain request is not answered before: {unmet.actual}", unmet) from None
        else:
            return


def expect_served(target: Peer, model: Model, salt: int) -> None:
    """Expect that a plain request on a connection of its own is answered, and with its own tensors."""
    tensors = replace(model, salt=(model.salt + salt * 31) % 256).sample()
    reply = target.send(target.message(model.request(tensors, send="json")), fresh=True)
    try:
        expect(reply).tensors(model.expected(tensors))
    except UnmetError as unmet:
        unmet.requirement = None
        unmet.expected = f"a plain request answered beside it, or behind it: {unmet.expected}"
        raise


def _expect_served_soon(target: Peer, model: Model, salt: int) -> None:
    """Expect the same of a server that may be busy with what was sent before, where it takes few requests at a time."""
    for pause in PAUSES_S:
        try:
            return expect_served(target, model, salt)
        except UnmetError as unmet:
            if not is_busy(unmet):
                raise
        time.sleep(pause)
    return expect_served(target, model, salt)


def is_busy(unmet: UnmetError) -> bool:
    """Say whether it was not met because the server takes no more requests at a time."""
    return unmet.reply is not None and unmet.reply.status in BUSY_STATUSES


def is_declined(reply: Reply) -> bool:
    """Say whether a request is refused, or the connection ends."""
    return reply.has_failed(*CLOSED_KINDS) or (reply.status or 0) >= 400


def expect_declined(reply: Reply, what: str) -> None:
    """Expect that a request is refused, or that the connection ends."""
    if not is_declined(reply):
        raise UnmetError(f"a refusal of {what}, or the end of the connection", escape_text(reply.outcome()), reply)


def expect_settled(reply: Reply, what: str) -> None:
    """Expect that a request is answered or refused in time, or that the connection ends; what an answer says is open."""
    if reply.has_failed(*WAITING_KINDS):
        raise UnmetError(
            f"an answer to {what}, a refusal, or the end of the connection", escape_text(reply.outcome()), reply
        )


def expect_no_second(replies: Sequence[Reply], what: str) -> None:
    """Expect that what stands behind a request is not taken for another one."""
    if len(replies) > 1 and (replies[1].status or 400) < 400:
        raise UnmetError(f"no answer to what stands behind {what}", escape_text(replies[1].outcome()), replies[1])


# --- requests as octets -----------------------------------------------------------------------------------------------

CRLF = b"\r\n"
CHUNKED = b"Transfer-Encoding: chunked"


def make_plain_request(model: Model) -> Message:
    """Return a plain request, as JSON."""
    return model.request(send="json").message()


def make_head(target: Target, message: Message, *lines: bytes, version: bytes = b"1.1") -> bytes:
    """Return the head of a request with these headers instead of its Content-Length, and the empty line."""
    first, *headers = target.render_octets(message).partition(CRLF * 2)[0].split(CRLF)
    kept = [line for line in headers if not line.lower().startswith(b"content-length:")]
    return CRLF.join([first.replace(b"HTTP/1.1", b"HTTP/" + version), *kept, *lines, b"", b""])


def wrap_in_chunk(body: bytes, size: bytes | None = None) -> bytes:
    """Return a body as one chunk and the last chunk; `size` stands in place of the right one."""
    return (size or b"%X" % len(body)) + CRLF + body + CRLF + LAST_CHUNK


LAST_CHUNK = b"0\r\n\r\n"


KIB, MIB = 1024, 1024 * 1024


def make_row(
    identity: str,
    *values: object,
    role: str | None = None,
    needs: tuple[str, ...] = (),
    dangerous: bool = False,
    thorough: bool = False,
) -> Row:
    """Return a row whose first value is its id in words, for messages."""
    named = (identity.replace("-", " "), *values)
    return Row(identity, named, role=role, needs=needs, dangerous=dangerous, thorough=thorough)
