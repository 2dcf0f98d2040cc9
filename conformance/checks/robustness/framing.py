"""Requests with oversized heads, or with ambiguous ends, which two parsers may find at different offsets."""

from __future__ import annotations

from collections.abc import Callable

from conformance.checks.robustness.hostile_requests import (
    CHUNKED,
    CRLF,
    KIB,
    LAST_CHUNK,
    expect_no_second_answer,
    expect_refused_or_closed,
    expect_settled,
    expect_still_serving,
    is_refused_or_closed,
    make_head,
    make_plain_request,
    make_row,
    wrap_in_chunk,
)
from conformance.expect.expectation import expect
from conformance.expect.unmet import block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.exchange import FailureKind
from conformance.transport.hostile_sending import Octets
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER, Message

# --- large heads ------------------------------------------------------------------------------------------------------


@check("robustness.large-head-is-refused", requirements="ROBUST-HEAD", role="identity_int32", infers=False)
@rows(
    make_row("value-of-16-MiB", b"X-Long: ", b"x" * KIB, 16 * KIB),
    make_row("name-of-1-MiB", b"X-", b"x" * KIB, KIB),
    make_row("50000-headers", b"", b"X-More: 1\r\n", 50_000),
    make_row("value-without-an-end", b"X-Long: ", b"x" * KIB, 16 * KIB, b""),
)
def large_head_is_refused(
    target: Target, model: Model, name: str, start: bytes, filling: bytes, times: int, tail: bytes | None = None
) -> None:
    """The server refuses a head of more than a megabyte, or closes the connection."""
    message = make_plain_request(model)
    head = make_head(target, message).removesuffix(CRLF)
    rest = b": 1\r\n\r\n" if start == b"X-" else CRLF if start == b"" else CRLF * 2
    octets = Octets(head + start, f"a head with a {name}", filling, times, rest if tail is None else tail)
    with expect_still_serving(target, model):
        expect_refused_or_closed(target.send_octets(message, octets)[0], f"a head with a {name}")


@check("robustness.long-target-is-refused", requirements="ROBUST-HEAD", role="identity_int32", infers=False)
@rows(make_row("1-MiB-of-path", b"/"), make_row("1-MiB-of-query", b"?"))
def long_target_is_refused(target: Target, model: Model, name: str, separator: bytes) -> None:
    """The server refuses a request line of a megabyte, or closes the connection."""
    message = make_plain_request(model)
    line, _, rest = target.render_octets(message).partition(b" HTTP/")
    octets = Octets(line + separator, f"a request line with {name}", b"x" * KIB, KIB, b" HTTP/" + rest)
    with expect_still_serving(target, model):
        expect_refused_or_closed(target.send_octets(message, octets)[0], f"a request line with {name}")


# --- ambiguous ends ---------------------------------------------------------------------------------------------------

# Returns framing headers for a body, given its length and the number of bytes after it.
MakeFramingLines = Callable[[int, int], tuple[bytes, ...]]


def _format_length(text: str) -> MakeFramingLines:
    """Return a function that writes Content-Length; `text` is a template with `own` and `behind`."""
    return lambda own, behind: (f"Content-Length: {text.format(own=own, behind=own + behind)}".encode(),)


def _put_lines_before_length(*lines: bytes) -> MakeFramingLines:
    """Return a function that writes these header lines before a correct Content-Length."""
    return lambda own, _: (*lines, b"Content-Length: %d" % own)


@check("robustness.ambiguous-end-is-refused", requirements="ROBUST-FRAMING", role="identity_int32", infers=False)
@rows(
    make_row("two-lengths", lambda own, more: (b"Content-Length: %d" % own, b"Content-Length: %d" % (own + more))),
    make_row(
        "two-lengths-the-larger-first", lambda own, more: tuple(b"Content-Length: %d" % k for k in (own + more, own))
    ),
    make_row("two-lengths-in-a-list", _format_length("{own}, {behind}")),
    make_row("negative-length", _format_length("-{own}")),
    make_row("length-with-a-plus", _format_length("+{own}")),
    make_row("length-of-two-numbers", _format_length("{own} {behind}")),
    make_row("length-right-in-64-bits", lambda own, _: (b"Content-Length: %d" % (2**64 + own),)),
    make_row("length-in-hexadecimal", lambda own, _: (b"Content-Length: 0x%x" % own,)),
    make_row("unknown-transfer-coding", _put_lines_before_length(b"Transfer-Encoding: xchunked")),
    make_row("chunked-not-last", _put_lines_before_length(b"Transfer-Encoding: chunked, identity")),
    make_row("blank-before-the-colon", _put_lines_before_length(b"Transfer-Encoding : chunked")),
    make_row("folded-header", _put_lines_before_length(b"Transfer-Encoding:", b" chunked")),
)
def ambiguous_end_is_refused(target: Target, model: Model, name: str, lines: MakeFramingLines) -> None:
    """The server refuses a request whose end is ambiguous, and everything after it."""
    message, behind = make_plain_request(model), target.render_octets(Message("/v2", method="GET"))
    head = make_head(target, message, *lines(len(message.body), len(behind)))
    octets = Octets(head, f"{name}, and a request after it", tail=message.body + behind, max_answers=2)
    with expect_still_serving(target, model):
        replies = target.send_octets(message, octets)
        expect_no_second_answer(replies, f"a request with {name}")
        expect_refused_or_closed(replies[0], f"a request with {name}")


@check(
    "robustness.chunks-of-an-earlier-version-are-the-last",
    requirements="ROBUST-FRAMING",
    role="identity_int32",
    infers=False,
)
def chunks_of_an_earlier_version_are_the_last(target: Target, model: Model) -> None:
    """The server refuses an HTTP/1.0 request with Transfer-Encoding, or closes the connection after it."""
    message, behind = make_plain_request(model), target.render_octets(Message("/v2", method="GET"))
    head = make_head(target, message, CHUNKED, b"Connection: keep-alive", version=b"1.0")
    octets = Octets(
        head, "chunks in HTTP/1.0, and a request after it", tail=wrap_in_chunk(message.body) + behind, max_answers=2
    )
    with expect_still_serving(target, model):
        expect_no_second_answer(target.send_octets(message, octets), "a request with chunks in HTTP/1.0")


def _make_head_with_two_lengths(target: Target, message: Message, length: int) -> bytes:
    """Return the head of a request with both Transfer-Encoding and Content-Length."""
    return make_head(target, message, CHUNKED, b"Content-Length: %d" % length)


def _hide_in_second_chunk(target: Target, message: Message, inside: bytes) -> bytes:
    """Return a request whose Content-Length ends before its second chunk, which contains another request."""
    first = b"%X\r\n%b\r\n%X\r\n" % (len(message.body), message.body, len(inside))
    return _make_head_with_two_lengths(target, message, len(first)) + first + inside + CRLF + LAST_CHUNK


def _hide_in_get(target: Target, message: Message, inside: bytes) -> bytes:  # noqa: ARG001
    """Return a GET request whose body is another request."""
    return target.render_octets(Message("/v2", method="GET").with_body(inside))


@check(
    "robustness.request-in-a-body-is-not-carried-out",
    requirements="ROBUST-FRAMING",
    role="identity_int32",
    infers=False,
)
@rows(
    Row("in-a-chunk-behind-the-length", ("a request with chunks and Content-Length", _hide_in_second_chunk)),
    Row("in-the-body-of-a-get", ("a GET with a body", _hide_in_get)),
)
def request_in_a_body_is_not_carried_out(
    target: Target, model: Model, name: str, carrier: Callable[[Target, Message, bytes], bytes]
) -> None:
    """The server does not carry out a request inside the body of another."""
    message, inside = make_plain_request(model), target.render_octets(Message("/v2", method="GET"))
    sent = carrier(target, message, inside)
    with expect_still_serving(target, model):
        replies = target.send_octets(message, Octets(sent, name, tail=target.render_octets(message), max_answers=2))
        expect_settled(replies[0], name)
        for behind in replies[1:]:
            if behind.succeeded:
                expect(behind).tensors(model.expected(model.sample()))


@check(
    "robustness.connection-ends-after-two-lengths",
    requirements="ROBUST-FRAMING-CLOSES",
    role="identity_int32",
    infers=False,
)
def connection_ends_after_two_lengths(target: Target, model: Model) -> None:
    """The server closes the connection after a request with both Transfer-Encoding and Content-Length."""
    message, behind = make_plain_request(model), target.render_octets(Message("/v2", method="GET"))
    sent = _make_head_with_two_lengths(target, message, len(message.body)) + wrap_in_chunk(message.body) + behind
    with expect_still_serving(target, model):
        replies = target.send_octets(
            message, Octets(sent, "chunks and Content-Length, and a request after it", max_answers=2)
        )
        expect_no_second_answer(replies, "a request with chunks and Content-Length")


# --- chunks -----------------------------------------------------------------------------------------------------------


@check("robustness.chunk-size-keeps-its-digits", requirements="ROBUST-CHUNK-SIZE", role="identity_int32", infers=False)
@rows(
    make_row("2-to-the-64-less-1", 2**64 - 1),
    make_row("right-in-64-bits", 2**64),
    make_row("right-in-32-bits", 2**32),
    make_row("2-to-the-63", 2**63),
    make_row("right-in-the-last-of-1000-digits", 16**999),
)
def chunk_size_keeps_its_digits(target: Target, model: Model, name: str, more: int) -> None:
    """The server refuses a chunk size that no memory can hold, or closes the connection; it never drops digits."""
    message = make_plain_request(model)
    size = more if more in (2**64 - 1, 2**63) else more + len(message.body)
    tail = wrap_in_chunk(message.body, b"%X" % size)
    octets = Octets(make_head(target, message, CHUNKED), f"a chunk size ({name})", tail=tail)
    with expect_still_serving(target, model):
        reply = target.send_octets(message, octets)[0]
        if not (size < 2**33 and reply.has_failed(FailureKind.TIMEOUT)):  # a server may wait for a body below 8 GiB
            expect_refused_or_closed(reply, f"a chunk size ({name})")


@check("robustness.chunk-size-is-a-number", requirements="ROBUST-CHUNK-SIZE", role="identity_int32", infers=False)
@rows(
    make_row("negative", "-{:X}"),
    make_row("with-a-plus", "+{:X}"),
    make_row("with-a-prefix", "0x{:X}"),
    make_row("of-letters", "xyz"),
)
def chunk_size_is_a_number(target: Target, model: Model, name: str, text: str) -> None:
    """The server refuses a chunk size that is not hexadecimal, or closes the connection."""
    message = make_plain_request(model)
    tail = wrap_in_chunk(message.body, text.format(len(message.body)).encode())
    octets = Octets(make_head(target, message, CHUNKED), f"a chunk size ({name})", tail=tail)
    with expect_still_serving(target, model):
        expect_refused_or_closed(target.send_octets(message, octets)[0], f"a chunk size ({name})")


@check(
    "robustness.endless-line-beside-chunks-is-refused",
    requirements="ROBUST-CHUNK-EXTENSION",
    role="identity_int32",
    infers=False,
)
@rows(
    make_row("chunk-extension", b"1;"),
    make_row("chunk-extensions-without-number", b"1", b";x=1"),
    make_row("trailer", LAST_CHUNK.removesuffix(CRLF) + b"X-Long: "),
    make_row("trailers-without-number", LAST_CHUNK.removesuffix(CRLF), b"X: 1\r\n"),
)
def endless_line_beside_chunks_is_refused(
    target: Target, model: Model, name: str, start: bytes, filling: bytes = b"x"
) -> None:
    """The server refuses a chunk extension or trailer of 16 MiB, or closes the connection."""
    message = make_plain_request(model)
    tail = b"%X\r\n%b\r\n" % (len(message.body), message.body) if start[:1] == b"0" else b""
    head = make_head(target, message, CHUNKED) + tail + start
    octets = Octets(head, f"{name} of 16 MiB", filling * KIB, 16 * KIB // len(filling))
    with expect_still_serving(target, model):
        expect_refused_or_closed(target.send_octets(message, octets)[0], f"{name} of 16 MiB")


FALSE_TRAILER = ChunkFormat(trailers=((INFERENCE_HEADER, "0"),))


@check("robustness.trailer-is-no-header", requirements="ROBUST-TRAILER", role="identity_uint8", infers=False)
@rows(("in-one-segment", True), ("in-several", False))
def trailer_is_no_header(target: Target, model: Model, at_once: bool) -> None:
    """A trailer named like the inference header does not turn JSON into a raw request."""
    message, expected = make_plain_request(model), model.expected(model.sample())

    def is_wrong_without_trailer() -> bool:
        reply = target.send_in_pieces(message, [], chunks=PLAIN_CHUNKS, at_once=at_once)
        return not is_met(lambda: expect(reply).tensors(expected))

    with expect_still_serving(target, model):
        reply = target.send_in_pieces(message, [], chunks=FALSE_TRAILER, at_once=at_once)
        if not is_refused_or_closed(reply):
            with block_if(
                is_wrong_without_trailer, "the answer to the request in chunks without a trailer is also wrong"
            ):
                expect(reply).tensors(expected)
