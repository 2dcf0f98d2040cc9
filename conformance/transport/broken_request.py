"""Describes broken requests: valid requests outside of rows that a server neither answers nor refuses.

The suite sends such requests during discovery, and to test whether a model answers. No row judges their exchanges, so
broken requests are reported separately.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.transport.exchange import Exchange, FailureKind, Reply, TransportFailure
from conformance.wire.request import Message

TOO_MANY_REQUESTS, NOT_IMPLEMENTED, UNAVAILABLE = 429, 501, 503
# Too many requests; unavailable; a gateway does not reach its server for now, or waits no longer.
BUSY_STATUSES = (TOO_MANY_REQUESTS, UNAVAILABLE, 502, 504)
MAX_RETRY_AFTER_S = 2.0  # seconds; a longer Retry-After is not awaited
MAX_KEPT_BYTES = 64 * 1024  # bytes of a body that are passed to workers and kept in evidence
# Whether the transport is gRPC -> the expected status of an answer and of a refusal, in words.
_RIGHT_STATUSES = {False: ("a 2xx status", "a 4xx status"), True: ("the status OK", "one such as INVALID_ARGUMENT")}


@dataclass(frozen=True, slots=True)
class BrokenRequest:
    """A request that was neither answered nor refused.

    Attributes:
        scope: the name of the scope (`TargetClient.scope`) in which the request was sent.
        second_reply: the reply to the repeated request; equal to `reply` if the request was not repeated.
        lost: why the target became unreachable after this request; empty if the target stayed reachable.
    """

    scope: str
    reply: Reply
    second_reply: Reply
    lost: str = ""

    @property
    def is_deliberate(self) -> bool:
        """Whether the server refuses the request on purpose, since both replies have the same 5xx status."""
        status = self.reply.status
        return not self.lost and status is not None and status >= 500 and self.second_reply.status == status

    @property
    def expected(self) -> str:
        """The outcome that the protocol allows, in words."""
        answered, refused = _RIGHT_STATUSES[self.reply.is_over_grpc]
        return (
            f"a refusal with {refused}"
            if self.is_deliberate
            else f"an answer with {answered}, or a refusal with {refused}"
        )

    @property
    def outcome(self) -> str:
        """The actual outcome, in words."""
        return f"{self.reply.outcome()}; {self.lost}" if self.lost else self.reply.outcome()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-compatible data for workers and evidence."""
        return {
            "scope": self.scope,
            "lost": self.lost,
            "reply": _convert_to_dict(self.reply),
            "again": _convert_to_dict(self.second_reply),
        }


def from_dict(data: Mapping[str, Any]) -> BrokenRequest:
    """Rebuild a broken request from the result of `to_dict`."""
    return BrokenRequest(data["scope"], _parse_reply(data["reply"]), _parse_reply(data["again"]), data["lost"])


def is_broken(reply: Reply) -> bool:
    """Return whether a request was neither answered nor refused: no answer, a partial answer, or a server error.

    The statuses 501 (not implemented), 503 (busy, or loading a model), 502 and 504 (a gateway whose server is down or
    busy) count as refusals, not as server errors.
    """
    if reply.exchange.failure is not None or reply.status is None:
        return True
    return reply.status >= 500 and reply.status not in (NOT_IMPLEMENTED, *BUSY_STATUSES)


def is_retryable(reply: Reply) -> bool:
    """Return whether sending the request again may succeed."""
    return is_broken(reply) or is_busy(reply)


def is_busy(reply: Reply) -> bool:
    """Return whether the server refused the request for now: it is overloaded, or has to load a model.

    Over gRPC these statuses stand for RESOURCE_EXHAUSTED, UNAVAILABLE and DEADLINE_EXCEEDED.
    """
    return reply.is_refusal and reply.status in BUSY_STATUSES


def _convert_to_dict(reply: Reply) -> dict[str, Any]:
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


def _parse_reply(data: Mapping[str, Any]) -> Reply:
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


def read_retry_after(reply: Reply) -> float:
    """Return the seconds that an answer asks the client to wait, up to a limit; 0 if it names no number of seconds."""
    seconds = (reply.header("Retry-After") or "").strip()
    return min(float(seconds), MAX_RETRY_AFTER_S) if seconds.isascii() and seconds.isdigit() else 0.0
