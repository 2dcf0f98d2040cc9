"""A sample of valid servers fails nothing on deployed models, however slow it is and however busy the machine is.

The latencies are those of real models, and the timeout is that of a user, both ten times shorter.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from conformance.judging import process_pool
from conformance.judging.process_pool import ProcessPool
from conformance.judging.scheduling import estimate_inferences
from conformance.judging.selection import Subjects, list_profile_rows
from conformance.judging.session import Session
from conformance.spec.extensions import TRANSPORTS
from conformance.spec.outcome import Outcome
from conformance.transport.settings import Settings, make_settings
from conformance.transport.target import Target
from tests.support import sampling
from tests.support.programs import start_program
from tests.support.servers import run_with_grpc

TIMEOUT_S = 1.0
BUSY_PROCESSES = 4  # one where the other tests keep the machine busy, too
BUSY_TIMEOUT_S = 10.0  # a busy machine makes every server slow
MODELS = ("multi",)
MAX_INFERENCES = 10  # of a row, about
GOOD = {Outcome.PASS, Outcome.OBSERVED, Outcome.NOT_APPLICABLE}
# Rows with many requests in flight, and a few of each area.
ROWS_OF_AREA = 2
IN_FLIGHT = ("state.answers-in-flight-are-their-own[json", "grpc.answers-in-flight-are-their-own[binary")

# valid server, workers, seconds of an inference, connections of the suite, whether the machine is busy
SAMPLE = (
    ("answers-close-the-connection", "16", 0.03, 4, False),
    ("connections-over-ten-requests-are-closed", "worker", 0.03, 1, False),
    ("grpc-calls-are-answered-one-at-a-time", "16", 0.03, 4, False),
    ("grpc-answers-overtake-each-other", "16", 0.2, 16, False),
    ("answers-end-with-the-connection", "16", 0.0, 1, True),
    ("grpc-connections-have-four-streams", "16", 0.0, 1, True),
)


@contextmanager
def run_variation(name: str, workers: str, seconds: float, *, is_busy: bool) -> Iterator[Settings]:
    """Start a valid server, and other processes that keep the machine busy; yields the settings."""
    models = [f"--model={model}" for model in MODELS]
    slow = ("-m", "tests.support.slow_server", workers, str(seconds))
    with ExitStack() as stack:
        url, grpc = stack.enter_context(run_with_grpc(f"--variation={name}", *models, program=slow))
        for _ in range((BUSY_PROCESSES if sampling.is_whole else 1) * is_busy):
            stack.enter_context(start_program([sys.executable, "-c", "while True: pass"]))
        yield make_settings(url, timeout=BUSY_TIMEOUT_S if is_busy else TIMEOUT_S, grpc=grpc)


@pytest.mark.parametrize(
    ("name", "workers", "seconds", "connections", "is_busy"), SAMPLE, ids=[one[0] for one in SAMPLE]
)
def test_a_slow_honest_server_fails_nothing(
    name: str, workers: str, seconds: float, connections: int, *, is_busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_pool, "can_fork", lambda: True)  # also in a worker of pytest-xdist
    subjects = Subjects(MODELS, with_roles=False)
    with run_variation(name, workers, seconds, is_busy=is_busy) as settings, Session(Target(settings)) as session:
        session.discover((), subjects)
        listed = list_profile_rows("certify", subjects=subjects, transports=TRANSPORTS)
        every = [case for case in listed if estimate_inferences([case]) < MAX_INFERENCES]
        areas = dict.fromkeys(check.area for check, _ in every)
        by_area = {area: [case for case in every if case[0].area == area] for area in areas}
        few = [case for found in by_area.values() for case in found[:: max(1, len(found) // ROWS_OF_AREA)]]
        rows = [*few, *(case for case in every if case.key.startswith(IN_FLIGHT))]
        pool = ProcessPool(session, connections)
        pool.expect_rows(rows if connections > 1 else [])
        results = [pool.judge(case) for case in rows]
    bad = [(one.outcome, one.label, one.message) for one in results if one.outcome not in {*GOOD, Outcome.ADVISORY}]
    assert bad == []
    assert sum(one.outcome is Outcome.PASS for one in results) > len(results) // 3
