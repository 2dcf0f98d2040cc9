"""Shows of each defence against hostile peers that a test fails without it: `tox -e defences`, or names of some.

`tests/hostile/defences.toml` says for each what takes it out, and which tests have to see that: a test that fails, or
one that does not end any more, has seen it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOSTILE = Path(__file__).parents[1] / "hostile"
TABLE = HOSTILE / "defences.toml"
SITE = Path(__file__).parent / "without"
LIMIT = 150.0  # seconds that tests have
CEILING = 3 * 1024**3  # bytes that a process of theirs has: what grows without end is seen by that


@dataclass(frozen=True, slots=True)
class Defence:
    """A defence, and what shows that it is there.

    Attributes:
        module: that holds it.
        without: code that takes it out, run in the module once that has been read. The table may have instead a
            `function` of the module, and `old` and `new`: what stands in its source, and what to have in its place.
        tests: paths below `tests`, the first of which has to fail without it; `-k` likewise.
    """

    name: str
    module: str
    without: str
    tests: tuple[str, ...]
    keyword: str = ""


def load() -> dict[str, Defence]:
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {
        name: Defence(name, row["module"], _code(row), tuple(row["tests"]), row.get("keyword", ""))
        for name, row in rows.items()
    }


def _code(row: Mapping[str, Any]) -> str:
    """Return the code that takes a defence out; for a function, what writes it anew."""
    if "without" in row:
        return str(row["without"])
    owner, _, name = row["function"].rpartition(".")
    lines = [
        "import inspect, textwrap",
        f"source = textwrap.dedent(inspect.getsource({row['function']}))",
        f"assert {row['old']!r} in source",
        f"exec('from __future__ import annotations\\n' + source.replace({row['old']!r}, {row['new']!r}))",
        f"{owner}.{name} = {name}" if owner else "",
    ]
    return "\n".join(lines)


def is_seen(defence: Defence) -> bool:
    """Run the tests without a defence, and say whether any sees it: one fails, or they do not end."""
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *defence.tests]
    words += ["-k", defence.keyword]
    environment = os.environ | {
        "PYTHONPATH": f"{SITE}{os.pathsep}{HOSTILE.parents[1]}",
        "PYTEST_ADDOPTS": "--assert=plain",  # pytest's rewriting reads the suite's modules past the change
        "WITHOUT_IN": defence.module,
        "WITHOUT": defence.without,
    }
    with subprocess.Popen(
        words,
        cwd=HOSTILE.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (CEILING, CEILING))
        try:
            said, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            print("    does not end")  # noqa: T201
            return True
    lines = [line for line in said.splitlines() if line.startswith("FAILED")]
    print(*[f"    {line[:200]}" for line in lines or said.splitlines()[-1:]], sep="\n", flush=True)  # noqa: T201
    return process.returncode == 1 and bool(lines)


def main(names: list[str]) -> int:
    """Print what sees each defence; return how many nothing sees."""
    known = load()
    if unknown := set(names) - set(known):
        raise SystemExit(f"no defence: {', '.join(sorted(unknown))}")
    unseen = []
    for name, defence in known.items():
        if names and name not in names:
            continue
        print(name, flush=True)  # noqa: T201
        if not is_seen(defence):
            unseen.append(name)
    print(f"seen by no test: {', '.join(unseen) or 'none'}")  # noqa: T201
    return len(unseen)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
