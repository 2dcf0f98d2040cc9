"""Verifies a folder with the version of the suite that made it, and judges its recording with this version.

`uvx` or `pipx run` gets that version from the package index. The manifest is untrusted: only a valid version number is
taken from it, never the name of a package.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.certification import client_rejudge, rejudge
from conformance.certification.manifest import RECORDING, CertificationError
from conformance.certification.verifying import Folder
from conformance.clients.recording import calls
from conformance.report.report_file import ReportError
from conformance.spec import files, ledger, verdict
from conformance.spec.extras import MissingExtraError
from conformance.spec.ledger import Party
from conformance.spec.outcome import INTEROPERABLE, Outcome
from conformance.spec.report import RequirementEntry
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text, join_some
from conformance.spec.version import __version__
from conformance.transport import recording as recordings
from conformance.transport.har import HarError
from conformance.transport.replay import NotRecordedError
from conformance.transport.settings import SettingsError
from conformance.transport.unreachable import TargetLostError

PACKAGE = "oip-conformance"
MAX_RUN_S = 1800.0  # including the installation
MAX_SHOWN_REQUIREMENTS = 12  # in a line
MAX_OUTPUT_CHARS = 20_000  # characters of its output


@dataclass(frozen=True, slots=True)
class VerificationOutput:
    """The output of `verify` in another version of the suite, and whether the folder is valid."""

    lines: tuple[str, ...]
    holds: bool


def build_command(version: str) -> list[str]:
    """Return the beginning of a command that runs a version of the suite.

    Raises CertificationError: neither uvx nor pipx is installed.
    """
    wanted = f"{PACKAGE}[grpc,signing]=={version}"
    if program := shutil.which("uvx"):
        return [program, "--from", wanted, PACKAGE]
    if program := shutil.which("pipx"):
        return [program, "run", "--spec", wanted, PACKAGE]
    raise CertificationError(
        f"the folder is of suite {version}, which needs uvx or pipx to be run: install uv, or do it by hand: "
        f"pip install '{wanted}'"
    )


def verify(folder: Path, version: str, arguments: Sequence[str] = ()) -> VerificationOutput:
    """Verify a folder with a version of the suite.

    `arguments`: arguments of `verify`, in addition to the folder.

    Raises CertificationError: the suite could not be run.
    """
    words = [*build_command(version), "verify", str(folder.resolve()), *arguments]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=MAX_RUN_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CertificationError(f"suite {version} cannot be run: {escape_text(str(error))}") from error
    lines = tuple(escape_text(line, 400) for line in done.stdout[:MAX_OUTPUT_CHARS].splitlines() if line.strip())
    if done.returncode in (0, 1) and lines:
        return VerificationOutput(lines, done.returncode == 0)
    said = (done.stderr.strip() or "nothing").splitlines()[-1]
    raise CertificationError(f"suite {version} ended with status {done.returncode}: {escape_text(said)}")


# --- judging by this suite, as far as the recording has the requests that it would send -------------------------------


def describe_outcome(folder: Folder) -> list[str]:
    """Judge the recording with this version of the suite, and describe the result, which does not affect `verify`."""
    head = f"today's suite {__version__}"
    try:
        return files.convert_errors(lambda: [f"{head}: {line}" for line in _describe_judgement(folder)])
    except (CertificationError, ReportError, HarError, MissingExtraError, files.UnreadableError) as error:
        return [f"{head} cannot read the folder: {escape_text(str(error), 400)}"]
    except (NotRecordedError, TargetLostError, SettingsError) as error:
        return [f"{head} would need a new run to say anything: {escape_text(str(error), 400)}"]


def _describe_judgement(folder: Folder) -> Iterator[str]:
    made = folder.manifest
    results = _judge_recording(folder)
    is_same = made.suite["ledger"] == ledger.compute_version()
    yield "its requirements are the same" if is_same else "its requirements are not all the same"
    # A request that was not recorded ends its row in an error, as in any replay.
    seen = [result for result in results if result.outcome is not Outcome.ERROR]
    yield f"{len(seen)} of its {len(results)} rows can be judged on this recording"
    unmet = [entry for entry in verdict.conclude_requirements(seen) if _is_unmet_must(entry)]
    yield f"of the MUSTs that they judge, {_describe_unmet(unmet)}"
    if made.standing == INTEROPERABLE and unmet:
        bearing = [entry for entry in unmet if entry["concern"] in verdict.INTEROPERABILITY_CONCERNS]
        yield f"of those about exchanges and the transport, {_describe_unmet(bearing)}"
    if waiting := _list_unjudged(results, seen):
        yield f"these need a new run: {join_some(waiting, MAX_SHOWN_REQUIREMENTS)}"


def _judge_recording(folder: Folder) -> list[CheckResult]:
    made, report, path = folder.manifest, folder.report, folder.path / RECORDING
    if made.party == Party.CLIENT:
        return client_rejudge.judge_recording(calls.load(path), strict=report["options"]["strict"])[1]
    return rejudge.judge_recording(rejudge.make_replay_target(recordings.load(path)), report, made)[2]


def _describe_unmet(unmet: list[RequirementEntry]) -> str:
    return (
        f"these are not met: {join_some([entry['id'] for entry in unmet], MAX_SHOWN_REQUIREMENTS)}"
        if unmet
        else "each is met"
    )


def _is_unmet_must(entry: RequirementEntry) -> bool:
    return entry["level"] == "MUST" and entry["verdict"] in (Outcome.FAIL, Outcome.BLOCKED)


def _list_unjudged(results: list[CheckResult], seen: list[CheckResult]) -> list[str]:
    """Return the requirements whose rows could not be judged."""
    known = {name for result in seen for name in result.requirements}
    return list(dict.fromkeys(name for result in results for name in result.requirements if name not in known))
