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
Judge every target of a fleet file, each by a run of its own as `oip-conformance run` makes it, and leave a folder:
reports of each target, and an index of them all with what changed since the last run. The same command goes on where it
was ended before. Exit status, by the rules of one run: 1 where a target has it; else 6 where one has it; else 0.
2: interrupted; 4: the fleet cannot begin. docs/fleet.md explains it all."""


def add(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "fleet",
        help="judge many servers in one go, with an index of them all",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.usage_status = USAGE
    parser.add_argument("file", type=Path, metavar="FLEET", help="the fleet file (TOML)")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR",
        help="the folder of the fleet: index.html, index.md, index.json, and runs/ with a folder for each target",
    )  # fmt: skip
    parser.add_argument(
        "--workers", type=int, metavar="N",
        help="judge so many targets at once (default: workers of the file, or four for each processor)",
    )  # fmt: skip
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="have the workers of this Dask cluster do it: tcp://HOST:8786 (extra fleet)",
    )
    parser.add_argument(
        "--new", action="store_true", help="begin a new run, where the last one was ended and could be gone on with"
    )
    parser.add_argument(
        "--update-baselines", action="store_true", help="write the baseline of each target anew from this run"
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print the summary alone, not a line for each target"
    )


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Judge the fleet; return the text to print and the exit status.

    Raises:
        FleetError: the fleet cannot start.
    """
    if options.workers is not None and options.workers < 1:
        raise FleetError(f"--workers {options.workers}: give a number of targets, 1 or more")
    if options.workers is not None and options.scheduler:
        raise FleetError("--workers: beside --scheduler it says nothing: the threads of its workers count")
    fleet = fleet_file.load(options.file)
    if options.update_baselines and not (fleet.baselines or any(target.baseline for target in fleet.targets)):
        raise FleetError(
            f"{options.file}: --update-baselines: no target has a baseline: give baselines, a folder for them"
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
    """Print nothing."""
