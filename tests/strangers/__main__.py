"""Judges strangers' servers and clients, all of them or those that are named.

    python -m tests.strangers go clients/java   # as they are: every one has to be conformant
    python -m tests.strangers --honest          # their honest variations, likewise
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
    missing = [name for name in names or ALL if name not in unknown and _lacks_program(name)]
    if unknown or missing:
        needs = {package for name in missing for package in ALL[name].packages}
        print("; ".join([*(f"no stranger {name}" for name in unknown), *(f"install {name}" for name in sorted(needs))]))
        return 2
    if BUGS in arguments or NEW_BUGS in arguments:
        try_bugs(names or list(ALL), only_new=NEW_BUGS in arguments)
        return 0
    if HONEST in arguments:
        variations = [one for name in names or ALL for one in bugs.load_bugs(name, "honest").values()]
        return int(any([judge_stranger(one.server, one) != "conformant" for one in variations]))
    return int(any([judge_stranger(name) != "conformant" for name in names or ALL]))


def judge_stranger(name: str, variation: bugs.Bug | None = None) -> str:
    """Judge a server or client, as it is or with an honest variation, print a line, and return its verdict."""
    change = variation.plant if variation else lambda _: None
    with TemporaryDirectory() as folder:
        if name in CLIENTS:
            verdict = said = str(judge_client(name, Path(folder), change)["verdict"])
        else:
            with serving(name, Path(folder), change) as url:
                report = judge(url, profile="certify")
            verdict, said = report.verdict, str(report)
    print(f"{name}/{variation.name}: {said}" if variation else f"{name}: {said}", flush=True)
    return verdict


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
        for name in (name for name in names if name in known):
            right, failed = bugs.count_causes(name, sightings)
            print(f"{name}: {right} of {failed} bugs with known causes are named by one of them first", flush=True)


def _lacks_program(name: str) -> bool:
    program = (ALL[name].build or ALL[name].start)[0]
    return bool(ALL[name].packages) and shutil.which({"sh": "javac"}.get(program, program)) is None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
