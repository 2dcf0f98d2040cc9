"""Requests of which two readers could find the end in two places, with a request behind one of them."""

from __future__ import annotations

from collections.abc import Callable

from conformance.checks.robustness.octets import CHUNKED, CRLF, LAST_CHUNK, make_head, make_plain_request, wrap_in_chunk
from conformance.checks.robustness.survival import (
    expect_declined,
    expect_no_second,
    expect_settled,
    expect_still_serving,
)
from conformance.expect.expectation import expect
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.hostile_sending import Octets
from conformance.transport.target import Target
from conformance.wire.request import Message

# The headers that frame a request of so many bytes, with so many behind it.
Lines = Callable[[int, int], tuple[bytes, ...]]


def _length(text: str) -> Lines:
    return lambda own, behind: (f"Content-Length: {text.format(own=own, behind=own + behind)}".encode(),)


def _coding(*lines: bytes) -> Lines:
    return lambda own, _: (*lines, b"Content-Length: %d" % own)


def _row(identity: str, lines: Lines) -> Row:
    return Row(identity, (identity.replace("-", " "), lines))


@check("robustness.ambiguous-end-is-refused", answers="ROBUST-FRAMING", role="identity_int32", infers=False)
@rows(
    _row("two-lengths", lambda own, more: (b"Content-Length: %d" % own, b"Content-Length: %d" % (own + more))),
    _row("two-lengths-the-larger-first", lambda own, more: tuple(b"Content-Length: %d" % k for k in (own + more, own))),
    _row("two-lengths-in-a-list", _length("{own}, {behind}")),
    _row("negative-length", _length("-{own}")),
    _row("length-with-a-plus", _length("+{own}")),
    _row("length-of-two-numbers", _length("{own} {behind}")),
    _row("length-right-in-64-bits", lambda own, _: (b"Content-Length: %d" % (2**64 + own),)),
    _row("length-in-hexadecimal", lambda own, _: (b"Content-Length: 0x%x" % own,)),
    _row("unknown-transfer-coding", _coding(b"Transfer-Encoding: xchunked")),
    _row("chunked-not-last", _coding(b"Transfer-Encoding: chunked, identity")),
    _row("blank-before-the-colon", _coding(b"Transfer-Encoding : chunked")),
    _row("folded-header", _coding(b"Transfer-Encoding:", b" chunked")),
)
def ambiguous_end_is_refused(target: Target, model: Model, name: str, lines: Lines) -> None:
    """A request of which two readers could find the end in two places is refused, and so is what stands behind it."""
    message, behind = make_plain_request(model), target.render_octets(Message("/v2", method="GET"))
    head = make_head(target, message, *lines(len(message.body), len(behind)))
    octets = Octets(head, f"{name}, and a request behind it", tail=message.body + behind, most=2)
    with expect_still_serving(target, model):
        replies = target.send_octets(message, octets)
        expect_no_second(replies, f"a request with {name}")
        expect_declined(replies[0], f"a request with {name}")


@check(
    "robustness.chunks-of-an-earlier-version-are-the-last",
    answers="ROBUST-FRAMING",
    role="identity_int32",
    infers=False,
)
def chunks_of_an_earlier_version_are_the_last(target: Target, model: Model) -> None:
    """A request of HTTP/1.0 with Transfer-Encoding is refused, or is the last one of its connection."""
    message, behind = make_plain_request(model), target.render_octets(Message("/v2", method="GET"))
    head = make_head(target, message, CHUNKED, b"Connection: keep-alive", version=b"1.0")
    octets = Octets(head, "chunks in HTTP/1.0, and a request behind", tail=wrap_in_chunk(message.body) + behind, most=2)
    with expect_still_serving(target, model):
        expect_no_second(target.send_octets(message, octets), "chunks in HTTP/1.0")


def _two_lengths(target: Target, message: Message, length: int) -> bytes:
    """Return the head of a request with both Transfer-Encoding and Content-Length."""
    return make_head(target, message, CHUNKED, b"Content-Length: %d" % length)


def _in_a_second_chunk(target: Target, message: Message, inside: bytes) -> bytes:
    """Return a request whose length ends before its second chunk, in which another request stands."""
    first = b"%X\r\n%b\r\n%X\r\n" % (len(message.body), message.body, len(inside))
    return _two_lengths(target, message, len(first)) + first + inside + CRLF + LAST_CHUNK


def _in_a_get(target: Target, message: Message, inside: bytes) -> bytes:  # noqa: ARG001
    return target.render_octets(Message("/v2", method="GET").with_body(inside))


@check("robustness.request-in-a-body-is-not-carried-out", answers="ROBUST-FRAMING", role="identity_int32", infers=False)
@rows(
    Row("in-a-chunk-behind-the-length", ("chunks beside a length", _in_a_second_chunk)),
    Row("in-the-body-of-a-get", ("a GET with a body", _in_a_get)),
)
def request_in_a_body_is_not_carried_out(
    target: Target, model: Model, name: str, carrier: Callable[[Target, Message, bytes], bytes]
) -> None:
    """A request that stands in the body of another one, where some readers see its end, is not carried out."""
    message, inside = make_plain_request(model), target.render_octets(Message("/v2", method="GET"))
    sent = carrier(target, message, inside)
    with expect_still_serving(target, model):
        replies = target.send_octets(message, Octets(sent, name, tail=target.render_octets(message), most=2))
        expect_settled(replies[0], name)
        for behind in replies[1:]:
            if behind.succeeded:
                expect(behind).tensors(model.expected(model.sample()))


@check(
    "robustness.connection-ends-after-two-lengths",
    answers="ROBUST-FRAMING-CLOSES",
    role="identity_int32",
    infers=False,
)
def connection_ends_after_two_lengths(target: Target, model: Model) -> None:
    """The connection is closed after a request with both Transfer-Encoding and Content-Length."""
    message, behind = make_plain_request(model), target.render_octets(Message("/v2", method="GET"))
    sent = _two_lengths(target, message, len(message.body)) + wrap_in_chunk(message.body) + behind
    with expect_still_serving(target, model):
        replies = target.send_octets(message, Octets(sent, "chunks beside a length, and a request behind", most=2))
        expect_no_second(replies, "a request with chunks beside a length")
