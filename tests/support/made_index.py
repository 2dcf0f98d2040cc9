"""An index of a fleet, written by hand, with all that the page can show."""

from __future__ import annotations

from typing import Any, Final

NONE: Final = {"conformant": 0, "partial": 0, "nonconformant": 0, "incomplete": 0, "not_run": 0}
MUSTS: Final = {"met": 4, "failed": 0, "stuck": 0, "unseen": 1}


def target(name: str, verdict: str, status: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "verdict": verdict, "status": status, "why": [], "tried": 1, "seconds": 1.5} | more


def make_judged_target(name: str, verdict: str, status: int, **more: Any) -> dict[str, Any]:
    extensions = {"protocol": "conformant", "binary_tensor_data": verdict, "raw": "not_applicable"}
    areas = {"ordering": MUSTS, "sizes": MUSTS | {"failed": status}, "state": MUSTS | {"stuck": 1}}
    about = {"folder": f"runs/2/{name}", "url": f"http://{name}.example:8000", "product": name, "version": "1"}
    return target(name, verdict, status, **about, musts=MUSTS, extensions=extensions, areas=areas, unmet=[], **more)


def change(id_: str, level: str) -> dict[str, Any]:
    return {"target": "eu", "id": id_, "level": level, "before": "fail", "after": "pass", "rows": 3}


LONG: Final = "a-name-that-is-rather-long.namespace.svc.cluster.local-8080"
VERDICTS: Final = {"eu": "conformant", "us": "conformant", "old": "incomplete"}
INDEX: Final[dict[str, Any]] = {
    "schema": 1,
    "suite": {"name": "oip-conformance", "version": "0.1.0", "digest": "0" * 64},
    "run": "2",
    "started": "2026-01-02T03:04:05+00:00",
    "finished": None,
    "stopped": "interrupted",
    "profile": "quick",
    "counts": {"conformant": 1, "partial": 0, "nonconformant": 1, "incomplete": 1, "not_run": 1},
    "status": 1,
    "targets": [
        make_judged_target("us", "conformant", 0),
        make_judged_target(
            "eu", "nonconformant", 1, gate={"passed": False, "known": 2, "new": 1, "fixed": 0, "stale": 0}
        )
        | {"why": ["1 row failed"], "unmet": [{"id": "BIN-ORDER-O", "level": "MUST", "rows": 3}]},
        target(LONG, "incomplete", 6, why=["took longer than 5 s"], trouble="time", folder=f"runs/2/{LONG}"),
        target("late", "not_run", 6, why=["not run"]),
    ],
    "changes": {
        "since": "1",
        "started": "2026-01-01T03:04:05+00:00",
        "new": [LONG],
        "gone": ["old"],
        "turned": [{"target": "eu", "before": "conformant", "after": "nonconformant"}],
        "fixed": [change("BIN-SIZE-O", "MUST")],
        "broke": [change("BIN-ORDER-O", "MUST")],
    },
    "history": [
        {"run": "1", "started": "2026-01-01T03:04:05+00:00", "suite": "0.1.0", "counts": NONE, "verdicts": VERDICTS},
        {"run": "2", "started": "2026-01-02T03:04:05+00:00", "suite": "0.1.0", "counts": NONE, "verdicts": {}},
    ],
}
