"""Samples of rows: those of quick, or one for each thing that a check says; with `pytest --whole` all rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from zlib import crc32

from conformance.judging.quick_rows import find_quick_position
from conformance.judging.session import Session
from conformance.spec.check import Case
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult

ONE_IN = 8  # so many of the rows that a sample could leave out are in it; others for each model
is_whole = False  # set by the option


def select_quick(rows: Iterable[Case]) -> list[Case]:
    """Return the rows of the profile quick, which sees every known fault."""
    return [case for case in rows if is_whole or find_quick_position(case) is not None]


def judge_sample(session: Session, rows: Iterable[Case]) -> Iterator[CheckResult]:
    """Yield results of one row that applies for each thing that a check says, and of others by chance."""
    judged: set[tuple[str, ...]] = set()
    for case in rows:
        said = (case.check.id, *case.requirements)
        if said in judged and not is_whole and crc32(f"{case.check.id} {case.row.id}".encode()) % ONE_IN:
            continue
        result = session.judge(case)
        if result.outcome is not Outcome.NOT_APPLICABLE:
            judged.add(said)
        yield result


def judge_until_missed(session: Session, rows: Iterable[Case], about: Collection[str]) -> Iterator[CheckResult]:
    """Yield results of rows, up to the one with which each of the requirements has been missed."""
    unmissed = set(about)
    for case in rows:
        result = session.judge(case)
        yield result
        unmissed -= {result.failure.requirement} if result.failure else set()
        if not unmissed:
            return
