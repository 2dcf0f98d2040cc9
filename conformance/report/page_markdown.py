"""Renders a report as Markdown within a size limit, for the summary of a CI step, and notes omissions.

Text from a server is rendered as code, so that it cannot create a link, a mention or a tag.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.report.failure_patterns import format_pattern
from conformance.report.findings import Group, Observation, format_label, list_texts, summarize_message
from conformance.report.markdown import code, fence_lines, table, text
from conformance.report.pack_results import PackResults
from conformance.report.view import Requirement, View, describe_gate
from conformance.spec.ledger import Concern
from conformance.spec.outcome import OUTCOME_WORDINGS, Outcome
from conformance.spec.report import ReportRow
from conformance.spec.text import escape_text

MAX_PAGE_BYTES = 1024 * 1024
# Each section may fill the page up to this fraction of the limit, to leave room for later sections.
SHARES = (0.6, 0.7, 0.8, 0.83, 0.87, 0.91, 0.95, 0.98)
MAX_ROWS = 10
MAX_DIFFERENCES = 50
MAX_NEEDS = 3  # shown reasons, and roles, of an unjudged MUST
MAX_TEXT_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page, a list of pieces; pieces beyond the size limit are left out.

    `names`: the singular and the plural noun for a piece, such as "failure" and "failures".
    """

    title: str
    intro: str
    pieces: list[str]
    names: tuple[str, str]


def render(view: View, limit: int = MAX_PAGE_BYTES) -> str:
    """Render the page in at most `limit` bytes of UTF-8.

    If the head of the page is too long, return only its first line; if that line is too long, an empty text.
    """
    page = "\n".join(_format_head(view)) + "\n"
    if _measure_bytes(page) > limit:
        page = page.partition("\n")[0] + "\n"
        return page if _measure_bytes(page) <= limit else ""
    for section, share in zip(_build_sections(view), SHARES, strict=True):
        if section.pieces:
            page += _fit_section(section, int(limit * share) - _measure_bytes(page))
    return page


def _measure_bytes(page: str) -> int:
    return len(page.encode("utf-8"))


def _fit_section(section: Section, room: int) -> str:
    """Return a section in at most `room` bytes; empty if its heading does not fit."""
    kept = f"\n## {section.title}\n\n" + (f"{section.intro}\n\n" if section.intro else "")
    note = "\n{} more {} left out, because the size of this page is limited. The JSON report has all of them.\n"
    room -= _measure_bytes(kept) + _measure_bytes(note) + len(section.names[1]) + 20
    if room < 0:
        return ""
    for place, piece in enumerate(section.pieces):
        room -= _measure_bytes(piece) + 1
        if room < 0:
            left = len(section.pieces) - place
            return kept + note.format(left, f"{section.names[0]} is" if left == 1 else f"{section.names[1]} are")
        kept += piece + "\n"
    return kept


# --- head ----------------------------------------------------------------------------------------------------------


def _format_head(view: View) -> Iterator[str]:
    report = view.report
    yield f"# OIP conformance: {view.sentence(code(view.title, 120))}"
    yield ""
    if view.not_run:
        yield f"> **This is not a whole run.** {view.not_run}"
        yield ""
    why = f" {'; '.join(code(reason, 600) for reason in report['why'])}." if report["why"] else ""
    yield f"**{view.verdict_in_words}**{f':{why}' if why else '.'} {view.musts.sentence}."
    yield ""
    yield from _format_definitions(view)
    yield from _format_patterns(view)
    yield from _format_gate(view)
    yield from table(["", ""], [[name, text] for name, text in _list_facts(view)])
    yield ""
    yield from _format_extensions(view)


def _format_definitions(view: View) -> Iterator[str]:
    """Yield a collapsed list of definitions for the words in the sentence about MUSTs, such as "not judged"."""
    if view.definitions:
        yield "<details><summary>What the words mean</summary>"
        yield ""
        yield from (f"- **{word}**: {meaning}" for word, meaning in view.definitions.items())
        absent = Outcome.NOT_APPLICABLE
        yield f"- **{OUTCOME_WORDINGS[absent].short}** of a row: {view.words.explain(absent)}"
        yield ""
        yield "</details>"
        yield ""


def _format_patterns(view: View) -> Iterator[str]:
    """Yield the failure patterns, if there are any."""
    for pattern in view.patterns:
        yield f"- {code(pattern['requirement'])}: {render_prose(format_pattern(pattern))}"
    yield from [""] if view.patterns else []


def _format_gate(view: View) -> Iterator[str]:
    """Yield the differences of the run from its baseline; nothing without a baseline."""
    if view.gate is None:
        return
    yield f"**Gate {describe_gate(view.gate)}**"
    yield ""
    differences = [(kind, label) for kind in ("new", "fixed", "stale") for label in view.gate[kind]]
    yield from (f"- {kind}: {code(label, 400)}" for kind, label in differences[:MAX_DIFFERENCES])
    if len(differences) > MAX_DIFFERENCES:
        yield f"- and {len(differences) - MAX_DIFFERENCES} more entries"
    yield ""


def _list_facts(view: View) -> list[tuple[str, str]]:
    report = view.report
    options, target = report["options"], report["target"]
    profile = [options["profile"], *(["strict"] if options["strict"] else [])]
    return [
        (view.words.target, " and ".join(map(code, view.addresses))),
        (view.words.offers, ", ".join(map(code, target["extensions_offered"])) or "none of the extensions"),
        ("judged by", f"oip-conformance {code(report['suite']['version'])}, profile {code(', '.join(profile))}"),
        ("run", f"{code(report['started'])} to {code(report['finished'])}"),
        (
            "rows",
            ", ".join(f"{count} {OUTCOME_WORDINGS[Outcome(outcome)].long}" for outcome, count in view.counts.items())
            or "none",
        ),
    ]


def _format_extensions(view: View) -> list[str]:
    outcomes = [outcome for outcome in OUTCOME_WORDINGS if view.counts.get(outcome)]
    if not outcomes:
        return []
    rows = [
        [
            text(part.title),
            text(part.verdict_in_words if part.offered else part.absence),
            *(part.musts[concern] if part.offered else "" for concern in Concern),
            *(str(part.counts.get(outcome, "")) for outcome in outcomes),
        ]
        for part in view.parts
    ]
    concerns = [f"{concern} MUSTs met" for concern in Concern]
    return table(["extension", "verdict", *concerns, *(OUTCOME_WORDINGS[outcome].long for outcome in outcomes)], rows)


# --- sections ------------------------------------------------------------------------------------------------------


def _build_sections(view: View) -> Sequence[Section]:
    return (
        Section("Failures", "", [_format_group(view, group) for group in view.failures], ("failure", "failures")),
        Section(
            "Not judged: blocked or in error", "", [_format_group(view, group) for group in view.stuck], ("row", "rows")
        ),
        Section("Advice", "", list(map(_format_advice, view.advice)), ("piece of advice", "pieces of advice")),
        _build_robustness_section(view),
        Section("Packs", "", [line for pack in view.packs for line in _format_pack(view, pack)], ("line", "lines")),
        Section(
            "Observations",
            f"What this {view.words.judged} does where the documents leave a choice. "
            f"It does not count against the {view.words.judged}.",
            list(map(_format_observation, view.observations)),
            ("observation", "observations"),
        ),
        Section(
            "Not judged: MUSTs",
            _format_roles_to_deploy(view),
            list(map(_format_must, _list_unjudged_musts(view))),
            ("MUST", "MUSTs"),
        ),
        Section(
            "Not judged: not applicable",
            "",
            [_format_unjudged_reason(*item) for item in view.unjudged.items()],
            ("reason", "reasons"),
        ),
    )


def _build_robustness_section(view: View) -> Section:
    found = view.robustness
    groups = [group for block in found.blocks for group in block.groups] + found.stuck if found else []
    pieces = [_format_group(view, group) for group in groups]
    intro = f"{found.sentence}. It does not affect the verdict." if found else ""
    return Section("Robustness", intro, pieces or ([""] if found else []), ("failure", "failures"))


def _format_pack(view: View, pack: PackResults) -> Iterator[str]:
    """Yield the verdict of a pack, its requirements, and what is not met."""
    yield f"### {code(pack.name, 120)}\n\n{text(pack.sentence)}. It does not affect the verdict.\n"
    rows = [
        [code(e["id"]), e["level"], e["verdict"].replace("_", " "), text(e.get("statement", ""))]
        for e in pack.entry["requirements"]
    ]
    yield "\n".join(table(["requirement", "level", "outcome", "statement"], rows)) + "\n"
    groups = [group for block in (*pack.blocks, *pack.advised) for group in block.groups] + pack.stuck
    yield from (_format_group(view, group) for group in groups)


def _format_group(view: View, group: Group) -> str:
    first, others = group.rows[0], group.rows[1:]
    lines = [
        f"### {code(format_label(first))}: {OUTCOME_WORDINGS[Outcome(group.outcome)].long}",
        "",
        render_prose(group.claim),
        "",
        f"{code(group.requirement)} {text(group.level)}: {render_prose(group.statement)} ({_format_source(group)})",
        "",
        *fence_lines(_format_evidence(view, first)),
    ]
    return "\n".join([*lines, *_format_other_rows(others), ""])


def _format_source(group: Group) -> str:
    """Return the source of a requirement and, for a known requirement, the page or command that explains it."""
    explained = f"[page]({group.page})" if group.page else code(group.explain) if group.explain else ""
    return "; ".join(filter(None, (text(group.source), explained)))


def _format_other_rows(rows: Sequence[ReportRow]) -> Iterator[str]:
    if not rows:
        return
    yield from ("", f"<details><summary>{len(rows)} other row{'s' if len(rows) > 1 else ''}</summary>", "")
    yield from (f"- {code(format_label(row))}: {code(summarize_message(row), 400)}" for row in rows[:MAX_ROWS])
    if len(rows) > MAX_ROWS:
        yield f"- and {len(rows) - MAX_ROWS} more rows"
    yield from ("", "</details>")


def _format_evidence(view: View, row: ReportRow) -> Iterator[str]:
    failure = row["failure"]
    if failure is None:
        first, *trace = row["message"].splitlines() or [""]
        yield f"Because   {first}"
        yield from (f"| {line.removeprefix('| ')}" for line in trace)
        yield f"Rerun     {view.rerun(row['check'])}"
        return
    yield from (f"{label:<9} {text}" for label, text in list_texts(failure, has_json=False))
    yield from failure["bytes"]
    if failure["repeat"]:
        yield f"Repeat    {failure['repeat']}"
    yield f"Rerun     {view.rerun(row['check'])}"


def _format_advice(group: Group) -> str:
    first, others = group.rows[0], len(group.rows) - 1
    more = f" (and {others} other row{'s' if others > 1 else ''})" if others else ""
    message = code(summarize_message(first), 400)
    return f"- {code(group.requirement)} {code(format_label(first))}: {render_prose(group.claim)} {message}{more}"


def _format_observation(entry: Observation) -> str:
    more = f" and {len(entry.labels) - 1} more" if len(entry.labels) > 1 else ""
    return f"- {code(entry.requirement)} {code(entry.observation, 400)} ({code(entry.labels[0])}{more})"


def _format_roles_to_deploy(view: View) -> str:
    """Return the sentence that lists the roles to deploy; empty if none is missing."""
    found = [f"{code(each['role'])} ({len(each['musts'])})" for each in view.coverage["deploy"] if each["musts"]]
    return (
        f"Deploy models for these roles (with the number of MUSTs that each adds): {', '.join(found)}." if found else ""
    )


def _list_unjudged_musts(view: View) -> list[Requirement]:
    unjudged = set(view.coverage["unjudged"])
    return [entry for entry in view.requirements if entry.id in unjudged]


def _format_must(entry: Requirement) -> str:
    needs = f"; deploy {' or '.join(map(code, entry.needs[:MAX_NEEDS]))}" if entry.needs else ""
    return f"- {code(entry.id)}: {text('; '.join(entry.reasons[:MAX_NEEDS]))}{needs}"


def _format_unjudged_reason(reason: str, rows: Sequence[ReportRow]) -> str:
    return f"- {code(reason, 400)}: {len(rows)} row{'s' if len(rows) > 1 else ''}"


def render_prose(sentence: str) -> str:
    """Render a sentence as Markdown; backticks mark code, and everything else is escaped."""
    pieces = escape_text(sentence, MAX_TEXT_CHARS).split("`")
    return "".join(
        code(piece, MAX_TEXT_CHARS) if place % 2 else text(piece, MAX_TEXT_CHARS) for place, piece in enumerate(pieces)
    )
