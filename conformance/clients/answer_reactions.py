"""Observes how a watched client reacts to answers, by its next requests and its connections."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from conformance.clients.recording.records import RecordedExchange
from conformance.spec.ledger import GRPC_SUFFIX

REPEATS: Final = "CLIENT-REPEATS"
LEAVES: Final = "CLIENT-LEAVES"
MIN_ERROR_STATUS: Final = 400


@dataclass(slots=True)
class AnswerReactions:
    """The reactions of one client.

    Attributes:
        repeats: requirement -> the highest number of repetitions of a failed request; `after`: requirement -> the
            error status of that request, or "no answer".
        resets: the number of connections that the client reset after a whole answer with success.
    """

    repeats: dict[str, int] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    resets: int = 0
    _failed: dict[bytes, tuple[int, str]] = field(default_factory=dict)

    def note_request(self, recorded: RecordedExchange) -> None:
        """Count a request that repeats a request that has just failed."""
        count, outcome = self._failed.get(_compute_digest(recorded), (0, ""))
        name = f"{REPEATS}{GRPC_SUFFIX}" if recorded.received.is_over_grpc else REPEATS
        if count > self.repeats.get(name, 0):
            self.repeats[name], self.after[name] = count, outcome

    def note_answer(self, recorded: RecordedExchange) -> None:
        """Note whether a request has failed; a success ends a series of repetitions."""
        key, answer = _compute_digest(recorded), recorded.answer
        if answer is not None and answer.status is not None and answer.status < MIN_ERROR_STATUS:
            self._failed.clear()
            return
        outcome = "no answer" if answer is None or answer.status is None else answer.code or f"status {answer.status}"
        count, _ = self._failed.get(key, (0, ""))
        self._failed = {key: (count + 1, outcome)}

    def note_reset(self, recorded: RecordedExchange) -> None:
        """Count a reset after the answer to this request."""
        answer = recorded.answer
        if answer is not None and not answer.trouble and (answer.status or MIN_ERROR_STATUS) < MIN_ERROR_STATUS:
            self.resets += 1

    def describe(self, requirement: str) -> str:
        """Return the observation for a requirement; empty if there is none."""
        if count := self.repeats.get(requirement, 0):
            return f"the same request came again {count} time{'s' * (count > 1)} after {self.after[requirement]}"
        if requirement == LEAVES and self.resets:
            return f"the connection was reset {self.resets} time{'s' * (self.resets > 1)} after a successful answer"
        return ""


def _compute_digest(recorded: RecordedExchange) -> bytes:
    received = recorded.received
    return sha256(f"{received.method} {received.path}\n".encode("utf-8", "replace") + received.body).digest()
