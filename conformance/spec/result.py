"""The result of one check on one row, as plain data for workers and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NotRequired, TypedDict

from conformance.spec.check import format_label
from conformance.spec.outcome import Outcome, Reason, ReasonKind


class MessageEvidence(TypedDict):
    """A request or an answer as plain data; everything except the body is safe to display.

    Attributes:
        head: the request line or status, each header, and a transport failure if any; one line each.
        length: the length of the body in bytes.
        body_base64: the body; absent if it is long.
        fields: the fields of the body, each with start, end and label. A tensor whose elements all have the same size
            also has the size of an element.
    """

    head: list[str]
    length: int
    sha256: str
    body_base64: NotRequired[str]
    fields: NotRequired[list[list[int | str]]]


class Evidence(TypedDict):
    """The exchange that proves a failure."""

    request: MessageEvidence
    answer: MessageEvidence


@dataclass(frozen=True, slots=True)
class Failure:
    """The explanation of one unmet requirement, as lines of safe text.

    Attributes:
        requirement: ledger id; `level`, `statement` and `source` come from the ledger.
        source_urls: the URLs of the sentences in `source`, in the same order.
        bytes: annotated lines of a hex dump; the first line contains the first wrong byte. May be empty.
        request: the JSON that was sent, shortened.
        answer: the JSON of the answer, and a description of the data after the JSON.
        repeat: a shell command that repeats the request; empty if no request was sent.
        asked: the task given to a client; empty for servers.
        ends_server: whether the request ended the server.
        wrong_values: whether the answer is a success and has a readable tensor with wrong values.
        evidence: the exchange, or None; a report has the exchange only for the first row of a check and requirement.
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
    ends_server: bool = False
    wrong_values: bool = False


class SentRequests(TypedDict):
    """The properties of a row's valid inference requests, and how the server answered these requests.

    Attributes:
        features: properties of the requests, the simplest first. Each is a pair: a text, and the requirement that a
            server breaks if it refuses requests with this property.
        answer: how the server answered, an `AnswerKind`.
        over: the transport of the requests, `http` or `grpc`.
    """

    features: list[tuple[str, str]]
    answer: str
    over: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check on one row.

    Attributes:
        message: one line that explains every outcome except pass and observed to people; programs read `reason`.
        reason: why the row has no verdict, or None.
        observation: the observed behaviour, or empty.
        sent: the failed inference request; if the row passed, all inference requests of the row that the server
            answered; None if there is no such request.
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
        """The id with the row, for reports and baselines."""
        return format_label(self.id, self.row)

    def has_reason(self, kind: ReasonKind) -> bool:
        """Return whether the row has no verdict for a reason of this kind."""
        return self.reason is not None and self.reason.kind is kind

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: dicts, lists, texts and numbers."""
        # Field by field, because `dataclasses.asdict` copies every text of thousands of results.
        plain = {name: getattr(self, name) for name in _FIELDS}
        failure = {name: getattr(self.failure, name) for name in _FAILURE_FIELDS} if self.failure else None
        reason = {"kind": str(self.reason.kind), "subject": self.reason.subject} if self.reason else None
        plain = {"check": plain.pop("id"), **plain}
        return {**plain, "outcome": str(self.outcome), "failure": failure, "reason": reason}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CheckResult:
        """Rebuild a result from the plain data of `to_dict`."""
        values = {name: data["check" if name == "id" else name] for name in _FIELDS}
        values["outcome"] = Outcome(values["outcome"])
        if values["failure"]:
            values["failure"] = Failure(**values["failure"])
        if values["reason"]:
            values["reason"] = Reason(ReasonKind(values["reason"]["kind"]), values["reason"]["subject"])
        return cls(**values)


_FIELDS = tuple(item.name for item in fields(CheckResult))
_FAILURE_FIELDS = tuple(item.name for item in fields(Failure))
