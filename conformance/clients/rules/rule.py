"""What a rule is, and what it finds: a requirement, and a function that says where a request does not meet it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from conformance.wire.finding import Finding


@dataclass(frozen=True, slots=True)
class Violation:
    """A requirement that a request does not meet.

    Attributes:
        requirement: its id; over gRPC with `/grpc`.
        expected: what should stand there, one line of printable ASCII, as is `actual`: what does.
        offset: the byte of the body to blame, as it was before any content coding; None where none is.
    """

    requirement: str
    expected: str
    actual: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class RuleResults:
    """What one request says of its client. A requirement that it says nothing about is in neither.

    Attributes:
        met: ids of the requirements that the request was judged by and meets, in the order of the rules.
        misses: those that it does not meet; one fault is one miss.
    """

    met: tuple[str, ...] = ()
    misses: tuple[Violation, ...] = ()


class Fault(NamedTuple):
    """What should stand in a request and what does, each one line of ASCII; the byte of the body to blame, if any."""

    expected: str
    actual: str
    offset: int | None = None


class HasFindings(Protocol):
    """A request taken apart, of either transport."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with it."""
        ...


Request = TypeVar("Request", bound=HasFindings)
# None: the request says nothing about the requirement. No fault: it meets it.
Faults = Iterable[Fault] | None


@dataclass(frozen=True)
class Rule(Generic[Request]):
    """One rule: the requirement, and what is wrong with a request by it."""

    requirement: str
    faults: Callable[[Request], Faults]


def apply_rules(rules: Sequence[Rule[Request]], request: Request) -> RuleResults:
    """Return what a request meets and misses by these rules; the first fault stands for all of one requirement."""
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
    """Return a function that blames the findings of these kinds, `where` the request says something about them.

    A finding of one of the kinds is blamed wherever it is.
    """

    def faults(request: Request) -> Faults:
        found = [to_fault(finding) for finding in request.findings if finding.kind in kinds]
        return found if found or where(request) else None

    return faults


def to_fault(finding: Finding) -> Fault:
    """Return a finding as a fault, with the field that it is about in front of what stands there."""
    return Fault(finding.expected, f"{finding.field}: {finding.actual}", finding.offset)
