"""What a check can come to, and the exceptions by which a body says so.

A body that returns has been satisfied. `Unmet` says that one requirement is not met; how bad that is, is for the
ledger to say, not for the check. `Blocked` says that the check cannot tell, because of something that other checks
judge; `NotApplicable`, that it does not concern this target. `TargetLost` says that nobody can be judged any more.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.target.exchange import Reply


class Outcome(StrEnum):
    """The outcome of one check on one row, in the words of the report."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    FAIL = "fail"
    ADVISORY = "advisory"
    OBSERVED = "observed"
    NOT_APPLICABLE = "not_applicable"
    BLOCKED = "blocked"
    ERROR = "error"
    KNOWN_FAILURE = "known_failure"
    FIXED = "fixed"


# What an unmet requirement of each level comes to.
UNMET = {
    "MUST": Outcome.FAIL,
    "SHOULD": Outcome.ADVISORY,
    "MAY": Outcome.OBSERVED,
    "OBSERVE": Outcome.OBSERVED,
}


class Unmet(Exception):  # noqa: N818 - named for what it says, as in "requirement unmet"
    """One requirement is not met.

    Attributes:
        expected: what the requirement asks for, in a few words.
        actual: what the server did.
        reply: the exchange that shows it, where there is one.
        requirement: its ledger id; None stands for the first that the check answers for.
        offset: where in the answer's body the first wrong byte is, or None.
    """

    def __init__(
        self,
        expected: str,
        actual: str,
        reply: Reply | None = None,
        *,
        requirement: str | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(f"expected {expected}, got {actual}")
        self.expected = expected
        self.actual = actual
        self.reply = reply
        self.requirement = requirement
        self.offset = offset


class Blocked(Exception):  # noqa: N818 - an outcome
    """What a check rests on does not hold, so that it can say nothing; the message is one line that says what."""


class NotApplicable(Exception):  # noqa: N818 - an outcome
    """The check has nothing to say of this target; the message is one line that says why."""


class TargetLost(Exception):  # noqa: N818 - a state of the target, not an error of ours
    """The target takes no connection any more: what is left cannot be judged."""
