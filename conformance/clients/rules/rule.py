"""Rules and their results. A rule is a requirement and the function that finds its violations in a request."""

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
        expected: the expected content, one line of printable ASCII.
        actual: the content of the request, one line of printable ASCII.
        offset: the offset of the wrong byte in the decoded body, or None.
    """

    requirement: str
    expected: str
    actual: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class RuleResults:
    """The results of all rules for one request. Requirements that do not apply to the request are in no attribute.

    Attributes:
        met: the ids of the requirements that the request meets, in the order of the rules.
        violations: the violations, one for each violated requirement.
    """

    met: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()


class Fault(NamedTuple):
    """A fault of a request.

    Attributes:
        expected: the expected content, one line of printable ASCII.
        actual: the content of the request, one line of printable ASCII.
        offset: the offset of the wrong byte in the decoded body, or None.
    """

    expected: str
    actual: str
    offset: int | None = None


class ParseResult(Protocol):
    """A parsed request over either transport, with the faults found by the parser."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The faults that the parser found."""
        ...


Request = TypeVar("Request", bound=ParseResult)
# None: the requirement does not apply to the request. Empty: the request meets it.
Faults = Iterable[Fault] | None


@dataclass(frozen=True)
class Rule(Generic[Request]):
    """A requirement, and the function that returns the faults by which a request violates this requirement."""

    requirement: str
    faults: Callable[[Request], Faults]


def apply_rules(rules: Sequence[Rule[Request]], request: Request) -> RuleResults:
    """Apply rules to a request; a violation reports only the first fault of its rule."""
    met: list[str] = []
    violations: list[Violation] = []
    for rule in rules:
        faults = rule.faults(request)
        if faults is None:
            continue
        fault = next(iter(faults), None)
        if fault is None:
            met.append(rule.requirement)
        else:
            violations.append(Violation(rule.requirement, *fault))
    return RuleResults(tuple(met), tuple(violations))


def report_findings(*kinds: str, applies_to: Callable[[Request], bool]) -> Callable[[Request], Faults]:
    """Return a function for a rule: it returns the parser's findings of these kinds as faults.

    For a request without such findings, the function returns no faults if `applies_to` is true, else None.
    """

    def faults(request: Request) -> Faults:
        found = [to_fault(finding) for finding in request.findings if finding.kind in kinds]
        return found if found or applies_to(request) else None

    return faults


def to_fault(finding: Finding) -> Fault:
    """Convert a finding of the parser to a fault, with the name of the field before the actual content."""
    return Fault(finding.expected, f"{finding.field}: {finding.actual}", finding.offset)
