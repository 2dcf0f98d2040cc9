"""The command: `python -m tests.fuzz NAME... --seconds 600`; `all` is every target.

One name is fuzzed for that time. Several share it, in one process: that is for a quick look. What breaks a property is
left in `corpus/NAME`, where the tests replay it; with --keep what reaches new code is, too.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.smallest import keep_smallest
from tests.fuzz.target import Target, make_file_name
from tests.fuzz.targets import TARGETS

# Of one input: what takes longer, or more memory, is a finding, too.
LONGEST_SECONDS, MOST_MEGABYTES = 10, 1024
_NUMBERS = re.compile(r"#(\d+)\s+DONE\s+cov: (\d+) ft: (\d+) corp: (\d+)")


def parse_arguments() -> argparse.Namespace:
    """Return what the user wants."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    known = [*TARGETS, "all"]
    parser.add_argument("names", nargs="+", metavar="NAME", choices=known, help=", ".join(known))
    parser.add_argument("--seconds", type=int, default=30, help="how long (30)")
    parser.add_argument("--seed", type=int, default=0, help="makes the same choices each time (0: others each time)")
    parser.add_argument("--keep", action="store_true", help="keep what reaches new code in the corpus")
    return parser.parse_args()


def main() -> int:
    """Fuzz; return 1 where a property does not hold."""
    options = parse_arguments()
    if find_spec("atheris") is None:
        print("fuzzing needs atheris: pip install -e '.[fuzz]'", file=sys.stderr)
        return 2
    names = list(TARGETS) if "all" in options.names else options.names
    chosen = [TARGETS[name] for name in names]
    with tempfile.TemporaryDirectory(prefix="oip-fuzz-") as folder:
        status = run_fuzzer(chosen, options.seconds, Path(folder), options.seed)
        found = [path.read_bytes() for path in (Path(folder) / "new").iterdir()]
    if options.keep:
        for place, target in enumerate(chosen):
            kept = keep_smallest(target, found if len(chosen) == 1 else _of(found, place, len(chosen)))
            print(f"{target.name}: {kept} inputs kept")
    return status


def run_fuzzer(targets: Sequence[Target], seconds: int, folder: Path, seed: int = 0) -> int:
    """Fuzz in a process of its own; say what came of it."""
    new, begin, broken = (folder / name for name in ("new", "begin", "broken"))
    for made in (new, begin, broken):
        made.mkdir()
    for place, target in enumerate(targets):
        head = b"" if len(targets) == 1 else bytes((place,))
        for data in target.inputs():
            (begin / make_file_name(head + data)).write_bytes(head + data)
    names = [target.name for target in targets]
    limits = [f"-seed={seed}", f"-max_total_time={seconds}", f"-timeout={LONGEST_SECONDS}"]
    limits += [f"-rss_limit_mb={MOST_MEGABYTES}"]
    limits += [f"-max_len={max(target.largest for target in targets)}", f"-artifact_prefix={broken}/"]
    command = [sys.executable, "-m", "tests.fuzz.live", str(broken), *names, "--", str(new), str(begin), *limits]
    hashing = {"PYTHONHASHSEED": str(seed)} if seed else {}
    ran = subprocess.run(
        command, check=False, stderr=subprocess.PIPE, text=True, errors="replace", env=os.environ | hashing
    )
    if ran.returncode:
        print(ran.stderr[-6000:], f"ended with {ran.returncode}", sep="\n")
    elif done := _NUMBERS.search(ran.stderr):
        executions, edges, features, inputs = done.groups()
        name = names[0] if len(names) == 1 else f"{len(names)} targets"
        print(f"{name}: {executions} executions, {edges} edges, {features} features, {inputs} inputs")
    for path in broken.iterdir():
        data = path.read_bytes()
        target = targets[0] if len(targets) == 1 else targets[(data or b"\0")[0] % len(targets)]
        rest = data if len(targets) == 1 else data[1:]
        target.folder.mkdir(parents=True, exist_ok=True)
        (target.folder / make_file_name(rest)).write_bytes(rest)
        print(f"{target.name}: does not hold for {target.folder / make_file_name(rest)}")
    return 1 if ran.returncode else 0


def _of(found: Sequence[bytes], place: int, count: int) -> list[bytes]:
    """Return the inputs of one of several targets that were fuzzed together."""
    return [data[1:] for data in found if data and data[0] % count == place]


if __name__ == "__main__":
    sys.exit(main())
