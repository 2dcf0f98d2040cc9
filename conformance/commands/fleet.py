"""`oip-conformance fleet`: judges many servers, and prints progress and a summary."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from conformance.fleet import fleet_file, running
from conformance.fleet.fleet_file import USAGE, FleetError
from conformance.fleet.running import RunOptions

DESCRIPTION: Final = """\
Judge every target of a fleet file, each by a run of its own, as with `oip-conformance run`. Write a folder with the
reports of each target, and an index of all with the changes since the last run. The same command resumes an interrupted
fleet; docs/fleet.md explains it. Exit status 0: every run ended with 0; 1: one ended with 1; 6: none did, but one ended
with 6; 2: interrupted; 4: the fleet cannot start."""


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "fleet",
        help="judge many servers in one run",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.usage_status = USAGE
    parser.add_argument("file", type=Path, metavar="FLEET", help="the fleet file (TOML)")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR",
        help="the folder to write: index.html, index.md, index.json, and runs/ with a folder for each target",
    )  # fmt: skip
    parser.add_argument(
        "--workers", type=int, metavar="N",
        help="judge N targets at once (default: `workers` in the file, or four for each processor)",
    )  # fmt: skip
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="use the workers of this Dask cluster, tcp://HOST:8786; it needs the extra fleet",
    )
    parser.add_argument("--new", action="store_true", help="start a new run instead of resuming an interrupted one")
    parser.add_argument(
        "--update-baselines", action="store_true", help="rewrite the baseline of each target from this run"
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print only the summary, without a line for each target"
    )


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Judge the fleet; return the text to print and the exit status. Raises FleetError: the fleet cannot start."""
    if options.workers is not None and options.workers < 1:
        raise FleetError(f"--workers {options.workers}: give a number of targets, 1 or more")
    if options.workers is not None and options.scheduler:
        raise FleetError("--workers cannot be combined with --scheduler, whose workers have threads of their own")
    fleet = fleet_file.load(options.file)
    if options.update_baselines and not (fleet.baselines or any(target.baseline for target in fleet.targets)):
        raise FleetError(
            f"{options.file}: --update-baselines: no target has a baseline: set `baselines` to a folder for them"
        )
    run_options = RunOptions(
        options.output,
        options.workers or fleet.workers,
        options.scheduler or "",
        anew=options.new,
        updates_baselines=options.update_baselines,
    )
    lines, status = running.run(fleet, run_options, _print_nothing if options.quiet else _print_line)
    return "\n".join(lines), status


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _print_nothing(_: str) -> None:
    """Ignore a line, for runs with `--quiet`."""
