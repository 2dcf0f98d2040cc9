"""What a run leaves behind as files: each is written whole or not at all, and one that cannot be is said, and counts.

A run whose report or recording is missing has not done what it was asked for, whatever it found: `LeftBehind.is_whole`
is then False, and the run ends as incomplete.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from conformance.judging.baseline import Baseline
from conformance.spec.result import CheckResult
from conformance.spec.user_error import UserError


@dataclass(slots=True)
class OutputWriter:
    """Whether everything was written so far."""

    is_whole: bool = True

    def attempt(self, what: str, write: Callable[[], object]) -> None:
        """Write something; where that cannot be done, say what on standard error, and why."""
        try:
            write()
        except OSError as error:
            self.is_whole = False
            sys.stderr.write(f"cannot write {what}: {error.strerror or error}\n")


def write_atomically(path: Path, text: str) -> None:
    """Write a file beside its place first, so that what is in its place is always whole.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def make_empty_folder(folder: Path, error: type[UserError]) -> None:
    """Make a folder; it may be there, and is empty then.

    Raises:
        UserError: of the given type: it is not empty, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise error(f"{folder} is not empty: give a new folder")
    except OSError as fault:
        raise error(f"cannot write {folder}: {fault.strerror}") from fault


def claim_folder(folder: Path, names: tuple[str, ...]) -> str:
    """Make a folder for what one run leaves there; return why it cannot be used, or nothing.

    Args:
        folder: as a user named it; it may be there.
        names: patterns of files that another run would have left.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(found for name in names for found in folder.glob(name)):
            return "holds what another run left; give an empty folder, or take it away"
        probe = folder / ".written"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def update_baseline(
    path: Path, baseline: Baseline, results: Sequence[CheckResult], left: OutputWriter, *, is_whole: bool
) -> Baseline:
    """Write the file of a baseline anew and return what is in it then; a part of a run leaves it as it was.

    Args:
        path: of the file, which may not be there.
        baseline: as the file had it.
        results: of the run, as this baseline has them.
        left: what the run leaves behind.
        is_whole: every row was run that should be.
    """
    from conformance.judging import baseline_file  # and what edits TOML with it, which hardly any run needs

    if not is_whole:
        sys.stderr.write(f"{path} is as it was: only a whole run can update it\n")
        return baseline
    text = baseline_file.update_text(path.read_text(encoding="utf-8") if path.exists() else "", results)
    left.attempt(f"the baseline {path}", partial(write_atomically, path, text))
    return baseline_file.from_text(text)
