"""Checks as pytest items: an item a row, without fixtures, so that no conftest of a user reaches into the suite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from conformance import checks
from conformance.check import Check, Row, all_rows
from conformance.outcome import Outcome
from conformance.report.failure import block
from conformance.report.result import CheckResult

FOLDER = Path(checks.__file__).parent
JUDGE: pytest.StashKey[Callable[[Check, Row], CheckResult]] = pytest.StashKey()
DOORS: pytest.StashKey[tuple[str, ...]] = pytest.StashKey()  # http, grpc, or both


def collected_rows(
    profile: str, *, dangerous: bool = False, models: Sequence[str] = (), doors: Sequence[str] = ("http",)
) -> list[tuple[Check, Row]]:
    """Return what a whole run of a profile consists of, with the rows that have ended servers or without them.

    A run of models consists of what needs no role: their relations, and what the server says of itself.
    """
    modules = modules_for(models, doors)
    found = [case for name in modules for case in rows_of_module(name, models)]
    return [(check, row) for check, row in found if _belongs(check, row, profile, dangerous)]


def modules_for(models: Sequence[str], doors: Sequence[str]) -> tuple[str, ...]:
    """Return the modules of a run over `http`, over `grpc`, or both."""
    http = ("metadata", checks.RELATIONS) if models else tuple(name for name in checks.MODULES if name != checks.GRPC)
    return (*(http if "http" in doors else ()), *((checks.GRPC,) if "grpc" in doors else ()))


def rows_of_module(name: str, models: Sequence[str]) -> list[tuple[Check, Row]]:
    """Return the rows of a module in a run: of these models, or of the roles where there are none."""
    cases = all_rows(checks.of_module(name))
    if name == checks.RELATIONS:
        return [(check, _about(model, row)) for check, row in cases for model in models]
    return [(check, row) for check, row in cases if not models or check.role_of(row) is None]


def _about(model: str, row: Row) -> Row:
    return replace(row, id=f"{model}-{row.id}" if row.id else model, model=model)


def _belongs(check: Check, row: Row, profile: str, dangerous: bool) -> bool:
    if row.dangerous and not dangerous:
        return False
    return profile == "explore" or not (check.explores or (profile == "quick" and row.thorough))


class CheckFile(pytest.File):
    """A module of the suite; its node id is short, wherever the suite is installed."""

    def collect(self) -> Iterable[pytest.Item]:
        """Return an item for each row that belongs to the profile."""
        profile, dangerous = (self.config.getoption(f"conformance_{name}") for name in ("profile", "dangerous"))
        for check, row in rows_of_module(self.path.stem, models_of(self.config)):
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
        requirements = " ".join(self.result.requirements)
        properties = {"check": self.result.label, "outcome": str(self.result.outcome), "requirements": requirements}
        self.user_properties.extend(properties.items())  # for JUnit

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the check stands."""
        return self.path, self.check.body.__code__.co_firstlineno, f"{self.check.id}[{self.row.id}]"


def models_of(config: pytest.Config) -> list[str]:
    """Return the models that are to be judged by relations, each once."""
    return list(dict.fromkeys(config.getoption("conformance_models")))


def collect_file(file_path: Path, parent: pytest.Collector) -> CheckFile | None:
    """Return a collector if the file is a module of the suite."""
    doors = parent.config.stash[DOORS]
    known = modules_for(models_of(parent.config), doors)
    if file_path.parent != FOLDER or file_path.stem not in known or file_path.suffix != ".py":
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
    Outcome.KNOWN_FAILURE: ("known", "k", "KNOWN FAILURE"),
    Outcome.FIXED: ("fixed", "X", "FIXED"),
}
_PYTEST_OUTCOME = {
    Outcome.FAIL: "failed",
    Outcome.ERROR: "failed",
    Outcome.FIXED: "failed",
    Outcome.KNOWN_FAILURE: "skipped",
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


@dataclass(frozen=True, slots=True)
class Crash:
    """The line by which pytest's own reports name a failure."""

    message: str


@dataclass(frozen=True, slots=True)
class Told:
    """A failure as pytest's own reports take it: a line that names it, and as text all that is to say."""

    reprcrash: Crash
    text: str

    def __str__(self) -> str:
        """Return the whole text."""
        return self.text


def tell(report: pytest.TestReport, result: CheckResult, rerun: str) -> None:
    """Say in pytest's own report what failed, for JUnit and `-r`; not in a worker, where it could not be sent on."""
    if report.outcome != "failed":
        return
    of = f"{result.failure.level} {result.failure.requirement}: " if result.failure else ""
    line = Crash(of + result.message.partition("\n")[0])
    report.longrepr = Told(line, "\n".join(block(result, rerun)))  # type: ignore[assignment]


def arrange(config: pytest.Config, items: list[pytest.Item], never: Sequence[str]) -> None:
    """Leave out what must never be sent, and put what has ended servers at the end."""
    kept_back = [item for item in items if isinstance(item, CheckItem) and item.is_one_of(never)]
    if kept_back:
        config.hook.pytest_deselected(items=kept_back)
        items[:] = [item for item in items if item not in kept_back]
    items.sort(key=lambda item: isinstance(item, CheckItem) and item.row.dangerous)
