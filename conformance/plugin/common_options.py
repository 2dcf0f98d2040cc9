"""Options that runs of servers and clients share: profile, strictness, baseline and output files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conformance.judging.baseline import Baseline
from conformance.report import formats


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """The options of every run.

    Attributes:
        gate: the verdict required for exit status 0, `conformant` or `interoperable`; None requires that nothing fails.
        shows_all: whether the summary shows every unmet requirement in full.
        shows_no_failures: whether the summary shows no failures, as with `--tb=no`.
        baseline: the known failures, or None.
        baseline_file: the file that lists the known failures, or None.
        junit: the test cases in pytest's JUnit file: `requirements` or `rows`.
    """

    profile: str
    dangerous: bool
    strict: bool
    gate: str | None
    shows_all: bool
    shows_no_failures: bool
    reports: tuple[Path, ...]
    evidence: Path | None
    baseline: Baseline | None
    baseline_file: Path | None
    updates_baseline: bool
    junit: str


def read_common_fields(option: Any) -> dict[str, Any]:
    """Return the values of all fields of `CommonOptions`, by name.

    Args:
        option: the parsed command line, as a namespace.

    Raises:
        pytest.UsageError: an option cannot be used.
    """
    return {
        "profile": option.conformance_profile,
        "dangerous": option.conformance_dangerous,
        "strict": option.conformance_strict,
        "gate": option.conformance_gate,
        "shows_all": option.conformance_show == "all",
        "shows_no_failures": getattr(option, "conformance_tb", "auto") == "no",
        "reports": tuple(map(_parse_report_path, option.conformance_reports)),
        "evidence": Path(option.conformance_evidence) if option.conformance_evidence else None,
        "baseline": _load_baseline(option),
        "baseline_file": Path(option.conformance_baseline) if option.conformance_baseline else None,
        "updates_baseline": option.conformance_update_baseline,
        "junit": option.conformance_junit,
    }


def _parse_report_path(text: str) -> Path:
    """Return the path of a report.

    Raises:
        pytest.UsageError: the suffix is unknown, or the folder does not exist.
    """
    path = Path(text)
    if formats.find_suffix(path) is None:
        known = ", ".join(formats.FORMATS)
        raise pytest.UsageError(f"--conformance-report {path}: unknown suffix {path.suffix!r}, known are {known}")
    if not path.absolute().parent.is_dir():
        raise pytest.UsageError(f"--conformance-report {path}: no folder {path.absolute().parent}")
    return path


def _load_baseline(option: Any) -> Baseline | None:
    """Load the baseline, or return None without a baseline file."""
    file, update = option.conformance_baseline, option.conformance_update_baseline
    if not file and update:
        raise pytest.UsageError("--conformance-update-baseline needs --conformance-baseline FILE")
    if not file or (update and not Path(file).exists()):
        return Baseline() if file else None
    from conformance.judging import baseline_file  # lazy: few runs need it and its TOML editor

    try:
        return baseline_file.load(Path(file))
    except baseline_file.BaselineError as error:
        raise pytest.UsageError(str(error)) from error
