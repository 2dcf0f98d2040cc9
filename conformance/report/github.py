"""Output for GitHub Actions: annotations on standard output, and a page for the step summary.

Outside GitHub Actions nothing is written. GitHub shows ten annotations per kind, and limits a step summary to 1 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from conformance.report.findings import Group, format_label, summarize_message
from conformance.spec.outcome import INCOMPLETE, Outcome
from conformance.spec.report import Report
from conformance.spec.text import escape_text

MAX_SUMMARY_BYTES = 1024 * 1024
MAX_ANNOTATIONS = 10
TITLE = "oip-conformance"
MAX_MESSAGE_CHARS = 800


def build_commands(report: Report | None, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield workflow commands: at most ten errors (new failures, rows without a verdict) and ten warnings (advice)."""
    if report is None or environment.get("GITHUB_ACTIONS") != "true":
        return
    from conformance.report import view as views  # lazy: other runs do not need it

    view = views.build_view(report)
    why = "; ".join(view.report["why"])
    errors = [_format_command("error", TITLE, f"{view.verdict}: {why}")] if view.verdict == INCOMPLETE else []
    stale = view.gate["stale"] if view.gate else ()
    errors += [_format_command("error", f"{TITLE} baseline", f"stale entry {entry}") for entry in stale]
    unknown = [group for group in view.failures if group.outcome != Outcome.KNOWN_FAILURE]
    errors += [_format_annotation("error", group) for group in (*unknown, *view.stuck)]
    yield from errors[:MAX_ANNOTATIONS]
    yield from (_format_annotation("warning", group) for group in view.advice[:MAX_ANNOTATIONS])


def _format_annotation(kind: str, group: Group) -> str:
    first, others = group.rows[0], len(group.rows) - 1
    more = f" (and {others} other row{'s' if others > 1 else ''})" if others else ""
    return _format_command(
        kind,
        f"{TITLE} {group.level} {group.requirement}",
        f"{format_label(first)}: {group.claim} {summarize_message(first)}{more}",
    )


def _format_command(kind: str, title: str, message: str) -> str:
    text = escape_data(escape_text(message, MAX_MESSAGE_CHARS))
    return f"::{kind} title={escape_property(escape_text(title, 200))}::{text}"


def escape_data(text: str) -> str:
    """Escape text for the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape text for a property of a workflow command."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def summarize(report: Report, environment: Mapping[str, str]) -> None:
    """Append the Markdown page to the step summary, within its size limit; do nothing if there is no summary file.

    Raises OSError: the file cannot be written.
    """
    name = environment.get("GITHUB_STEP_SUMMARY")
    if not name:
        return
    from conformance.report import page_markdown
    from conformance.report import view as views

    path = Path(name)
    used = path.stat().st_size if path.exists() else 0
    with path.open("a", encoding="utf-8") as file:
        file.write(page_markdown.render(views.build_view(report), MAX_SUMMARY_BYTES - used))
