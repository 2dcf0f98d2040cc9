"""Collects checks as pytest items: one item per row, without fixtures, so that no user conftest affects the suite.

pytest receives the folder `checks`. Instead of the files in the folder, this module collects one collector for each
judged area of the suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from conformance import checks
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.quick_rows import build_order_key
from conformance.judging.selection import Subjects, list_area_rows, list_areas, matches_any_pattern, select_profile
from conformance.plugin import markers
from conformance.spec import ledger
from conformance.spec.check import Case, format_key
from conformance.spec.result import CheckResult
from conformance.transport.journal import JournalError

FOLDER = Path(checks.__file__).parent


@dataclass(frozen=True, slots=True)
class RunSelection:
    """The selection of rows in this run, and the judge that runs them."""

    profile: str
    dangerous: bool
    subjects: Subjects
    transports: tuple[str, ...]
    discovery_result: DiscoveryResult
    judge: Callable[[Case], CheckResult]


_PHASES: Final[tuple[Literal["setup", "call", "teardown"], ...]] = ("setup", "call", "teardown")
SELECTION_KEY: pytest.StashKey[RunSelection] = pytest.StashKey()


class SuiteFolder(pytest.Directory):
    """The pytest collector of the whole suite."""

    def collect(self) -> Iterable[pytest.Collector]:
        """Return a collector for each judged area."""
        selected = self.config.stash[SELECTION_KEY]
        return [Area.from_area(self, area) for area in list_areas(selected.subjects, selected.transports)]


class Area(pytest.Directory):
    """The collector of one area of the suite; its node id is the area's name, whatever the installation path is."""

    area: str

    @classmethod
    def from_area(cls, parent: pytest.Collector, area: str) -> Area:
        """Return the collector of an area."""
        made = super(pytest.Directory, cls).from_parent(parent, path=_find_folder(area), nodeid=area)
        made.area = area
        return made

    def collect(self) -> Iterable[pytest.Item]:
        """Return an item for each row that belongs to the profile."""
        selected = self.config.stash[SELECTION_KEY]
        for case in select_profile(
            list_area_rows(self.area, selected.subjects),
            selected.profile,
            dangerous=selected.dangerous,
            transports=selected.transports,
            discovery_result=selected.discovery_result,
        ):
            name = format_key(case.check.name, case.row.id) if case.row.id else case.check.name
            # Passed as text, the id is parsed like the ids in pytest's cache: with the row as a parameter.
            yield CheckItem.from_parent(self, name=name, nodeid=f"{self.area}::{name}", case=case)


class CheckItem(pytest.Item):
    """The pytest item of one row."""

    def __init__(self, *, case: Case, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.case = case
        self.result: CheckResult | None = None
        self.extra_keyword_matches.update(markers.list_keywords(case))
        for name in markers.list_markers(case):
            self.add_marker(markers.make_marker(name))
        self.keywords = dict(self.keywords)  # pytest reads them thrice, and finds those of parents one by one

    def runtest(self) -> None:
        """Judge the row and store the result in `result`; a failed row raises no exception."""
        with _stop_if_unrecorded():
            self.result = self.config.stash[SELECTION_KEY].judge(self.case)
        requirements = " ".join(self.result.requirements)
        properties = {"check": self.result.label, "outcome": str(self.result.outcome), "requirements": requirements}
        if self.result.failure:
            properties["explain"] = ledger.get_requirement(self.result.failure.requirement).explain
        self.user_properties.extend(properties.items())  # for JUnit

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file and line of the check, and the id of the row."""
        code = self.case.check.body.__code__
        return Path(code.co_filename), code.co_firstlineno, self.case.key


class UnrecordedExit(pytest.exit.Exception):  # type: ignore[name-defined, misc] # it is a class
    """Ends pytest because a call cannot be recorded; the message says why."""


@contextmanager
def _stop_if_unrecorded() -> Iterator[None]:
    try:
        yield
    except JournalError as error:  # without its frames: pytest shows their arguments, and a row takes minutes
        raise UnrecordedExit(error.strerror) from None


def collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector for the folder of the suite or of a judged area; None for other folders."""
    if path == FOLDER:
        return SuiteFolder.from_parent(parent, path=path)
    selected = parent.config.stash[SELECTION_KEY]
    found = [area for area in list_areas(selected.subjects, selected.transports) if _find_folder(area) == path]
    return Area.from_area(parent, found[0]) if found else None


def _find_folder(area: str) -> Path:
    """Return the folder of an area's checks; that of a pack is only a name, since its package is elsewhere."""
    return FOLDER / checks.PACKAGES.get(area, area)


def arrange_items(config: pytest.Config, items: list[pytest.Item], never: Sequence[str]) -> None:
    """Deselect rows that must never be sent, and sort the others.

    The most informative rows run first, rows that have crashed servers run late, and hostile rows run last.
    """
    kept_back = [item for item in items if isinstance(item, CheckItem) and matches_any_pattern(item.case, never)]
    if kept_back:
        config.hook.pytest_deselected(items=kept_back)
        items[:] = [item for item in items if item not in kept_back]
    items.sort(key=lambda item: build_order_key(item.case) if isinstance(item, CheckItem) else (0, False, -1))


def run_items(session: pytest.Session, has_passed: Callable[[Case], bool]) -> bool:
    """Run items as pytest's own loop does, but without pytest's protocol for rows that have passed already.

    Args:
        session: the session, with the items in order.
        has_passed: returns whether a row has passed in another process.

    Raises:
        pytest.Session.Failed: an option such as `-x` stops the run.
        pytest.Session.Interrupted: a plugin stops the run.
    """
    for item, following in zip_longest(session.items, session.items[1:]):
        with _stop_if_unrecorded():
            passed = item if isinstance(item, CheckItem) and has_passed(item.case) else None
        if passed is not None:
            _report_row(passed)
        else:
            # The setup of an item that pytest does not set up must not stay.
            kept = None if isinstance(following, CheckItem) else following
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=kept)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
    return True


def _report_row(item: CheckItem) -> None:
    """Report a row that has passed already, in the three phases that plugins expect of a test."""
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for when in _PHASES:
        run = item.runtest if when == "call" else lambda: None
        call = pytest.CallInfo.from_call(run, when, reraise=(KeyboardInterrupt,))  # or Ctrl-C is an error of the row
        report = hook.pytest_runtest_makereport(item=item, call=call)
        report.was_shown = True  # by the progress line, when the other process ended the row
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
