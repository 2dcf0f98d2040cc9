"""A recording of watched clients, judged again: the same requests, and therefore the same verdict."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from conformance.clients.recording import archive
from conformance.clients.recording.archive import Archive
from conformance.clients.traffic import Traffic
from conformance.commands.run_files import RunFiles
from conformance.commands.watch_conclusion import Addresses, WatchResult, conclude
from conformance.judging.client_failure import describe_violation
from conformance.spec.user_error import UserError
from conformance.transport import har_file
from conformance.transport.har import HarError


def find_recording(path: Path) -> Path | None:
    """Return the recording of clients that a file is, or that a folder holds; None where there is none."""
    file = har_file.find(path) if path.is_dir() else path
    return file if archive.is_client_recording(file) else None


def replay(file: Path, gate: str | None = None) -> tuple[str, int]:
    """Judge a recording again; return what to print and the exit status, which the gate decides.

    Raises:
        UserError: it cannot be read.
    """
    try:
        recording = archive.load(file)
    except HarError as error:
        raise UserError(str(error)) from error
    addresses = Addresses(recording.url, recording.grpc)
    traffic = Traffic(partial(describe_violation, url_of=addresses.of), strict=recording.is_strict)
    for client, recorded in recording.requests:
        traffic.asked(recorded, client)
        traffic.answered(recorded)
    watched = WatchResult(traffic, addresses, _started(recording), recording.stopped, is_of_recording=True)
    return conclude(watched, RunFiles(), is_strict=recording.is_strict, shows_all=False, gate=gate)


def _started(recording: Archive) -> str:
    first = [recorded.started for _, recorded in recording.requests[:1]]
    return first[0] if first else datetime.now(UTC).isoformat(timespec="seconds")
