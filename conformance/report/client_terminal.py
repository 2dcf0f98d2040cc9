"""What the user sees of a client beside findings: who is judged, and what it cannot do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.clients.inference import Introduction
from conformance.report.findings import group_by
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text
from conformance.transport.grpc_packages import INSTALL_GRPC

MAX_SHOWN_ROWS = 6  # labels of rows


def format_header(client: Introduction, command: str, transports: Sequence[str], profile: str) -> list[str]:
    """Return the lines above a run.

    Args:
        client: what the adapter says of it.
        command: of the adapter.
        transports: those that are judged.
        profile: how much is judged.
    """
    language = f" ({escape_text(client.language, 60)})" if client.language else ""
    return [
        f"client      {' '.join(escape_text(part, 60) for part in (client.name, client.version) if part)}{language}",
        f"adapter     {escape_text(command, 200)}",
        f"transports  {describe_transports(client, transports)}",
        f"profile     {profile}",
    ]


def describe_transports(client: Introduction, judged: Sequence[str]) -> str:
    """Return over which transports a client is judged, and over which it is not, though it speaks them."""
    others = [f"{name} not judged: {INSTALL_GRPC}" for name in client.transports if name not in judged]
    return ", ".join([*judged, *others])


def format_unjudged(results: Sequence[CheckResult]) -> Iterator[str]:
    """Yield what was not judged: a line for each reason that the client gives, with the rows."""
    lost = [result for result in results if result.is_for(ReasonKind.TARGET_LOST)]
    if lost:
        yield f"{len(lost)} rows are not judged: {lost[0].message}"
    absent = [result for result in results if result.outcome is Outcome.NOT_APPLICABLE]
    for rows in sorted(group_by(absent, lambda result: result.message), key=len, reverse=True):
        labels = ", ".join(result.label for result in rows[:MAX_SHOWN_ROWS])
        more = f" and {len(rows) - MAX_SHOWN_ROWS} more" if len(rows) > MAX_SHOWN_ROWS else ""
        yield f"{rows[0].message}: {len(rows)} row{'s' if len(rows) > 1 else ''} ({labels}{more})"
