"""Renders the index of a fleet as JSON, Markdown and HTML files, and as the command's output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from conformance import checks
from conformance.fleet.units import Outcome, Unit
from conformance.report.output_files import write_atomically
from conformance.report.simple_page import (
    Bar,
    Block,
    BulletList,
    Cell,
    Heading,
    Paragraph,
    Piece,
    SimplePage,
    Span,
    Table,
    cell,
    code,
    compute_parts,
    render_html,
    render_markdown,
)
from conformance.spec.extensions import EXTENSIONS, PROTOCOL
from conformance.spec.outcome import CONFORMANT, INCOMPLETE, NONCONFORMANT, PARTIAL
from conformance.spec.text import escape_text, format_count, join_some
from conformance.spec.verdict import EXIT_STATUS, describe_verdict

Entry = Mapping[str, Any]

WRITTEN_BY: Final = "Written by `oip-conformance fleet` from the reports of its runs; not edited by hand."
MATRIX_TEXT: Final = (
    "Columns of extensions show verdicts. Columns of areas show how many of the MUSTs that apply are met; "
    "a cell is empty if none applies."
)
WORDS: Final[Mapping[str, str]] = {name: name.replace("_", " ") for name in (*EXIT_STATUS, "not_run")}
# Short forms of a verdict on an extension, for table cells.
SHORT: Final[Mapping[str, str]] = {CONFORMANT: "yes", PARTIAL: "part", NONCONFORMANT: "NO", INCOMPLETE: "?"}
MAX_NAMED_TARGETS: Final = 5  # targets named per requirement
MAX_PRINTED: Final = 10  # targets, and changes of each kind, that are printed
MAX_PAST_RUNS: Final = 10  # runs in the history bar of a target
MAX_TEXT_CHARS: Final = 200
_VERDICT_BY_STATUS: Final = {EXIT_STATUS[name]: name for name in (CONFORMANT, NONCONFORMANT, INCOMPLETE)}


def write(folder: Path, index: Entry) -> None:
    """Write the files of an index, each atomically. Raises OSError: a file cannot be written."""
    page = build_page(index)
    write_atomically(folder / "index.json", json.dumps(index, indent=1, ensure_ascii=True) + "\n")
    write_atomically(folder / "index.md", render_markdown(page))
    write_atomically(folder / "index.html", render_html(page))


def build_page(index: Entry) -> SimplePage:
    """Build the page of an index."""
    head = f"{_count_targets(index)} on {index['started'][:10]}: {_describe_counts(index)}.{_describe_stop(index)}"
    blocks: list[Block] = [
        Paragraph([Span(WRITTEN_BY, "own")], is_dim=True),
        Paragraph([head]),
        Paragraph([Bar(compute_parts(list(index["counts"].items())), is_wide=True)]),
        Heading(2, "Targets that need attention"),
        _list_targets_needing_attention(index),
        Heading(2, "What changed since the last run"),
        _list_changes(index["changes"]),
        Heading(2, "Targets by extensions and areas"),
        Paragraph([MATRIX_TEXT], is_dim=True),
        _build_matrix(index),
        Heading(2, "Unmet requirements by target"),
        _list_unmet(index),
        Heading(2, "Over time"),
        _list_runs(index),
    ]
    return SimplePage("A fleet of servers", blocks)


def _link_target(target: Entry) -> Span:
    is_judged = "folder" in target and "url" in target
    return Span(target["name"], url=f"{target['folder']}/report.html" if is_judged else "")


def _describe_verdict(target: Entry) -> str:
    """Return the verdict of a target as text; a nonconformant target may still be interoperable."""
    return describe_verdict(WORDS[target["verdict"]], target.get("interoperable"), target.get("limits", ""))


def _list_targets_needing_attention(index: Entry) -> Block:
    """List the targets that fail, then those without a conclusive verdict."""
    found = sorted((target for target in index["targets"] if target["status"]), key=lambda target: target["status"])
    if not found:
        return Paragraph(["Every target was judged, and none needs attention."])
    return BulletList(
        [
            [
                _link_target(target),
                ": ",
                Span(_describe_verdict(target), kind=target["verdict"]),
                ": ",
                Span("; ".join([*target["why"], *_describe_gate(target)]), limit=400),
            ]
            for target in found
        ]
    )


def _describe_gate(target: Entry) -> Iterator[str]:
    """Yield the differences of a target from its baseline, if it has one."""
    if found := target.get("gate"):
        parts = [f"{found[name]} {name}" for name in ("new", "fixed", "stale", "known") if found[name]]
        yield f"baseline: {', '.join(parts) or 'nothing is known to fail'}"


def _list_changes(changes: Entry | None) -> Block:
    if changes is None:
        return Paragraph(["This is the first run."])
    items: list[list[Piece]] = [
        [
            f"{each['target']} was ",
            Span(WORDS[each["before"]], kind=each["before"]),
            ", is ",
            Span(WORDS[each["after"]], kind=each["after"]),
        ]
        for each in changes["turned"]
    ]
    for kind in ("broke", "fixed"):
        for each in changes[kind]:
            rows = format_count(each["rows"], "row")
            items.append([Span(kind, kind=kind), f": {each['target']} ", code(each["id"]), f" {each['level']}, {rows}"])
    items += [[f"{kind}: ", Span(", ".join(changes[kind]), limit=2000)] for kind in ("new", "gone") if changes[kind]]
    return BulletList(items) if items else Paragraph(["No verdict changed, and no requirement was fixed or broken."])


def _build_matrix(index: Entry) -> Table:
    targets = index["targets"]
    judged = {
        name
        for target in targets
        for name, verdict in target.get("extensions", {}).items()
        if verdict != "not_applicable"
    }
    extensions = [name for name in (PROTOCOL, *EXTENSIONS) if name in judged]
    found = {area for target in targets for area in target.get("areas", {})}
    areas = [*(area for area in checks.PACKAGES if area in found), *sorted(found - set(checks.PACKAGES))]
    rows = []
    for target in targets:
        url = Span(target.get("url", ""), is_small=True, is_extra=True, limit=120)
        verdict = cell(_describe_verdict(target), _draw_verdict_history(index, target), kind=target["verdict"])
        own = target.get("extensions", {})
        kinds = [own.get(name, "not_applicable") for name in extensions]
        cells = [
            *(cell(SHORT.get(kind, ""), kind=kind) for kind in kinds),
            *(_show_area(target.get("areas", {}).get(area)) for area in areas),
        ]
        rows.append([cell(_link_target(target), *([url] if url.text else [])), verdict, *cells])
    return Table("Targets by extensions and areas", ["target", "verdict", *extensions, *areas], rows, style="matrix")


def _draw_verdict_history(index: Entry, target: Entry) -> Bar:
    """Draw the verdicts of a target in the last runs, earliest first."""
    past = [run["verdicts"].get(target["name"], "") for run in index["history"][-MAX_PAST_RUNS:]]
    label = "last runs: " + ", ".join(WORDS.get(verdict, "-") for verdict in past)
    width = 100 / MAX_PAST_RUNS
    return Bar([(verdict or "none", 1, n * width, 0.9 * width) for n, verdict in enumerate(past)], label)


def _show_area(counts: Mapping[str, int] | None) -> Cell:
    """Return a cell with the number of met and applicable MUSTs, colored by the worst outcome."""
    if not counts:
        return cell()
    kinds = {"fail": counts["failed"], "blocked": counts["stuck"], "pass": counts["met"], "not_applicable": 1}
    return cell(f"{counts['met']}/{sum(counts.values())}", kind=next(kind for kind, count in kinds.items() if count))


def _list_unmet(index: Entry) -> Block:
    """List unmet requirements: MUSTs first, then by the number of targets that do not meet them."""
    found: dict[tuple[str, str], list[str]] = {}
    for target in index["targets"]:
        for entry in target.get("unmet", ()):
            found.setdefault((entry["level"], entry["id"]), []).append(target["name"])
    ordered = sorted(found.items(), key=lambda item: (item[0][0] != "MUST", -len(item[1]), item[0][1]))
    rows = [
        [
            cell(code(id_)),
            cell(level),
            cell(str(len(names))),
            cell(Span(join_some(names, MAX_NAMED_TARGETS), limit=800)),
        ]
        for (level, id_), names in ordered
    ]
    return (
        Table("Unmet requirements", ["requirement", "level", "targets", "which"], rows)
        if rows
        else Paragraph(["Nothing."])
    )


def _list_runs(index: Entry) -> Table:
    rows = [
        [cell(run["started"]), *(cell(str(run["counts"][verdict])) for verdict in WORDS), cell(run["suite"])]
        for run in reversed(index["history"])
    ]
    return Table("Over time", ["run", *WORDS.values(), "suite"], rows)


# --- printed output ---------------------------------------------------------------------------------------------------


def format_target(unit: Unit, outcome: Outcome, count: int, total: int) -> str:
    """Return the output line of a finished target."""
    said = escape_text(outcome.said, MAX_TEXT_CHARS) or ("" if outcome.is_reached else "could not be reached")
    verdict = outcome.verdict or _VERDICT_BY_STATUS[outcome.status]
    line = f"[{count:{len(str(total))}}/{total}] {unit.name}  {verdict}  {outcome.seconds:g} s"
    return f"{line}: {said}" if said else line


def format_summary(folder: Path, index: Entry) -> list[str]:
    """Return the lines of a run's summary; the last line is the overall result."""
    verdict = f"{_count_targets(index)}: {_describe_counts(index)}{_describe_stop(index)}"
    return [
        *_format_targets_needing_attention(index),
        *_format_changes(index["changes"] or {}),
        f"index: {folder / 'index.html'}",
        verdict,
    ]


def _count_targets(index: Entry) -> str:
    return format_count(len(index["targets"]), "target")


def _describe_counts(index: Entry) -> str:
    """Return the number of targets per verdict, as text."""
    return ", ".join(f"{count} {WORDS[verdict]}" for verdict, count in index["counts"].items() if count)


def _describe_stop(index: Entry) -> str:
    """Return why the run stopped early, and how to resume it; empty if the run is complete."""
    return f" ({index['stopped']}: the same command resumes the run)" if index["stopped"] else ""


def _format_targets_needing_attention(index: Entry) -> Iterator[str]:
    found = [target for target in index["targets"] if target["status"] and target["verdict"] != "not_run"]
    found.sort(key=lambda target: (target["status"], target["name"]))
    for target in found[:MAX_PRINTED]:
        why = f": {escape_text('; '.join(target['why']), MAX_TEXT_CHARS)}" if target["why"] else ""
        yield f"{target['name']} is {_describe_verdict(target)}{why}"
    if len(found) > MAX_PRINTED:
        yield f"and {len(found) - MAX_PRINTED} more targets; the index has them all"


def _format_changes(changes: Entry) -> Iterator[str]:
    for kind in ("broke", "fixed"):
        found = changes.get(kind, ())
        for each in found[:MAX_PRINTED]:
            yield f"{kind} since the last run: {each['target']} {each['id']} {each['level']}"
        if len(found) > MAX_PRINTED:
            yield f"{kind} since the last run: {len(found) - MAX_PRINTED} more"
    for turn in changes.get("turned", ())[:MAX_PRINTED]:
        yield f"{turn['target']} was {WORDS[turn['before']]}, is {WORDS[turn['after']]}"
