"""`oip-conformance run URL --through URL`: judges a server directly and through a gateway, and compares both runs.

Each run is a pytest with the same options. Its output goes to a file, and only its last line is printed. Requirements
that only the run through the gateway does not meet are judged directly again, so that a server that sometimes fails
is not taken for a gateway that always does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from conformance.commands.pytest_process import SuiteUsageError, check_arguments
from conformance.spec.options import list_given_arguments
from conformance.spec.user_error import UserError
from conformance.transport.reference import REFERENCE

if TYPE_CHECKING:  # a run without a gateway imports none of it, and starts sooner
    from conformance.report.through import ThroughComparison
    from conformance.spec.report import Report

OPTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "--through": ("URL", "also judge the server through the gateway at this URL, and print what the gateway changes"),
    "--through-grpc": ("HOST:PORT", "the gRPC address of the gateway, with --target-grpc"),
    "--through-config": ("FILE", "the target file of the run through the gateway, in place of --target-config"),
}
# Options of a single run, whose files or verdict two runs cannot share.
_OF_ONE_RUN: Final = (
    *("--conformance-report", "--conformance-baseline", "--conformance-update-baseline"),
    *("--target-replay", "--client-adapter", "--junitxml"),
)
_PYTEST_ERRORS: Final = range(2, 6)
REPORT, LOG = "report.json", "run.log"


class RunFailedError(UserError):
    """One of the runs judged nothing; the message is one line."""

    status = 6  # `EXIT_STATUS` of an incomplete run, without its imports


def add_through_options(add: Callable[..., Any]) -> None:
    """Add the options by calling `add` like `add_argument`."""
    for name, (metavar, about) in OPTIONS.items():
        add(name, metavar=metavar, help=about)


def is_asked_for(arguments: Sequence[str]) -> bool:
    """Whether the arguments of `run` name a gateway."""
    return any(word.partition("=")[0] in OPTIONS for word in arguments)


def run_both(arguments: Sequence[str]) -> tuple[str, int]:
    """Judge a server directly and through a gateway; return the text to print and the exit status.

    Raises:
        SuiteUsageError: the arguments, pytest's with those of `OPTIONS`, do not fit a comparison.
        RunFailedError: a run judged nothing.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_through_options(parser.add_argument)
    for name in ("--target-url", "--target-grpc", "--target-config", "--conformance-evidence"):
        parser.add_argument(name)
    given, rest = parser.parse_known_args(arguments)
    _expect_comparable(given, rest)
    config = given.through_config or given.target_config
    through = argparse.Namespace(target_url=given.through, target_grpc=given.through_grpc, target_config=config)
    ways = [[*rest, *list_given_arguments(each, "--target-")] for each in (given, through)]
    with TemporaryDirectory() as temporary:
        found = judge_both(Path(given.conformance_evidence or temporary), *ways)
    return "\n".join(found.format_lines()), found.exit_status


def _expect_comparable(given: argparse.Namespace, rest: Sequence[str]) -> None:
    if not given.through and not given.through_grpc:
        raise SuiteUsageError("--through-config needs --through URL or --through-grpc HOST:PORT")
    unusable = [name for name in _OF_ONE_RUN if any(word.partition("=")[0] == name for word in rest)]
    if unusable:
        raise SuiteUsageError(f"--through cannot be combined with {unusable[0]}; --conformance-evidence keeps reports")
    if REFERENCE in (given.target_url, given.target_grpc):
        raise SuiteUsageError(
            "--through needs the URL of a running server: `oip-conformance serve` starts the bundled one"
        )
    for one, two in (("target_url", "through"), ("target_grpc", "through_grpc")):
        if not given.target_config and bool(getattr(given, one)) != bool(getattr(given, two)):
            raise SuiteUsageError(f"--{one} and --{two} need each other".replace("_", "-"))


def judge_both(folder: Path, direct: Sequence[str], through: Sequence[str]) -> ThroughComparison:
    """Run the suite in both ways, with these arguments, and directly again for what the gateway breaks; compare."""
    from conformance.report.exchange_changes import pair_calls
    from conformance.report.through import Effect, compare
    from conformance.transport import recording

    before, after = judge(folder / "direct", direct), judge(folder / "through", through)
    recordings = [recording.load(recording.find_recording(folder / way)) for way in ("direct", "through")]
    pairs = pair_calls(*recordings)
    found = compare(before, after, pairs)
    broken = found.select(Effect.BROKEN)
    if not broken:
        return found
    return compare(before, after, pairs, judge(folder / "again", [*direct, "-k", " or ".join(broken)]))


def judge(folder: Path, arguments: Sequence[str]) -> Report:
    """Run the suite, print the last line of its output, and return its report.

    Raises:
        RunFailedError: it judged nothing.
        SuiteUsageError: an option has an invalid value.
    """
    from conformance.report.report_file import read
    from conformance.spec.tally import MET, NOT_MET

    check_arguments("oip-conformance run", arguments)
    folder.mkdir(parents=True, exist_ok=True)
    log, report = folder / LOG, folder / REPORT
    written = (f"--conformance-evidence={folder}", f"--conformance-report={report}")
    with log.open("w", encoding="utf-8") as output:
        command = [sys.executable, "-m", "pytest", "-q", "--color=no", *arguments, *written]
        status = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() or [f"pytest ended with status {status}"]
    found = None if status in _PYTEST_ERRORS or not report.exists() else read(report)
    if not found or not any(row["outcome"] in (*MET, *NOT_MET) for row in found["rows"]):
        raise RunFailedError(f"{folder.name}: {lines[-1]}")
    sys.stdout.write(f"{folder.name:8} {lines[-1]}\n")
    sys.stdout.flush()
    return found
