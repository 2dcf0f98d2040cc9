"""Helpers that send a plain request before and after hostile requests, and expect an answer to both."""

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
from conformance.transport.any_target import AnyTarget
from conformance.transport.broken_request import BUSY_STATUSES
from conformance.transport.exchange import FailureKind, Reply
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.request import Message

MAX_TRIES = 6  # at the first plain request: a server may still be busy with the requests of another row
# Pauses in seconds between attempts, so that an overloaded server can finish earlier requests.
PAUSES_S = (0.1, 0.2, 0.4, 0.8)
CLOSED_KINDS = (FailureKind.CLOSED, FailureKind.BROKEN)
# Failures that leave a client waiting. An unreadable answer, such as a head of 1 MB, counts as an end instead.
WAITING_KINDS = (FailureKind.TIMEOUT, FailureKind.ENDLESS, FailureKind.STATUSLESS)


@contextmanager
def expect_still_serving(target: AnyTarget, model: Model) -> Iterator[None]:
    """Expect the server to answer a plain request before and after the requests in the `with` block.

    Raises:
        UnmetError: the server does not answer the plain request after the block, or cannot be reached any more.
        BlockedError: the server does not answer the plain request before the block.
        TargetLost: the server could not be reached before the block.
    """
    _expect_served_before(target, model)
    try:
        yield
        for salt in (2, 3):  # a server may crash only after the first answer
            _expect_served_soon(target, model, salt)
    except TargetLostError as lost:
        last = Reply(target.exchanges[-1])
        actual = f"the server died: {lost}" if lost.has_died else str(lost)
        target.reset_silence()
        raise UnmetError("a server that still answers after the hostile request", actual, last) from lost


def _expect_served_before(target: AnyTarget, model: Model) -> None:
    """Expect the server to answer a plain request, with retries after timeouts and lost connections."""
    for tries_left in reversed(range(MAX_TRIES)):
        try:
            _expect_served_soon(target, model, 1)
        except TargetLostError:
            if tries_left:
                target.reset_silence()
            if target.is_lost:
                raise
        except UnmetError as unmet:
            if not (tries_left and unmet.reply and unmet.reply.has_failed(FailureKind.TIMEOUT)):
                raise BlockedError(
                    f"a plain request is not answered before the hostile request: {unmet.actual}", unmet
                ) from None
        else:
            return


def expect_served(target: AnyTarget, model: Model, salt: int) -> None:
    """Expect the correct answer to a plain request on a new connection."""
    tensors = replace(model, salt=(model.salt + salt * 31) % 256).sample()
    reply = target.send(target.message(model.request(tensors, send="json")), fresh=True)
    try:
        expect(reply).tensors(model.expected(tensors))
    except UnmetError as unmet:
        unmet.requirement = None
        unmet.expected = f"a correct answer to a plain request during or after the hostile request: {unmet.expected}"
        raise


def _expect_served_soon(target: AnyTarget, model: Model, salt: int) -> None:
    """Expect the correct answer as `expect_served` does, with retries while the server is busy."""
    for pause in PAUSES_S:
        try:
            return expect_served(target, model, salt)
        except UnmetError as unmet:
            if not is_busy(unmet):
                raise
        time.sleep(pause)
    return expect_served(target, model, salt)


def is_busy(unmet: UnmetError) -> bool:
    """Say whether an expectation failed because the server is overloaded."""
    return unmet.reply is not None and unmet.reply.status in BUSY_STATUSES


def is_refused_or_closed(reply: Reply) -> bool:
    """Say whether the server refused a request or closed the connection."""
    return reply.has_failed(*CLOSED_KINDS) or (reply.status or 0) >= 400


def expect_refused_or_closed(reply: Reply, request: str) -> None:
    """Expect the server to refuse a request or to close the connection."""
    if not is_refused_or_closed(reply):
        raise UnmetError(f"a refusal of {request}, or the end of the connection", escape_text(reply.outcome()), reply)


def expect_settled(reply: Reply, request: str) -> None:
    """Expect an answer or a refusal in time, or a closed connection; the content of the answer is not judged."""
    if reply.has_failed(*WAITING_KINDS):
        raise UnmetError(
            f"an answer to {request}, a refusal, or the end of the connection", escape_text(reply.outcome()), reply
        )


def expect_no_second_answer(replies: Sequence[Reply], request: str) -> None:
    """Expect the server not to answer the bytes after a request as if they were another request."""
    if len(replies) > 1 and (replies[1].status or 400) < 400:
        raise UnmetError(f"no answer to the bytes after {request}", escape_text(replies[1].outcome()), replies[1])


# --- requests as octets -----------------------------------------------------------------------------------------------

CRLF = b"\r\n"
CHUNKED = b"Transfer-Encoding: chunked"


def make_plain_request(model: Model) -> Message:
    """Return a plain request, as JSON."""
    return model.request(send="json").message()


def make_head(target: Target, message: Message, *lines: bytes, version: bytes = b"1.1") -> bytes:
    """Return the head of a request, including the empty line, with `lines` instead of Content-Length."""
    first, *headers = target.render_octets(message).partition(CRLF * 2)[0].split(CRLF)
    kept = [line for line in headers if not line.lower().startswith(b"content-length:")]
    return CRLF.join([first.replace(b"HTTP/1.1", b"HTTP/" + version), *kept, *lines, b"", b""])


def wrap_in_chunk(body: bytes, size: bytes | None = None) -> bytes:
    """Return a body as one chunk, followed by the last chunk; `size` replaces the correct chunk size."""
    return (size or b"%X" % len(body)) + CRLF + body + CRLF + LAST_CHUNK


LAST_CHUNK = b"0\r\n\r\n"


KIB, MIB = 1024, 1024 * 1024


def make_row(
    identity: str, *values: object, role: str | None = None, needs: tuple[str, ...] = (), dangerous: bool = False
) -> Row:
    """Return a row; its first value, which messages show, is its id with spaces instead of hyphens."""
    named = (identity.replace("-", " "), *values)
    return Row(identity, named, role=role, needs=needs, dangerous=dangerous)
