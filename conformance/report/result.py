"""The result of one check on one row, as plain data: it travels from workers and into reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from conformance.outcome import Outcome

# How the message of a check begins that had no model to run on; the role follows.
NO_MODEL = "no model for the role "
# The whole message where a server that is judged over gRPC, too, is judged there alone.
NOTHING_OVER_HTTP = "none of the extensions is offered over HTTP"


@dataclass(frozen=True, slots=True)
class Failure:
    """What a person needs to understand one unmet requirement, as lines of safe text.

    Attributes:
        requirement: ledger id; `level`, `statement` and `source` are the ledger's.
        bytes: annotated rows of hexadecimal, the first of them holding the first wrong byte; may be empty.
        repeat: a shell command that sends the request again; empty where no request was sent.
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


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check on one row.

    Attributes:
        requirements: the ledger ids that the row answers for.
        message: one line that says why, for every outcome but pass and observed.
        observation: what was observed, or empty.
        exchanges: how many exchanges it took.
    """

    id: str
    row: str
    name: str
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

    @property
    def label(self) -> str:
        """The id with the row, as reports and baselines name it."""
        return f"{self.id} [{self.row}]" if self.row else self.id

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: dicts, lists, texts and numbers."""
        return {**asdict(self), "outcome": str(self.outcome)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CheckResult:
        """Return the result that `to_dict` made plain."""
        values = {item.name: data[item.name] for item in fields(cls)}
        failure = values.pop("failure")
        return cls(**{**values, "outcome": Outcome(values["outcome"])}, failure=Failure(**failure) if failure else None)
