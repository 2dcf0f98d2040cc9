"""Small reports, written by hand, and the hostile text that may stand wherever a report has free text."""

from __future__ import annotations

from typing import Any

Report = Any  # also incomplete ones

HOSTILE = "<script>alert(1)</script>|`x`\n# \x1b[31m[go](http://evil) & www.evil \u202e"


def requirement(identity: str, level: str, verdict: str, area: str = "ordering") -> Report:
    """Return an entry; one that is not applicable has no model."""
    gap = {"unjudged": {"rows": 1, "why": ["no_model"], "needs": ["multi"]}} if verdict == "not_applicable" else {}
    return {
        "id": identity, "transport": "http", "level": level, "concern": "exchange", "area": area,
        "extension": "binary_tensor_data", "verdict": verdict, "checks": [], "url": "docs/requirements/ordering.md",
    } | gap  # fmt: skip


def check(identity: str, row: str, outcome: str, message: str = "", unmet: str = "", **more: Any) -> Report:
    failure = dict.fromkeys(("statement", "source", "expected", "actual", "sent", "repeat"), "")
    return {
        "check": identity, "row": row, "claim": "", "area": "ordering", "outcome": outcome, "message": message,
        "reason": None, "requirements": ["BIN-ORDER-O"], "observation": "", "duration_s": 0, "exchanges": [],
        "failure": failure | {"requirement": unmet, "level": "MUST", "bytes": []} if unmet else None,
    } | more  # fmt: skip


def report(name: str | None = "alpha", version: str | None = "1", **changes: Any) -> Report:
    met = {concern: {"met": 1, "of": 2} for concern in ("exchange", "refusal", "transport")}
    listed = {"offered": True, "verdict": "conformant", "interoperable": True, "counts": {"pass": 1}, "musts": met}
    return {
        "schema": 3,
        "suite": {"name": "oip-conformance", "version": "0.1.0", "digest": "0123456789abcdef" * 4},
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T03:05:05+00:00",
        "options": {"profile": "certify", "strict": False, "extensions": [], "timeout_s": 10, "headers": []},
        "seed": None,
        "target": {
            "url": "http://127.0.0.1:8000", "name": name, "version": version, "extensions_listed": [],
            "extensions_offered": [], "roles": {"multi": "multi"},
        },
        "verdict": "conformant",
        "interoperable": True,
        "why": [],
        "extensions": {"binary_tensor_data": listed, "raw": listed | {"offered": False}},
        "requirements": [],
        "rows": [],
        "footer": {"complete": True, "rows": 0, "digest": "0" * 64},
    } | changes  # fmt: skip
