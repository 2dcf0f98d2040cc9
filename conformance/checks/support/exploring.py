"""Runs one expectation on many drawn values: what the `explore` profile does beside the rows.

How many examples, and whether they differ from run to run, is the profile's to say (`conformance.run`). What a check
raises is the plain `UnmetError` of the smallest example that was found, with its exchange as evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from conformance.expect.unmet import UnmetError
from conformance.transport.unreachable import TargetLostError

if TYPE_CHECKING:  # hypothesis takes long to import, and a run that does not explore goes without it
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def explore(values: SearchStrategy[T], expectation: Callable[[T], object], *, shrinks: bool = True) -> None:
    """Expect something of every drawn value; `shrinks` is False for what makes the smallest example itself.

    Raises:
        Unmet: it does not hold for one; where a server fails an example now and then, as it failed first.
        TargetLost: the target is gone.
    """
    from hypothesis import Phase, given, settings
    from hypothesis.errors import Flaky

    # The settings are made here, not when the module is imported: the profile has been chosen by now. Hypothesis
    # would report several distinct faults as a group, which nobody could tell from a fault of the suite's own.
    phases = list(Phase) if shrinks else [Phase.explicit, Phase.generate]

    @settings(report_multiple_bugs=False, print_blob=False, phases=phases)
    @given(values)
    def each(value: T) -> None:
        expectation(value)

    try:
        each()
    except (Flaky, BaseExceptionGroup) as error:
        raise next(_ours(error), error) from None


def _ours(error: BaseException) -> Iterator[BaseException]:
    """Yield what a check may raise, from inside the groups in which Hypothesis puts it."""
    if isinstance(error, UnmetError | TargetLostError):
        yield error
    for inner in getattr(error, "exceptions", ()):
        yield from _ours(inner)
