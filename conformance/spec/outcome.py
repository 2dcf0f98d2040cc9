"""What a check can come to on one row, in the words of the report, and why it came to no verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


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


# The verdicts of a run; `verdict` has the rules.
VERDICTS = (CONFORMANT, PARTIAL, NONCONFORMANT, INCOMPLETE, NARROWED) = (
    *("conformant", "partial", "nonconformant", "incomplete", "narrowed"),
)
INTEROPERABLE = "interoperable"
# What `--conformance-gate` takes: which of the two decides the exit status; without it, whether something fails.
GATES = (CONFORMANT, INTEROPERABLE)

# What an unmet requirement of each level comes to.
UNMET_OUTCOMES = {
    "MUST": Outcome.FAIL,
    "SHOULD": Outcome.ADVISORY,
    "MAY": Outcome.OBSERVED,
    "OBSERVE": Outcome.OBSERVED,
}


@dataclass(frozen=True, slots=True)
class Wording:
    """How an outcome is reported to people.

    Attributes:
        short: in a column or a cell.
        long: of a row, as in "3 failed".
        meaning: for a legend.
    """

    short: str
    long: str
    meaning: str


# In the order in which pages show them: what has to be looked at comes first.
OUTCOME_WORDINGS: Mapping[Outcome, Wording] = {
    Outcome.FAIL: Wording("fail", "failed", "a MUST is not met (under --conformance-strict: or a SHOULD)"),
    Outcome.KNOWN_FAILURE: Wording("known", "known failure", "not met, as the baseline says"),
    Outcome.FIXED: Wording("fixed", "fixed", "met, though the baseline says that it is not"),
    Outcome.ERROR: Wording(
        "error", "error", "the suite could not judge: the target was gone, or a fault of the suite's own"
    ),
    Outcome.BLOCKED: Wording("blocked", "blocked", "what the row rests on fails already, so nothing can be said"),
    Outcome.ADVISORY: Wording("advice", "advice", "a SHOULD is not met"),
    Outcome.OBSERVED: Wording("observed", "observed", "the documents leave it open; what the server does is recorded"),
    Outcome.PASS: Wording("pass", "passed", "judged and met"),
    Outcome.NOT_APPLICABLE: Wording(
        "n/a", "n/a", "not offered, no model to judge it with, or too large for the server"
    ),
}


class ReasonKind(StrEnum):
    """Why a row came to no verdict; `Reason.subject` is what stands in brackets."""

    NOT_OFFERED = "not_offered"  # an extension (which)
    TRANSPORT_NOT_GIVEN = "transport_not_given"  # the address of a transport (which)
    NOTHING_OVER_HTTP = "nothing_over_http"  # none of the extensions is offered there; gRPC is judged alone
    NO_MODEL = "no_model"  # a role that no model fills (which)
    NOT_FOR_THIS_MODEL = "not_for_this_model"  # a deployed model whose signature does not fit (which)
    NO_JSON_FORM = "no_json_form"  # a role without a JSON form, and no binary data offered (which)
    NOT_FOR_THIS_TARGET = "not_for_this_target"  # the check found that it has nothing to say
    TOO_LARGE = "too_large"  # for the target, which declined the body
    MODEL_IS_SILENT = "model_is_silent"  # a model answers no plain request (which)
    SIMPLER_IS_WRONG = "simpler_is_wrong"  # what the check rests on is wrong by itself
    TARGET_LOST = "target_lost"  # no connection can be made any more (the last try)
    NOT_RECORDED = "not_recorded"  # a recording has no such request
    NOT_KEPT = "not_kept"  # a recording has the answer in part, for it was too long
    ADAPTER_BROKE = "adapter_broke"  # what asks a client: it died, hung, or said what it must not
    SUITE_FAILED = "suite_failed"  # a fault of the suite's own


class AnswerKind(StrEnum):
    """How a request was answered that had to be answered."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"
    SERVER_ERROR = "server_error"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a row is not applicable, blocked or in error: for programs. The message beside it is for people."""

    kind: ReasonKind
    subject: str = ""
