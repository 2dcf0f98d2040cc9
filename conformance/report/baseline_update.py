"""The baseline that a run writes anew: what fails is known from then on, and comments stay."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from conformance.judging.baseline import Baseline
from conformance.report.output_files import OutputWriter, write_atomically
from conformance.spec.result import CheckResult


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
