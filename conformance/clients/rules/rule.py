"""Rules and their results. A rule is a requirement with a function that finds violations of it in a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from conformance.wire.finding import Finding


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a requirement by a request.

    Attributes:
        requirement: the id of the requirement; over gRPC with `/grpc`.
        expected: the expected content, one line of printable ASCII; `actual`: the content found, likewise.
        offset: the offset of the wrong byte in the decoded body, or None.
    """

    requirement: str
    expected: str
    actual: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class RuleResults:
    """The results of one request. Requirements that do not apply to it are in neither attribute.

    Attributes:
        met: ids of the requirements that apply to the request and that it meets, in the order of the rules.
        misses: the violations, one for each violated requirement.
    """

    met: tuple[str, ...] = ()
    misses: tuple[Violation, ...] = ()


class Fault(NamedTuple):
    """A fault of a request: the expected and the actual content, each one line of ASCII.

    Attributes:
        offset: the offset of the wrong byte in the body, or None.
    """

    expected: str
    actual: str
    offset: int | None = None


class HasFindings(Protocol):
    """A parsed request, of either transport."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The faults found while parsing it."""
        ...


Request = TypeVar("Request", bound=HasFindings)
# None: the requirement does not apply to the request. Empty: the request meets it.
Faults = Iterable[Fault] | None


@dataclass(frozen=True)
class Rule(Generic[Request]):
    """A requirement, and the function that returns the faults by which a request violates it."""

    requirement: str
    faults: Callable[[Request], Faults]


def apply_rules(rules: Sequence[Rule[Request]], request: Request) -> RuleResults:
    """Apply rules to a request; only the first fault of each rule is reported."""
    met: list[str] = []
    misses: list[Violation] = []
    for rule in rules:
        faults = rule.faults(request)
        if faults is None:
            continue
        fault = next(iter(faults), None)
        if fault is None:
            met.append(rule.requirement)
        else:
            misses.append(Violation(rule.requirement, *fault))
    return RuleResults(tuple(met), tuple(misses))


def judge_kinds(*kinds: str, where: Callable[[Request], bool]) -> Callable[[Request], Faults]:
    """Return a function that reports findings of these kinds as faults.

    Without such findings, the requirement is met if `where` is true for the request, and does not apply otherwise.
    """

    def faults(request: Request) -> Faults:
        found = [to_fault(finding) for finding in request.findings if finding.kind in kinds]
        return found if found or where(request) else None

    return faults


def to_fault(finding: Finding) -> Fault:
    """Convert a finding to a fault whose actual content begins with the field."""
    return Fault(finding.expected, f"{finding.field}: {finding.actual}", finding.offset)
