"""Writes the output files of a run atomically, and reports files that cannot be written.

If a requested report or recording is missing, `OutputWriter.faults` says so, and the run ends as incomplete.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from conformance.judging.baseline import Baseline
from conformance.spec.check import Case
from conformance.spec.result import CheckResult
from conformance.spec.user_error import UserError


@dataclass(slots=True)
class OutputWriter:
    """Writes output files, and remembers which of them cannot be written.

    `faults`: a line for each failed write, printed beside the verdict: here it would end a line of progress.
    """

    faults: list[str] = field(default_factory=list)

    def write_or_report(self, what: str, write: Callable[[], object]) -> None:
        """Call `write`; if it raises an `OSError`, store a line that `what` cannot be written, and why."""
        try:
            write()
        except OSError as error:
            self.faults.append(f"cannot write {what}: {error.strerror or error}")

    def print_faults(self) -> None:
        """Print the faults on standard error, after what was written on standard output."""
        sys.stdout.flush()
        sys.stderr.writelines(f"{fault}\n" for fault in self.faults)
        sys.stderr.flush()


@contextmanager
def convert_write_errors(path: Path, error: type[UserError] = UserError) -> Iterator[None]:
    """Convert an `OSError` in the block to an error of a type; its message names the path that cannot be written."""
    try:
        yield
    except OSError as fault:
        raise error(f"cannot write {path}: {fault.strerror or fault}") from fault


def write_atomically(path: Path, text: str) -> None:
    """Write a temporary file and rename it, so that the file is always complete.

    Raises OSError: the file cannot be written; the temporary file is removed.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def make_empty_folder(folder: Path, error: type[UserError]) -> None:
    """Create a folder, or accept an existing empty folder.

    Raises UserError: of the given type: the folder is not empty, or cannot be created.
    """
    with convert_write_errors(folder, error):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise error(f"{folder} is not empty: give a new folder")


def claim_folder(folder: Path, names: tuple[str, ...]) -> str:
    """Create a folder for the output of one run; return the reason why it cannot be used, else an empty text.

    Args:
        folder: the folder that the user named; it may exist.
        names: glob patterns; a matching file shows that another run used the folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(found for name in names for found in folder.glob(name)):
            return "contains files of another run; remove them, or give an empty folder"
        probe = folder / ".written"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def update_baseline(
    path: Path,
    baseline: Baseline,
    results: Sequence[CheckResult],
    writer: OutputWriter,
    *,
    is_whole: bool,
    left_out: Sequence[Case] = (),
) -> Baseline:
    """Update a baseline file and return the new baseline; a partial run changes nothing.

    `path`: the baseline file, which need not exist.
    `results`: the results of the run, with the baseline applied.
    `is_whole`: whether all expected rows ran.
    """
    from conformance.judging import baseline_file  # lazy: few runs need it and its TOML editor

    if not is_whole:
        sys.stderr.write(f"{path} is unchanged: only a run of all rows can update it\n")
        return baseline
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    text = baseline_file.update_text(before, results, left_out)
    writer.write_or_report(f"the baseline {path}", partial(write_atomically, path, text))
    after = baseline_file.from_text(text)
    if lacking := sum(entry.reason == baseline_file.DEFAULT_REASON for entry in after.entries):
        sys.stderr.write(f"{path}: entries without a reason: {lacking}; `oip-conformance baseline {path}` lists them\n")
    return after
