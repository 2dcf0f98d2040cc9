"""Which rows of the suite reach which step of the server, so that a fault meets those rows only that it can change.

A row that never takes the step which a fault replaces has the same exchanges with the fault and without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from conformance.spec.check import Case
from conformance.spec.result import CheckResult
from reference_server.faults import Fault, switch_on

Rows = list[Case]
# What happens to a connection shows in the exchanges that come after it, in other rows; the methods of gRPC are named
# when the server starts, whichever row comes first.
LASTING = ("http_protocol.", "grpc_methods.get_methods")


def trace_steps(
    rows: Rows, steps: Iterable[str], judge: Callable[[Rows], Iterable[CheckResult]]
) -> list[frozenset[str]]:
    """Run the rows against the honest server and return for each the steps that it takes."""
    taken: set[str] = set()
    found = []
    with ExitStack() as watched:
        for step in steps:
            watched.enter_context(switch_on(_watcher(step, taken)))
        for _ in judge(rows):
            found.append(frozenset(taken))
            taken.clear()
    return found


def _watcher(step: str, taken: set[str]) -> Fault:
    def body(original: Any, *arguments: Any, **named: Any) -> Any:
        taken.add(step)
        return original(*arguments, **named)

    return Fault(step, (step,), (), body)


def select_relevant(fault: Fault, rows: Rows, steps_of_rows: Mapping[tuple[str, str], frozenset[str]]) -> Rows:
    """Return the rows that take a step which the fault replaces; all for a fault of connections, or a broad one."""
    if fault.broad or any(step.startswith(LASTING) for step in fault.steps):
        return rows
    return [case for case in rows if case.check.judges_discovery or not steps_of_rows[case.ids].isdisjoint(fault.steps)]
