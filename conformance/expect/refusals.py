"""Expectations about refusals over HTTP and gRPC: the request is rejected, and the server keeps answering."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformance.expect import attribution
from conformance.expect.content_coding import decode_reply
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError, is_met
from conformance.roles.model import Model
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.unreachable import TargetLostError
from conformance.wire.json_text import parse_json
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor


def expect_refusal(target: AnyTarget, model: Model, message: Message, fault: str = "") -> Reply:
    """Expect that a message is refused for its fault, and that the server then answers a valid request.

    The two messages use separate connections. The areas `errors` and `grpc` send the same messages and
    judge the content of the refusal.
    """
    reply = target.send(message, fresh=True)
    expect(reply).refused(fault)
    expect_alive(target, model)
    return reply


def expect_refusal_or_right(
    target: AnyTarget, model: Model, message: Message, tensors: Sequence[Tensor], fault: str, *, must: str, should: str
) -> None:
    """Expect that a message is refused for its fault, or else that the answer to its tensors is correct.

    `message`: the message, sent on a separate connection.
    `must`: the requirement that wrong tensors, or no answer, violate.
    """
    reply = target.send(message, fresh=True)
    if reply.succeeded:
        expect(reply, must).tensors(model.expected(tensors))
    expect(reply, should if reply.succeeded else must).refused(fault)
    expect_alive(target, model)


def expect_alive(target: AnyTarget, model: Model, requirement: str = "OIP-ALIVE") -> None:
    """Expect that the model still answers a valid request, on a new connection.

    `requirement`: the requirement that is violated if the model does not answer; it depends on whether the
    preceding messages were legal.
    """
    try:
        for request in target.build_good_requests(model):
            reply = target.send(target.message(request), fresh=True)
            if reply.succeeded:
                return
    except TargetLostError as lost:
        evidence = Reply(target.exchanges[-1])
        raise UnmetError("a server that keeps answering", str(lost), evidence, requirement=requirement) from lost
    unmet = UnmetError(
        "an answer to a later valid request", escape_text(reply.outcome()), reply, requirement=requirement
    )
    if before := target.find_plain_refusal(model):  # the judge has asked for it before the row
        raise BlockedError(f"{model.name} answers no plain request: {escape_text(before.outcome())}", unmet)
    raise unmet


# Statuses of server errors that refuse a request: not implemented, unavailable, HTTP version not supported.
_REFUSING_SERVER_ERRORS = (501, 503, 505)


def is_refused(target: AnyTarget, model: Model, reply: Reply, *, advises_status: bool = False) -> bool:
    """Return whether a request that a server may refuse was refused; after a refusal the server must keep answering.

    With `advises_status`, the status of a refusal should not be 500.

    Raises:
        UnmetError: the server does not keep answering, or the call ended with neither an answer nor a status; or the
            server failed instead of refusing.
    """
    if attribution.attribute_missing_status(reply):
        expect(reply).refused()
    if reply.is_refusal:
        expect_alive(target, model)
        if advises_status:
            expect_refusal_status(reply)
    return reply.is_refusal


def expect_refusal_status(reply: Reply) -> None:
    """Expect a refusal to have another status than 500, which is "an unexpected condition" (RFC 9110, 15.6.1)."""
    status = reply.status or 0
    if not reply.is_over_grpc and status >= 500 and status not in _REFUSING_SERVER_ERRORS:
        raise expect(reply, "OIP-ERROR-STATUS").unmet("an answer or a 4xx status", escape_text(reply.outcome()))


# --- the error object -------------------------------------------------------------------------------------------------

ERROR, ERROR_ELSEWHERE = "OIP-ERROR", "OIP-ERROR-ELSEWHERE"
# The requests that the documents answer with an error object if they fail; no error of a health path is defined.
_ENDPOINTS = re.compile("GET /v2/?(models/[^/]+(/versions/[^/]+)?)?|POST /v2/models/[^/]+(/versions/[^/]+)?/infer")
# Refusals of HTTP itself, not of an endpoint: an unknown expectation, an unknown version of HTTP; and chunks,
# which no client may send to a server that answers in HTTP/1.0 (RFC 9112, 6.1), with trailer fields to none.
_HTTP_STATUSES = (417, 426, 505)
# A gateway may refuse with these before the server sees the request: for credentials and client names, lengths, rates,
# and servers out of reach (RFC 9110, 15.5 and 15.6; RFC 6585).
_GATEWAY_STATUSES = (401, 403, 407, 408, 413, 414, 429, 431, 502, 503, 504)
_ABSENT_STATUSES = (404, 405, 501)  # of a path with a version on a server without versions


def is_error_object(reply: Reply) -> bool:
    """Return whether the body of a reply is a JSON object with the string `error`."""
    document, _ = parse_json(reply.body)
    return isinstance(document, dict) and isinstance(document.get("error"), str)


def expect_error_object(reply: Reply, requirement: str) -> None:
    """Expect an error status and a JSON object with the string `error`."""
    expectation = expect(reply, requirement).refused()
    if not is_error_object(reply):
        text = escape_text(reply.body[:200].decode("utf-8", "replace"))
        raise expectation.unmet('a JSON object with the string "error"', f"HTTP {reply.status}: {text or 'no body'}")


def find_refusal_without_error(replies: Sequence[Reply]) -> UnmetError | None:
    """Return the first refusal of an endpoint that has no error object, those that break a MUST first; None if none."""
    found = [unmet for reply in replies if reply.is_refusal and (unmet := _find_missing_error(reply))]
    return next((unmet for unmet in found if unmet.requirement == ERROR), found[0] if found else None)


def _find_missing_error(reply: Reply) -> UnmetError | None:
    message, status = reply.exchange.message, reply.status
    has_odd_chunks = reply.is_http_1_0 or bool(reply.exchange.send_options.chunk_format.trailers)
    is_of_http = status in _HTTP_STATUSES or (reply.exchange.is_chunked and has_odd_chunks)
    if is_of_http or not _ENDPOINTS.fullmatch(f"{message.method} {message.path}"):
        return None
    is_elsewhere = status in _GATEWAY_STATUSES or (status in _ABSENT_STATUSES and "/versions/" in message.path)
    try:
        if plain := decode_reply(reply):
            expect_error_object(plain, ERROR_ELSEWHERE if is_elsewhere else ERROR)
    except UnmetError as unmet:
        unmet.reply, unmet.requirement = reply, unmet.requirement or ERROR
        return unmet
    return None


def has_error_object(target: AnyTarget) -> bool:
    """Return whether the server refuses a simple wrong request with an error object."""
    wrong = Message("/v2/models/there-is-no-such-model/infer", (("Content-Type", "application/json"),), b"{")
    reply = target.send(wrong, fresh=True)
    return is_met(lambda: expect_error_object(reply, ERROR))
