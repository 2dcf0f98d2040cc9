"""The page of the kill matrix: every fault, what it breaks, who caught it, and the first message that a user reads."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from reference_server import faults
from reference_server.faults import Fault
from tests.support.matrix import run
from tests.support.samples import SEEN_BY
from tests.support.sightings import Sighting

PAGE = Path(__file__).parents[2] / "docs" / "kill-matrix.md"
HEAD = """# Kill matrix

Written by `python -m tests.support.kill_matrix_page [FAULT...]`. This command runs the suite against the faults of the
bundled server (`python -m reference_server --list-faults`), all of them or the named ones. A *fault* is a bug that
the bundled server can be told to have. The matrix shows that every check can fail, and that it fails only for the
faults of its own requirements.

The columns:

* *breaks*: the requirements that the server with this fault does not meet. The fault is made for the first one; the
  server cannot avoid to break the others.
* *caught by*: the checks that fail, or that advise if the requirement is a SHOULD.
* *message*: the first message of the report.

Faults in areas whose names begin with "combined" appear only when two features meet. The rows of
[pairwise combinations](walk.md) find them, and blame the first requirement in "breaks".

"""
LINE = re.compile(r"^\| `([^`]+)` \|.*\n", re.MULTILINE)
TABLE = "| fault | what the server does | breaks | caught by | message |\n|---|---|---|---|---|\n"


def render(known: Mapping[str, Fault], lines: Mapping[str, str]) -> str:
    """Return the page, ending in a newline, of a line for each fault."""
    return HEAD + render_tables(TABLE, {name: fault.area for name, fault in known.items()}, lines)


def render_tables(head: str, sections: Mapping[str, str], lines: Mapping[str, str]) -> str:
    """Return a table for each section, ending in a newline.

    Args:
        head: the head of each table.
        sections: the section of each fault.
        lines: the line of each fault.
    """
    own = {one: "".join(lines[name] for name in sections if sections[name] == one) for one in sections.values()}
    return "\n".join(f"## {section}\n\n{head}{rows}" for section, rows in own.items())


def read_lines(page: Path) -> dict[str, str]:
    """Return the line of each fault on a page."""
    return {found[1]: found[0] for found in LINE.finditer(page.read_text(encoding="utf-8"))}


def format_line(fault: Fault, sighting: Sighting) -> str:
    """Return the line of a fault."""
    misses = sorted(sighting.select("fail", "advisory"), key=lambda miss: miss.requirement not in fault.breaks[:1])
    caught = list(dict.fromkeys(f"`{miss.check}`" for miss in misses))
    shown = ", ".join(caught[:4]) + (f" and {len(caught) - 4} more" if len(caught) > 4 else "")
    breaks = ", ".join(fault.breaks) or "nearly everything"
    message = (misses or sighting.misses)[0].message[:300]
    return format_cells(f"`{fault.name}`", fault.summary, breaks, shown or "the run itself", message)


def format_cells(*cells: str) -> str:
    """Return a line of a table, without the port that a run had by chance."""
    texts = (text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;") for text in cells)
    return re.sub(r"127\.0\.0\.1:[0-9]+", "127.0.0.1:PORT", f"| {' | '.join(texts)} |\n")


def write_seen_by(file: Path, rows: Mapping[str, Sequence[Sequence[str]]]) -> None:
    """Write the rows that saw each fault, a line for each fault."""
    lines = [f"{json.dumps(name)}: {json.dumps(seen)}" for name, seen in sorted(rows.items())]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _first_rows(fault: Fault, sighting: Sighting) -> dict[str, list[str]]:
    """Return the first row that saw each requirement that the fault breaks."""
    rows: dict[str, list[str]] = {}
    for miss in sighting.select("fail", "advisory"):
        if miss.requirement in fault.breaks or fault.broad:
            rows.setdefault(miss.requirement, [miss.check, miss.row])
    return rows


def main(names: Collection[str]) -> None:
    """Run the suite against every fault, or some, and write what came of it; what is not run stays as it was."""
    known = faults.load()
    sightings = run(names or known, whole=False)
    lines = read_lines(PAGE)
    rows: dict[str, list[list[str]]] = json.loads(SEEN_BY.read_text(encoding="utf-8"))
    for name, sighting in sightings.items():
        lines[name] = format_line(known[name], sighting)
        rows[name] = list(_first_rows(known[name], sighting).values())
    PAGE.write_text(render(known, lines), encoding="utf-8")
    write_seen_by(SEEN_BY, {name: rows[name] for name in known})


if __name__ == "__main__":
    main(sys.argv[1:])
