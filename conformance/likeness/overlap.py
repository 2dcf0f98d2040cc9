"""How well what was seen fits the pattern of a fault: Tversky's index, which weighs the two kinds of difference apart.

    score = hit / (hit + PASSED * passed + BESIDE * beside)

`hit` is what the fault fails and the run failed, `passed` what the fault fails and the run passed, `beside` what the
run failed and the fault does not. Rows that the run did not judge are in none of them. A row that passes though the
fault would have failed it speaks against the fault; a row that fails beside it may be due to another fault of the same
server, and weighs less.

The three are measured in bits, symptom by symptom: a symptom weighs what its rarity among the faults tells, times the
logarithm of how many rows it has here, for these stand and fall together; its rows have equal parts in that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

from conformance.likeness.patterns import Pattern, Patterns, Symptom
from conformance.likeness.seen import Seen

PASSED, BESIDE = 1.0, 0.25
# Which part of a failed row counts as hit, not as beside, that the pattern leaves out: one with a symptom of the fault,
# or one of the requirement that the fault is about.
LIKE_OTHERS, ABOUT_THE_SAME = 0.5, 0.4


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much fits and how much does not, in bits."""

    hit: float
    passed: float
    beside: float

    @property
    def score(self) -> float:
        """From 0, nothing fits, to 1, everything does."""
        return self.hit / (self.hit + PASSED * self.passed + BESIDE * self.beside) if self.hit else 0.0

    @property
    def kept(self) -> float:
        """Which part of what the fault fails, and the run judged, failed."""
        return self.hit / (self.hit + self.passed) if self.hit else 0.0


def overlap(pattern: Pattern, found: Seen, patterns: Patterns) -> Overlap:
    """Return how what was seen and a pattern overlap."""
    parts = list(_parts(pattern, found, patterns))
    return Overlap(*(sum(part) for part in zip(*parts, strict=True))) if parts else Overlap(0, 0, 0)


def _parts(pattern: Pattern, found: Seen, patterns: Patterns) -> Iterator[tuple[float, float, float]]:
    """Yield hit, passed and beside of each symptom that the fault or the run shows."""
    rarest = log2(1 + len(patterns.of))
    for symptom in {**pattern.unmet, **dict.fromkeys(found.symptoms)}:
        if is_beyond(pattern, symptom, patterns):
            continue
        expected, shown = pattern.unmet.get(symptom, 0), found.unmet.get(symptom, 0)
        hit: float = (expected & shown).bit_count()
        passed = (expected & found.met.get(symptom[0], 0)).bit_count()
        beside: float = (shown & ~expected).bit_count() + found.unknown.get(symptom, 0)
        if rows := hit + passed + beside:
            nearly = beside * _nearness(pattern, symptom)
            weight = patterns.rarity.get(symptom, rarest) * log2(1 + rows) / rows
            yield weight * (hit + nearly), weight * passed, weight * (beside - nearly)


def _nearness(pattern: Pattern, symptom: Symptom) -> float:
    if symptom in pattern.unmet:
        return LIKE_OTHERS
    return ABOUT_THE_SAME if symptom[1] == pattern.requirement else 0.0


def is_beyond(pattern: Pattern, symptom: Symptom, patterns: Patterns) -> bool:
    """Whether a symptom is one that the fault may well show in rows that were never run against it."""
    return patterns.kinds.get(symptom[0]) not in pattern.met and pattern.is_about(symptom[1])
