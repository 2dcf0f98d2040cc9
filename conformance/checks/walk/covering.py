"""Covering arrays: few steps in which every two values of any two axes meet, wherever they can meet at all.

A step has one value of each axis. Which values never meet is said pair by pair; the first value of an axis is neutral
and meets every other one. The array is built greedily, step by step: of each axis the value that meets the most values
of the step for the first time. It is a function of the axes and of nothing else.

Source: D. M. Cohen and others, "The AETG System: An Approach to Testing Based on Combinatorial Design" (1997).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

Step = Mapping[str, str]
# Whether two values, each given as axis and value, never meet.
IsExcluded = Callable[[str, str, str, str], bool]

_TRIES = 3  # steps of which the one with the most new pairs is taken
_LAST_TRIES = 60  # before two values count as such that no step has both


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the pairs that can meet do meet in an array."""

    met: int
    possible: int

    def __str__(self) -> str:
        """Return it for a person."""
        return f"{self.met} of {self.possible} pairs ({self.met / max(1, self.possible):.1%})"


class Space:
    """All steps of some axes.

    Values are numbered over all axes; sets of them are integers with a bit for each, which makes counting fast.
    """

    def __init__(
        self, axes: Mapping[str, Sequence[str]], excluded: IsExcluded, heavy: Callable[[str, str], bool]
    ) -> None:
        """Put a space together.

        Args:
            axes: axis -> its values, the neutral one first.
            excluded: see `IsExcluded`.
            heavy: whether a value makes a step slow; such values are taken for new pairs alone.
        """
        self._named = [(axis, value) for axis, values in axes.items() for value in values]
        number = {named: k for k, named in enumerate(self._named)}
        self._axes = [[number[axis, value] for value in values] for axis, values in axes.items()]
        self._axis_of = [axis for axis in self._axes for _ in axis]
        self._light = [not heavy(*named) for named in self._named]
        self._meets = [0] * len(self._named)
        for one, other in combinations(self._axes, 2):
            for v, w in ((v, w) for v in one for w in other):
                if not excluded(*self._named[v], *self._named[w]):
                    self._meets[v] |= 1 << w
                    self._meets[w] |= 1 << v

    def array(self, seed: int = 0) -> tuple[list[Step], Coverage]:
        """Return the steps of a covering array, and what they cover."""
        random = Random(seed)  # noqa: S311 - the same steps each time are what is wanted
        missing, impossible = list(self._meets), 0
        steps: list[Step] = []
        while (first := self._most_missing(missing)) is not None:
            other = _lowest(missing[first])
            found = self._grown_often([first, other], missing, random)
            if not found:
                missing[first] &= ~(1 << other)
                missing[other] &= ~(1 << first)
                impossible += 1
                continue
            chosen = max(found, key=lambda values: _new(values, missing))
            met = _mask(chosen)
            for v in chosen:
                missing[v] &= ~met
            steps.append(dict(self._named[v] for v in sorted(chosen)))
        possible = sum(mask.bit_count() for mask in self._meets) // 2 - impossible
        return steps, Coverage(possible, possible)

    def coverage(self, steps: Sequence[Step]) -> Coverage:
        """Return what some steps cover of what an array covers."""
        possible = self.array()[1].possible
        number = {named: k for k, named in enumerate(self._named)}
        met = {pair for step in steps for pair in combinations(sorted(number[item] for item in step.items()), 2)}
        return Coverage(len(met), possible)

    def _most_missing(self, missing: Sequence[int]) -> int | None:
        """Return the value that has yet to meet the most others; None when all have met."""
        most = max(range(len(missing)), key=lambda v: missing[v].bit_count())
        return most if missing[most] else None

    def _grown_often(self, chosen: list[int], missing: Sequence[int], random: Random) -> list[list[int]]:
        """Return several whole steps around two values; none where none was found with some patience."""
        tries = (self._grown(chosen, missing, random) for _ in range(_TRIES))
        if found := [grown for grown in tries if grown]:
            return found
        none = [0] * len(missing)
        last = (self._grown(chosen, none, random) for _ in range(_LAST_TRIES))
        return [grown for grown in last if grown][:1]

    def _grown(self, chosen: list[int], missing: Sequence[int], random: Random) -> list[int]:
        """Return a whole step around two values; nothing where an axis has no value left that meets them all."""
        meets, light, draw = self._meets, self._light, random.random
        taken, allowed = 0, -1
        for v in chosen:
            taken |= 1 << v
            allowed &= meets[v]
        closed = [self._axis_of[v] for v in chosen]
        open_axes = [axis for axis in self._axes if axis not in closed]
        _shuffle(open_axes, random)
        chosen = list(chosen)
        for axis in open_axes:
            found = [((missing[v] & taken).bit_count(), light[v], draw(), v) for v in axis if allowed >> v & 1]
            if not found:
                return []
            best = max(found)[-1]
            chosen.append(best)
            taken |= 1 << best
            allowed &= meets[best]
        return chosen


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _mask(values: Sequence[int]) -> int:
    return sum(1 << v for v in values)


def _new(values: Sequence[int], missing: Sequence[int]) -> int:
    """Return how many pairs of values have yet to meet; each is counted twice."""
    met = _mask(values)
    return sum((missing[v] & met).bit_count() for v in values)


def _shuffle(items: list[list[int]], random: Random) -> None:
    """Shuffle as `Random.shuffle` does; what that draws is not promised to be the same in every Python."""
    for k in range(len(items) - 1, 0, -1):
        other = int(random.random() * (k + 1))
        items[k], items[other] = items[other], items[k]
