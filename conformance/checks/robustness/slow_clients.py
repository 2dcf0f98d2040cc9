"""Connections that are idle, that do not go on, or whose answers nobody reads."""

from __future__ import annotations

from collections.abc import Callable

from conformance.checks.robustness.octets import CRLF, make_plain_request
from conformance.checks.robustness.survival import expect_served, expect_still_serving, is_busy
from conformance.expect.unmet import NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.transport.target import Target
from conformance.wire.request import Message

PIPELINED_REQUESTS = 500  # requests on one connection
# What goes out on a connection that is then left alone.
Begin = Callable[[Target, Model], bytes]


def _idle(_: Target, __: Model) -> bytes:
    return b""


def _half_a_head(target: Target, model: Model) -> bytes:
    return target.render_octets(make_plain_request(model)).partition(CRLF * 2)[0]


def _half_a_body(target: Target, model: Model) -> bytes:
    return target.render_octets(make_plain_request(model))[:-10]


def _unread(target: Target, _: Model) -> bytes:
    return target.render_octets(Message("/v2", method="GET")) * PIPELINED_REQUESTS


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
    with expect_still_serving(target, model), target.hold([begin(target, model)] * count):
        for salt in range(4, 7):
            try:
                expect_served(target, model, salt)
            except UnmetError as unmet:
                if begin is _half_a_body and is_busy(unmet):
                    raise NotApplicableError(f"fewer than {count} requests at a time are taken") from None
                raise
