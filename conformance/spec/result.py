"""The result of one check on one row, as plain data: it travels from workers and into reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NotRequired, TypedDict

from conformance.spec.check import format_label
from conformance.spec.outcome import Outcome, Reason, ReasonKind


class MessageEvidence(TypedDict):
    """A request or an answer, as plain data, safe to show but for the body.

    Attributes:
        head: request line or status, headers, and what went wrong on the way; a line each.
        length: of the body in bytes; `sha256` is its digest.
        body_base64: the body; absent where it is long.
        fields: its parts: start, end, label, and the size of each element where they are all of one size.
    """

    head: list[str]
    length: int
    sha256: str
    body_base64: NotRequired[str]
    fields: NotRequired[list[list[int | str]]]


class Evidence(TypedDict):
    """The exchange that shows a failure."""

    request: MessageEvidence
    answer: MessageEvidence


@dataclass(frozen=True, slots=True)
class Failure:
    """What a person needs to understand one unmet requirement, as lines of safe text.

    Attributes:
        requirement: ledger id; `level`, `statement` and `source` are the ledger's.
        source_urls: where the sentences stand that `source` names, in the same order.
        bytes: annotated rows of hexadecimal, the first of them holding the first wrong byte; may be empty.
        request: the JSON that was sent, shortened; `answer`: that of what came back, and what followed it.
        repeat: a shell command that sends the request again; empty where no request was sent.
        asked: what a client was asked to do; empty of servers.
        evidence: the exchange itself, or None; a report keeps that of the first row of a check and a requirement.
    """

    requirement: str
    level: str
    statement: str
    source: str
    expected: str
    actual: str
    sent: str = ""
    bytes: list[str] = field(default_factory=list)
    repeat: str = ""
    source_urls: list[str] = field(default_factory=list)
    request: str = ""
    answer: str = ""
    evidence: Evidence | None = None
    asked: str = ""


class SentRequests(TypedDict):
    """The inference requests of a row that had to be answered, and how they were.

    Attributes:
        features: what can be said of them, the plainest first: a text, and the requirement that a server breaks which
            takes no such request.
        answer: an `AnswerKind`.
        over: the transport.
    """

    features: list[tuple[str, str]]
    answer: str
    over: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check on one row.

    Attributes:
        requirements: the ledger ids that the row answers for.
        message: one line that says why, for every outcome but pass and observed. For people: programs read `reason`.
        reason: why there is no verdict, where there is none.
        observation: what was observed, or empty.
        exchanges: how many exchanges it took.
        sent: the inference request that failed, or all that were answered where the row passed; None without any.
    """

    id: str
    row: str
    claim: str
    area: str
    extension: str
    outcome: Outcome
    requirements: list[str]
    message: str = ""
    observation: str = ""
    duration_s: float = 0.0
    exchanges: int = 0
    failure: Failure | None = None
    reason: Reason | None = None
    sent: SentRequests | None = None

    @property
    def label(self) -> str:
        """The id with the row, as reports and baselines name it."""
        return format_label(self.id, self.row)

    def is_for(self, kind: ReasonKind) -> bool:
        """Whether there is no verdict for a reason of this kind."""
        return self.reason is not None and self.reason.kind is kind

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: dicts, lists, texts and numbers."""
        # Field by field, since `dataclasses.asdict` copies every text of thousands of results.
        plain = {name: getattr(self, name) for name in _FIELDS}
        failure = {name: getattr(self.failure, name) for name in _FAILURE_FIELDS} if self.failure else None
        reason = {"kind": str(self.reason.kind), "subject": self.reason.subject} if self.reason else None
        plain = {"check": plain.pop("id"), **plain}
        return {**plain, "outcome": str(self.outcome), "failure": failure, "reason": reason}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CheckResult:
        """Return the result that `to_dict` made plain."""
        values = {name: data["check" if name == "id" else name] for name in _FIELDS}
        values["outcome"] = Outcome(values["outcome"])
        if values["failure"]:
            values["failure"] = Failure(**values["failure"])
        if values["reason"]:
            values["reason"] = Reason(ReasonKind(values["reason"]["kind"]), values["reason"]["subject"])
        return cls(**values)


_FIELDS = tuple(item.name for item in fields(CheckResult))
_FAILURE_FIELDS = tuple(item.name for item in fields(Failure))
