"""Renders a report as one self-contained HTML file, for screens of any width, light and dark mode, print and keyboard.

Every text passes through `escape_text` and Jinja2's escaping on output. The Content Security Policy in the page's head
allows only the page's own style and scripts, by their digests. Without scripts the whole report is readable; the
scripts add filters and search.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from conformance.report import anchors
from conformance.report.failure_patterns import format_pattern
from conformance.report.findings import find_missing_role, summarize_message
from conformance.report.simple_page import build_environment, compute_parts
from conformance.report.view import NOT_RUN, TITLES, Requirement, View, describe_gate
from conformance.spec.extensions import GRPC, find_transport
from conformance.spec.ledger import CONCERNS
from conformance.spec.outcome import CONFORMANT, INCOMPLETE, NARROWED, NONCONFORMANT, PARTIAL, Outcome
from conformance.spec.outcome import OUTCOME_WORDINGS as OUTCOME_WORDS
from conformance.spec.report import Report
from conformance.spec.tally import NOT_JUDGED
from conformance.spec.text import escape_text

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("page.js", "bytes.js")
MAX_TEXT_CHARS = 20_000  # characters of a text; the longest are commands with a base64 body
MAX_FIRST_BLOCKS = 5  # requirements on the first screen
MAX_BLOCKS = 40  # unmet requirements in a list; further ones are collapsed
MAX_OPEN_ROWS = 4  # rows per check; further ones are collapsed
MAX_ROW_NAMES = 12  # row names per check in one line; further ones are collapsed
WORDS: Mapping[str, str] = {outcome: words.long for outcome, words in OUTCOME_WORDS.items()} | {
    name: name for name in (NOT_JUDGED, NOT_RUN)
}
MARKS: Mapping[str, str] = {
    Outcome.PASS: "\u2713",
    Outcome.FAIL: "\u2717",
    Outcome.KNOWN_FAILURE: "\u2717",
    Outcome.FIXED: "\u2713",
    Outcome.ERROR: "!",
    Outcome.BLOCKED: "!",
    Outcome.ADVISORY: "\u25b2",
    Outcome.OBSERVED: "\u25cf",
    Outcome.NOT_APPLICABLE: "\u2013",
    NOT_JUDGED: "\u2013",
    NOT_RUN: "\u2013",
    CONFORMANT: "\u2713",
    PARTIAL: "\u25d0",
    NONCONFORMANT: "\u2717",
    INCOMPLETE: "!",
    NARROWED: "\u25d0",
    "not_applicable": "\u2013",
}
_MARK_STYLE = Markup("").join(
    Markup('.{} {{ --mark: "{}"; }}\n').format(kind.replace(" ", "-"), mark) for kind, mark in MARKS.items()
)


def render(view: View) -> str:
    """Render the page, with a newline at its end."""
    style, *scripts = (_read_inline_file(name) for name in ("page.css", *SCRIPTS))
    style += _MARK_STYLE
    runnable = " ".join(f"'{compute_csp_hash(script)}'" for script in scripts)
    return _load_template().render(
        view=view,
        report=view.report,
        style=style,
        scripts=scripts,
        policy=f"default-src 'none'; style-src '{compute_csp_hash(style)}'; script-src {runnable}",
        sentence=f"{view.musts.sentence}.",
        explained=_link_defined_words(view),
        meanings=view.definitions,
        gate=view.gate,
        concerns=CONCERNS,
        gate_sentence=describe_gate(view.gate) if view.gate else "",
        words=WORDS,
        titles=TITLES,
        legend={outcome: (words.long, view.words.explain(outcome)) for outcome, words in OUTCOME_WORDS.items()},
        most_first=MAX_FIRST_BLOCKS,
        most_blocks=MAX_BLOCKS,
        few_rows=MAX_OPEN_ROWS,
        row_names=MAX_ROW_NAMES,
        **_compute_numbers(view),
        **_build_groups(view),
        **_build_anchor_variables(view),
    )


@cache
def _load_template() -> jinja2.Template:
    environment = build_environment(max_chars=MAX_TEXT_CHARS)
    environment.filters |= {
        "prose": render_prose,
        "brief": summarize_message,
        "sentence": format_pattern,
        "json": json.dumps,
        "place": anchors.encode_name,
        "requirement_place": anchors.build_requirement_anchor,
        "block_place": anchors.build_block_anchor,
    }
    return environment.get_template("report/page.html.jinja")


def _read_inline_file(name: str) -> Markup:
    return Markup((TEMPLATES / "report" / name).read_text(encoding="utf-8"))  # noqa: S704 - our own file


def compute_csp_hash(text: str) -> str:
    """Return the hash source of a style or script for the Content Security Policy."""
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def render_prose(text: str) -> Markup:
    """Render a sentence as HTML; backticks mark code."""
    pieces = escape_text(text, MAX_TEXT_CHARS).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else escape(piece) for place, piece in enumerate(pieces)
    )


def _link_defined_words(view: View) -> Markup:
    """Return the sentence with the numbers of MUSTs; words such as "not judged" link to their definitions."""
    found = f"{view.musts.sentence}."
    for word in view.musts.words:
        found = found.replace(f" {word}", f' <a href="#word-{word.replace(" ", "-")}">{word}</a>')
    return Markup(found)  # noqa: S704 - numbers, and words of our own


# --- numbers -------------------------------------------------------------------------------------------------------


def _compute_numbers(view: View) -> dict[str, Any]:
    counting = [entry for entry in view.requirements if entry.is_counted]
    found = Counter(entry.verdict for entry in counting)
    return {
        "bar": compute_parts(view.musts.counts),
        "levels": _count_by_level(view),
        "seconds": _compute_duration_s(view.report),
        "grid_counts": {verdict: found[verdict] for verdict in WORDS if found[verdict]},
        "beside": len(view.requirements) - len(counting),
    }


def _count_by_level(view: View) -> dict[str, list[tuple[str, int]]]:
    """Return level -> the number of requirements with each verdict; uncounted requirements are left out."""
    counts = {level: Counter[str]() for level in ("MUST", "SHOULD", "MAY", "OBSERVE")}
    for entry in (entry for entry in view.requirements if entry.is_counted):
        counts[entry.level][entry.verdict] += 1
    return {
        level: [(verdict, found[verdict]) for verdict in WORDS if found[verdict]] for level, found in counts.items()
    }


def _compute_duration_s(report: Report) -> int:
    try:
        return round((datetime.fromisoformat(report["finished"]) - datetime.fromisoformat(report["started"])).seconds)
    except (ValueError, TypeError):
        return 0


# --- groups --------------------------------------------------------------------------------------------------------


def _build_groups(view: View) -> dict[str, Any]:
    """Return the grouped template variables: requirements by area and extension, unjudged rows by reason."""
    counting = [entry for entry in view.requirements if entry.is_counted]
    areas = sorted(
        dict.fromkeys(entry.area for entry in view.requirements), key=lambda area: find_transport(area) == GRPC
    )
    return {
        "areas": list(areas),
        "grid": {area: own for area in areas if (own := [entry for entry in counting if entry.area == area])},
        "by_part": _group_by_extension(view),
        "extension_of": {entry.id: entry.extension for entry in view.requirements},
        "area_of": {entry.id: entry.area for entry in view.requirements},
        "fixed": [group for group in view.failures if group.outcome == Outcome.FIXED],
        "optional_roles": _count_optional_roles(view),
        "other_reasons": {why: rows for why, rows in view.unjudged.items() if find_missing_role(rows[0]) is None},
        "open_musts": [entry for entry in counting if entry.level == "MUST" and _has_no_verdict(entry)],
    }


def _group_by_extension(view: View) -> list[tuple[str, list[tuple[str, list[Requirement]]]]]:
    """Return the requirements by extension and area, in the order of the ledger."""
    names = dict.fromkeys(entry.extension for entry in view.requirements)
    found = []
    for name in names:
        own = sorted((entry for entry in view.requirements if entry.extension == name), key=lambda entry: entry.area)
        found.append((name, [(area, list(entries)) for area, entries in groupby(own, key=lambda entry: entry.area)]))
    return found


def _count_optional_roles(view: View) -> dict[str, int]:
    """Return the missing roles that no unjudged MUST needs, so that they are optional: role -> number of rows."""
    needed = {each["role"] for each in view.coverage["deploy"]}
    waiting = ((find_missing_role(rows[0]), len(rows)) for rows in view.unjudged.values())
    return {role: count for role, count in waiting if role is not None and role not in needed}


def _has_no_verdict(entry: Requirement) -> bool:
    return entry.verdict not in (Outcome.PASS, Outcome.FAIL, Outcome.KNOWN_FAILURE)


def _build_anchor_variables(view: View) -> dict[str, Any]:
    """Return the template variables and functions that provide anchors."""
    hostile = view.robustness
    of_packs = [block for pack in view.packs for block in (*pack.blocks, *pack.advised)]
    shown = [*view.blocks, *view.advised, *(hostile.blocks if hostile else ()), *of_packs]
    stuck = [*view.stuck, *(hostile.stuck if hostile else ())]
    groups = [*(group for block in shown for group in block.groups), *stuck]
    rows = anchors.build_row_anchors(row for group in groups for row in group.rows)
    return {
        "block_of": {block.requirement: anchors.build_block_anchor(block) for block in reversed(shown)},
        "place_of_row": lambda row: rows.get(id(row), ""),
        "place_of_stuck": lambda group: anchors.build_blocked_anchor(group, rows),
    }
