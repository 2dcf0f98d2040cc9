"""Writes docs/results: of each whole report a summary, which holds what the pages are made of.

    python -m tests.support.results build/results/*.json build/results/clients/*.json

A report NAME.json of a server makes `docs/results/NAME.json.xz`, one of a client `docs/results/clients/NAME.json.xz`.
They are compressed, for text would be most of the repository; docs/results.md shows what changes in them.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from conformance.report.comparison import remove_body
from conformance.report.report_file import SUMMARY, read
from conformance.spec.ledger import Party
from conformance.spec.outcome import Outcome
from conformance.spec.report import find_party

Entry = Mapping[str, Any]

RESULTS: Final = Path(__file__).parents[2] / "docs" / "results"
FOLDERS: Final = {Party.SERVER: RESULTS, Party.CLIENT: RESULTS / "clients"}
DROPPED: Final = ("coverage", "gate", "robustness")
OF_REQUIREMENT: Final = ("id", "level", "area", "extension", "verdict", "unjudged")
OF_ROW: Final = ("check", "row", "outcome", "message")
# Pages show the first exchange of each check that misses a requirement.
OF_EXCHANGE: Final = ("sent", "request", "answer", "bytes")
EXPLAINED: Final = (Outcome.FAIL, Outcome.KNOWN_FAILURE, Outcome.ADVISORY, Outcome.BLOCKED, Outcome.ERROR)
LISTED: Final = ("requirements", "rows")


def summarize(report: Entry) -> dict[str, Any]:
    """Return the summary of a whole report, which has the form of `schemas/summary.schema.json`."""
    kept = {name: value for name, value in report.items() if name not in DROPPED}
    requirements = [_summarize_requirement(entry) for entry in report["requirements"]]
    rows = list(_summarize_rows(report["rows"]))
    return {"schema": kept.pop("schema"), SUMMARY: True, **kept, "requirements": requirements, "rows": rows}


def _summarize_requirement(entry: Entry) -> dict[str, Any]:
    """Return the entry of a requirement; no page of results says which models would have to be deployed."""
    kept = _members(entry, OF_REQUIREMENT)
    return {**kept, "unjudged": {**kept["unjudged"], "needs": []}} if "unjudged" in kept else kept


def _summarize_rows(rows: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the rows that need an explanation, and counts of the others, in the order in which each first comes."""
    counts = Counter(map(_key_of, rows))
    kinds: set[tuple[str, str]] = set()
    for row in rows:
        if row["outcome"] in EXPLAINED:
            failure = _summarize_failure(row, kinds)
            yield {**_members(row, OF_ROW), **_observed(row), "failure": failure}
        elif count := counts.pop(_key_of(row), 0):
            check = {"check": row["check"]} if row["observation"] else {}
            yield {**check, "outcome": row["outcome"], **_observed(row), "count": count}


def _key_of(row: Entry) -> str:
    """Return what rows have in common that are counted together."""
    return json.dumps([row["outcome"], _observed(row), row["check"] if row["observation"] else ""])


def _observed(row: Entry) -> dict[str, Any]:
    """Return the first requirement of a row, for which it counts, and what it observed, if anything."""
    observed = {"observation": remove_body(row["observation"])} if row["observation"] else {}
    return {"requirements": row["requirements"][:1], **observed}


def _summarize_failure(row: Entry, kinds: set[tuple[str, str]]) -> Entry | None:
    """Return the requirement that a row misses, with the exchange where no row of its kind came before."""
    failure = row["failure"]
    if failure is None:
        return None
    kind = row["check"], failure["requirement"]
    names = ["requirement"] if kind in kinds else ["requirement", *OF_EXCHANGE]
    kinds.add(kind)
    return _members(failure, names)


def _members(entry: Entry, names: Sequence[str]) -> dict[str, Any]:
    return {name: entry[name] for name in names if name in entry}


def to_text(summary: Entry) -> str:
    """Return a summary as JSON, with a line for each requirement and row, so that a new check changes few lines."""
    members = [
        f"{_compact(name)}:{_lines(value) if name in LISTED else _compact(value)}" for name, value in summary.items()
    ]
    return "{\n" + ",\n".join(members) + "\n}\n"


def _lines(entries: Sequence[Entry]) -> str:
    return "[\n" + ",\n".join(map(_compact, entries)) + "\n]"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def main() -> None:
    """Write the summaries."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("reports", nargs="+", type=Path, help="whole reports in JSON")
    for path in parser.parse_args().reports:
        sys.stdout.write(f"wrote {write(path)}\n")


def write(path: Path) -> Path:
    """Write the summary of a whole report to its place, and return that."""
    report = read(path)
    place = FOLDERS[find_party(report)] / f"{path.name}.xz"
    place.write_bytes(lzma.compress(to_text(summarize(report)).encode(), preset=lzma.PRESET_EXTREME))
    return place


if __name__ == "__main__":
    main()
