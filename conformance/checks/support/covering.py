"""Build covering arrays: small sets of steps in which every needed pair of values of two axes occurs.

An axis is one property of a request, such as its datatype. A step is one request: a value for each axis.
A `PairRule` rules out pairs, another says which pairs are needed; the first value of an axis is neutral and combines
with every other value. The array is built greedily: each new step gets, for each axis, the value that adds the most new
pairs, or the cheapest of several such values. The result depends only on the axes and a seed.

Source: D. M. Cohen and others, "The AETG System: An Approach to Testing Based on Combinatorial Design" (1997).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

Step = Mapping[str, str]
# Decides about two values, each passed as axis and value: whether they exclude each other, or need to meet.
PairRule = Callable[[str, str, str, str], bool]

_TRIES = 3  # candidates for each step; the candidate with the most new pairs is used
_MAX_LAST_TRIES = 60  # attempts before a pair of values counts as impossible


@dataclass(frozen=True, slots=True)
class Coverage:
    """The number of needed pairs of values that some steps cover, and the number of needed pairs that are possible."""

    met: int
    possible: int

    def __str__(self) -> str:
        """Return, for example, "20 of 20 pairs (100.0%)"."""
        return f"{self.met} of {self.possible} pairs ({self.met / max(1, self.possible):.1%})"


# Spaces of equal sizes, costs and pairs have the same array, whatever their values are called: many models have one.
_COVERED: dict[tuple[object, ...], tuple[list[list[int]], int]] = {}


class StepSpace:
    """All steps that are possible with some axes.

    Each value of each axis has a number. A set of values is an integer in which the bits with these numbers are
    set, which makes counting fast.
    """

    def __init__(
        self,
        axes: Mapping[str, Sequence[str]],
        is_excluded: PairRule,
        find_cost: Callable[[str, str], int] = lambda _axis, _value: 0,
        is_needed: PairRule = lambda _axis, _value, _other_axis, _other_value: True,
    ) -> None:
        """Build the space.

        Args:
            axes: axis -> its values, the neutral one first.
            is_excluded: says whether two values exclude each other.
            find_cost: returns what a value adds to the cost of a step; a costly value is used only if it adds new pairs.
            is_needed: says whether two values that can meet have to meet.
        """
        self._named = [(axis, value) for axis, values in axes.items() for value in values]
        number = {named: k for k, named in enumerate(self._named)}
        self._axes = [[number[axis, value] for value in values] for axis, values in axes.items()]
        self._axis_of = [axis for axis in self._axes for _ in axis]
        self._costs = [find_cost(*named) for named in self._named]
        self._is_needed = is_needed
        self._meets = [0] * len(self._named)
        for one, other in combinations(self._axes, 2):
            for v, w in ((v, w) for v in one for w in other):
                if not is_excluded(*self._named[v], *self._named[w]):
                    self._meets[v] |= 1 << w
                    self._meets[w] |= 1 << v

    def exclude_impossible_pairs(self) -> None:
        """Exclude each pair that leaves some third axis without a compatible value: no step can contain it.

        Otherwise `build_array` finds these pairs only by trying to build steps, which takes seconds if axes have few
        values. Excluding the pairs first can give another array.
        """
        masks = [_make_mask(axis) for axis in self._axes]
        own = [mask for axis, mask in zip(self._axes, masks, strict=True) for _ in axis]
        meets, last = self._meets, None
        while last != (last := sum(mask.bit_count() for mask in meets)):
            for v, w in combinations(range(len(self._named)), 2):
                if meets[v] >> w & 1 and not all(map((meets[v] & meets[w] | own[v] | own[w]).__and__, masks)):
                    meets[v] &= ~(1 << w)
                    meets[w] &= ~(1 << v)

    def build_array(self, seed: int = 0) -> tuple[list[Step], Coverage]:
        """Return the steps of a covering array, and their coverage."""
        needed = tuple(self._list_needed_pairs())
        key = seed, tuple(map(len, self._axes)), tuple(self._costs), tuple(self._meets), needed
        if key not in _COVERED:
            _COVERED[key] = self._cover_pairs(needed, Random(seed))  # noqa: S311 - the steps have to be reproducible
        steps, impossible = _COVERED[key]
        possible = sum(mask.bit_count() for mask in needed) // 2 - impossible
        return [dict(self._named[v] for v in step) for step in steps], Coverage(possible, possible)

    def _cover_pairs(self, needed: Sequence[int], random: Random) -> tuple[list[list[int]], int]:
        """Return steps that cover the needed pairs, and how many of these are impossible."""
        missing, impossible = list(needed), 0
        steps: list[list[int]] = []
        while (first := self._find_value_with_most_missing_pairs(missing)) is not None:
            other = _find_lowest_bit(missing[first])
            found = self._build_candidates([first, other], missing, random)
            if not found:
                missing[first] &= ~(1 << other)
                missing[other] &= ~(1 << first)
                impossible += 1
                continue
            chosen = max(found, key=lambda values: _count_new_pairs(values, missing))
            met = _make_mask(chosen)
            for v in chosen:
                missing[v] &= ~met
            steps.append(sorted(chosen))
        return steps, impossible

    def measure_coverage(self, steps: Sequence[Step]) -> Coverage:
        """Return how many of the needed and possible pairs these steps cover."""
        possible = self.build_array()[1].possible
        number, needed = {named: k for k, named in enumerate(self._named)}, self._list_needed_pairs()
        met = {pair for step in steps for pair in combinations(sorted(number[item] for item in step.items()), 2)}
        return Coverage(sum(needed[v] >> w & 1 for v, w in met), possible)

    def _list_needed_pairs(self) -> list[int]:
        """Return, for each value, the set of values that it has to meet."""
        named, is_needed = self._named, self._is_needed
        return [
            _make_mask([w for w in range(len(named)) if meets >> w & 1 and is_needed(*named[v], *named[w])])
            for v, meets in enumerate(self._meets)
        ]

    def _find_value_with_most_missing_pairs(self, missing: Sequence[int]) -> int | None:
        """Return the number of the value with the most uncovered pairs; None if all pairs are covered."""
        most = max(range(len(missing)), key=lambda v: missing[v].bit_count())
        return most if missing[most] else None

    def _build_candidates(self, chosen: list[int], missing: Sequence[int], random: Random) -> list[list[int]]:
        """Return several steps that contain the two chosen values; an empty list if no attempt finds such a step."""
        tries = (self._complete_step(chosen, missing, random) for _ in range(_TRIES))
        if found := [step for step in tries if step]:
            return found
        none = [0] * len(missing)
        last = (self._complete_step(chosen, none, random) for _ in range(_MAX_LAST_TRIES))
        return [step for step in last if step][:1]

    def _complete_step(self, chosen: list[int], missing: Sequence[int], random: Random) -> list[int]:
        """Add a value of each other axis to two chosen values; return an empty list if an axis has none that fits."""
        meets, costs, draw = self._meets, self._costs, random.random
        taken, allowed = 0, -1
        for v in chosen:
            taken |= 1 << v
            allowed &= meets[v]
        used_axes = [self._axis_of[v] for v in chosen]
        open_axes = [axis for axis in self._axes if axis not in used_axes]
        _shuffle(open_axes, random)
        chosen = list(chosen)
        for axis in open_axes:
            found = [((missing[v] & taken).bit_count(), -costs[v], draw(), v) for v in axis if allowed >> v & 1]
            if not found:
                return []
            best = max(found)[-1]
            chosen.append(best)
            taken |= 1 << best
            allowed &= meets[best]
        return chosen


def has_values(step: Step, **values: Sequence[str]) -> bool:
    """Say whether a step has one of the listed values for every axis in `values`."""
    for axis, allowed in values.items():  # noqa: SIM110 - a third of the time of all(...), which shows in every run
        if step.get(axis) not in allowed:
            return False
    return True


def _find_lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _make_mask(values: Sequence[int]) -> int:
    return sum(1 << v for v in values)


def _count_new_pairs(values: Sequence[int], missing: Sequence[int]) -> int:
    """Return twice the number of uncovered pairs of these values; only comparisons use the result."""
    met = _make_mask(values)
    return sum((missing[v] & met).bit_count() for v in values)


def _shuffle(items: list[list[int]], random: Random) -> None:
    """Shuffle in place; unlike `Random.shuffle`, with the same result in every Python version."""
    for k in range(len(items) - 1, 0, -1):
        other = int(random.random() * (k + 1))
        items[k], items[other] = items[other], items[k]
