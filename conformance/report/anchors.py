"""Where in its page a thing stands: places are named by requirement, check and row, never by a number of the run.

So the same link leads to the same thing in the page of the next run. A place is its own link: what an address cannot
hold is percent-encoded in both.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from conformance.report.blocks import Block
from conformance.report.findings import Group
from conformance.spec.check import format_key
from conformance.spec.outcome import Outcome

Entry = Mapping[str, Any]

MAX_ANCHOR_CHARS = 160  # characters of a name; names of the suite are far shorter


def encode_name(text: str) -> str:
    """Return what stands for a name in an address; of a longer one the beginning, and a digest."""
    encoded = quote(text, safe="/[]", errors="backslashreplace")
    if len(encoded) <= MAX_ANCHOR_CHARS:
        return encoded
    return f"{encoded[:MAX_ANCHOR_CHARS]}-{hashlib.sha256(encoded.encode()).hexdigest()[:12]}"


def build_requirement_anchor(identity: str) -> str:
    """Return the place of a requirement among all of them."""
    return f"req-{encode_name(identity)}"


def build_block_anchor(block: Block) -> str:
    """Return the place of a requirement that is not met, with the rows that show it."""
    kind = "advice" if block.first.outcome == Outcome.ADVISORY else "unmet"
    return f"{kind}-{encode_name(block.requirement)}"


def build_row_anchors(checks: Iterable[Entry]) -> dict[int, str]:
    """Return the place of each row, by the identity of the report's own entry; one that is there twice is numbered."""
    seen: Counter[str] = Counter()
    places = {}
    for check in checks:
        place = f"row-{encode_name(format_key(check['check'], check['row']))}"
        seen[place] += 1
        places[id(check)] = place if seen[place] == 1 else f"{place}!{seen[place]}"
    return places


def build_stuck_anchor(group: Group, rows: Mapping[int, str]) -> str:
    """Return the place of rows that could not be judged; they have no requirement in common."""
    return f"stuck-{rows[id(group.rows[0])]}"
