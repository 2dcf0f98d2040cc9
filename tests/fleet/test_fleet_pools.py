"""Units handed out: tried again where a target could not be reached, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from conformance.fleet import pools
from conformance.fleet.fleet_file import Limits
from conformance.fleet.units import Outcome, Unit
from conformance.spec.extras import MissingExtraError
from tests.support.small_fleets import Given
from tests.support.small_reports import report

UNITS = [Unit(name, "", "") for name in ("a", "b")]


def carried_out(pool: Given, **limits: Any) -> tuple[list[tuple[str, int, int]], str]:
    kept: list[tuple[str, int, int]] = []
    given = {unit.name: Limits(retry_pause=0, **limits) for unit in UNITS}
    gone = pools.run_units(UNITS, given, pool, lambda unit, out, tried: kept.append((unit.name, out.status, tried)))
    return kept, gone


def test_a_target_that_could_not_be_reached_is_tried_again_behind_the_others() -> None:
    pool = Given(None, {"a": report(), "b": report()}, unreached={"a": 2})
    assert carried_out(pool, retries=2) == ([("b", 0, 1), ("a", 0, 3)], "")
    assert pool.asked == ["a", "b", "a", "a"]
    assert carried_out(Given(None, {"b": report()}, unreached={"a": 9}), retries=1)[0] == [("b", 0, 1), ("a", 6, 2)]


def test_a_verdict_is_never_tried_again() -> None:
    pool = Given(None, {"a": report(verdict="nonconformant"), "b": report(verdict="incomplete")})
    assert carried_out(pool, retries=9)[0] == [("a", 1, 1), ("b", 6, 1)]


class SilentPool(Given):
    """A pool of which nothing ever comes."""

    def submit(self, unit: Unit, done: Callable[[Outcome], None]) -> None:
        """Forget the unit."""


def test_who_does_the_work_may_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "POLL_INTERVAL_S", 0.01)
    assert carried_out(SilentPool(None, failure="the scheduler is gone")) == ([], "the scheduler is gone")


def test_a_pool_of_this_machine_does_so_many_at_once_and_can_be_stopped(tmp_path: Any) -> None:
    begun = Event()
    folders: list[str] = []
    told: list[Outcome] = []

    def do(unit: Unit, should_continue: Callable[[], bool]) -> Outcome:
        folders.append(unit.folder)
        begun.set()
        while should_continue():
            pass
        return Outcome(unit.name, 0)

    pool = pools.LocalPool(1, lambda unit: tmp_path / unit.name, do)
    for unit in UNITS:
        pool.submit(unit, told.append)
    begun.wait()
    pool.stop()
    assert folders == [str(tmp_path / "a")]  # the other one never had its turn
    assert told == []


def test_without_dask_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"needs the extra fleet: pip install 'oip-conformance\[fleet\]'"):
        pools.Cluster("tcp://127.0.0.1:8786", "run")
