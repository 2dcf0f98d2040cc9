"""Judges clients again: runs failed rows of a client that has an adapter, and judges recordings of watched clients.

An adapter gets the same inferences and the same scripted answers as before. The requests of a recording are judged
without the clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from conformance.checks import CLIENT_AREAS
from conformance.clients.adapter import AdapterError, AdapterProcess
from conformance.clients.recording import archive
from conformance.clients.recording.archive import Archive
from conformance.clients.traffic import Traffic
from conformance.commands.evidence_reader import read_client_evidence
from conformance.commands.watch_conclusion import Addresses, WatchResult, finish_watch
from conformance.judging.client_failure import describe_violation
from conformance.judging.client_session import ClientSession
from conformance.judging.run_options import RunOptions, split_adapter_command
from conformance.judging.selection import find_row
from conformance.spec.check import Case, format_label
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError
from conformance.transport import recording
from conformance.transport.har import HarError


def replay_rows(files: Sequence[Path], command: str | None) -> Iterator[CheckResult]:
    """Run rows again and yield their results.

    Args:
        files: the `check.json` of each row.
        command: the command of the adapter, which evidence omits since it may contain secrets.

    Raises UserError: there is no command, it cannot be run, or this suite has no such row.
    """
    rows = [_find_row(file) for file in files]
    if not command:
        raise UserError("the evidence of a client needs --client-adapter COMMAND")
    words = split_adapter_command(command)
    try:
        session = ClientSession(AdapterProcess(words))
    except AdapterError as error:
        raise UserError(str(error)) from None
    with closing(session):
        for case in rows:
            yield session.judge(case)


def _find_row(file: Path) -> Case:
    check, row = read_client_evidence(file)
    found = find_row(check, row)
    if found is None or found[0].area not in CLIENT_AREAS:
        raise UserError(f"{file}: this suite has no row {escape_text(format_label(check, row))} for clients")
    return found


# --- recordings of watched clients ------------------------------------------------------------------------------------


def find_recording(path: Path) -> Path | None:
    """Return the recording of clients at a path, which may be a file or a folder; None if there is none."""
    file = recording.find_recording(path) if path.is_dir() else path
    return file if archive.is_client_recording(file) else None


def replay_recording(file: Path, gate: str | None = None) -> tuple[str, int]:
    """Judge a recording again; return the text to print and the exit status, which depends on `gate`.

    Raises UserError: the recording cannot be read.
    """
    try:
        recording = archive.load(file)
    except HarError as error:
        raise UserError(str(error)) from error
    addresses = Addresses(recording.url, recording.grpc)
    traffic = Traffic(partial(describe_violation, find_url=addresses.find_address), strict=recording.is_strict)
    for client, recorded in recording.requests:
        traffic.add_request(recorded, client)
        traffic.add_answer(recorded)
    watched = WatchResult(traffic, addresses, _find_start(recording), recording.stopped, is_of_recording=True)
    return finish_watch(watched, RunOptions(strict=recording.is_strict, gate=gate))


def _find_start(recording: Archive) -> str:
    first = [recorded.started for _, recorded in recording.requests[:1]]
    return first[0] if first else datetime.now(UTC).isoformat(timespec="seconds")
