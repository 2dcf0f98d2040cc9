"""Compressed requests and answers."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

from conformance.checks.state.request_forms import (
    FORMS,
    LENGTH_REQUIRED,
    AnyForm,
    SaltedRequest,
    make_form_request,
    make_form_row,
    send_answered_request,
)
from conformance.checks.support.framing import WRONG_LENGTH
from conformance.checks.support.refusals import LIMIT_STATUSES
from conformance.expect.content_coding import compress_gzip, compress_zlib, decode_reply, is_accepted
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive, expect_refusal_status, is_error_object
from conformance.expect.unmet import NotApplicableError, UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.text import escape_text
from conformance.transport.send_options import PLAIN_CHUNKS
from conformance.transport.target import Target
from conformance.wire.request import Message

# --- compressed bodies -------------------------------------------------------------------------------------------------

CODED_ROWS: tuple[Row, ...] = (
    make_form_row("json", "json", 3, fits=True),
    make_form_row("long-json", "json", 1000),
    make_form_row("binary", "binary", 3, fits=True),
    make_form_row("long-binary", "binary", 1000),
    make_form_row("raw", "raw", 200),
)


@check("state.gzip-answer-is-the-answer", requirements=("HTTP-CODING-O", "HTTP-CODING-ACCEPTED"))
@rows(*CODED_ROWS)
def gzip_answer_is_the_answer(target: Target, model: Model, form: AnyForm, length: int) -> str:
    """A gzip answer to a client that accepts gzip contains the correct tensors."""
    return _expect_encoded_answer(target, model, form, length, "gzip")


@check("state.deflate-answer-is-the-answer", requirements=("HTTP-CODING-O", "HTTP-CODING-ACCEPTED"))
@rows(*[make_form_row(form, form, fits=form == "json") for form in FORMS])
def deflate_answer_is_the_answer(target: Target, model: Model, form: AnyForm) -> str:
    """A deflate answer to a client that accepts deflate contains the correct tensors."""
    return _expect_encoded_answer(target, model, form, 200, "deflate")


def _expect_encoded_answer(target: Target, model: Model, form: AnyForm, length: int, coding: str) -> str:
    """Request an answer in a content coding and expect the correct tensors; return the coding of the answer."""
    message, expected = send_answered_request(target, model, form, length)
    reply = target.send(message.with_header("Accept-Encoding", coding))
    try:
        with attribute_to("HTTP-CODING-O"):  # the uncompressed answer was right, so any fault is due to the coding
            plain = reply if reply.status is None else decode_reply(reply)
            if plain is not None:
                expect(plain).tensors(expected).free_of(*WRONG_LENGTH)
    except UnmetError:
        if reply.status is not None:
            with attribute_to("OIP-ISOLATION"):  # or due to the repetition, if the same request is now answered wrongly
                expect(target.send(message, fresh=True)).tensors(expected).free_of(*WRONG_LENGTH)
        raise
    found = reply.header("Content-Encoding") or "not compressed"
    if not is_accepted(reply, coding):
        raise UnmetError(
            f"the content coding {coding}, or none", escape_text(found, 60), reply, requirement="HTTP-CODING-ACCEPTED"
        )
    return found


@check("state.gzip-request-is-decoded-or-refused", requirements="HTTP-CODING-I")
@rows(*CODED_ROWS)
def gzip_request_is_decoded_or_refused(target: Target, model: Model, form: AnyForm, length: int) -> str:
    """The server decodes or refuses a gzip request; it never reads compressed bytes as tensors."""
    plain = send_answered_request(target, model, form, length)
    return _expect_decoded_or_refused(target, model, form, plain, "gzip", chunked=False)


def _compress_in_two_members(body: bytes) -> bytes:
    """Return the body as gzip data of two members, which decoders concatenate (RFC 1952, 2.2)."""
    half = len(body) // 2
    return compress_gzip(body[:half]) + compress_gzip(body[half:])


def _compress_to_multiple_of_word(body: bytes) -> bytes:
    """Return the body as gzip data whose length is a multiple of `WORD_BYTES`; a file name pads it (RFC 1952, 2.3).

    A server that does not decode such a body can misread it as floats.
    """
    coded = compress_gzip(body)
    name = b"n" * (-(len(coded) + 1) % WORD_BYTES) + b"\0"
    return coded[:3] + bytes([coded[3] | GZIP_HAS_NAME]) + coded[4:10] + name + coded[10:]


GZIP_HAS_NAME = 8  # the flag FNAME
WORD_BYTES = 8


# name of a coding in row ids -> its name in HTTP, and its encoder
CODINGS: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", compress_gzip),
    "gzip-in-capitals": ("GZIP", compress_gzip),
    "x-gzip": ("x-gzip", compress_gzip),
    "gzip-of-two-members": ("gzip", _compress_in_two_members),
    "gzip-twice": ("gzip, gzip", lambda body: compress_gzip(compress_gzip(body))),
    "gzip-in-whole-words": ("gzip", _compress_to_multiple_of_word),
    "gzip-twice-in-whole-words": ("gzip, gzip", lambda body: compress_gzip(_compress_to_multiple_of_word(body))),
    "deflate": ("deflate", compress_zlib),
}


def _encode_body(message: Message, coding: str) -> Message:
    name, compress = CODINGS[coding]
    return message.with_body(compress(message.body)).with_header("Content-Encoding", name)


# Rows that also run on deployed models, for bodies that are not chunked.
_FOR_ANY_MODEL = (
    *(("gzip-of-two-members", "json"), ("gzip-twice", "json"), ("deflate", "json")),
    *(("gzip-in-whole-words", "raw"), ("gzip-twice-in-whole-words", "raw")),
)


@check("state.coded-request-is-decoded-or-refused", requirements="HTTP-CODING-I")
@rows(
    *[
        make_form_row(f"{coding}-{form}", form, coding, False, fits=(coding, form) in _FOR_ANY_MODEL)
        for coding in CODINGS
        if coding != "gzip"
        for form in FORMS
    ],
    *[
        make_form_row(f"{coding}-{form}-in-chunks", form, coding, True, fits=(coding, form) == ("gzip", "json"))
        for coding in ("gzip", "gzip-of-two-members", "deflate")
        for form in FORMS
    ],
)
def coded_request_is_decoded_or_refused(target: Target, model: Model, form: AnyForm, coding: str, chunked: bool) -> str:
    """The server decodes a request in any content coding, chunked or not, or refuses it."""
    plain = send_answered_request(target, model, form, 200)
    return _expect_decoded_or_refused(target, model, form, plain, coding, chunked=chunked)


# Codings of one gzip member; a decoder has to skip a file name in it (RFC 1952, 2.3.1.2).
_PLAIN_GZIP = ("gzip", "gzip-in-whole-words")
# Statuses that say that the server does not support a coding, needs a length, limits bodies, or is busy.
_UNSUPPORTED_STATUSES = (LENGTH_REQUIRED, 415, *LIMIT_STATUSES)
_CONTROL_LENGTHS = (3, 1000)  # elements of the requests that show whether a server decodes gzip


def _expect_decoded_or_refused(
    target: Target, model: Model, form: AnyForm, plain: SaltedRequest, coding: str, *, chunked: bool
) -> str:
    """Send a request in a content coding; expect the server to decode or refuse it; return a note that says which.

    If the server decodes another gzip request of this form, a refusal of plain gzip has to say that the server does not
    support it: otherwise the server supports gzip, but does not decode all of it.
    """
    message, expected = plain
    sent = _encode_body(message, coding)
    places = (len(sent.body) // 3,)
    reply = target.send_in_pieces(sent, places, chunks=PLAIN_CHUNKS) if chunked else target.send(sent, fresh=True)

    def is_wrong_without_content_coding() -> bool:
        return chunked and not is_met(
            lambda: expect(target.send_in_pieces(message, places, chunks=PLAIN_CHUNKS)).tensors(expected)
        )

    if reply.status is not None and reply.status >= 400:
        expect_alive(target, model)
        is_free = coding not in _PLAIN_GZIP or reply.status in _UNSUPPORTED_STATUSES
        if is_free or is_wrong_without_content_coding() or not _is_gzip_decoded(target, model, form):
            expect_refusal_status(reply)
            return f"refused with {reply.status}"
    with block_if(
        is_wrong_without_content_coding, "the same request in chunks without a content coding also gets a wrong answer"
    ):
        expect(reply, "HTTP-CODING-I").tensors(expected)
    return "decoded"


def _is_gzip_decoded(target: Target, model: Model, form: AnyForm) -> bool:
    """Say whether the server decodes a short or a long gzip request of this form."""

    def is_decoded(length: int) -> bool:
        message, tensors = make_form_request(model, form, length, 1)
        reply = target.send(_encode_body(message, "gzip"), fresh=True)
        return is_met(lambda: expect(reply).tensors(model.expected(tensors)))

    return any(map(is_decoded, _CONTROL_LENGTHS))


# The content of a second gzip member, which makes a valid body invalid.
EXTRA_MEMBER_BYTES: Mapping[AnyForm, bytes] = {"json": b" x", "binary": b"\0"}


@check("state.second-gzip-member-is-not-dropped", requirements="HTTP-CODING-I")
@rows(*[make_form_row(form, form, fits=form == "json") for form in EXTRA_MEMBER_BYTES])
def second_gzip_member_is_not_dropped(target: Target, model: Model, form: AnyForm) -> None:
    """The server reads every member of a gzip body, or refuses the request."""
    message, _ = send_answered_request(target, model, form, 5)
    spoiled = message.with_body(message.body + EXTRA_MEMBER_BYTES[form])
    if not target.send(spoiled, fresh=True).is_refusal:
        raise NotApplicableError("the server does not refuse the same body without a content coding either")
    body = compress_gzip(message.body) + compress_gzip(EXTRA_MEMBER_BYTES[form])
    reply = target.send(spoiled.with_body(body).with_header("Content-Encoding", "gzip"), fresh=True)
    with attribute_to("HTTP-CODING-I"):
        expect(reply).refused("a second gzip member that makes the body invalid")


# --- compressed bodies that end early ---------------------------------------------------------------------------------


def _compress_first_half(wbits: int) -> Callable[[bytes], bytes]:
    """Return an encoder that ends after the first half of a body, in whole words, without the last block and trailer.

    Everything before can be decoded (RFC 1951, 3.2.3): the encoder flushed it. A raw request of that half is valid.
    """

    def compress(body: bytes) -> bytes:
        packer = zlib.compressobj(wbits=wbits)
        return packer.compress(body[: _find_half(body)]) + packer.flush(zlib.Z_SYNC_FLUSH)

    return compress


def _find_half(body: bytes) -> int:
    return len(body) // 2 // WORD_BYTES * WORD_BYTES


def _cut_second_member(body: bytes) -> bytes:
    """Return a whole gzip member with the first half of a body, and a second one that ends early."""
    half = _find_half(body)
    return compress_gzip(body[:half]) + _compress_first_half(GZIP_WINDOW)(body[half:])


GZIP_WINDOW, ZLIB_WINDOW = 31, 15  # window bits of zlib
# name of a coding in row ids -> its name in HTTP, and its encoder
CUT_CODINGS: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", _compress_first_half(GZIP_WINDOW)),
    "second-gzip-member": ("gzip", _cut_second_member),
    "deflate": ("deflate", _compress_first_half(ZLIB_WINDOW)),
}


@check("state.coded-body-that-ends-early-is-refused", requirements="HTTP-CODING-I")
@rows(
    *[make_form_row(f"{coding}-raw", "raw", coding, False, fits=coding == "gzip") for coding in CUT_CODINGS],
    make_form_row("gzip-raw-in-chunks", "raw", "gzip", True),
    make_form_row("gzip-binary", "binary", "gzip", False, fits=True),
)
def coded_body_that_ends_early_is_refused(
    target: Target, model: Model, form: AnyForm, coding: str, chunked: bool
) -> str:
    """The server answers no request whose compressed data end early: it refuses it, or closes the connection.

    The suite does not judge a server that waits for the rest, because no client sends such a body on purpose.
    """
    message, _ = send_answered_request(target, model, form, 200)
    name, compress = CUT_CODINGS[coding]
    sent = message.with_body(compress(message.body)).with_header("Content-Encoding", name)
    reply = target.send_in_pieces(sent, [9], chunks=PLAIN_CHUNKS) if chunked else target.send(sent, fresh=True)
    if reply.succeeded:
        named = "OIP-REFUSAL" if is_error_object(reply) else "HTTP-CODING-I"
        expect(reply, named).refused("compressed data that end early")
    expect_alive(target, model)
    return "no answer" if reply.status is None else f"refused with {reply.status}"
