"""Judges strangers' servers and clients, all of them or those that are named.

    python -m tests.strangers go clients/java   # as they are: every one has to be conformant
    python -m tests.strangers --honest          # the honest variations of clients, likewise
    python -m tests.strangers --bugs go java    # with each of the bugs in their bugs.toml; writes caught.json
    python -m tests.strangers --new-bugs        # likewise, those of which caught.json says nothing

Exit status: 0 all are conformant, or the bugs were tried; 1 one is not; 2 a name is not known or a package of
Debian's is missing.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance import judge
from tests.strangers import bugs
from tests.strangers.client_programs import CLIENTS, judge_client
from tests.strangers.servers import STRANGERS, serving

BUGS, NEW_BUGS, HONEST = "--bugs", "--new-bugs", "--honest"
ALL = {**STRANGERS, **CLIENTS}


def main(arguments: list[str]) -> int:
    """Judge servers and clients and print a line for each; return the exit status."""
    names = [name for name in arguments if name not in (BUGS, NEW_BUGS, HONEST)]
    unknown = [name for name in names if name not in ALL]
    missing = [name for name in names or ALL if name not in unknown and _lacks_compiler(name)]
    if unknown or missing:
        needs = {package for name in missing for package in ALL[name].packages}
        print("; ".join([*(f"no stranger {name}" for name in unknown), *(f"install {name}" for name in sorted(needs))]))
        return 2
    if BUGS in arguments or NEW_BUGS in arguments:
        try_bugs(names or list(ALL), only_new=NEW_BUGS in arguments)
        return 0
    if HONEST in arguments:
        return try_variations(names or list(CLIENTS))
    return int(any([judge_stranger(name) != "conformant" for name in names or ALL]))


def judge_stranger(name: str) -> str:
    """Judge a server or client as it is, print a line, and return its verdict."""
    with TemporaryDirectory() as folder:
        if name in CLIENTS:
            verdict = said = str(judge_client(name, Path(folder))["verdict"])
        else:
            with serving(name, Path(folder)) as url:
                report = judge(url, profile="certify")
            verdict, said = report.verdict, str(report)
    print(f"{name}: {said}", flush=True)
    return verdict


def try_variations(names: list[str]) -> int:
    """Judge each client with each of its honest variations, and print a line for each; return the exit status."""
    verdicts = []
    for one in (one for name in names for one in bugs.load_bugs(name, "honest").values()):
        with TemporaryDirectory() as folder:
            verdicts.append(judge_client(one.server, Path(folder), one.plant)["verdict"])
        print(f"{one.server}/{one.name}: {verdicts[-1]}", flush=True)
    return int(any(verdict != "conformant" for verdict in verdicts))


def try_bugs(names: list[str], *, only_new: bool) -> None:
    """Judge each server and client with each of its bugs, print a line for each, and keep what was seen."""
    for file, known, attempt in (
        (bugs.CAUGHT, STRANGERS, bugs.try_bug),
        (bugs.CLIENTS_CAUGHT, CLIENTS, bugs.try_client_bug),
    ):
        sightings = dict(bugs.read_caught(file))
        for bug in (bug for name in names if name in known for bug in bugs.load_bugs(name).values()):
            key = f"{bug.server}/{bug.name}"
            if only_new and key in sightings:
                continue
            sightings[key] = found = attempt(bug)
            print(f"{key}: {found.profile} {found.outcome} {', '.join(found.unmet[:3])}", flush=True)
            bugs.write_caught(sightings, file)


def _lacks_compiler(name: str) -> bool:
    build = ALL[name].build
    return bool(build) and shutil.which({"sh": "javac"}.get(build[0], build[0])) is None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
