"""Compressed requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.checks.state.three_forms import FORMS, AnyForm, Sent, answered, form_row
from conformance.checks.support.framing import WRONG_LENGTH
from conformance.expect.content_coding import gzipped, is_accepted, uncoded, zlibbed
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import NotApplicable, Unmet, about, blocked_where, holds
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.text import safe
from conformance.transport.chunks import PLAIN
from conformance.transport.target import Target
from conformance.wire.request import Message

# --- compressed bodies -------------------------------------------------------------------------------------------------

CODED: tuple[Row, ...] = (
    form_row("json", "json", 3, fits=True),
    form_row("long-json", "json", 1000),
    form_row("binary", "binary", 3, fits=True),
    form_row("long-binary", "binary", 1000),
    form_row("raw", "raw", 200),
)


@check("state.gzip-answer-is-the-answer", answers=("HTTP-CODING-O", "HTTP-CODING-ACCEPTED"))
@rows(*CODED)
def gzip_answer_is_the_answer(target: Target, model: Model, form: AnyForm, length: int) -> str:
    """An answer that is compressed because the client accepts that holds the right tensors."""
    return _judge_answer(target, model, form, length, "gzip")


@check("state.deflate-answer-is-the-answer", answers=("HTTP-CODING-O", "HTTP-CODING-ACCEPTED"))
@rows(*[form_row(form, form, fits=form == "json") for form in FORMS])
def deflate_answer_is_the_answer(target: Target, model: Model, form: AnyForm) -> str:
    """An answer that is compressed because the client accepts deflate holds the right tensors."""
    return _judge_answer(target, model, form, 200, "deflate")


def _judge_answer(target: Target, model: Model, form: AnyForm, length: int, coding: str) -> str:
    """Expect the right answer once it is uncoded, and say which coding it was in."""
    message, expected = answered(target, model, form, length)
    reply = target.send(message.with_header("Accept-Encoding", coding))
    with about("HTTP-CODING-O"):  # the same without compression was right, whatever seems wrong now
        plain = reply if reply.status is None else uncoded(reply)
        if plain is not None:
            expect(plain).tensors(expected).free_of(*WRONG_LENGTH)
    found = reply.header("Content-Encoding") or "not compressed"
    if not is_accepted(reply, coding):
        raise Unmet(f"the coding {coding}, or none", safe(found, 60), reply, requirement="HTTP-CODING-ACCEPTED")
    return found


@check("state.gzip-request-is-decoded-or-refused", answers="HTTP-CODING-I")
@rows(*CODED)
def gzip_request_is_decoded_or_refused(target: Target, model: Model, form: AnyForm, length: int) -> str:
    """A compressed request is decoded, or refused; its coded bytes are not taken for tensors."""
    return _judge_coded(target, model, answered(target, model, form, length), "gzip", chunked=False)


def _two_members(body: bytes) -> bytes:
    """Return the body as a gzip file of two members, whose contents belong together (RFC 1952, 2.2)."""
    half = len(body) // 2
    return gzipped(body[:half]) + gzipped(body[half:])


# name of a coding as rows have it -> its name in HTTP, and what codes a body
CODINGS: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzipped),
    "gzip-in-capitals": ("GZIP", gzipped),
    "x-gzip": ("x-gzip", gzipped),
    "gzip-of-two-members": ("gzip", _two_members),
    "gzip-twice": ("gzip, gzip", lambda body: gzipped(gzipped(body))),
    "deflate": ("deflate", zlibbed),
}


def _coded(message: Message, coding: str) -> Message:
    name, code = CODINGS[coding]
    return message.with_body(code(message.body)).with_header("Content-Encoding", name)


# Those that deployed models get, in one piece.
_FITTING = (("gzip-of-two-members", "json"), ("gzip-twice", "json"), ("deflate", "json"))


@check("state.coded-request-is-decoded-or-refused", answers="HTTP-CODING-I")
@rows(
    *[
        form_row(f"{coding}-{form}", form, coding, False, fits=(coding, form) in _FITTING)
        for coding in CODINGS
        if coding != "gzip"
        for form in FORMS
    ],
    *[
        form_row(f"{coding}-{form}-in-chunks", form, coding, True, fits=(coding, form) == ("gzip", "json"))
        for coding in ("gzip", "gzip-of-two-members", "deflate")
        for form in FORMS
    ],
)
def coded_request_is_decoded_or_refused(target: Target, model: Model, form: AnyForm, coding: str, chunked: bool) -> str:
    """A request in any coding, with its length or in chunks, is decoded whole, or refused."""
    return _judge_coded(target, model, answered(target, model, form, 200), coding, chunked=chunked)


def _judge_coded(target: Target, model: Model, plain: Sent, coding: str, *, chunked: bool) -> str:
    """Expect that a request is decoded or refused, and say which; nothing where chunks are read wrong without it."""
    message, expected = plain
    sent = _coded(message, coding)
    places = (len(sent.body) // 3,)
    reply = target.send_in_pieces(sent, places, chunks=PLAIN) if chunked else target.send(sent, fresh=True)
    if reply.status is not None and reply.status >= 400:
        expect_alive(target, model)
        return f"refused with {reply.status}"

    def is_wrong_uncoded() -> bool:
        return chunked and not holds(
            lambda: expect(target.send_in_pieces(message, places, chunks=PLAIN)).tensors(expected)
        )

    with blocked_where(is_wrong_uncoded, "the request is answered wrongly in chunks without the coding, too"):
        expect(reply, "HTTP-CODING-I").tensors(expected)
    return "decoded"


# What stands behind a good body in a second member, so that the whole is to be refused.
BEHIND: Mapping[AnyForm, bytes] = {"json": b" x", "binary": b"\0"}


@check("state.second-gzip-member-is-not-dropped", answers="HTTP-CODING-I")
@rows(*[form_row(form, form, fits=form == "json") for form in BEHIND])
def second_gzip_member_is_not_dropped(target: Target, model: Model, form: AnyForm) -> None:
    """A gzip body whose first member is a good request and whose second one spoils it is not taken for the first."""
    message, _ = answered(target, model, form, 5)
    spoiled = message.with_body(message.body + BEHIND[form])
    if not target.send(spoiled, fresh=True).is_refusal:
        raise NotApplicable("the same body without a coding is not refused either")
    body = gzipped(message.body) + gzipped(BEHIND[form])
    reply = target.send(spoiled.with_body(body).with_header("Content-Encoding", "gzip"), fresh=True)
    with about("HTTP-CODING-I"):
        expect(reply).refused("what its second gzip member adds")
