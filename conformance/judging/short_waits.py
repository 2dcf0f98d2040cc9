"""Judges rows with short waits after a few requests to the target took the whole timeout.

A row that gets no answer in a short wait is repeated with the whole timeout, so that no server fails for being slow.
Two kinds of rows are not repeated:

* Another row of the same requirement already got no answer in the whole timeout. The later row fails, which cannot
  change the verdict of the requirement. It is blocked if it cannot be judged without an answer.
* Another row of the same requirement was already blocked, because its control request got no answer in the whole
  timeout. The later row is blocked as well if its control request is of the same kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.judging.row_judge import RowOutcome, name_requirement, no_verdict
from conformance.spec.check import Case
from conformance.spec.ledger import Level
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.text import escape_text
from conformance.transport.exchange import Exchange
from conformance.transport.target import Target
from conformance.transport.wait_budget import is_wait
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import INFERENCE_HEADER

# After this number of rows of a requirement got no answer in the whole timeout, its later rows are not repeated.
MAX_UNANSWERED_ROWS: Final = 1
# Headers that differ between control requests of one kind: the client name and the lengths.
_VARYING_HEADERS: Final = ("user-agent", "content-length", INFERENCE_HEADER.lower())


class WaitError(Exception):
    """A wait ended that does not prove that the server hangs, so the row has no verdict; the message is one line.

    Attributes:
        kind: the kind of wait: it was short, or the server may be slow.
        requirement: the requirement that the row would violate if the answer never comes.
    """

    def __init__(self, kind: ReasonKind, wait: object, requirement: str) -> None:
        super().__init__(escape_text(str(wait)))
        self.kind = kind
        self.requirement = requirement

    def conclude(self) -> RowOutcome:
        """Return the outcome of a row that will not be repeated with the whole timeout."""
        repeated = f"; not repeated, because a row of {self.requirement} got no answer in the whole timeout"
        is_short = self.kind is ReasonKind.SHORT_WAIT
        return no_verdict(Outcome.BLOCKED, self.kind, f"{self}{repeated if is_short else ''}", self.requirement)


class TooShortError(Exception):
    """A row got no answer in a short wait, and has to be repeated."""


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a run of a row waits for answers: see `Target.scope`."""

    short_s: float | None = None
    raises_when_hung: bool = False


class ShortWaits:
    """Decides how long the rows of one judge wait for answers, and which rows are repeated.

    Args:
        target: the server.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._unanswered: Counter[str] = Counter()
        self._silent_controls: set[tuple[object, ...]] = set()
        self._control: tuple[object, ...] | None = None  # the control request that blocks the current row

    def list_waits(self, case: Case) -> Iterator[Wait]:
        """Yield how the row waits, for the first run and for each repetition."""
        allows_short_wait = not (case.check.explores or case.requirement.is_of_robustness)
        if allows_short_wait and not self._find_short_wait():
            yield Wait(raises_when_hung=True)
        if allows_short_wait and (short_s := self._find_short_wait()) is not None:
            yield Wait(short_s)
        yield Wait()

    def record_outcome(self, found: RowOutcome, wait: Wait) -> None:
        """Record whether a row failed or was blocked because of a request without an answer.

        The judge calls this in the scope of the row, where the target lists the exchanges of the row.

        Raises:
            TooShortError: the row has to be repeated.
        """
        if wait.short_s is not None and self._must_repeat(found):
            raise TooShortError
        last = self._target.exchanges[-1:]
        if self._control is not None and last and not last[0].is_short_wait:
            self._silent_controls.add(self._control)
        self._control = None
        if found.failure is not None and any(map(is_wait, self._target.exchanges)):
            self._unanswered[found.failure.requirement] += 1

    def _find_short_wait(self) -> float | None:
        """Return the short wait in seconds that replaces the timeout, or None if rows wait for the whole timeout."""
        settings = self._target.settings
        return settings.wait.find_short_wait(settings.timeout)

    def _must_repeat(self, found: RowOutcome) -> bool:
        reason = found.reason
        if reason is None or reason.kind is not ReasonKind.SHORT_WAIT:
            return False
        return self._unanswered[reason.subject] < MAX_UNANSWERED_ROWS and self._control not in self._silent_controls

    @contextmanager
    def raise_for_waits(self, case: Case) -> Iterator[None]:
        """Run a check body in this context, which raises an exception if an inconclusive wait may decide the result.

        A body that passes does not depend on the unanswered requests: it judges other answers, which are correct.

        Raises:
            WaitError: a short wait, or the wait for a slow server, ended without a whole answer, and the body does not
                pass.
        """
        requirement = case.requirements[0]
        self._control = None
        try:
            yield
        except UnmetError as error:
            named = name_requirement(case, error)
            silent = error.reply.exchange if error.reply and is_wait(error.reply.exchange) else None
            if error.reply is None or silent:
                self._raise_if_slow(named)
            rests_on_short_wait = silent is None or silent.is_short_wait
            if self._unanswered[named] < MAX_UNANSWERED_ROWS and rests_on_short_wait:
                self._raise_if_short_wait(named)
            raise
        except (BlockedError, NotApplicableError) as error:
            if isinstance(error, BlockedError) and self._target.exchanges:
                self._control = _identify_control_request(requirement, self._target.exchanges[-1])
            self._raise_if_slow(requirement)
            self._raise_if_short_wait(requirement)
            raise
        if case.requirement.level == Level.OBSERVE:
            self._raise_if_slow(requirement)
            self._raise_if_short_wait(requirement)

    def _raise_if_short_wait(self, requirement: str) -> None:
        """Raise `WaitError` if a short wait of the row ended without a whole answer."""
        short = next((one.failure for one in self._target.exchanges if one.is_short_wait), None)
        if short is not None:
            raise WaitError(ReasonKind.SHORT_WAIT, short, requirement)

    def _raise_if_slow(self, requirement: str) -> None:
        """Raise `WaitError` if a request of the row got no answer from a server that may only be slow."""
        slow = next((one.failure for one in self._target.exchanges if one.is_slow), None)
        if slow is not None:
            raise WaitError(ReasonKind.SLOW, slow, requirement)


def _identify_control_request(requirement: str, exchange: Exchange) -> tuple[object, ...] | None:
    """Return a key that control requests of one kind share; None if the exchange got an answer or is a gRPC call.

    The key does not contain the body, because the values of tensors differ between rows. A gRPC call has no key,
    because only its body names the model.
    """
    message = exchange.message
    if not is_wait(exchange) or message.method == GRPC_METHOD:
        return None
    headers = sorted((name.lower(), value) for name, value in message.headers if name.lower() not in _VARYING_HEADERS)
    return requirement, message.method, message.path, *headers
