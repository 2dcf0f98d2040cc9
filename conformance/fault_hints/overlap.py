"""How well what was seen fits the pattern of a fault: Tversky's index, which weighs each kind of difference for itself.

    score = hit / (hit + passed + BESIDE * beside + ELSEWHERE * elsewhere)

* `hit`: the fault fails it, and the run failed it.
* `passed`: the fault fails it, and the run passed it. That speaks against the fault.
* `beside`: the run failed it, the fault does not, and it is in a check that the fault fails or on a requirement that it
  breaks. That speaks against the fault, too, but a second one of the same kind may be the reason.
* `elsewhere`: the run failed other checks on other requirements. Servers have several faults, so that hardly counts:
  what it weighs grows with the logarithm of how many symptoms there are.

Rows that the run did not judge are in none of them, and say nothing. All are measured in bits, symptom by symptom: one
weighs what its rarity among the faults tells, times the logarithm of how many rows it has here, for rows of a check
stand and fall together; each row has an equal part in that.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from conformance.fault_hints.observed_rows import ObservedRows
from conformance.fault_hints.patterns import Pattern, Patterns, Symptom

BESIDE, ELSEWHERE = 0.5, 0.25
# Which part of a failed row counts as hit, not as beside, that the pattern leaves out: one with a symptom of the fault,
# or one on the requirement that the fault is about.
LIKE_OTHERS, ABOUT_THE_SAME = 0.5, 0.4


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much fits and how much does not, in bits; see the head of this module."""

    hit: float = 0.0
    passed: float = 0.0
    beside: float = 0.0
    elsewhere: float = 0.0

    @property
    def score(self) -> float:
        """From 0, nothing fits, to 1, everything does."""
        against = self.passed + BESIDE * self.beside + ELSEWHERE * self.elsewhere
        return self.hit / (self.hit + against) if self.hit else 0.0

    @property
    def kept(self) -> float:
        """Which part of what the fault fails, and the run judged, failed."""
        return self.hit / (self.hit + self.passed) if self.hit else 0.0


class OverlapScorer:
    """Weighs patterns against what was seen."""

    def __init__(self, found: ObservedRows, patterns: Patterns) -> None:
        """Weigh what was seen for itself."""
        self._found = found
        self._patterns = patterns
        self._weights = {symptom: self._bits(symptom, rows) for symptom, rows in found.symptoms.items()}
        self._total = sum(self._weights.values())

    def overlap(self, pattern: Pattern) -> Overlap:
        """Return how what was seen and a pattern overlap."""
        hit = passed = beside = 0.0
        near = self._near(pattern)
        for symptom in {**pattern.unmet, **near}:
            if not is_untested(pattern, symptom, self._patterns):
                parts = self._parts(pattern, symptom)
                hit, passed, beside = hit + parts[0], passed + parts[1], beside + parts[2]
        others = len(self._weights) - len(near)
        mean = (self._total - sum(near.values())) / others if others else 0.0
        return Overlap(hit, passed, beside, mean * log2(1 + others))

    def _near(self, pattern: Pattern) -> dict[Symptom, float]:
        """Return what was seen in the checks that a fault fails and on the requirements that it breaks."""
        names = (pattern.checks | pattern.own) & self._found.of.keys()
        return {symptom: self._weights[symptom] for name in names for symptom in self._found.of[name]}

    def _parts(self, pattern: Pattern, symptom: Symptom) -> tuple[float, float, float]:
        """Return what one symptom of the fault or of the run adds to hit, passed and beside."""
        expected, shown = pattern.unmet.get(symptom, 0), self._found.unmet.get(symptom, 0)
        hit, passed = (expected & shown).bit_count(), (expected & self._found.met.get(symptom[0], 0)).bit_count()
        beside = self._found.symptoms.get(symptom, 0) - hit
        rows = hit + passed + beside
        if not rows:
            return 0.0, 0.0, 0.0
        near = LIKE_OTHERS if expected else ABOUT_THE_SAME if symptom[1] == pattern.requirement else 0.0
        each = self._bits(symptom, rows) / rows
        return each * (hit + near * beside), each * passed, each * (1 - near) * beside

    def _bits(self, symptom: Symptom, rows: int) -> float:
        return self._patterns.rarity.get(symptom, self._patterns.rarest) * log2(1 + rows)


def is_untested(pattern: Pattern, symptom: Symptom, patterns: Patterns) -> bool:
    """Whether a symptom is one that the fault may well show in rows that were never run against it."""
    return patterns.kinds.get(symptom[0]) not in pattern.met and symptom[1] in pattern.own
