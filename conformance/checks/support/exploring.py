"""Property-based checks: the `explore` profile runs one expectation on many values drawn by Hypothesis.

The profile sets the number of examples and whether they differ between runs (`conformance.run`). A check raises the
`UnmetError` of the smallest failing example, with its exchange as evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from conformance.expect.unmet import UnmetError
from conformance.transport.unreachable import TargetLostError

if TYPE_CHECKING:  # hypothesis is slow to import; runs that do not explore skip it
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def explore(values: SearchStrategy[T], expectation: Callable[[T], object], *, shrinks: bool = True) -> None:
    """Run an expectation on each value that Hypothesis draws.

    Pass `shrinks=False` if the expectation itself shrinks a failing value.

    Raises:
        UnmetError: the expectation fails for a value. If the failure is not reproducible, this is the first failure.
        TargetLost: the server cannot be reached any more.
    """
    from hypothesis import Phase, given, settings
    from hypothesis.errors import Flaky

    # Create the settings here, not at import time: the profile is loaded by now. Without `report_multiple_bugs=False`
    # Hypothesis reports distinct faults as an exception group, which looks like a fault of the suite.
    phases = list(Phase) if shrinks else [Phase.explicit, Phase.generate]

    @settings(report_multiple_bugs=False, print_blob=False, phases=phases)
    @given(values)
    def check_value(value: T) -> None:
        expectation(value)

    try:
        check_value()
    except (Flaky, BaseExceptionGroup) as error:
        raise next(_unpack_check_errors(error), error) from None


def _unpack_check_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions that a check may raise, unpacked from the exception groups of Hypothesis."""
    if isinstance(error, UnmetError | TargetLostError):
        yield error
    for inner in getattr(error, "exceptions", ()):
        yield from _unpack_check_errors(inner)
