"""On a terminal, a line for each area that counts its rows and says how long the run will take, instead of dots.

It is written over and over, so that nothing of it is for a file or the log of a CI system: these have pytest's dots, as
have `-q` and `-v`.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult

MIN_INTERVAL_S = 0.1  # seconds between two lines, but for the last of an area
# An estimate out of fewer rows, or sooner, would be no more than a guess.
FEWEST_ROWS, SOONEST = 20, 2.0


class ProgressLine:
    """The line of one run; `is_live` while it takes the place of pytest's dots."""

    def __init__(self, reporter: Any, session: pytest.Session) -> None:
        self.is_live = is_wanted(reporter, session.config)
        self._reporter, self._session = reporter, session
        self._started, self._shown = time.monotonic(), 0.0
        self._done = self._failed = 0
        self._area = ""

    def show(self, result: CheckResult) -> None:
        """Count a result, and write the line anew."""
        if not self.is_live:
            return
        now = time.monotonic()
        self._done += 1
        self._failed += result.outcome is Outcome.FAIL
        if (
            result.area == self._area
            and now - self._shown < MIN_INTERVAL_S
            and self._done < self._session.testscollected
        ):
            return
        self._area, self._shown = result.area, now
        text = format_line(self._area, self._done, self._session.testscollected, self._failed, now - self._started)
        self._reporter.rewrite(text[: self._reporter._tw.fullwidth - 1], erase=True)
        self._reporter.flush()

    def end(self) -> None:
        """Leave the rest to pytest."""
        self.is_live = False


def is_wanted(reporter: Any, config: pytest.Config) -> bool:
    """Say whether a person looks on, who has asked for neither more nor less than usual."""
    is_plain = config.get_verbosity() == 0 and config.getini("console_output_style") != "classic"
    return bool(is_plain and reporter is not None and reporter.isatty)


def format_line(area: str, done: int, total: int, failed: int, seconds: float) -> str:
    """Return what is to say of a run.

    Args:
        area: of the last row.
        done: how many rows were judged.
        total: how many there are; 0 where nobody knows.
        failed: how many of those that were judged have failed.
        seconds: since the first of them.
    """
    parts = [f"{area:16}{done} of {total} rows" if total else f"{area:16}{done} rows"]
    parts += [f"{failed} failed"] if failed else []
    if done >= FEWEST_ROWS and seconds >= SOONEST and total > done:
        left = round(seconds / done * (total - done))
        parts.append(f"about {left // 60}:{left % 60:02} left")
    return ", ".join(parts)
