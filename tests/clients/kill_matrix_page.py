"""The page of the clients' kill matrix: every fault, what it misses, who caught it, and whether watching sees it."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.clients import alterations
from tests.clients.alterations import Alteration
from tests.clients.matrix import find_complaints, run
from tests.clients.sightings import SEEN_BY, Sighting
from tests.support.kill_matrix_page import format_cells, read_lines, render_tables, write_seen_by

PAGE = Path(__file__).parents[2] / "docs" / "kill-matrix-clients.md"
HEAD = """# Kill matrix of clients

Written by `python -m tests.clients.kill_matrix_page [FAULT...]`. This command runs the rows for clients against the
faults of the honest client in `tests/clients/honest`, all of them or the named ones. Each fault makes the client wrong
in one place. The command leaves out rows in which the honest client never comes to that place.

The columns:

* *misses*: the requirements that the client with this fault does not meet. The fault is made for the first one; the
  client cannot avoid to miss the others.
* *watched*: whether the client's requests alone show the fault (`oip-conformance client watch`). Only an adapter shows
  how a client reads answers.
* *caught by*: the checks that fail or advise.
* *message*: the first message of the report.

These variations of the honest client behave in an unusual but valid way, and fail no row:

"""
TABLE = "| fault | what the client does | misses | watched | caught by | message |\n|---|---|---|---|---|---|\n"


def render(faults: Mapping[str, Alteration], lines: Mapping[str, str], variations: Mapping[str, Alteration]) -> str:
    """Return the page, ending in a newline, of a line for each fault."""
    listed = "".join(f"* `{one.name}`: {one.summary}\n" for one in variations.values())
    subjects = {name: fault.subject.replace("_", " ") for name, fault in faults.items()}
    return f"{HEAD}{listed}\n{render_tables(TABLE, subjects, lines)}"


def format_line(fault: Alteration, sighting: Sighting) -> str:
    """Return the line of a fault."""
    found = sorted(sighting.select("fail", "advisory"), key=lambda miss: miss.requirement not in fault.misses[:1])
    caught = list(dict.fromkeys(f"`{miss.check}`" for miss in found))
    shown = ", ".join(caught[:3]) + (f" and {len(caught) - 3} more" if len(caught) > 3 else "")
    watched = "yes" if set(fault.misses) & set(sighting.watched) else "no"
    message = found[0].message[:240] if found else ""
    return format_cells(f"`{fault.name}`", fault.summary, describe_missed(fault), watched, shown, message)


def describe_missed(fault: Alteration) -> str:
    """Return what a fault misses."""
    return ", ".join(fault.misses) + (" and more" if fault.broad else "")


def find_seeing_rows(fault: Alteration, sighting: Sighting) -> list[list[str]]:
    """Return the first row of each check that names what a fault misses, what it is about first."""
    first: dict[str, list[str]] = {}
    for miss in sorted(sighting.select("fail", "advisory"), key=lambda miss: miss.requirement not in fault.misses[:1]):
        if miss.requirement in fault.misses:
            first.setdefault(miss.check, [miss.check, miss.row])
    return list(first.values())


def main(names: Collection[str]) -> None:
    """Run every fault, or some, and write what came of each at once; what is not run stays as it was.

    Prints a line for each, with what is not as it should be.
    """
    known, variations = alterations.load("faults"), alterations.load("variations")
    lines = read_lines(PAGE)
    rows: dict[str, list[list[str]]] = json.loads(SEEN_BY.read_text(encoding="utf-8"))
    for sighting in run("faults", names or known):
        lines[sighting.name] = format_line(known[sighting.name], sighting)
        rows[sighting.name] = find_seeing_rows(known[sighting.name], sighting)
        for line in find_complaints(sighting, known[sighting.name]) or ["killed, and rightly named"]:
            print(f"{sighting.name} ({sighting.rows} rows, {sighting.seconds} s): {line}", flush=True)  # noqa: T201
        if set(lines) >= set(known):
            PAGE.write_text(render(known, lines, variations), encoding="utf-8")
            write_seen_by(SEEN_BY, {name: rows[name] for name in known})


if __name__ == "__main__":
    main(sys.argv[1:])
