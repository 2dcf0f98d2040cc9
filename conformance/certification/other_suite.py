"""The suite that made a folder, of the version that its manifest names: from the package index, by `uvx` or `pipx run`.

Only the version is taken from the folder, and only where it has the form of one: what is run is this project's package.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.certification.manifest import CertificationError
from conformance.spec.text import escape_text

PACKAGE = "oip-conformance"
MAX_RUN_S = 1800.0  # seconds, of which the installation takes a part
MAX_OUTPUT_CHARS = 20_000  # characters of what it says


@dataclass(frozen=True, slots=True)
class VerificationOutput:
    """What another suite says of a folder: its lines, and whether the folder holds."""

    lines: tuple[str, ...]
    holds: bool


def build_command(version: str) -> list[str]:
    """Return the beginning of a command that runs a version of the suite.

    Raises:
        CertificationError: neither program is installed.
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
    """Let a version of the suite verify a folder.

    Args:
        folder: which.
        version: of the suite.
        arguments: of `verify`, beside the folder.

    Raises:
        CertificationError: it could not be run.
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
