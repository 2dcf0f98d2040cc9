"""Which faults are named for a run: those whose patterns fit clearly, one after the other.

The best fit is named first. What it explains is then left out, and what remains is held against all patterns again,
so that two faults of one server are both named. Faults that fit as well as one of these follow, where there is room:
no row tells them apart. Where nothing fits clearly, nothing is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isclose
from typing import Any

from conformance.fault_hints.observed_rows import Entry, ObservedRows, is_unmet, sort_rows
from conformance.fault_hints.overlap import Overlap, OverlapScorer, is_untested
from conformance.fault_hints.patterns import Pattern, Patterns, Symptom, load
from conformance.spec.text import escape_text

MAX_HINTS = 3


@dataclass(frozen=True, slots=True)
class FitThreshold:
    """What a fit has to reach: `Overlap.score`, and `Overlap.kept`."""

    score: float
    kept: float


# What fits clearly: docs/likeness.md has the measurements by which it was set.
CLEAR_FIT = FitThreshold(0.4, 0.5)


@dataclass(frozen=True, slots=True)
class FaultHint:
    """A fault that a run looks like.

    Attributes:
        fault: its name, which `oip-conformance explain` takes.
        requirement: the one that it is about.
        summary: what a server does that has it, in one sentence.
        explains: how many rows that are not met it explains.
        of: how many are not met.
    """

    fault: str
    requirement: str
    summary: str
    explains: int
    of: int

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a report."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fault, and how well it fits what was seen."""

    pattern: Pattern
    fit: Overlap


def find_fault_hints(checks: Sequence[Entry], patterns: Patterns | None = None) -> list[FaultHint]:
    """Return what a run looks like, the best fit first: at most three faults, none where nothing fits clearly.

    Args:
        checks: entries of a report's `checks`; `id`, `row`, `outcome` and the requirement of the failure decide.
        patterns: those of the faults; None for the installed ones, which are read only where something is not met.
    """
    count = sum(map(is_unmet, checks))
    if not count:
        return []
    known = load() if patterns is None else patterns
    return select_hints(sort_rows(checks, known), known, count)


def select_hints(
    found: ObservedRows, patterns: Patterns, count: int, least: FitThreshold = CLEAR_FIT
) -> list[FaultHint]:
    """Return the faults that fit at least so well, the best first, then their equals; `count` rows are not met."""
    best: list[FaultHint] = []
    equals: list[FaultHint] = []
    while len(best) < MAX_HINTS:
        fits = [
            each
            for each in rank_patterns(find_sharing_patterns(found, patterns), found, patterns)
            if is_clear(each.fit, least)
        ]
        fits = [each for each in fits if count_explained_rows(each.pattern, found, patterns)]
        if not fits:
            break
        first, *others = [each.pattern for each in fits if isclose(each.fit.score, fits[0].fit.score)]
        left = found.without(find_explained_symptoms(first, found))
        same = [each for each in others if not count_explained_rows(each, left, patterns)]
        best.append(_likeness(first, found, patterns, count))
        equals += [_likeness(each, found, patterns, count) for each in same]
        found = left
    return (best + equals)[:MAX_HINTS]


def _likeness(pattern: Pattern, found: ObservedRows, patterns: Patterns, count: int) -> FaultHint:
    explains = count_explained_rows(pattern, found, patterns)
    return FaultHint(pattern.fault, pattern.requirement, pattern.summary, explains, count)


def find_sharing_patterns(found: ObservedRows, patterns: Patterns) -> list[Pattern]:
    """Return the patterns that have a symptom in common with what was seen."""
    near = {each.fault: each for symptom in found.symptoms for each in patterns.showing.get(symptom, ())}
    return list(near.values())


def rank_patterns(among: Iterable[Pattern], found: ObservedRows, patterns: Patterns) -> list[Candidate]:
    """Return patterns with how well they fit, the best first."""
    scale = OverlapScorer(found, patterns)
    fits = [Candidate(pattern, scale.overlap(pattern)) for pattern in among]
    return sorted(fits, key=lambda each: (-each.fit.score, -each.fit.hit, each.pattern.fault))


def is_clear(fit: Overlap, least: FitThreshold) -> bool:
    """Whether a fault fits so well that it may be named."""
    return fit.score >= least.score and fit.kept >= least.kept


def count_explained_rows(pattern: Pattern, found: ObservedRows, patterns: Patterns) -> int:
    """Return how many unmet rows a fault explains: those it fails, and those it may fail for all that is known."""
    return sum(_explained(pattern, symptom, found, patterns) for symptom in found.symptoms)


def _explained(pattern: Pattern, symptom: Symptom, found: ObservedRows, patterns: Patterns) -> int:
    shown, unknown = found.unmet.get(symptom, 0), found.unknown.get(symptom, 0)
    if is_untested(pattern, symptom, patterns):
        return shown.bit_count() + unknown
    expected = pattern.unmet.get(symptom, 0)
    return (expected & shown).bit_count() + (unknown if expected else 0)


def find_explained_symptoms(pattern: Pattern, found: ObservedRows) -> set[Symptom]:
    """Return the symptoms that say nothing of another fault: this one shows them, or breaks their requirement."""
    return {symptom for symptom in found.symptoms if symptom in pattern.unmet or symptom[1] in pattern.own}


def format_hints(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what a terminal shows of a report's `looks_like`, a line for each fault."""
    return [_line(entry, escape_text(entry["fault"]), escape_text(entry["summary"].rstrip("."))) for entry in found]


def _line(entry: Mapping[str, Any], fault: str, summary: str) -> str:
    rows = f"explains {entry['explains']} of {entry['of']} unmet rows"
    return f"possible cause  {fault}: {summary} ({rows}; `oip-conformance explain {fault}`)"
