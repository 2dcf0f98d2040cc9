"""The command: `python -m tests.fuzz NAME... --seconds 60`; `all` is every target, and they share the time.

What breaks a property is left in `corpus/NAME`, where the tests replay it.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from tests.fuzz.guided import search_guided
from tests.fuzz.search import search
from tests.fuzz.targets import TARGETS, Target


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    known = [*TARGETS, "all"]
    parser.add_argument("names", nargs="+", metavar="NAME", choices=known, help=", ".join(known))
    parser.add_argument("--seconds", type=int, default=30, help="how long (30)")
    parser.add_argument("--inputs", type=int, default=0, help="try so many for each target, however long that takes")
    parser.add_argument("--seed", type=int, default=0, help="makes the same choices each time (0: others each time)")
    parser.add_argument("--guided", action="store_true", help="let atheris look for inputs that reach new code")
    parser.add_argument("--keep", action="store_true", help="keep what reaches new code in the corpus (with --guided)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz; return 1 where a property does not hold."""
    options = parse_arguments(arguments)
    if (options.guided or options.keep) and find_spec("atheris") is None:
        print("guided fuzzing needs atheris: pip install -e '.[fuzz]'", file=sys.stderr)
        return 2
    chosen = list(TARGETS.values()) if "all" in options.names else [TARGETS[name] for name in options.names]
    seconds = options.seconds / len(chosen)
    statuses = []
    for target in chosen:
        if options.guided or options.keep:
            limit = f"-runs={options.inputs}" if options.inputs else f"-max_total_time={max(round(seconds), 1)}"
            statuses.append(search_guided(target, limit, options.seed, keep=options.keep))
        else:
            statuses.append(run_search(target, seconds, options.seed, options.inputs))
    return 1 if any(statuses) else 0


def run_search(target: Target, seconds: float, seed: int, inputs: int) -> int:
    """Search by Hypothesis; say what came of it."""
    faulthandler.dump_traceback_later(seconds + 300, exit=True)  # an input that never ends
    tried, broken, traceback = search(target, seconds, seed, inputs)
    faulthandler.cancel_dump_traceback_later()
    print(f"{target.name}: {tried} inputs")
    if broken is None:
        return 0
    print(traceback, f"{target.name}: does not hold for {target.keep(broken)}", sep="\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
