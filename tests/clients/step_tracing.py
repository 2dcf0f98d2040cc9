"""Which rows reach which step of the honest client, so that an alteration meets those rows only that it can change.

A row that never takes the step which an alteration replaces has the same exchanges with the alteration and without it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from conformance.spec.check import Case
from conformance.spec.result import CheckResult
from conformance.wire.datatypes import DATATYPES
from tests.clients.alterations import Alteration, apply
from tests.clients.sightings import SharedPeer

# What happens to a connection shows in the exchanges after it, in other rows.
LASTING = ("connection.", "http_client.", "grpc_client.")
# A step of the client, and the datatype of its first argument if this is a datatype or has one.
Step = tuple[str, str]
Steps = Mapping[tuple[str, str], frozenset[Step]]


def trace_steps(rows: Sequence[Case], steps: Collection[str]) -> Steps:
    """Run rows with the honest client, and return the steps that each of them takes, by the names of check and row."""
    taken: set[Step] = set()
    found: dict[tuple[str, str], frozenset[Step]] = {}

    def keep(result: CheckResult) -> None:
        found[result.id, result.row] = frozenset(taken)
        taken.clear()

    with ExitStack() as watched, SharedPeer() as peer:
        for step in steps:
            watched.enter_context(apply(_make_watcher(step, taken)))
        peer.see(None, rows, judged=keep)
    return found


def _make_watcher(step: str, taken: set[Step]) -> Alteration:
    def body(original: Any, *arguments: Any, **named: Any) -> Any:
        taken.add((step, _find_datatype(arguments)))
        return original(*arguments, **named)

    return Alteration(step, (step,), (), body)


def _find_datatype(arguments: Sequence[object]) -> str:
    subject = arguments[0] if arguments else ""
    datatype = getattr(subject, "datatype", subject)
    return datatype if isinstance(datatype, str) and datatype in DATATYPES else ""


def select_relevant(altered: Alteration, rows: Sequence[Case], steps: Steps) -> Sequence[Case]:
    """Return the rows that take an altered step; all if the alteration is one of connections."""
    if any(step.startswith(LASTING) for step in altered.steps):
        return rows
    return [case for case in rows if _is_taken(altered, steps[case.ids])]


def _is_taken(altered: Alteration, steps: Collection[Step]) -> bool:
    return any(
        step in altered.steps and (not altered.datatypes or datatype in altered.datatypes) for step, datatype in steps
    )
