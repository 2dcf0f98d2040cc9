"""What stands in the body of a request that is refused early is not the next request on the connection.

A server that refuses by the head alone, and leaves the body where it is, reads its bytes as a request: whoever can put
bytes into a body can then make requests in the name of those who share the connection.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.checks.state.salted_requests import expect_own, make_salted_request, make_salted_tensors
from conformance.checks.support.telling_inputs import require_telling
from conformance.expect.unmet import block_if, is_met
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY
from conformance.spec.fit import JSON as JSON_ALONE
from conformance.transport.exchange import FailureKind, Reply
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER, JSON, Message

LENGTH, HIDDEN = 3, 9


def _good(model: Model, salt: int) -> Message:
    return make_salted_request(model, "json", LENGTH, salt).message()


def _with(name: str, value: str, path: str | None = None) -> MessageBuilder:
    """Return what makes a request with one more header."""
    return lambda model: _to(model, path).with_header(name, value)


def _to(model: Model, path: str | None = None, method: str = "POST") -> Message:
    return Message(path or model.infer_path, (("Content-Type", JSON),), method=method)


def _at(path: str) -> MessageBuilder:
    """Return what makes a request to a path."""
    return lambda model: _to(model, path)


UNKNOWN_MODEL = "/v2/models/nobody_has_this_model/infer"

# What servers refuse by the head of a request alone, or answer without a look at the body.
REFUSED_BY_HEAD: Mapping[str, MessageBuilder] = {
    "unknown-model": _at(UNKNOWN_MODEL),
    "unknown-version": lambda model: _to(model, f"/v2/models/{model.name}/versions/87654/infer"),
    "unknown-path": _at("/v2/there/is/nothing/here"),
    "put": lambda model: _to(model, method="PUT"),
    "post-to-metadata": lambda model: _to(model, model.path),
    "inference-header-negative": _with(INFERENCE_HEADER, "-1"),
    "inference-header-no-number": _with(INFERENCE_HEADER, "many"),
    "inference-header-past-the-end": _with(INFERENCE_HEADER, "99999999"),
    "unknown-coding": _with("Content-Encoding", "no-such-coding"),
    "unknown-content-type": _with("Content-Type", "image/png"),
    "unknown-expectation": _with("Expect", "a-miracle"),
    "go-ahead-not-waited-for": _with("Expect", "100-continue", UNKNOWN_MODEL),
    "no-json": _to,
}
# Beyond what servers read of a body before they give up on it; empty lines are passed over in front of a request.
LONG_FILLER = b"\r\n" * 200_000
# Those that deployed models get.
# Those with a header that means nothing to a server without binary data.
OF_BINARY_DATA = ("inference-header-negative", "inference-header-no-number", "inference-header-past-the-end")
FOR_ANY_MODEL = ("unknown-model", "unknown-model-in-chunks", "put", "go-ahead-not-waited-for", "no-json")
PADDED_NAMES = ("unknown-model", "unknown-path", "no-json")


def _rows() -> list[Row]:
    framings = (("", False), ("-in-chunks", True))
    short = [
        Row(
            *(name + tail, (make, b"", chunked)),
            needs=BINARY if name in OF_BINARY_DATA else (),
            fit=JSON_ALONE if name + tail in FOR_ANY_MODEL else None,
        )
        for name, make in REFUSED_BY_HEAD.items()
        for tail, chunked in framings
    ]
    return [
        *short,
        *[Row(f"{name}-400-KB-before-it", (REFUSED_BY_HEAD[name], LONG_FILLER, False)) for name in PADDED_NAMES],
    ]


@check("state.body-is-never-the-next-request", answers="HTTP-UNREAD-BODY", role="identity_int32")
@rows(*_rows())
def body_is_never_the_next_request(
    target: Target, model: Model, refused: MessageBuilder, padding: bytes, chunked: bool
) -> str:
    """A request that stands in the body of a refused one is not carried out, and the next one is answered."""
    require_telling(model, *(make_salted_tensors(model, LENGTH, salt) for salt in (HIDDEN, 1, 2)))
    body = padding + target.as_text(_good(model, HIDDEN))
    message = refused(model).with_body(body)
    with block_if(
        lambda: not is_met(lambda: _expect_in_step(target, model, message.with_body(b""), chunked)),
        "behind the same request without a body the next one is answered wrongly, too",
    ):
        return _expect_in_step(target, model, message, chunked)


def _expect_in_step(target: Target, model: Model, message: Message, chunked: bool) -> str:
    """Expect that two good requests behind a message get their own answers, or that the connection ends."""
    good = [_good(model, salt) for salt in (1, 2)]
    replies = target.send_on_one_connection([message, *good], chunked=(0,) if chunked else ())
    for salt, reply in enumerate(replies[1:], start=1):
        if _has_ended(reply):
            return "the connection was closed"
        expect_own(target, reply, model, LENGTH, salt, "HTTP-UNREAD-BODY")
    return "the body was read" if len(replies) > 1 else "the connection was closed"


def _has_ended(reply: Reply) -> bool:
    return reply.status is None and reply.has_failed(FailureKind.CLOSED, FailureKind.BROKEN)
