"""The index of a fleet as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.fleet import index_labels as words
from conformance.report.markdown import code, table, text

Index = Mapping[str, Any]


def render(index: Index) -> str:
    """Return the page, ending in a newline."""
    head = f"{len(index['targets'])} targets on {text(index['started'][:10])}: {words.counted(index)}."
    lines = [f"# {words.TITLE}", "", words.WRITTEN_BY, "", head + text(words.gone_on(index)), ""]
    lines += [f"## {words.LOOK}", "", *_look(index), "", f"## {words.CHANGED}", "", *_changes(index), ""]
    lines += [
        f"## {words.MATRIX}",
        "",
        words.MATRIX_TEXT,
        "",
        *_matrix(index),
        "",
        f"## {words.UNMET}",
        "",
        *_unmet(index),
    ]
    return "\n".join([*lines, "", f"## {words.HISTORY}", "", *_history(index)]) + "\n"


def _link(target: Index) -> str:
    is_judged = "folder" in target and "url" in target
    return f"[{text(target['name'])}]({target['folder']}/report.html)" if is_judged else text(target["name"])


def _look(index: Index) -> list[str]:
    lines = [
        f"- {_link(target)}: {words.verdict_of(target)}: {text(words.why(target), 400)}"
        for target in words.unwell(index)
    ]
    return lines or [words.ALL_WELL]


def _changes(index: Index) -> list[str]:
    changes = index["changes"]
    return [words.FIRST] if changes is None else list(_changed(changes)) or [words.SAME]


def _changed(changes: Index) -> Iterator[str]:
    for each in changes["turned"]:
        yield f"- {text(each['target'])} was {words.WORDS[each['before']]}, is {words.WORDS[each['after']]}"
    for kind in ("broke", "fixed"):
        for each in changes[kind]:
            yield f"- {kind}: {text(each['target'])} {code(each['id'])} {text(each['level'])}, {words.turn(each)}"
    for kind in ("new", "gone"):
        if changes[kind]:
            yield f"- {kind}: {', '.join(map(text, changes[kind]))}"


def _matrix(index: Index) -> list[str]:
    extensions, areas = words.list_extensions(index), words.list_areas(index)
    rows = []
    for target in index["targets"]:
        own = target.get("areas", {})
        cells = [words.SHORT.get(target.get("extensions", {}).get(name, ""), "") for name in extensions]
        cells += [f"{own[area]['met']}/{words.applying(own[area])}" if area in own else "" for area in areas]
        rows.append([_link(target), words.verdict_of(target), *cells])
    return table(["target", "verdict", *extensions, *areas], rows)


def _unmet(index: Index) -> list[str]:
    rows = [
        [code(name), text(level), str(len(targets)), text(words.named(targets), 800)]
        for name, level, targets in words.unmet(index)
    ]
    return table(["requirement", "level", "targets", "which"], rows) if rows else ["Nothing."]


def _history(index: Index) -> list[str]:
    rows = [
        [text(run["started"]), *(str(run["counts"][verdict]) for verdict in words.WORDS), text(run["suite"])]
        for run in reversed(index["history"])
    ]
    return table(["run", *words.WORDS.values(), "suite"], rows)
