"""The rows of a run, sorted for comparison with patterns: those that are not met, by symptom, and those that are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from conformance.fault_hints.patterns import Patterns, Symptom
from conformance.spec.outcome import Outcome

UNMET = frozenset({Outcome.FAIL, Outcome.KNOWN_FAILURE, Outcome.ADVISORY})
MET = frozenset({Outcome.PASS, Outcome.FIXED})
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class ObservedRows:
    """What was seen of a server. A row that came to neither is in none of these.

    Attributes:
        unmet: symptom -> the rows that show it.
        unknown: symptom -> how many further rows show it, which the patterns do not know.
        met: check -> the rows that are met.
    """

    unmet: Mapping[Symptom, int]
    unknown: Mapping[Symptom, int]
    met: Mapping[str, int]

    @cached_property
    def symptoms(self) -> Mapping[Symptom, int]:
        """Every symptom that is shown -> how many rows show it."""
        known = {symptom: rows.bit_count() for symptom, rows in self.unmet.items()}
        return {symptom: known.get(symptom, 0) + self.unknown.get(symptom, 0) for symptom in {**known, **self.unknown}}

    @cached_property
    def of(self) -> Mapping[str, list[Symptom]]:
        """Check, or requirement -> the symptoms that are shown of it."""
        found: dict[str, list[Symptom]] = defaultdict(list)
        for symptom in self.symptoms:
            for part in symptom:
                found[part].append(symptom)
        return dict(found)

    def without(self, symptoms: Collection[Symptom]) -> ObservedRows:
        """Return what is left where the rows of some symptoms came to nothing."""
        unmet = {symptom: rows for symptom, rows in self.unmet.items() if symptom not in symptoms}
        unknown = {symptom: count for symptom, count in self.unknown.items() if symptom not in symptoms}
        return ObservedRows(unmet, unknown, self.met)


def is_unmet(entry: Entry) -> bool:
    """Whether an entry of a report's `checks` says that a requirement is not met."""
    return entry["outcome"] in UNMET and bool(entry["failure"])


def sort_rows(checks: Iterable[Entry], patterns: Patterns) -> ObservedRows:
    """Return what the entries of a report's `checks` show."""
    unmet: dict[Symptom, int] = defaultdict(int)
    met: dict[str, int] = defaultdict(int)
    unknown: Counter[Symptom] = Counter()
    for entry in checks:
        if not (is_unmet(entry) or entry["outcome"] in MET):
            continue
        place = patterns.place(entry["check"], entry["row"])
        if not is_unmet(entry):
            met[entry["check"]] |= 0 if place is None else 1 << place
            continue
        symptom = entry["check"], entry["failure"]["requirement"]
        if place is None:
            unknown[symptom] += 1
        else:
            unmet[symptom] |= 1 << place
    return ObservedRows(unmet, unknown, met)
