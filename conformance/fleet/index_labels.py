"""What both pages of an index share, and the summary on a terminal: their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from conformance import checks
from conformance.spec.extensions import EXTENSIONS, PROTOCOL
from conformance.spec.outcome import CONFORMANT, INCOMPLETE, NONCONFORMANT, PARTIAL
from conformance.spec.verdict import EXIT_STATUS, describe_verdict

Entry = Mapping[str, Any]

TITLE: Final = "A fleet of servers"
WRITTEN_BY: Final = "Written by `oip-conformance fleet`, from the reports of its runs; not by hand."
LOOK: Final = "What needs a look"
ALL_WELL: Final = "Every target was judged, and none needs a look."
CHANGED: Final = "What changed since the last run"
FIRST: Final = "This is the first run."
SAME: Final = "Nothing that is not met changed, and no verdict."
MATRIX: Final = "Targets by extensions and areas"
MATRIX_TEXT: Final = (
    "Under extensions the verdict, under areas how many of the MUSTs that apply are met; nothing where none applies."
)
UNMET: Final = "What is not met, and where"
HISTORY: Final = "Over time"
WORDS: Final[Mapping[str, str]] = {name: name.replace("_", " ") for name in (*EXIT_STATUS, "not_run")}
# In a cell of a few characters.
SHORT: Final[Mapping[str, str]] = {
    CONFORMANT: "yes",
    PARTIAL: "part",
    NONCONFORMANT: "NO",
    INCOMPLETE: "?",
    "not_applicable": "",
}
MAX_NAMED_TARGETS: Final = 5  # targets of a requirement
PAST: Final = 10  # runs before


def list_extensions(index: Entry) -> list[str]:
    """Return the extensions that some target was judged by, as the suite has them in order."""
    judged = {
        name
        for target in index["targets"]
        for name, verdict in target.get("extensions", {}).items()
        if verdict != "not_applicable"
    }
    return [name for name in (PROTOCOL, *EXTENSIONS) if name in judged]


def list_areas(index: Entry) -> list[str]:
    """Return the areas that some target has MUSTs in, as the suite has them in order."""
    found = {area for target in index["targets"] for area in target.get("areas", {})}
    ordered = [area for area in checks.PACKAGES if area in found]
    return [*ordered, *sorted(found - set(ordered))]


def unwell(index: Entry) -> list[Entry]:
    """Return the targets that fail, and those of which it cannot be said, these last."""
    return sorted((target for target in index["targets"] if target["status"]), key=lambda target: target["status"])


def applying(counts: Mapping[str, int]) -> int:
    """Return how many MUSTs apply."""
    return sum(counts.values())


def kind(counts: Mapping[str, int]) -> str:
    """Return what colours the counts of an area: the worst that is among them."""
    return (
        "fail" if counts["failed"] else "blocked" if counts["stuck"] else "pass" if counts["met"] else "not_applicable"
    )


def unmet(index: Entry) -> list[tuple[str, str, list[Entry]]]:
    """Return what some target does not meet: id, level and targets; what most of them miss comes first."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for target in index["targets"]:
        for entry in target.get("unmet", ()):
            found.setdefault((entry["level"], entry["id"]), []).append(target)
    ordered = sorted(found.items(), key=lambda item: (item[0][0] != "MUST", -len(item[1]), item[0][1]))
    return [(name, level, targets) for (level, name), targets in ordered]


def verdict_of(target: Entry) -> str:
    """Return the verdict of a target: one that is not conformant may be interoperable."""
    return describe_verdict(WORDS[target["verdict"]], target.get("interoperable"))


def named(targets: Sequence[Entry]) -> str:
    """Return the first of these targets by name, and how many more there are."""
    more = f" and {len(targets) - MAX_NAMED_TARGETS} more" if len(targets) > MAX_NAMED_TARGETS else ""
    return ", ".join(target["name"] for target in targets[:MAX_NAMED_TARGETS]) + more


def before(index: Entry, target: Entry) -> list[str]:
    """Return the verdicts of a target in the last runs, the earliest first; empty where it was not there."""
    return [run["verdicts"].get(target["name"], "") for run in index["history"][-PAST:]]


def describe_gate(target: Entry) -> str:
    """Return how a target differs from its baseline; empty where it has none."""
    found = target.get("gate")
    if found is None:
        return ""
    parts = [f"{found[name]} {name}" for name in ("new", "fixed", "stale", "known") if found[name]]
    return f"baseline: {', '.join(parts) or 'nothing is known to fail'}"


def why(target: Entry) -> str:
    """Return why a target needs a look, in one line."""
    return "; ".join([*target["why"], *filter(None, [describe_gate(target)])])


def turn(change: Entry) -> str:
    """Return what a requirement came to before and after."""
    return f"{change['rows']} row{'' if change['rows'] == 1 else 's'}"


def gone_on(index: Entry) -> str:
    """Return that the run was ended, and how it is gone on with; empty where it is whole."""
    return f" ({index['stopped']}: the same command goes on)" if index["stopped"] else ""


def counted(index: Entry) -> str:
    """Return how many targets came to what."""
    counts = index["counts"]
    return ", ".join(f"{counts[verdict]} {word}" for verdict, word in WORDS.items() if counts[verdict])
