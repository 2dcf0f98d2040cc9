"""`python -m benchmarks [NAME...]`: measure, print a table, and compare with what was kept.

Ratios say the same on any machine, more or less; seconds do not, and are shown for the proportions only.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Importing them declares them.
from benchmarks import plugin, recordings, runs, server, tensors, waits, walk  # noqa: F401
from benchmarks.ratio import Benchmark, CannotMeasureError, Measured, benchmark

KEPT = Path(__file__).with_name("kept.json")
# By how many per cent a ratio may be worse than what was kept: runs on a busy machine differ by this much.
SLACK = 25.0
# Ratios below this are chance: what copies nothing takes no time that could be measured.
LEAST = 0.01


def main() -> int:
    """Run what is asked for; the exit status is 0 whatever was measured, since no time is a verdict."""
    options = _options()
    chosen = [benchmark.by_name[name] for name in options.names or benchmark.by_name]
    kept = json.loads(options.compare.read_text())["ratios"] if options.compare.exists() else {}
    print(f"{'benchmark':<22} {'ours':>10} {'theirs':>10} {'ratio':>7} {'to reach':>8} {'kept':>7}")
    found: dict[str, dict[str, Any]] = {}
    for one in chosen:
        try:
            measured = one.measure()
        except CannotMeasureError as missing:
            print(f"{one.name:<22} not measured: {missing}")
            continue
        found[one.name] = {"ours": measured.ours, "theirs": measured.theirs, "unit": measured.unit}
        _print(one, measured, kept)
        if one.name in kept and (worse := worse_by(one, measured.ratio, kept[one.name])) > options.warn_above:
            print(
                f"::warning title=benchmark {one.name}::{worse:.0f} % worse: {one.what}, against {one.against}, "
                f"is {measured.ratio:.2f}, and {kept[one.name]:.2f} was kept"
            )
    if options.output:
        options.output.write_text(json.dumps(_document(found, kept), indent=2) + "\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the benchmarks to run (default: all); see --list")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and what each compares")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write what was measured as JSON")
    parser.add_argument(
        "--compare", type=Path, default=KEPT, metavar="FILE", help="an earlier output (default: the one that is kept)"
    )
    parser.add_argument(
        "--warn-above",
        type=float,
        default=SLACK,
        metavar="PERCENT",
        help="warn of a ratio that is worse than the kept one by more (default: %(default)g); the status stays 0",
    )
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in benchmark.by_name]
    if unknown:
        parser.error(f"{unknown[0]} is no benchmark: --list names them")
    if options.list:
        for one in benchmark.by_name.values():
            print(f"{one.name:<22} {one.what}, against {one.against}")
        sys.exit(0)
    return options


def _print(one: Benchmark, measured: Measured, kept: Mapping[str, float]) -> None:
    sign = ">=" if one.more_is_better else "<="
    before = f"{kept[one.name]:7.2f}" if one.name in kept else f"{'':>7}"
    print(
        f"{one.name:<22} {measured.ours:8.3f} {measured.unit:<1} {measured.theirs:8.3f} {measured.unit:<1} "
        f"{measured.ratio:7.2f} {sign}{one.reach:6.2f} {before}  {measured.remarks}",
        flush=True,
    )


def worse_by(one: Benchmark, ratio: float, kept: float) -> float:
    """Return by how many per cent a ratio is worse than the one that was kept; below 0 where it is better."""
    ratio, kept = max(ratio, LEAST), max(kept, LEAST)
    worse = kept / ratio if one.more_is_better else ratio / kept
    return (worse - 1) * 100


def _document(found: Mapping[str, Mapping[str, Any]], kept: Mapping[str, float]) -> dict[str, Any]:
    ratios = {name: round(one["ours"] / one["theirs"], 3) for name, one in found.items()}
    machine = {"python": platform.python_version(), "system": platform.platform(), "machine": platform.machine()}
    return {"machine": machine, "ratios": {**kept, **ratios}, "measured": found}


if __name__ == "__main__":
    sys.exit(main())
