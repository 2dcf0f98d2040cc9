"""Connections that are idle, that do not go on, or whose answers nobody reads."""

from __future__ import annotations

from collections.abc import Callable

from conformance.checks.robustness.octets import CRLF, plain
from conformance.checks.robustness.withstanding import expect_served, is_busy, withstanding
from conformance.expect.unmet import NotApplicable, Unmet
from conformance.roles.model import Model
from conformance.terms.check import check, rows
from conformance.transport.target import Target
from conformance.wire.request import Message

PIPELINED = 500  # requests on one connection
# What goes out on a connection that is then left alone.
Begin = Callable[[Target, Model], bytes]


def _idle(_: Target, __: Model) -> bytes:
    return b""


def _half_a_head(target: Target, model: Model) -> bytes:
    return target.octets_of(plain(model)).partition(CRLF * 2)[0]


def _half_a_body(target: Target, model: Model) -> bytes:
    return target.octets_of(plain(model))[:-10]


def _unread(target: Target, _: Model) -> bytes:
    return target.octets_of(Message("/v2", method="GET")) * PIPELINED


@check("robustness.slow-clients-keep-nobody-waiting", answers="ROBUST-SLOW", role="identity_int32", infers=False)
@rows(
    ("200-idle-connections", _idle, 200),
    ("32-heads-that-do-not-go-on", _half_a_head, 32),
    ("32-bodies-that-do-not-go-on", _half_a_body, 32),
    ("8-connections-of-500-requests-whose-answers-are-not-read", _unread, 8),
)
def slow_clients_keep_nobody_waiting(target: Target, model: Model, begin: Begin, count: int) -> None:
    """Idle and slow connections, and clients that do not read, keep no other client waiting.

    Raises:
        NotApplicable: there are requests under way, and the server takes fewer at a time and says so.
    """
    with withstanding(target, model), target.hold([begin(target, model)] * count):
        for salt in range(4, 7):
            try:
                expect_served(target, model, salt)
            except Unmet as unmet:
                if begin is _half_a_body and is_busy(unmet):
                    raise NotApplicable(f"fewer than {count} requests at a time are taken") from None
                raise
