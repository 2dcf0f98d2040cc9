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

from conformance.likeness.overlap import Overlap, Scale, is_beyond
from conformance.likeness.patterns import Pattern, Patterns, Symptom, load
from conformance.likeness.seen import Entry, Seen, is_unmet, seen
from conformance.terms.text import safe

MOST = 3


@dataclass(frozen=True, slots=True)
class Least:
    """What a fit has to reach: `Overlap.score`, and `Overlap.kept`."""

    score: float
    kept: float


# What fits clearly: docs/likeness.md has the measurements by which it was set.
CLEAR = Least(0.4, 0.5)


@dataclass(frozen=True, slots=True)
class Likeness:
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


def looks_like(checks: Sequence[Entry], patterns: Patterns | None = None) -> list[Likeness]:
    """Return what a run looks like, the best fit first: at most three faults, none where nothing fits clearly.

    Args:
        checks: entries of a report's `checks`; `id`, `row`, `outcome` and the requirement of the failure decide.
        patterns: those of the faults; None for the installed ones, which are read only where something is not met.
    """
    count = sum(map(is_unmet, checks))
    if not count:
        return []
    known = load() if patterns is None else patterns
    return named(seen(checks, known), known, count)


def named(found: Seen, patterns: Patterns, count: int, least: Least = CLEAR) -> list[Likeness]:
    """Return the faults that fit at least so well, the best first, then their equals; `count` rows are not met."""
    best: list[Likeness] = []
    equals: list[Likeness] = []
    while len(best) < MOST:
        fits = [each for each in ranked(sharing(found, patterns), found, patterns) if is_clear(each.fit, least)]
        fits = [each for each in fits if explained(each.pattern, found, patterns)]
        if not fits:
            break
        first, *others = [each.pattern for each in fits if isclose(each.fit.score, fits[0].fit.score)]
        left = found.without(touched(first, found))
        same = [each for each in others if not explained(each, left, patterns)]
        best.append(_likeness(first, found, patterns, count))
        equals += [_likeness(each, found, patterns, count) for each in same]
        found = left
    return (best + equals)[:MOST]


def _likeness(pattern: Pattern, found: Seen, patterns: Patterns, count: int) -> Likeness:
    explains = explained(pattern, found, patterns)
    return Likeness(pattern.fault, pattern.requirement, pattern.summary, explains, count)


def sharing(found: Seen, patterns: Patterns) -> list[Pattern]:
    """Return the patterns that have a symptom in common with what was seen."""
    near = {each.fault: each for symptom in found.symptoms for each in patterns.showing.get(symptom, ())}
    return list(near.values())


def ranked(among: Iterable[Pattern], found: Seen, patterns: Patterns) -> list[Candidate]:
    """Return patterns with how well they fit, the best first."""
    scale = Scale(found, patterns)
    fits = [Candidate(pattern, scale.overlap(pattern)) for pattern in among]
    return sorted(fits, key=lambda each: (-each.fit.score, -each.fit.hit, each.pattern.fault))


def is_clear(fit: Overlap, least: Least) -> bool:
    """Whether a fault fits so well that it may be named."""
    return fit.score >= least.score and fit.kept >= least.kept


def explained(pattern: Pattern, found: Seen, patterns: Patterns) -> int:
    """Return how many unmet rows a fault explains: those it fails, and those it may fail for all that is known."""
    return sum(_explained(pattern, symptom, found, patterns) for symptom in found.symptoms)


def _explained(pattern: Pattern, symptom: Symptom, found: Seen, patterns: Patterns) -> int:
    shown, unknown = found.unmet.get(symptom, 0), found.unknown.get(symptom, 0)
    if is_beyond(pattern, symptom, patterns):
        return shown.bit_count() + unknown
    expected = pattern.unmet.get(symptom, 0)
    return (expected & shown).bit_count() + (unknown if expected else 0)


def touched(pattern: Pattern, found: Seen) -> set[Symptom]:
    """Return the symptoms that say nothing of another fault: this one shows them, or breaks their requirement."""
    return {symptom for symptom in found.symptoms if symptom in pattern.unmet or symptom[1] in pattern.own}


def lines(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what a terminal shows of a report's `looks_like`, a line for each fault."""
    return [_line(entry, safe(entry["fault"]), safe(entry["summary"].rstrip("."))) for entry in found]


def _line(entry: Mapping[str, Any], fault: str, summary: str) -> str:
    rows = f"explains {entry['explains']} of {entry['of']} unmet rows"
    return f"possible cause  {fault}: {summary} ({rows}; `oip-conformance explain {fault}`)"
