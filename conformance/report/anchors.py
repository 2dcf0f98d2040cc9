"""HTML anchors of a report page, named by requirement, check and row, never by a number of the run.

The same link therefore leads to the same item in the page of the next run. The id of an element and the fragment of
its link are identical: characters that a URL cannot contain are percent-encoded in both.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from conformance.report.blocks import Block
from conformance.report.findings import Group
from conformance.spec.check import format_key
from conformance.spec.outcome import Outcome
from conformance.spec.report import ReportRow

MAX_ANCHOR_CHARS = 160  # characters of an encoded name; names of the suite are far shorter


def encode_name(text: str) -> str:
    """Percent-encode a name for a URL; truncate a long name, and append a digest to it."""
    encoded = quote(text, safe="/[]", errors="backslashreplace")
    if len(encoded) <= MAX_ANCHOR_CHARS:
        return encoded
    return f"{encoded[:MAX_ANCHOR_CHARS]}-{hashlib.sha256(encoded.encode()).hexdigest()[:12]}"


def build_requirement_anchor(identity: str) -> str:
    """Return the anchor of a requirement in the list of all requirements."""
    return f"req-{encode_name(identity)}"


def build_block_anchor(block: Block) -> str:
    """Return the anchor of the block of an unmet requirement."""
    kind = "advice" if block.first.outcome == Outcome.ADVISORY else "unmet"
    return f"{kind}-{encode_name(block.requirement)}"


def build_row_anchors(checks: Iterable[ReportRow]) -> dict[int, str]:
    """Map the `id()` of each row's entry in the report to its anchor; duplicate rows are numbered."""
    seen: Counter[str] = Counter()
    places = {}
    for check in checks:
        place = f"row-{encode_name(format_key(check['check'], check['row']))}"
        seen[place] += 1
        places[id(check)] = place if seen[place] == 1 else f"{place}!{seen[place]}"
    return places


def build_blocked_anchor(group: Group, rows: Mapping[int, str]) -> str:
    """Return the anchor of a group of blocked rows, or rows in error, which may test different requirements."""
    return f"stuck-{rows[id(group.rows[0])]}"
