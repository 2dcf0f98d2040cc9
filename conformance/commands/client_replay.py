"""Failed rows of a client, judged again: its adapter is asked for the same inferences, and answered as before."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from conformance.checks import OF_CLIENTS
from conformance.clients.adapter import AdapterError, AdapterProcess
from conformance.commands.evidence_reading import read_of_client
from conformance.judging.client_session import ClientSession
from conformance.judging.selection import find_row
from conformance.terms.check import Check, Row, label
from conformance.terms.result import CheckResult
from conformance.terms.text import safe
from conformance.terms.user_error import UserError


def results(files: Sequence[Path], command: str | None) -> Iterator[CheckResult]:
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
    check, row = read_of_client(file)
    found = find_row(check, row)
    if found is None or found[0].area not in OF_CLIENTS:
        raise UserError(f"{file}: this suite has no {safe(label(check, row))} of clients")
    return found
