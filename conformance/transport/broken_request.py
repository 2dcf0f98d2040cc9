"""What breaks beside rows: while the target is surveyed, or asked whether a model answers at all.

A request there is answered or refused; a server may refuse all that it does not know. Where it does neither, nobody
would say so: no row judges these exchanges.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.transport.exchange import Exchange, FailureKind, Reply, TransportFailure
from conformance.wire.request import Message

NOT_IMPLEMENTED, UNAVAILABLE = 501, 503
MAX_KEPT_BYTES = 64 * 1024  # bytes of a body that travels to workers and into evidence
# With which status a request is answered, and with which it is refused, over gRPC or not.
_RIGHT_STATUSES = {False: ("a 2xx status", "a 4xx status"), True: ("the status OK", "one such as INVALID_ARGUMENT")}


@dataclass(frozen=True, slots=True)
class BrokenRequest:
    """A request that was neither answered nor refused.

    Attributes:
        scope: what it was sent for.
        again: what came when it was sent again; the first reply itself, where it was not.
        lost: why the target was gone after it; empty where it was not.
    """

    scope: str
    reply: Reply
    again: Reply
    lost: str = ""

    @property
    def is_deliberate(self) -> bool:
        """Whether it is how the server refuses this request: with an error of its own, and the same each time."""
        status = self.reply.status
        return not self.lost and status is not None and status >= 500 and self.again.status == status

    @property
    def expected(self) -> str:
        """What would have been right, for a person."""
        answered, refused = _RIGHT_STATUSES[self.reply.is_over_grpc]
        return (
            f"a refusal with {refused}"
            if self.is_deliberate
            else f"an answer with {answered}, or a refusal with {refused}"
        )

    @property
    def outcome(self) -> str:
        """What came, for a person."""
        return f"{self.reply.outcome()}; {self.lost}" if self.lost else self.reply.outcome()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as workers and evidence take it."""
        return {"scope": self.scope, "lost": self.lost, "reply": _plain(self.reply), "again": _plain(self.again)}


def from_dict(data: Mapping[str, Any]) -> BrokenRequest:
    """Return what `to_dict` made plain."""
    return BrokenRequest(data["scope"], _reply(data["reply"]), _reply(data["again"]), data["lost"])


def is_broken(reply: Reply) -> bool:
    """Say whether a request was neither answered nor refused: no answer came, part of one, or the server's own error.

    A server that does not implement something says so with 501, and one that is busy, or has a model to load, with 503.
    """
    if reply.exchange.failure is not None or reply.status is None:
        return True
    return reply.status >= 500 and reply.status not in (NOT_IMPLEMENTED, UNAVAILABLE)


def is_retryable(reply: Reply) -> bool:
    """Say whether a request may well be answered when it is sent once more."""
    return is_broken(reply) or reply.status == UNAVAILABLE


def _plain(reply: Reply) -> dict[str, Any]:
    found = reply.exchange
    message = found.message
    return {
        "path": message.path,
        "method": message.method,
        "sent_headers": [list(pair) for pair in message.headers],
        "sent": b64encode(message.body[:MAX_KEPT_BYTES]).decode(),
        "url": found.url,
        "status": found.status,
        "headers": [list(pair) for pair in found.headers],
        "body": b64encode(found.body[:MAX_KEPT_BYTES]).decode(),
        "failure": [str(found.failure.kind), found.failure.text] if found.failure else None,
        "code": found.code,
        "details": found.details,
    }


def _reply(data: Mapping[str, Any]) -> Reply:
    headers = tuple((name, value) for name, value in data["sent_headers"])
    failure = data["failure"]
    return Reply(
        Exchange(
            0,
            Message(data["path"], headers, b64decode(data["sent"]), data["method"]),
            data["url"],
            data["status"],
            tuple((name, value) for name, value in data["headers"]),
            b64decode(data["body"]),
            TransportFailure(FailureKind(failure[0]), failure[1]) if failure else None,
            code=data["code"],
            details=data["details"],
        )
    )
