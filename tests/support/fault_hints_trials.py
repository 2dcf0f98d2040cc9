"""How well `conformance.fault_hints` names the faults of made-up runs: runs that the patterns themselves describe.

A made-up run of a fault fails the rows of its pattern and passes all others of the kinds that were run against it. With
the fault's own pattern taken out, it is a server with a fault that nobody has foreseen.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.fault_hints import hint_selection
from conformance.fault_hints.hint_selection import FitThreshold
from conformance.fault_hints.observed_rows import ObservedRows
from conformance.fault_hints.patterns import Pattern, Patterns, Symptom

SEED = 2026
PAIRS = 300
Named = list[Pattern]
# Says which rows of a check a run has, as bits.
Rows = Callable[[str], int]


@dataclass
class Tally:
    """What came of some trials.

    Attributes:
        right: how many named each fault of the server, or one that is about the same requirement.
        named: how many named any.
        hints: how many names were given in all.
        false: how many of them break no requirement that a fault of the server breaks.
        missed: the faults of a server -> what was named instead of them.
    """

    trials: int = 0
    right: int = 0
    named: int = 0
    hints: int = 0
    false: int = 0
    missed: dict[str, list[str]] = field(default_factory=dict)

    def add(self, present: Sequence[Pattern], named: Named) -> None:
        """Count a trial."""
        self.trials += 1
        self.named += bool(named)
        self.hints += len(named)
        self.false += sum(not any(set(hint.breaks) & set(fault.breaks) for fault in present) for hint in named)
        about = {hint.requirement for hint in named}
        if all(fault.requirement in about for fault in present):
            self.right += 1
        else:
            self.missed[" + ".join(fault.fault for fault in present)] = [hint.fault for hint in named]


def select_all_rows(patterns: Patterns) -> Rows:
    """Return the rows of a whole run."""
    return lambda check: (1 << len(patterns.rows[check])) - 1


def select_half(patterns: Patterns, fault: str) -> Rows:
    """Return the half of the rows that a run has, another half for each fault."""
    drawn = random.Random(f"{SEED} {fault}")
    halves = {check: drawn.getrandbits(len(rows)) for check, rows in patterns.rows.items()}
    return lambda check: halves[check]


def select_rows(rows: Collection[tuple[str, str]], patterns: Patterns) -> Rows:
    """Return the rows with these names of check and row."""
    found: dict[str, int] = defaultdict(int)
    for check, row in rows:
        found[check] |= 1 << patterns.rows[check][row]
    return lambda check: found.get(check, 0)


def make_run(present: Sequence[Pattern], patterns: Patterns, rows: Rows) -> ObservedRows:
    """Return what a run of these rows would see of a server with these faults, if they did not disturb each other."""
    met = {check: rows(check) for check, kind in patterns.kinds.items() if any(kind in each.met for each in present)}
    for check, stuck in ((check, stuck) for each in present for check, stuck in each.stuck.items()):
        met[check] &= ~stuck
    unmet: dict[Symptom, int] = defaultdict(int)
    for symptom, shown in ((symptom, shown) for each in present for symptom, shown in each.unmet.items()):
        unmet[symptom] |= shown & met[symptom[0]]
    for (check, _), shown in unmet.items():
        met[check] &= ~shown
    return ObservedRows({symptom: shown for symptom, shown in unmet.items() if shown}, {}, met)


def find_named(found: ObservedRows, patterns: Patterns, least: FitThreshold = hint_selection.CLEAR_FIT) -> Named:
    """Return the faults that are named."""
    return [patterns.of[each.fault] for each in hint_selection.select_hints(found, patterns, 0, least)]


def find_nearest(found: ObservedRows, patterns: Patterns) -> Named:
    """Return the three that fit best, clearly or not, of all that fail anything or are about anything that was seen."""
    unmet = {requirement for _, requirement in found.symptoms}
    about = [each for each in patterns.of.values() if each.requirement in unmet]
    among = {each.fault: each for each in (*hint_selection.find_sharing_patterns(found, patterns), *about)}
    return [
        each.pattern
        for each in hint_selection.rank_patterns(among.values(), found, patterns)[: hint_selection.MAX_HINTS]
    ]


def drop_fault(patterns: Patterns, fault: str) -> Patterns:
    """Return all patterns but one."""
    return Patterns(patterns.kinds, patterns.rows, {name: each for name, each in patterns.of.items() if name != fault})


def try_left_out(patterns: Patterns, say: Callable[[ObservedRows, Patterns], Named]) -> tuple[Tally, Tally]:
    """Leave each fault's own pattern out: first those that share their requirement with others, then the others."""
    shared, alone = Tally(), Tally()
    about = [each.requirement for each in patterns.of.values()]
    for fault, pattern in patterns.of.items():
        found = make_run([pattern], patterns, select_all_rows(patterns))
        tally = shared if about.count(pattern.requirement) > 1 else alone
        tally.add([pattern], say(found, drop_fault(patterns, fault)))
    return shared, alone


def try_other_rows(patterns: Patterns, rows: Callable[[str], Rows]) -> Tally:
    """See each fault through other rows, where these show it at all."""
    tally = Tally()
    for fault, pattern in patterns.of.items():
        found = make_run([pattern], patterns, rows(fault))
        if found.unmet:
            tally.add([pattern], find_named(found, patterns))
    return tally


def try_pairs(patterns: Patterns, pairs: Iterable[tuple[str, str]]) -> Tally:
    """See two faults at once."""
    tally = Tally()
    for pair in pairs:
        present = [patterns.of[fault] for fault in pair]
        tally.add(present, find_named(make_run(present, patterns, select_all_rows(patterns)), patterns))
    return tally


def draw_pairs(names: Sequence[str], count: int, seed: int = SEED) -> Iterator[tuple[str, str]]:
    """Yield pairs of different faults."""
    drawn = random.Random(seed)
    for _ in range(count):
        first, second = drawn.sample(names, 2)
        yield first, second


def find_confusions(patterns: Patterns, missed: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], list[str]]:
    """Return (requirement of the fault, requirement of what was named) -> the faults that were taken for another."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for fault, hints in missed.items():
        for about in dict.fromkeys(patterns.of[hint].requirement for hint in hints):
            found[patterns.of[fault].requirement, about].append(fault)
    return found
