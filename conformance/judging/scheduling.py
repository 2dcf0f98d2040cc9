"""Decides which rows may run beside others, in how many processes, and about how long they take."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence

from conformance.judging.control_checks import STATE_REQUIREMENTS
from conformance.spec import ledger
from conformance.spec.check import Case

# Inferences of a row in turn: of checks with many, of other rows, and of rows that must be alone. Measured with `quick`
# in 16 processes, with probes and company.
INFERENCES: Mapping[str, float] = {
    "walk.every-exchange-is-right": 31.0,
    "walk.each-value-is-right-alone": 6.4,
    "grpc.every-call-is-right": 16.0,
    "grpc.each-value-is-right-alone": 5.3,
}
USUAL_INFERENCES, ALONE_INFERENCES = 1.6, 4.0
# Approximate CPU time of the suite per exchange. More than (latency / this time) connections would wait for the suite.
OWN_EXCHANGE_S = 0.003
MIN_LATENCY_S = 0.01  # a target that answers faster leaves the suite no time to do other work
MAX_CONNECTIONS = 16
# Processes for each core of this machine, and one more, for a target that answers fast; more would only compete.
PROCESSES_PER_CORE = 2
MAX_FAST_PROCESSES = 8
# In the environment of a run of a fleet: its runs share the cores, and a thread of its process waits for the parent.
FLEET_VARIABLE = "OIP_FLEET_RUN"


def is_concurrency_safe(case: Case) -> bool:
    """Return whether a row may run concurrently.

    Rows about one connection may run concurrently, because each session has its own connections. The following rows
    must run alone: rows about discovery or about state that earlier requests leave, rows with requests from Hypothesis,
    hostile rows, rows of packs, and rows that have crashed servers.
    """
    requirement = case.requirements[0]
    is_about_state = requirement in STATE_REQUIREMENTS
    entry = ledger.get_requirement(requirement)
    is_beside = entry.is_of_robustness or entry.is_of_pack
    return not (is_about_state or is_beside or case.row.dangerous or case.check.judges_discovery or case.check.explores)


def estimate_inferences(rows: Iterable[Case]) -> float:
    """Return about how many inferences rows send one after the other."""
    return sum(
        INFERENCES.get(case.check.id, USUAL_INFERENCES if is_concurrency_safe(case) else ALONE_INFERENCES)
        for case in rows
    )


def estimate_seconds(rows: Sequence[Case], latency: float, connections: int) -> float:
    """Return about how many seconds rows take on a target with this latency."""
    alone = [case for case in rows if not is_concurrency_safe(case)]
    overlapping = estimate_inferences(rows) - estimate_inferences(alone)
    return latency * (estimate_inferences(alone) + overlapping / connections) + len(rows) * OWN_EXCHANGE_S


def choose_connections(latency: float | None, cores: int | None = None) -> int:
    """Return the number of connections to use for a target, each in a process of its own.

    Args:
        latency: the time to the fastest answer of the target in seconds; None if the target never answered.
        cores: the number of cores of this machine; None finds out.
    """
    cores = cores or count_cores()
    own = min(MAX_FAST_PROCESSES, PROCESSES_PER_CORE * cores + 1) if cores > 1 else 1
    if latency is None or latency < MIN_LATENCY_S:
        return 1 if latency is None else own
    return max(own, min(MAX_CONNECTIONS, int(latency / OWN_EXCHANGE_S)))


def count_cores() -> int:
    """Return the number of cores that this process may use; 1 in a run of a fleet."""
    if FLEET_VARIABLE in os.environ:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def can_fork() -> bool:
    """Return whether this process may fork: not where the system has no fork, or another thread may hold a lock."""
    return hasattr(os, "fork") and threading.active_count() == 1 + (FLEET_VARIABLE in os.environ)
