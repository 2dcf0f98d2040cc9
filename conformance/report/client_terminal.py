"""Terminal output about a client, except findings: the header, and the rows that were not judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.clients.inference import Introduction
from conformance.report.findings import group_by
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text
from conformance.transport.grpc_packages import INSTALL_GRPC

MAX_SHOWN_ROWS = 6  # row labels per line


def format_header(client: Introduction, command: str, transports: Sequence[str], profile: str) -> list[str]:
    """Return the header lines of a run against a client."""
    language = f" ({escape_text(client.language, 60)})" if client.language else ""
    return [
        f"client      {' '.join(escape_text(part, 60) for part in (client.name, client.version) if part)}{language}",
        f"adapter     {escape_text(command, 200)}",
        f"transports  {describe_transports(client, transports)}",
        f"profile     {profile}",
    ]


def describe_transports(client: Introduction, judged: Sequence[str]) -> str:
    """Return the judged transports of a client, and the other transports that the client supports."""
    others = [f"{name} not judged: {INSTALL_GRPC}" for name in client.transports if name not in judged]
    return ", ".join([*judged, *others])


def format_unjudged(results: Sequence[CheckResult]) -> Iterator[str]:
    """Yield a line for each reason why rows were not judged, with the rows."""
    lost = [result for result in results if result.has_reason(ReasonKind.TARGET_LOST)]
    if lost:
        yield f"{len(lost)} rows are not judged: {lost[0].message}"
    absent = [result for result in results if result.outcome is Outcome.NOT_APPLICABLE]
    for rows in sorted(group_by(absent, lambda result: result.message), key=len, reverse=True):
        labels = ", ".join(result.label for result in rows[:MAX_SHOWN_ROWS])
        more = f" and {len(rows) - MAX_SHOWN_ROWS} more" if len(rows) > MAX_SHOWN_ROWS else ""
        yield f"{rows[0].message}: {len(rows)} row{'s' if len(rows) > 1 else ''} ({labels}{more})"
