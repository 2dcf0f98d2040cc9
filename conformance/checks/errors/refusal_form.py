"""What a refusal looks like, whatever it is for.

That a request is refused is judged in its own area; one that was accepted is no refusal, and not judged here.
"""

from __future__ import annotations

from conformance.checks.errors.every_refusal import (
    EVERY_GRPC_REFUSAL,
    GRPC_SENT_TO_DEPLOYED,
    REFUSALS_BY_ROW,
    SENT_TO_DEPLOYED,
)
from conformance.checks.support.refusals import Refusal
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.target import Target
from conformance.wire.json_text import parse_json


@check("errors.refusal-is-an-oip-error", answers=("OIP-ERROR", "OIP-ERROR-STATUS", "OIP-JSON"))
@rows(
    *[
        Row(
            *(identity, (refusal.message,), refusal.role),
            needs=refusal.extensions,
            fit=refusal.fit if identity in SENT_TO_DEPLOYED else None,
        )
        for identity, refusal in REFUSALS_BY_ROW.items()
    ]
)
def refusal_is_an_oip_error(target: Target, model: Model, message: MessageBuilder) -> None:
    """A refusal is a JSON object with the string `error`, under a 4xx status."""
    reply = target.send(message(model), fresh=True)
    if reply.succeeded:
        return
    expect_error_object(reply, "OIP-ERROR")
    for finding in parse_json(reply.body).findings:
        if finding.kind == "json-not-utf8":
            raise expect(reply, "OIP-JSON").unmet("JSON in UTF-8", finding.described, finding.offset)
    if reply.status is not None and reply.status >= 500:
        raise expect(reply, "OIP-ERROR-STATUS").unmet("a 4xx status", escape_text(reply.outcome()))


def expect_error_object(reply: Reply, requirement: str) -> None:
    """Expect an error status and a JSON object with the string `error`."""
    expectation = expect(reply, requirement).refused()
    if not _is_error_object(reply):
        text = escape_text(reply.body[:200].decode("utf-8", "replace"))
        raise expectation.unmet('a JSON object with the string "error"', f"HTTP {reply.status}: {text or 'no body'}")


def _is_error_object(reply: Reply) -> bool:
    document, _ = parse_json(reply.body)
    return isinstance(document, dict) and isinstance(document.get("error"), str)


@check("grpc.refusal-says-that-the-request-is-wrong", answers=("OIP-ERROR-STATUS/grpc", "GRPC-STATUS"), over=(GRPC,))
@rows(
    *[
        Row(
            *(refusal.fault, (refusal,), refusal.role),
            needs=refusal.extensions,
            fit=refusal.fit if refusal in GRPC_SENT_TO_DEPLOYED else None,
        )
        for refusal in EVERY_GRPC_REFUSAL
    ]
)
def refusal_says_that_the_request_is_wrong(target: GrpcTarget, model: Model, refusal: Refusal) -> None:
    """A refusal has the status INVALID_ARGUMENT, or another that fits where a name is unknown."""
    reply = target.send(refusal.message(model), fresh=True)
    if reply.succeeded:
        return
    expect(reply, "OIP-REFUSAL/grpc").refused(refusal.described)
    if reply.exchange.code != "INVALID_ARGUMENT" and not refusal.unknown:
        raise UnmetError(f"INVALID_ARGUMENT for {refusal.described}", escape_text(reply.outcome()), reply)
