"""Records which rows see each fault of the bundled server, and renders the page of the kill matrix from that.

python -m tests.support.kill_matrix_page [FAULT...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from reference_server import faults
from reference_server.faults import Fault
from tests.support.matrix import run
from tests.support.samples import SEEN_BY, read_seen_by
from tests.support.sightings import Sighting

PAGE = "docs/kill-matrix.md"
HEAD = """# Kill matrix

A *fault* is a bug that the bundled server can be told to have (`oip-conformance serve --list-faults`). The matrix
shows that every check can fail, and that it fails only for the faults of its own requirements. `python -m
tests.support.matrix FAULT` runs the suite against a fault, and prints the messages of all rows that see it.

The columns:

* *breaks*: the requirements that the server with this fault does not meet. The fault is made for the first one; the
  server cannot avoid to break the others.
* *seen by*: for each of these the first check, with its row, that fails, or that advises if it is a SHOULD.

Faults in areas whose names begin with "combined" appear only when two features meet. The rows of
[pairwise combinations](walk.md) find them, and blame the first requirement in "breaks".

"""
MAX_ROWS = 4  # that a line names
# For each fault the ids of check and row of those that see it.
SeenBy = Mapping[str, Sequence[Sequence[str]]]


class Line(NamedTuple):
    """What a kill matrix says of a fault, besides the rows that see it."""

    section: str
    name: str
    summary: str
    breaks: str


def render() -> str:
    """Return the page, ending in a newline."""
    lines = [
        Line(one.area, name, one.summary, ", ".join(one.breaks) or "nearly everything")
        for name, one in faults.load().items()
    ]
    return HEAD + render_tables("| fault | what the server does | breaks | seen by |\n", lines, read_seen_by())


def render_tables(head: str, lines: Sequence[Line], seen_by: SeenBy) -> str:
    """Return a table of four columns for each section, ending in a newline."""
    tables: dict[str, str] = {}
    for line in lines:
        rows = [f"`{check}` [{row}]" for check, row in seen_by.get(line.name, ())]
        more = f" and {len(rows) - MAX_ROWS} more" if len(rows) > MAX_ROWS else ""
        cells = (f"`{line.name}`", line.summary.replace("<", "&lt;"), line.breaks, ", ".join(rows[:MAX_ROWS]) + more)
        text = " | ".join(cell.replace("|", "\\|") for cell in cells)
        tables[line.section] = tables.get(line.section, "") + f"| {text} |\n"
    return "\n".join(f"## {section}\n\n{head}|---|---|---|---|\n{table}" for section, table in tables.items())


def write_seen_by(file: Path, rows: SeenBy) -> None:
    """Write the rows that saw each fault, a line for each fault."""
    lines = [f"{json.dumps(name)}: {json.dumps(seen)}" for name, seen in sorted(rows.items())]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _list_first_rows(fault: Fault, sighting: Sighting) -> list[tuple[str, str]]:
    """Return the first row that saw each requirement that the fault breaks."""
    rows: dict[str, tuple[str, str]] = {}
    for miss in sighting.select("fail", "advisory"):
        if miss.requirement in fault.breaks or fault.broad:
            rows.setdefault(miss.requirement, (miss.check, miss.row))
    return list(rows.values())


def main(names: Collection[str]) -> None:
    """Run the suite against every fault, or some, and write what saw them; what is not run stays as it was."""
    known = faults.load()
    seen = {name: _list_first_rows(known[name], found) for name, found in run(names or known, whole=False).items()}
    rows = {**read_seen_by(), **seen}
    write_seen_by(SEEN_BY, {name: rows[name] for name in known if name in rows})


if __name__ == "__main__":
    main(sys.argv[1:])
