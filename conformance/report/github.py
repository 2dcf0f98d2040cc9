"""What a run says to GitHub Actions: annotations in its output, and a page for the summary of the step.

Outside of it there are no annotations and no page. GitHub shows ten annotations of a kind, and takes 1 MiB of summary
for a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.report.findings import Group, brief, label
from conformance.terms.outcome import INCOMPLETE, Outcome
from conformance.terms.text import safe

Report = Mapping[str, Any]

SUMMARY_LIMIT = 1024 * 1024
ANNOTATIONS = 10
TITLE = "oip-conformance"
LONGEST = 800


def is_there(environment: Mapping[str, str]) -> bool:
    """Say whether the run is one of GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true" or bool(environment.get("GITHUB_STEP_SUMMARY"))


def commands(report: Report | None, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a workflow command for each failure that is not known, and each piece of advice; at most ten of both."""
    if report is None or environment.get("GITHUB_ACTIONS") != "true":
        return
    from conformance.report import view as views  # what makes pages: every other run starts without

    view = views.view(report)
    why = "; ".join(view.report["why"])
    errors = [_command("error", TITLE, f"{view.verdict}: {why}")] if view.verdict == INCOMPLETE else []
    stale = view.gate["stale"] if view.gate else ()
    errors += [_command("error", f"{TITLE} baseline", f"stale entry {entry}") for entry in stale]
    unknown = [group for group in view.failures if group.outcome != Outcome.KNOWN_FAILURE]
    errors += [_annotation("error", group) for group in (*unknown, *view.stuck)]
    yield from errors[:ANNOTATIONS]
    yield from (_annotation("warning", group) for group in view.advice[:ANNOTATIONS])


def _annotation(kind: str, group: Group) -> str:
    first, others = group.rows[0], len(group.rows) - 1
    more = f" (and {others} other row{'s' if others > 1 else ''})" if others else ""
    return _command(
        kind, f"{TITLE} {group.level} {group.requirement}", f"{label(first)}: {group.claim} {brief(first)}{more}"
    )


def _command(kind: str, title: str, message: str) -> str:
    return f"::{kind} title={escape_property(safe(title, 200))}::{escape_data(safe(message, LONGEST))}"


def escape_data(text: str) -> str:
    """Return text as the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Return text as a property of a workflow command."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def summarize(report: Report, environment: Mapping[str, str]) -> None:
    """Append the Markdown page to the summary of the step, where there is one, within its limit.

    Raises:
        OSError: it cannot be written.
    """
    name = environment.get("GITHUB_STEP_SUMMARY")
    if not name:
        return
    from conformance.report import page_markdown
    from conformance.report import view as views

    path = Path(name)
    used = path.stat().st_size if path.exists() else 0
    with path.open("a", encoding="utf-8") as file:
        file.write(page_markdown.render(views.view(report), SUMMARY_LIMIT - used))
