"""Records which rows see each fault of the honest client, and renders the page of the clients' kill matrix from that.

python -m tests.clients.kill_matrix_page [FAULT...]
"""

from __future__ import annotations

import sys
from collections.abc import Collection

from tests.clients import alterations
from tests.clients.alterations import Alteration
from tests.clients.matrix import find_complaints, run
from tests.clients.sightings import SEEN_BY, Sighting
from tests.support.kill_matrix_page import Line, render_tables, write_seen_by
from tests.support.samples import read_seen_by

PAGE = "docs/kill-matrix-clients.md"
HEAD = """# Kill matrix of clients

Each fault makes the honest client in `tests/clients/honest` wrong in one place. `python -m tests.clients.matrix FAULT`
runs the rows for clients against a fault, and prints the messages of all rows that see it, and whether the client's
requests alone show it (`oip-conformance client watch`).

The columns:

* *misses*: the requirements that the client with this fault does not meet. The fault is made for the first one; the
  client cannot avoid to miss the others.
* *seen by*: the checks that fail or advise, each with its first row.

These variations of the honest client behave in an unusual but valid way, and fail no row:

"""


def render() -> str:
    listed = "".join(f"* `{one.name}`: {one.summary}\n" for one in alterations.load("variations").values())
    lines = [
        Line(one.subject.replace("_", " "), name, one.summary, ", ".join(one.misses) + (" and more" * one.broad))
        for name, one in alterations.load("faults").items()
    ]
    tables = render_tables("| fault | what the client does | misses | seen by |\n", lines, read_seen_by(SEEN_BY))
    return f"{HEAD}{listed}\n{tables}"


def find_seeing_rows(fault: Alteration, sighting: Sighting) -> list[tuple[str, str]]:
    """Return the first row of each check that names what a fault misses, what it is about first."""
    first: dict[str, tuple[str, str]] = {}
    for miss in sorted(sighting.select("fail", "advisory"), key=lambda miss: miss.requirement not in fault.misses[:1]):
        if miss.requirement in fault.misses:
            first.setdefault(miss.check, (miss.check, miss.row))
    return list(first.values())


def main(names: Collection[str]) -> None:
    """Run every fault, or some, and write what saw each at once; what is not run stays as it was.

    Prints a line for each, with what is not as it should be.
    """
    known = alterations.load("faults")
    rows = read_seen_by(SEEN_BY)
    for sighting in run("faults", names or known):
        rows[sighting.name] = find_seeing_rows(known[sighting.name], sighting)
        for line in find_complaints(sighting, known[sighting.name]) or ["killed, and rightly named"]:
            print(f"{sighting.name} ({sighting.rows} rows, {sighting.seconds} s): {line}", flush=True)  # noqa: T201
        write_seen_by(SEEN_BY, {name: rows[name] for name in known if name in rows})


if __name__ == "__main__":
    main(sys.argv[1:])
