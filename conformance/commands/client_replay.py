"""Failed rows of a client, judged again: its adapter is asked for the same inferences, and answered as before."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from conformance.checks import CLIENT_AREAS
from conformance.clients.adapter import AdapterError, AdapterProcess
from conformance.commands.evidence_reader import read_client_evidence
from conformance.judging.client_session import ClientSession
from conformance.judging.selection import find_row
from conformance.spec.check import Check, Row, format_label
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError


def replay_rows(files: Sequence[Path], command: str | None) -> Iterator[CheckResult]:
    """Yield what comes of the rows now.

    Args:
        files: the `check.json` of each.
        command: of the adapter; evidence does not keep it, since it may hold what nobody else is to see.

    Raises:
        UserError: there is no command, it cannot be used, or this suite has no such row.
    """
    rows = [_row(file) for file in files]
    try:
        words = shlex.split(command or "")
    except ValueError as error:
        raise UserError(f"--client-adapter {command!r}: {error}") from None
    if not words:
        raise UserError("this is the evidence of a client: give --client-adapter COMMAND, too")
    try:
        session = ClientSession(AdapterProcess(words))
    except AdapterError as error:
        raise UserError(str(error)) from None
    with closing(session):
        for check, row in rows:
            yield session.judge(check, row)


def _row(file: Path) -> tuple[Check, Row]:
    check, row = read_client_evidence(file)
    found = find_row(check, row)
    if found is None or found[0].area not in CLIENT_AREAS:
        raise UserError(f"{file}: this suite has no {escape_text(format_label(check, row))} of clients")
    return found
