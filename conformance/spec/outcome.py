"""The outcomes of a check on one row, and the reasons for having no verdict."""

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
# The values of `--conformance-gate`: which of the two decides the exit status. Without it, any failure does.
GATES = (CONFORMANT, INTEROPERABLE)

# The outcome of an unmet requirement, by level.
UNMET_OUTCOMES = {
    "MUST": Outcome.FAIL,
    "SHOULD": Outcome.ADVISORY,
    "MAY": Outcome.OBSERVED,
    "OBSERVE": Outcome.OBSERVED,
}


@dataclass(frozen=True, slots=True)
class Wording:
    """The words for an outcome in reports.

    `long`: the words after a count of rows, as in "3 failed".
    """

    short: str
    long: str
    meaning: str


# In the order of pages: the outcomes that need attention come first.
OUTCOME_WORDINGS: Mapping[Outcome, Wording] = {
    Outcome.FAIL: Wording("fail", "failed", "a MUST is not met (under --conformance-strict: or a SHOULD)"),
    Outcome.KNOWN_FAILURE: Wording("known", "known failure", "not met, as listed in the baseline"),
    Outcome.FIXED: Wording("fixed", "fixed", "met, although the baseline lists it as not met"),
    Outcome.ERROR: Wording("error", "error", "the suite could not judge: the target was gone, or the suite has a bug"),
    Outcome.BLOCKED: Wording(
        "blocked", "blocked", "a simpler request fails already, so the suite cannot judge this row"
    ),
    Outcome.ADVISORY: Wording("advice", "advice", "a SHOULD is not met"),
    Outcome.OBSERVED: Wording(
        "observed", "observed", "the documents do not decide what is right; the report records what the server does"
    ),
    Outcome.PASS: Wording("pass", "passed", "judged and met"),
    Outcome.NOT_APPLICABLE: Wording(
        "n/a", "n/a", "the extension is not offered, no model fits, or the row is beyond a limit of the server"
    ),
}


class ReasonKind(StrEnum):
    """The kinds of reasons why a row has no verdict; each comment has the content of `Reason.subject` in brackets."""

    NOT_OFFERED = "not_offered"  # an extension is not offered (its name)
    TRANSPORT_NOT_GIVEN = "transport_not_given"  # the user gave no address for a transport (its name)
    NOTHING_OVER_HTTP = "nothing_over_http"  # no extension is offered over HTTP; only gRPC is judged
    NO_MODEL = "no_model"  # no model fills a role (its name)
    DECLARED_LIMIT = "declared_limit"  # beyond a limit that the target file declares (the limit)
    NOT_FOR_THIS_MODEL = "not_for_this_model"  # the signature of a deployed model is unsuitable (the model's name)
    NO_JSON_FORM = "no_json_form"  # JSON cannot represent a role's tensors, and binary data is not offered (the role)
    NOT_FOR_THIS_TARGET = "not_for_this_target"  # the check does not concern this target
    TOO_LARGE = "too_large"  # for the target, which rejected the body
    MODEL_IS_SILENT = "model_is_silent"  # a model answers no simple valid request (the model's name)
    SHORT_WAIT = "short_wait"  # no complete answer within a shortened wait (the requirement)
    SLOW = "slow"  # no answer within the timeout, from a server that may only be slow (the requirement)
    SIMPLER_IS_WRONG = "simpler_is_wrong"  # a simpler precondition of the check already fails
    TARGET_LOST = "target_lost"  # no connection can be made any more (the last attempt)
    NOT_RECORDED = "not_recorded"  # the recording does not have the request
    NOT_KEPT = "not_kept"  # the recording has only part of the answer, which was too long
    ADAPTER_BROKE = "adapter_broke"  # the adapter of a client crashed, hung, or violated its protocol
    SUITE_FAILED = "suite_failed"  # an error in the suite itself


class AnswerKind(StrEnum):
    """How a server answered a valid request; `NONE` means that no answer came."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"
    SERVER_ERROR = "server_error"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why a row has no verdict, for programs; the message is for people."""

    kind: ReasonKind
    subject: str = ""
