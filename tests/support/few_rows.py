"""The suite with one row for each requirement of a check, for whole runs of which the rows do not matter.

For pytest it is a plugin: `-p tests.support.few_rows`. In this process it is a context manager, `with_few_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache

import pytest

from conformance import checks
from conformance.judging.quick_rows import find_quick_position
from conformance.spec.check import Case, Check, Row
from conformance.spec.extensions import ROBUSTNESS

# Rows of these roles are taken first: small servers of the tests have these models.
FIRST_ROLES = ("multi", "identity_int32", "scores_labelled")
FIRST_ROWS = ("unknown-output",)  # a refusal that servers of the tests miss
# In this area a row more of each check runs, one that the profile quick leaves out.
AREA_OF_MORE = "overrides"
FEW_ROWS = ("-p", "tests.support.few_rows")
_list_all_checks = checks.list_area_checks


def pytest_configure(config: pytest.Config) -> None:
    run = ExitStack()
    run.enter_context(with_few_rows())
    config.add_cleanup(run.close)


@contextmanager
def with_few_rows() -> Iterator[None]:
    """Let every run of this process consist of few rows."""
    before = checks.list_area_checks
    checks.list_area_checks = _list_few_checks
    checks.load.cache_clear()
    try:
        yield
    finally:
        checks.list_area_checks = before
        checks.load.cache_clear()


@cache
def _list_few_checks(area: str) -> tuple[Check, ...]:
    if area == ROBUSTNESS:  # which runs where it is asked for alone
        return _list_all_checks(area)
    return tuple(replace(check, rows=tuple(_select_rows(check))) for check in _list_all_checks(area))


def _select_rows(check: Check) -> list[Row]:
    """Return the first row for each requirement, in one area with one that quick lacks, in the order of the suite."""

    def rank(row: Row) -> tuple[bool, bool, bool, int]:
        role = Case(check, row).role
        place = FIRST_ROLES.index(role) if role in FIRST_ROLES else len(FIRST_ROLES)
        return row.dangerous, row.id not in FIRST_ROWS, find_quick_position(Case(check, row)) is None, place

    chosen: dict[str, Row] = {}
    for row in sorted(check.rows, key=rank):
        for name in Case(check, row).requirements:
            chosen.setdefault(name, row)
    others = [row for row in check.rows if find_quick_position(Case(check, row)) is None]
    ids = {row.id for row in (*chosen.values(), *others[: check.area == AREA_OF_MORE])}
    return [row for row in check.rows if row.id in ids]
