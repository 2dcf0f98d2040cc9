"""Requests that end before their end."""

from __future__ import annotations

from collections.abc import Callable

from conformance.checks.robustness.octets import CHUNKED, CRLF, make_head, make_plain_request
from conformance.checks.robustness.survival import expect_declined, expect_still_serving
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY
from conformance.transport.hostile_sending import ConnectionEnd, Octets
from conformance.transport.target import Target
from conformance.wire.request import Message

# What goes out of a message.
CutRequest = Callable[[Target, Message], bytes]


def _longer(target: Target, message: Message) -> bytes:
    return make_head(target, message, b"Content-Length: %d" % (len(message.body) + 10)) + message.body


def _without_last_chunk(target: Target, message: Message) -> bytes:
    size = b"%X" % len(message.body)
    return make_head(target, message, CHUNKED) + size + CRLF + message.body + CRLF


def _inside_a_chunk(target: Target, message: Message) -> bytes:
    size = b"%X" % (len(message.body) + 10)
    return make_head(target, message, CHUNKED) + size + CRLF + message.body


def _without(count: int) -> CutRequest:
    return lambda target, message: target.render_octets(message)[:-count]


def _head_alone(target: Target, message: Message) -> bytes:
    return target.render_octets(message).partition(CRLF * 2)[0]


def _row(identity: str, cut: CutRequest, *, binary: bool = False) -> Row:
    values = (identity.replace("-", " "), cut, binary)
    return Row(identity, values, needs=BINARY if binary else ())


@check("robustness.cut-request-is-not-carried-out", answers="ROBUST-CUT", role="identity_int32", infers=False)
@rows(
    _row("inside-the-head", _head_alone),
    _row("inside-the-json", _without(10)),
    _row("inside-binary-data", _without(4), binary=True),
    _row("behind-json-that-is-whole", _longer),
    _row("behind-tensors-that-are-whole", _longer, binary=True),
    _row("inside-a-chunk", _inside_a_chunk),
    _row("before-the-last-chunk", _without_last_chunk),
)
def cut_request_is_not_carried_out(target: Target, model: Model, name: str, cut: CutRequest, binary: bool) -> None:
    """A request whose client ends the connection inside it is not carried out, and the connection is closed."""
    message = model.request(send="binary", want="binary").message() if binary else make_plain_request(model)
    octets = Octets(cut(target, message), f"cut {name}", end=ConnectionEnd.DONE)
    with expect_still_serving(target, model):
        expect_declined(target.send_octets(message, octets)[0], f"a request that ends {name}")
