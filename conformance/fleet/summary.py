"""What the command prints: a line for each target that is done, and a few at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from conformance.fleet.index import VERDICTS
from conformance.fleet.index_files import PAGE
from conformance.fleet.index_labels import WORDS, gone_on, verdict_of
from conformance.fleet.unit import Outcome, Unit
from conformance.spec.outcome import CONFORMANT, INCOMPLETE, NONCONFORMANT
from conformance.spec.text import escape_text
from conformance.spec.verdict import EXIT_STATUS

MAX_NAMED_TARGETS: Final = 10  # targets, and changes of a kind, that are named
MAX_TEXT_CHARS: Final = 200
_OF_STATUS: Final = {EXIT_STATUS[name]: name for name in (CONFORMANT, NONCONFORMANT, INCOMPLETE)}


def format_target(unit: Unit, outcome: Outcome, count: int, total: int) -> str:
    """Return the line of a target that is done."""
    said = (
        f": {escape_text(outcome.said, MAX_TEXT_CHARS)}"
        if outcome.said
        else ""
        if outcome.is_reached
        else ": could not be reached"
    )
    verdict = outcome.verdict or _OF_STATUS[outcome.status]
    return f"[{count:{len(str(total))}}/{total}] {unit.name}  {verdict}  {outcome.seconds:g} s{said}"


def format_summary(folder: Path, index: Mapping[str, Any]) -> list[str]:
    """Return the summary of a run; its last line is what the fleet came to."""
    return [*_unwell(index), *_changes(index), f"index: {folder / PAGE}", _verdict(index)]


def _unwell(index: Mapping[str, Any]) -> Iterator[str]:
    found = [target for target in index["targets"] if target["status"] and target["verdict"] != "not_run"]
    found.sort(key=lambda target: (target["status"], target["name"]))
    for target in found[:MAX_NAMED_TARGETS]:
        why = f": {escape_text('; '.join(target['why']), MAX_TEXT_CHARS)}" if target["why"] else ""
        yield f"{target['name']} is {verdict_of(target)}{why}"
    if len(found) > MAX_NAMED_TARGETS:
        yield f"and {len(found) - MAX_NAMED_TARGETS} more; the index has them all"


def _changes(index: Mapping[str, Any]) -> Iterator[str]:
    changes = index["changes"]
    if changes is None:
        return
    for kind in ("broke", "fixed"):
        yield from _of_kind(kind, changes[kind])
    for turn in changes["turned"][:MAX_NAMED_TARGETS]:
        yield f"{turn['target']} was {WORDS[turn['before']]}, is {WORDS[turn['after']]}"


def _of_kind(kind: str, found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in found[:MAX_NAMED_TARGETS]:
        yield f"{kind} since the last run: {each['target']} {each['id']} {each['level']}"
    if len(found) > MAX_NAMED_TARGETS:
        yield f"{kind} since the last run: {len(found) - MAX_NAMED_TARGETS} more"


def _verdict(index: Mapping[str, Any]) -> str:
    counts = index["counts"]
    said = ", ".join(f"{counts[verdict]} {WORDS[verdict]}" for verdict in VERDICTS if counts[verdict])
    total = len(index["targets"])
    return f"{total} target{'' if total == 1 else 's'}: {said}{gone_on(index)}"
