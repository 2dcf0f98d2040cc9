"""Judges strangers' servers, all of them or those that are named.

    python -m tests.strangers go java          # as they are: every one has to be conformant
    python -m tests.strangers --bugs go java   # with each of the bugs in their bugs.toml; writes caught.json
    python -m tests.strangers --new-bugs       # likewise, those of which caught.json says nothing

Exit status: 0 all are conformant, or the bugs were tried; 1 a server is not; 2 a name is not known or a package of
Debian's is missing.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance import judge
from tests.strangers import bugs
from tests.strangers.servers import STRANGERS, serving


BUGS, NEW_BUGS = "--bugs", "--new-bugs"


def main(arguments: list[str]) -> int:
    """Judge servers and print a line for each; return the exit status."""
    names = [name for name in arguments if name not in (BUGS, NEW_BUGS)]
    unknown = [name for name in names if name not in STRANGERS]
    missing = [name for name in names or STRANGERS if name not in unknown and _lacks_compiler(name)]
    if unknown or missing:
        needs = {package for name in missing for package in STRANGERS[name].packages}
        print("; ".join([*(f"no stranger {name}" for name in unknown), *(f"install {name}" for name in sorted(needs))]))
        return 2
    if len(names) < len(arguments):
        try_bugs(names or list(STRANGERS), only_new=NEW_BUGS in arguments)
        return 0
    reports = []
    for name in names or STRANGERS:
        with TemporaryDirectory() as folder, serving(name, Path(folder)) as url:
            reports.append(judge(url, profile="certify"))
        print(f"{name}: {reports[-1]}", flush=True)
    return int(any(report.verdict != "conformant" for report in reports))


def try_bugs(names: list[str], *, only_new: bool) -> None:
    """Judge each server with each of its bugs, print a line for each, and keep what was seen."""
    sightings = dict(bugs.read_caught())
    for bug in (bug for name in names for bug in bugs.load_bugs(name).values()):
        key = f"{bug.server}/{bug.name}"
        if only_new and key in sightings:
            continue
        sightings[key] = found = bugs.try_bug(bug)
        print(f"{key}: {found.profile} {found.outcome} {', '.join(found.unmet[:3])}", flush=True)
        bugs.write_caught(sightings)


def _lacks_compiler(name: str) -> bool:
    build = STRANGERS[name].build
    return bool(build) and shutil.which({"sh": "javac"}.get(build[0], build[0])) is None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
