"""Checks as pytest items: an item a row, without fixtures, so that no conftest of a user reaches into the suite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance import checks
from conformance.check import Check, Row, all_rows
from conformance.judge import Judge
from conformance.outcome import Outcome
from conformance.report.result import CheckResult

FOLDER = Path(checks.__file__).parent
JUDGE: pytest.StashKey[Judge] = pytest.StashKey()


def collected_rows(profile: str, *, dangerous: bool = False) -> list[tuple[Check, Row]]:
    """Return what a whole run of a profile consists of, with the rows that have ended servers or without them."""
    return [(check, row) for check, row in all_rows(checks.load()) if _belongs(check, row, profile, dangerous)]


def _belongs(check: Check, row: Row, profile: str, dangerous: bool) -> bool:
    if row.dangerous and not dangerous:
        return False
    return profile == "explore" or not (check.explores or (profile == "quick" and row.thorough))


class CheckFile(pytest.File):
    """A module of the suite; its node id is short, wherever the suite is installed."""

    def collect(self) -> Iterable[pytest.Item]:
        """Return an item for each row that belongs to the profile."""
        profile, dangerous = (self.config.getoption(f"conformance_{name}") for name in ("profile", "dangerous"))
        for check, row in all_rows(checks.of_module(self.path.stem)):
            if _belongs(check, row, profile, dangerous):
                name = f"{check.name}[{row.id}]" if row.id else check.name
                yield CheckItem.from_parent(self, name=name, check=check, row=row)


class CheckItem(pytest.Item):
    """One row of one check."""

    def __init__(self, *, check: Check, row: Row, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.check = check
        self.row = row
        self.result: CheckResult | None = None
        self.extra_keyword_matches.update((check.id, check.name, *check.requirements(row)))

    def is_one_of(self, patterns: Iterable[str]) -> bool:
        """Say whether the id of the check, or `id[row]`, fits a pattern with * and ?; brackets mean themselves."""
        names = (self.check.id, f"{self.check.id}[{self.row.id}]")
        spelled = (re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".") for pattern in patterns)
        return any(re.fullmatch(pattern, name) for pattern in spelled for name in names)

    def runtest(self) -> None:
        """Judge the row; the outcome is in `result`, never an exception."""
        self.result = self.config.stash[JUDGE](self.check, self.row)
        self.user_properties.append(("requirements", " ".join(self.result.requirements)))  # for JUnit

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the check stands."""
        return self.path, self.check.body.__code__.co_firstlineno, f"{self.check.id}[{self.row.id}]"


def collect_file(file_path: Path, parent: pytest.Collector) -> CheckFile | None:
    """Return a collector if the file is a module of the suite."""
    if file_path.parent != FOLDER or file_path.stem not in checks.MODULES or file_path.suffix != ".py":
        return None
    collector: CheckFile = CheckFile.from_parent(parent, path=file_path, nodeid=file_path.stem)
    return collector


# How pytest counts an outcome, and how it shows it: category, letter, word.
STATUS: dict[Outcome, tuple[str, str, str]] = {
    Outcome.PASS: ("passed", ".", "PASS"),
    Outcome.FAIL: ("failed", "F", "FAIL"),
    Outcome.ADVISORY: ("advisory", "a", "ADVISORY"),
    Outcome.OBSERVED: ("observed", "o", "OBSERVED"),
    Outcome.NOT_APPLICABLE: ("skipped", "-", "NOT APPLICABLE"),
    Outcome.BLOCKED: ("blocked", "b", "BLOCKED"),
    Outcome.ERROR: ("error", "E", "ERROR"),
}
_PYTEST_OUTCOME = {
    Outcome.FAIL: "failed",
    Outcome.ERROR: "failed",
    Outcome.NOT_APPLICABLE: "skipped",
    Outcome.BLOCKED: "skipped",
}


def fill_report(report: pytest.TestReport, result: CheckResult) -> None:
    """Put a result into pytest's own report, which carries it from a worker to the controller."""
    report.conformance = result.to_dict()  # type: ignore[attr-defined]
    report.outcome = _PYTEST_OUTCOME.get(result.outcome, "passed")  # type: ignore[assignment]
    if report.outcome == "skipped":
        report.longrepr = (report.location[0], report.location[1] or 0, result.message)
    elif report.outcome == "failed":
        report.longrepr = f"{result.label}\n{result.claim}\n{result.message}"


def arrange(config: pytest.Config, items: list[pytest.Item], never: Sequence[str]) -> None:
    """Leave out what must never be sent, and put what has ended servers at the end."""
    kept_back = [item for item in items if isinstance(item, CheckItem) and item.is_one_of(never)]
    if kept_back:
        config.hook.pytest_deselected(items=kept_back)
        items[:] = [item for item in items if item not in kept_back]
    items.sort(key=lambda item: isinstance(item, CheckItem) and item.row.dangerous)
