"""Which rows each fault of the reference server fails, as the suite saw it when it was run against all of them.

`tests/support/fault_hints_patterns.py` writes them. Rows of a check are the bits of an integer, in the
order in which the file lists them.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import log2
from typing import Any

from conformance.spec import data_files, ledger

FILE = data_files.PACKAGE_FOLDER / "fault_hints" / "patterns.json.gz"
# A check, and the requirement that its rows find unmet.
Symptom = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one fault fails.

    Attributes:
        summary: what the server does, in one sentence.
        breaks: ids of the requirements that are not met, first the one that the fault is about.
        own: all these, and what they are called over gRPC.
        checks: that the fault fails.
        met: the kinds of rows that were run against it; what others would come to is not known.
        unmet: symptom -> the rows that show it.
        stuck: check -> the rows that come to no verdict.
    """

    fault: str
    summary: str
    breaks: tuple[str, ...]
    own: frozenset[str]
    checks: frozenset[str]
    met: frozenset[str]
    unmet: Mapping[Symptom, int]
    stuck: Mapping[str, int]

    @property
    def requirement(self) -> str:
        """The requirement that the fault is about."""
        return self.breaks[0]


@dataclass(frozen=True)
class Patterns:
    """The patterns of all faults.

    Attributes:
        kinds: check -> its kind: http, grpc or walk.
        rows: check -> its rows by name, with the place of each.
        of: fault -> its pattern.
    """

    kinds: Mapping[str, str]
    rows: Mapping[str, Mapping[str, int]]
    of: Mapping[str, Pattern]

    @cached_property
    def rarity(self) -> Mapping[Symptom, float]:
        """How much each symptom tells, in bits: the fewer faults show it, the more."""
        shown = Counter(symptom for pattern in self.of.values() for symptom in pattern.unmet)
        return {symptom: self.rarest - log2(count) for symptom, count in shown.items()}

    @cached_property
    def rarest(self) -> float:
        """How much a symptom tells that no fault shows, in bits."""
        return log2(1 + len(self.of))

    @cached_property
    def showing(self) -> Mapping[Symptom, list[Pattern]]:
        """Symptom -> the patterns of the faults that show it."""
        found: dict[Symptom, list[Pattern]] = defaultdict(list)
        for pattern in self.of.values():
            for symptom in pattern.unmet:
                found[symptom].append(pattern)
        return found

    def place(self, check: str, row: str) -> int | None:
        """Return the place of a row, or of that of a role for one on a deployed model; None where there is none."""
        return self.rows.get(check, {}).get(row.partition("@")[0])


@cache
def load() -> Patterns:
    """Return the patterns of every fault; they are read once."""
    return from_dict(unpack(FILE.read_bytes()))


def unpack(octets: bytes) -> dict[str, Any]:
    """Return what the file holds as plain data."""
    plain: dict[str, Any] = json.loads(gzip.decompress(octets))
    return plain


def from_dict(plain: Mapping[str, Any]) -> Patterns:
    """Return the patterns that the file holds as plain data."""
    kinds = {check: kind for kind, checks in plain["rows"].items() for check in checks}
    rows = {
        check: {row: place for place, row in enumerate(names)}
        for checks in plain["rows"].values()
        for check, names in checks.items()
    }
    return Patterns(kinds, rows, {fault: _pattern(fault, entry) for fault, entry in plain["faults"].items()})


def _pattern(fault: str, entry: Mapping[str, Any]) -> Pattern:
    unmet = {
        (check, requirement): int(rows, 16)
        for check, found in entry["unmet"].items()
        for requirement, rows in found.items()
    }
    stuck = {check: int(rows, 16) for check, rows in entry["stuck"].items()}
    breaks = tuple(entry["breaks"])
    own = frozenset(each for name in breaks for each in (name, ledger.find_grpc_id(name)) if each)
    checks = frozenset(entry["unmet"])
    return Pattern(fault, entry["summary"], breaks, own, checks, frozenset(entry["met"]), unmet, stuck)
