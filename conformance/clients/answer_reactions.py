"""Observes how clients react to answers: whether they repeat failed requests or reset connections."""

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
        repeats: requirement (`CLIENT-REPEATS`, over gRPC `CLIENT-REPEATS/grpc`) -> the maximum number of times that the
            client repeated a failed request.
        after: requirement -> how the request repeated most often failed: its error status, or "no answer".
        resets: how many connections the client reset after a complete, successful answer.
    """

    repeats: dict[str, int] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    resets: int = 0
    _failed: dict[bytes, tuple[int, str]] = field(default_factory=dict)

    def note_request(self, recorded: RecordedExchange) -> None:
        """Count the request if it repeats the last failed request, and no request has succeeded in between."""
        count, outcome = self._failed.get(_compute_digest(recorded), (0, ""))
        name = f"{REPEATS}{GRPC_SUFFIX}" if recorded.received.is_over_grpc else REPEATS
        if count > self.repeats.get(name, 0):
            self.repeats[name], self.after[name] = count, outcome

    def note_answer(self, recorded: RecordedExchange) -> None:
        """Count a failed request; a successful answer resets the counts."""
        key, answer = _compute_digest(recorded), recorded.answer
        if answer is not None and answer.status is not None and answer.status < MIN_ERROR_STATUS:
            self._failed.clear()
            return
        outcome = "no answer" if answer is None or answer.status is None else answer.code or f"status {answer.status}"
        count, _ = self._failed.get(key, (0, ""))
        self._failed = {key: (count + 1, outcome)}

    def note_reset(self, recorded: RecordedExchange) -> None:
        """Count a connection that the client reset after the answer to this request, if the answer was a success."""
        answer = recorded.answer
        if answer is not None and not answer.trouble and (answer.status or MIN_ERROR_STATUS) < MIN_ERROR_STATUS:
            self.resets += 1

    def describe(self, requirement: str) -> str:
        """Return one line that describes the reactions that violate a requirement; empty if there were none."""
        if count := self.repeats.get(requirement, 0):
            return f"the client repeated a request {count} time{'s' * (count > 1)} after {self.after[requirement]}"
        if requirement == LEAVES and self.resets:
            times = f"{self.resets} time{'s' * (self.resets > 1)}"
            return f"the client reset the connection {times} after a successful answer"
        return ""


def _compute_digest(recorded: RecordedExchange) -> bytes:
    received = recorded.received
    return sha256(f"{received.method} {received.path}\n".encode("utf-8", "replace") + received.body).digest()
