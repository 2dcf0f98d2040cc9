"""Connections that end inside a request, are reset, idle or stalled, or whose clients do not read the answers."""

from __future__ import annotations

from collections.abc import Callable

from conformance.checks.robustness.hostile_requests import (
    CHUNKED,
    CRLF,
    expect_refused_or_closed,
    expect_served,
    expect_still_serving,
    is_busy,
    make_head,
    make_plain_request,
    make_row,
)
from conformance.expect.unmet import NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.spec.extensions import BINARY
from conformance.transport.hostile_sending import ConnectionEnd, Octets
from conformance.transport.target import Target
from conformance.wire.request import Message

# --- requests that end too early --------------------------------------------------------------------------------------

# The part of a message that is sent.
CutRequest = Callable[[Target, Message], bytes]


def _overstate_length(target: Target, message: Message) -> bytes:
    """Return a request whose Content-Length is ten bytes more than its body."""
    return make_head(target, message, b"Content-Length: %d" % (len(message.body) + 10)) + message.body


def _omit_last_chunk(target: Target, message: Message) -> bytes:
    """Return a chunked request without its last, empty chunk."""
    size = b"%X" % len(message.body)
    return make_head(target, message, CHUNKED) + size + CRLF + message.body + CRLF


def _cut_inside_chunk(target: Target, message: Message) -> bytes:
    """Return a chunked request that ends ten bytes before the end of its chunk."""
    size = b"%X" % (len(message.body) + 10)
    return make_head(target, message, CHUNKED) + size + CRLF + message.body


def _drop_last_bytes(count: int) -> CutRequest:
    """Return a function that renders a request without its last `count` bytes."""
    return lambda target, message: target.render_octets(message)[:-count]


@check("robustness.cut-request-is-not-carried-out", requirements="ROBUST-CUT", role="identity_int32", infers=False)
@rows(
    make_row("inside-the-head", lambda target, message: target.render_octets(message).partition(CRLF * 2)[0]),
    make_row("inside-the-json", _drop_last_bytes(10)),
    make_row("inside-binary-data", _drop_last_bytes(4), True, needs=BINARY),
    make_row("behind-json-that-is-whole", _overstate_length),
    make_row("behind-tensors-that-are-whole", _overstate_length, True, needs=BINARY),
    make_row("inside-a-chunk", _cut_inside_chunk),
    make_row("before-the-last-chunk", _omit_last_chunk),
)
def cut_request_is_not_carried_out(
    target: Target, model: Model, name: str, cut: CutRequest, binary: bool = False
) -> None:
    """The server does not carry out a request that its client cut off."""
    message = model.request(send="binary", want="binary").message() if binary else make_plain_request(model)
    octets = Octets(cut(target, message), f"cut {name}", end=ConnectionEnd.DONE)
    with expect_still_serving(target, model):
        expect_refused_or_closed(target.send_octets(message, octets)[0], f"a request that ends {name}")


# --- resets -----------------------------------------------------------------------------------------------------------

RESET_COUNT = 20


@check("robustness.reset-harms-nobody", requirements="ROBUST-RESET", role="identity_int32", infers=False)
@rows(("before-a-byte", 0.0), ("inside-the-head", 0.3), ("inside-the-body", 0.95), ("before-the-answer", 1.0))
def reset_harms_nobody(target: Target, model: Model, sent_fraction: float) -> None:
    """Twenty clients that reset their connections disturb no other client."""
    message = make_plain_request(model)
    octets = target.render_octets(message)
    cut = Octets(octets[: int(len(octets) * sent_fraction)], "reset", end=ConnectionEnd.RESET)
    with expect_still_serving(target, model):
        for _ in range(RESET_COUNT):
            target.send_octets(message, cut)


# --- slow clients -----------------------------------------------------------------------------------------------------

PIPELINED_REQUESTS = 500  # requests on one connection
# The bytes that are sent on a connection before it is left idle.
RenderOpening = Callable[[Target, Model], bytes]


def _render_partial_head(target: Target, model: Model) -> bytes:
    return target.render_octets(make_plain_request(model)).partition(CRLF * 2)[0]


def _render_partial_body(target: Target, model: Model) -> bytes:
    return target.render_octets(make_plain_request(model))[:-10]


def _render_pipelined_requests(target: Target, _: Model) -> bytes:
    return target.render_octets(Message("/v2", method="GET")) * PIPELINED_REQUESTS


@check("robustness.slow-clients-keep-nobody-waiting", requirements="ROBUST-SLOW", role="identity_int32", infers=False)
@rows(
    ("200-idle-connections", lambda _, __: b"", 200),
    ("32-heads-that-do-not-go-on", _render_partial_head, 32),
    ("32-bodies-that-do-not-go-on", _render_partial_body, 32),
    ("8-connections-of-500-requests-whose-answers-are-not-read", _render_pipelined_requests, 8),
)
def slow_clients_keep_nobody_waiting(target: Target, model: Model, render: RenderOpening, count: int) -> None:
    """Idle and slow clients do not delay other clients.

    Raises NotApplicableError: the server answers that it is busy.
    """
    with expect_still_serving(target, model), target.hold_connections([render(target, model)] * count):
        for salt in range(4, 7):
            try:
                expect_served(target, model, salt)
            except UnmetError as unmet:
                if render is _render_partial_body and is_busy(unmet):
                    raise NotApplicableError(f"the server does not accept {count} requests at a time") from None
                raise
