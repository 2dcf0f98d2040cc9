"""Small reports made by hand, for tests of pages: one of each kind, and one in which every text is an attack."""

from __future__ import annotations

from typing import Any

from conformance.report.json_report import compute_digest
from tests.support.valid_reports import expect_valid

Report = Any  # also incomplete ones

MUSTS = {"exchange": {"met": 3, "of": 4}, "refusal": {"met": 1, "of": 2}, "transport": {"met": 0, "of": 0}}

# What a server could write to break out of a page, a terminal, a log of a CI system, or a comment there.
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp; "
    "\x1b[31mred\x1b]0;title\x07 \u202eevil\u2066"
    " NUL\x00 \r\n::error::forged\r::set-output name=x::y\n##[error]forged ##vso[task.complete] "
    "`tick` ```fence``` | pipe | [go](http://evil.example) <http://evil.example> www.evil.example @everyone "
    "{{ 7*7 }} {% x %}"
)


def requirement(identity: str, level: str, verdict: str, **changes: Any) -> Report:
    return {
        "id": identity, "transport": "http", "level": level, "concern": "exchange", "area": "ordering",
        "extension": "binary_tensor_data", "verdict": verdict, "checks": ["ordering.x"],
        "url": "docs/requirements/ordering.md",
    } | changes  # fmt: skip


def failure(requirement: str = "BIN-ORDER-O", **changes: Any) -> Report:
    return {
        "requirement": requirement, "level": "MUST", "statement": "Bytes follow `outputs`.", "source": 'Document, "S"',
        "expected": "OUT0 INT32 [2] = [1, 2]", "actual": "[3, 4]: element 0 differs", "sent": "POST /v2, 164 bytes",
        "bytes": ["0058  65 22  e\"", "0060  03 00  ..   <- tensor 0 OUT0 INT32 element 0"],
        "repeat": "curl -sS http://h/v2",
    } | changes  # fmt: skip


def check(identity: str = "ordering.x", row: str = "", outcome: str = "pass", **changes: Any) -> Report:
    unmet = failure() if outcome in ("fail", "advisory") else None
    return {
        "check": identity, "row": row, "claim": "Bytes follow the JSON.", "area": "ordering", "outcome": outcome,
        "requirements": ["BIN-ORDER-O"], "message": "expected a, got b" if unmet else "", "observation": "",
        "duration_s": 0.5, "exchanges": [0], "failure": unmet, "reason": None,
    } | changes  # fmt: skip


def report(verdict: str = "conformant", *, complete: bool = True, **changes: Any) -> Report:
    """Return a report that fits the schema."""
    is_interoperable = {"conformant": True, "nonconformant": False}.get(verdict)
    listed = {"offered": True, "verdict": verdict, "interoperable": is_interoperable, "counts": {}, "musts": MUSTS}
    made: Report = {
        "schema": 3,
        "suite": {"name": "oip-conformance", "version": "0.1.0", "digest": "0123456789abcdef" * 4},
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T03:05:35+00:00",
        "options": {"profile": "certify", "strict": False, "extensions": [], "timeout_s": 10, "headers": []},
        "seed": None,
        "target": {
            "url": "http://127.0.0.1:8000", "name": "alpha", "version": "1.2", "roles": {"multi": "multi"},
            "extensions_listed": ["binary_tensor_data"], "extensions_offered": ["binary_tensor_data"],
        },
        "verdict": verdict,
        "interoperable": is_interoperable,
        "why": [],
        "extensions": {
            "binary_tensor_data": listed,
            "raw": {**listed, "offered": False, "verdict": "not_applicable", "interoperable": None},
        },
        "requirements": [requirement("BIN-ORDER-O", "MUST", "pass"), requirement("BIN-ORDER-I", "MUST", "pass")],
        "rows": [check()],
    } | changes  # fmt: skip
    made["footer"] = {"complete": complete, "rows": len(made["rows"]), "digest": compute_digest(made)}
    expect_valid(made)
    return made


CONFORMANT = report()

# What a requirement says of itself that no row judged, and what the run says of them all.
NO_MODEL = {"rows": 1, "why": ["no_model"], "needs": ["multi"]}
COVERAGE = {
    "unjudged": ["BIN-ORDER-I"], "waiting": 1, "left_out": 0,
    "deploy": [{"role": "multi", "musts": ["BIN-ORDER-I"], "rows": 1}],
}  # fmt: skip
UNJUDGED_ROW = check(
    "ordering.absent", "", "not_applicable", requirements=["BIN-ORDER-I"], message="no model for the role multi",
    reason={"kind": "no_model", "subject": "multi"},
)  # fmt: skip

PARTIAL = report(
    "partial",
    why=["1 MUST not judged (deploy multi to judge 1 more)"],
    coverage=COVERAGE,
    requirements=[
        requirement("BIN-ORDER-O", "MUST", "pass"),
        requirement("BIN-ORDER-I", "MUST", "not_applicable", unjudged=NO_MODEL),
    ],
    rows=[check(), UNJUDGED_ROW],
)

NARROWED = report(
    "narrowed",
    complete=False,
    why=["1 of 3 rows, none failed"],
    requirements=[
        requirement("BIN-ORDER-O", "MUST", "pass"),
        requirement("BIN-ORDER-I", "MUST", "not_applicable", checks=[],
                    unjudged={"rows": 2, "why": ["not_run"], "needs": []}),
    ],
)  # fmt: skip

NONCONFORMANT = report(
    "nonconformant",
    why=["2 rows failed"],
    coverage=COVERAGE,
    requirements=[
        requirement("BIN-ORDER-O", "MUST", "fail"),
        requirement("BIN-ORDER-I", "MUST", "not_applicable", unjudged=NO_MODEL),
        requirement("BIN-HEADER-O", "MUST", "blocked"),
        requirement("BIN-BODY-LONG", "SHOULD", "advisory"),
        requirement("BIN-ALL-TRUE-LISTED", "OBSERVE", "observed"),
    ],
    rows=[
        *(check(row=name) for name in ("one", "two", "three")),
        check(row="four", outcome="fail"),
        check(row="five", outcome="fail"),
        check("ordering.stuck", "a", "blocked", requirements=["BIN-HEADER-O"], message="m answers no plain request"),
        check("ordering.stuck", "b", "blocked", requirements=["BIN-HEADER-O"], message="m answers no plain request"),
        check("ordering.advice", "", "advisory", requirements=["BIN-BODY-LONG"],
              failure=failure("BIN-BODY-LONG", level="SHOULD")),
        check("ordering.open", "", "observed", requirements=["BIN-ALL-TRUE-LISTED"],
              observation="JSON, no inference header"),
        UNJUDGED_ROW,
        check("ordering.large", "", "not_applicable", message="too large for the target: HTTP 413"),
    ],
)  # fmt: skip

CUT_SHORT = report(
    "incomplete", complete=False, why=["2 rows not run: interrupted", "1 row failed"],
    requirements=[
        requirement("BIN-ORDER-O", "MUST", "fail"),
        requirement("BIN-ORDER-I", "MUST", "not_applicable", checks=[],
                    unjudged={"rows": 2, "why": ["not_run"], "needs": []}),
    ],
    rows=[check(outcome="fail")],
)  # fmt: skip

GATED = report(
    "nonconformant", why=["3 rows failed"],
    gate={"passed": False, "known": ["ordering.x [old]"], "new": ["ordering.x [new]"], "fixed": ["ordering.x [met]"],
          "stale": ["ordering.gone[*]: names nothing"]},
    requirements=[requirement("BIN-ORDER-O", "MUST", "fail"), requirement("BIN-ORDER-I", "MUST", "known_failure")],
    rows=[
        check(row="new", outcome="fail"),
        check(row="old", outcome="known_failure", requirements=["BIN-ORDER-I"], failure=failure("BIN-ORDER-I")),
        check(row="met", outcome="fixed", message="listed as a known failure, and met"),
    ],
)  # fmt: skip

NOTHING = report(
    "incomplete", complete=False, why=["cannot connect to http://127.0.0.1:8000: refused"], requirements=[], rows=[],
    extensions={}, target=CONFORMANT["target"] | {"name": None, "version": None, "roles": {}, "extensions_listed": []},
)  # fmt: skip

_TEXTS = ("statement", "source", "expected", "actual", "sent", "repeat")
_HOSTILE_MESSAGE = {
    "head": [HOSTILE], "length": 3, "sha256": "0" * 64, "body_base64": HOSTILE, "fields": [[0, 3, HOSTILE]],
}  # fmt: skip
_HOSTILE_FAILURE = failure(
    **dict.fromkeys((*_TEXTS, "request", "answer"), HOSTILE),
    bytes=[HOSTILE, f"{HOSTILE}   <- {HOSTILE}"],
    source_urls=[HOSTILE],
    evidence={"request": _HOSTILE_MESSAGE, "answer": _HOSTILE_MESSAGE},
)
ATTACK = report(
    "nonconformant",
    why=[HOSTILE],
    target=CONFORMANT["target"] | {"name": HOSTILE, "version": HOSTILE, "extensions_listed": [HOSTILE]},
    requirements=NONCONFORMANT["requirements"],
    rows=[
        check(row=HOSTILE, outcome=outcome, claim=HOSTILE, message=HOSTILE, observation=HOSTILE, failure=unmet)
        for outcome, unmet in (
            *((outcome, _HOSTILE_FAILURE) for outcome in ("fail", "advisory")),
            *((outcome, None) for outcome in ("error", "blocked", "observed", "not_applicable", "pass")),
        )
    ],
)  # fmt: skip

ALL = {
    "conformant": CONFORMANT,
    "partial": PARTIAL,
    "narrowed": NARROWED,
    "nonconformant": NONCONFORMANT,
    "cut short": CUT_SHORT,
    "gated": GATED,
    "nothing judged": NOTHING,
    "attack": ATTACK,
}
