"""The types of the JSON report, member by member as in `schemas/report.schema.json`.

A report is plain data, as it is read from a file, and the schema checks it then; these types let mypy check the code
that makes and shows it. `NotRequired` marks members that a report may lack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from conformance.spec.ledger import Party
from conformance.spec.result import Evidence


class Failure(TypedDict):
    """Why a row failed: the unmet requirement, what was expected, and what happened."""

    requirement: str
    level: str
    statement: str
    source: str
    source_urls: NotRequired[Sequence[str]]
    expected: str
    actual: str
    asked: NotRequired[str]
    ends_server: NotRequired[bool]
    wrong_values: NotRequired[bool]
    sent: str
    bytes: Sequence[str]
    repeat: str
    request: NotRequired[str]
    answer: NotRequired[str]
    evidence: NotRequired[Evidence]


class Reason(TypedDict):
    """Why a row has no verdict."""

    kind: str
    subject: str


class ReportRow(TypedDict):
    """The result of a row.

    In the summary of a report, an entry with a `count` represents that number of rows. Entries of a summary lack some
    of the other members as well, so code that shows summaries reads these members with `get`.
    """

    check: str
    row: str
    claim: str
    area: str
    outcome: str
    requirements: Sequence[str]
    message: str
    observation: str
    duration_s: float
    exchanges: Sequence[int]
    failure: Failure | None
    reason: NotRequired[Reason | None]
    count: NotRequired[int]


class Unjudged(TypedDict):
    """Why rows of a requirement were not judged: their number, the reasons, and the roles to deploy."""

    rows: int
    why: Sequence[str]
    needs: Sequence[str]


class RequirementEntry(TypedDict):
    """The verdict on a requirement; that of a pack has its statement and source, since readers may lack the pack."""

    id: str
    transport: str
    level: str
    concern: str
    area: str
    extension: str
    verdict: str
    checks: Sequence[str]
    unjudged: NotRequired[Unjudged]
    statement: NotRequired[str]
    source: NotRequired[str]
    url: str


class Met(TypedDict):
    """The number of MUSTs that are met, of those that apply."""

    met: int
    of: int


class ExtensionVerdict(TypedDict):
    """The verdict on an extension, and its rows by outcome."""

    offered: bool
    verdict: str
    interoperable: bool | None
    counts: Mapping[str, int]


class ExtensionEntry(ExtensionVerdict):
    """The entry of an extension, with its MUSTs by concern."""

    musts: Mapping[str, Met]


class TensorEntry(TypedDict):
    """An input of a deployed model."""

    name: str
    datatype: str
    shape: Sequence[int]


class ModelEntry(TypedDict):
    """The signature of a deployed model."""

    inputs: Sequence[TensorEntry]
    outputs: Sequence[str]
    not_deterministic: Sequence[str]


class TargetDetails(TypedDict, total=False):
    """The members that the entry of a target may lack; `limits` are those of `roles.declared_limits`."""

    grpc: str
    unreachable: bool
    language: str
    suffers_from_concurrency: str
    waited_s: float
    transports: Sequence[str]
    refused_clients: Mapping[str, str]
    limits: Mapping[str, Any]
    models: Mapping[str, ModelEntry]


class TargetEntry(TargetDetails):
    """The judged server or client."""

    url: str
    name: str | None
    version: str | None
    extensions_listed: Sequence[str]
    extensions_offered: Sequence[str]
    roles: Mapping[str, str]


class Options(TypedDict):
    """The options that affect the verdict."""

    profile: str
    strict: bool
    dangerous: NotRequired[bool]
    connections: NotRequired[int]
    robustness: NotRequired[bool]
    extensions: Sequence[str]
    models: NotRequired[Sequence[str]]
    timeout_s: float
    headers: Sequence[str]


class Gate(TypedDict):
    """The rows that differ from a baseline."""

    passed: bool
    known: Sequence[str]
    new: Sequence[str]
    fixed: Sequence[str]
    stale: Sequence[str]


class Deployment(TypedDict):
    """A role to deploy, and what could be judged then."""

    role: str
    musts: Sequence[str]
    rows: int


class CoverageEntry(TypedDict):
    """What the run did not judge."""

    unjudged: Sequence[str]
    waiting: int
    left_out: int
    deploy: Sequence[Deployment]


class RobustnessEntry(TypedDict):
    """The results of hostile requests: how many rows held, of how many."""

    held: int
    of: int
    rows: Sequence[ReportRow]


class PackEntry(TypedDict):
    """What a pack says of the target: which pack it was, its verdict, its requirements and rows."""

    name: str
    version: str
    digest: str
    verdict: str
    interoperable: bool | None
    why: Sequence[str]
    requirements: Sequence[RequirementEntry]
    rows: Sequence[ReportRow]


class Pattern(TypedDict):
    """A failure pattern: one or two features that only requests with the same kind of failure have.

    Attributes:
        requests: the features, as the end of "Every request ...", such as "with BYTES in JSON".
        answer: an `AnswerKind`.
        missed: requirement id -> the number of rows of the pattern that do not meet it.
        others: the number of rows over the same transport that got another answer; no such row has the features.
    """

    requests: str
    answer: str
    requirement: str
    missed: Mapping[str, int]
    rows: int
    others: int


class Suite(TypedDict):
    """The suite that judged."""

    name: str
    version: str
    digest: str


class Footer(TypedDict):
    """Whether all rows ran, their number, and the digest of everything else."""

    complete: bool
    rows: int
    digest: str


class OptionalMembers(TypedDict, total=False):
    """The members that a report may lack; `party` is absent for a server."""

    party: str
    gate: Gate
    coverage: CoverageEntry
    failure_patterns: Sequence[Pattern]
    packs: list[PackEntry]
    robustness: RobustnessEntry


class Report(OptionalMembers):
    """A report."""

    schema: int
    suite: Suite
    started: str
    finished: str
    options: Options
    seed: int | None
    target: TargetEntry
    verdict: str
    interoperable: bool | None
    why: Sequence[str]
    extensions: Mapping[str, ExtensionEntry]
    requirements: Sequence[RequirementEntry]
    rows: Sequence[ReportRow]
    footer: Footer


def find_party(report: Report) -> Party:
    """Return the judged party of a report, which is a server if the report does not name the party."""
    return Party(report.get("party", Party.SERVER))


def list_requirements(report: Report) -> list[RequirementEntry]:
    """Return the requirements of a report, those of packs last."""
    return [*report["requirements"], *(entry for pack in report.get("packs", ()) for entry in pack["requirements"])]


def list_rows(report: Report) -> list[ReportRow]:
    """Return the rows of a report, those of packs last."""
    return [*report["rows"], *(row for pack in report.get("packs", ()) for row in pack["rows"])]
