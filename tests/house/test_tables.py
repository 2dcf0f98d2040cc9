"""A test of a table looks at every entry, and names all that fail."""

from __future__ import annotations

import pytest

from tests.support.tables import on_each


def test_all_entries_that_fail_are_named() -> None:
    seen = []

    @on_each([("a", 1), ("b", 2), ("c", 3)])
    def odd(name: str, number: int) -> None:
        """Look at one."""
        seen.append(name)
        assert number % 2 == 0 or number < 0, f"{number} is odd"

    with pytest.raises(pytest.fail.Exception) as raised:
        odd()
    named = [line for line in str(raised.value).splitlines() if "AssertionError" in line]
    assert named == ["a, 1: AssertionError: 1 is odd", "c, 3: AssertionError: 3 is odd"]
    assert (seen, odd.__name__, odd.__doc__) == (["a", "b", "c"], "odd", "Look at one.")


def test_anything_that_is_raised_is_a_failure_of_its_entry() -> None:
    @on_each([1, 0])
    def divides(number: int) -> None:
        assert 1 // number == 1

    with pytest.raises(pytest.fail.Exception, match=r"^0: ZeroDivisionError: "):
        divides()
