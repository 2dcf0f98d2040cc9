"""Checks as pytest items: an item a row, without fixtures, so that no conftest of a user reaches into the suite.

pytest is given the folder `checks`; instead of files it is shown a collector for each area of the suite that is judged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conformance import checks
from conformance.judging.selection import Subjects, is_in_profile, is_named, list_area_rows, list_areas
from conformance.plugin import markers
from conformance.spec import ledger
from conformance.spec.check import Check, Row, format_key
from conformance.spec.extensions import ROBUSTNESS
from conformance.spec.result import CheckResult

FOLDER = Path(checks.__file__).parent


@dataclass(frozen=True, slots=True)
class RunSelection:
    """What is judged in this run, and by whom."""

    profile: str
    dangerous: bool
    subjects: Subjects
    transports: tuple[str, ...]
    judge: Callable[[Check, Row], CheckResult]


SELECTION_KEY: pytest.StashKey[RunSelection] = pytest.StashKey()


class SuiteFolder(pytest.Directory):
    """The folder of all checks."""

    def collect(self) -> Iterable[pytest.Collector]:
        """Return a collector for each area that is judged."""
        selected = self.config.stash[SELECTION_KEY]
        return [Area.of(self, area) for area in list_areas(selected.subjects, selected.transports)]


class Area(pytest.Directory):
    """One area of the suite; its node id is the area's name, wherever the suite is installed."""

    area: str

    @classmethod
    def of(cls, parent: pytest.Collector, area: str) -> Area:
        """Return the collector of an area."""
        made = super(pytest.Directory, cls).from_parent(parent, path=FOLDER / checks.PACKAGES[area], nodeid=area)
        made.area = area
        return made

    def collect(self) -> Iterable[pytest.Item]:
        """Return an item for each row that belongs to the profile."""
        selected = self.config.stash[SELECTION_KEY]
        for check, row in list_area_rows(self.area, selected.subjects):
            if is_in_profile(check, row, selected.profile, selected.dangerous):
                name = format_key(check.name, row.id) if row.id else check.name
                # Given as a text, the id is read as pytest reads those of its cache: with the row as a parameter.
                yield CheckItem.from_parent(self, name=name, nodeid=f"{self.area}::{name}", check=check, row=row)


class CheckItem(pytest.Item):
    """One row of one check."""

    def __init__(self, *, check: Check, row: Row, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.check = check
        self.row = row
        self.result: CheckResult | None = None
        self.extra_keyword_matches.update(markers.list_keywords(check, row))
        for name in markers.list_markers(check, row):
            self.add_marker(markers.make_marker(name))

    def runtest(self) -> None:
        """Judge the row; the outcome is in `result`, never an exception."""
        self.result = self.config.stash[SELECTION_KEY].judge(self.check, self.row)
        requirements = " ".join(self.result.requirements)
        properties = {"check": self.result.label, "outcome": str(self.result.outcome), "requirements": requirements}
        if self.result.failure:
            properties["explain"] = ledger.get_requirement(self.result.failure.requirement).explain
        self.user_properties.extend(properties.items())  # for JUnit

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the check stands."""
        body = self.check.body
        return Path(inspect.getfile(body)), body.__code__.co_firstlineno, format_key(self.check.id, self.row.id)


def collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector if the folder is that of the suite, or of one of its areas that is judged."""
    if path == FOLDER:
        return SuiteFolder.from_parent(parent, path=path)
    selected = parent.config.stash[SELECTION_KEY]
    found = [
        area for area in list_areas(selected.subjects, selected.transports) if FOLDER / checks.PACKAGES[area] == path
    ]
    return Area.of(parent, found[0]) if found else None


def arrange_items(config: pytest.Config, items: list[pytest.Item], never: Sequence[str]) -> None:
    """Leave out what must never be sent, and put what has ended servers at the end; behind it what is hostile."""
    kept_back = [item for item in items if isinstance(item, CheckItem) and is_named(item.check, item.row, never)]
    if kept_back:
        config.hook.pytest_deselected(items=kept_back)
        items[:] = [item for item in items if item not in kept_back]
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[bool, bool]:
    """Return a key by which what may end the server comes last, and nothing comes behind it but its like."""
    if not isinstance(item, CheckItem):
        return False, False
    return item.check.area == ROBUSTNESS, item.row.dangerous
