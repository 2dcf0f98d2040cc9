"""Each claim fails a server with its fault, and no correct server that looks wrong."""

from copy import deepcopy
from functools import partial
from itertools import count
from typing import Any

import pytest

from conformance.api.pack_testing import change_answers, find_unmet, judge_pack
from conformance.wire.edits import Drop, Set, times
from reference_server import app, models

OTHERS = count()
STATS, EACH = "/v2/models(/.*)?/stats", {"each": "model_stats"}


def judge(path: str, *edits: Any, **how: Any) -> set[str]:
    server = change_answers(app.create(models.load()), path, *edits, **how)
    return {name.removeprefix("STATISTICS-") for name in find_unmet(judge_pack(server, "statistics"))}


def come_late(entry: dict[str, Any], kept: dict[str, Any]) -> None:
    now, key = deepcopy(entry), f"{entry['name']} {entry['version']}"
    entry.update(kept.get(key, now))
    kept[key] = now


def count_refusals(entry: dict[str, Any]) -> None:
    entry["inference_stats"]["success"]["count"] += entry["inference_stats"]["fail"]["count"]


@pytest.mark.parametrize(("unmet", "path", "edit", "how"), [
    ("LISTED", "/v2", Set("extensions", []), {}),
    ("ANSWER", STATS, Set("inference_count", str), EACH),
    ("LATER-MEMBERS", STATS, Drop("memory_usage"), EACH),
    ("ALL-MODELS", "/v2/models/stats", Set("model_stats", lambda found: found[:1]), {}),
    ("ALL-VERSIONS", "/v2/models/versioned/stats", Set("model_stats", lambda found: found[1:]), {}),
    ("SUCCESS", STATS, Set("inference_stats.success.count", times(2)), EACH),
    ("SUCCESS", STATS, count_refusals, EACH),
    ("INFERENCES", STATS, lambda one: one.update(inference_count=one["execution_count"]), EACH),
    ("EXECUTIONS", STATS, Set("execution_count", 7), EACH),
    ("EXECUTIONS", STATS, Set("batch_stats", []), EACH),
    ("LAST-INFERENCE", STATS, Set("last_inference", lambda time: time // 1000), EACH),
    ("LAST-INFERENCE", STATS, Set("last_inference", 1_800_000_000_000), EACH),
    ("UNKNOWN", STATS, Set("model_stats", []), {"of_errors": True, "status": 200}),
    ("UNKNOWN", STATS, Set("error", 1), {"of_errors": True}),
])  # fmt: skip
def test_a_fault_fails_its_claim(unmet: str, path: str, edit: Any, how: dict[str, Any]) -> None:
    assert judge(path, edit, **how) == {unmet}


CORRECT = {
    "late": partial(come_late, kept={}),
    "used-by-others": Set("inference_stats.success.count", lambda _: next(OTHERS)),
    "more-members": Set("more", 1),
    "without-cache": Drop("inference_stats.cache_hit"),
}


@pytest.mark.parametrize("edit", CORRECT.values(), ids=CORRECT)
def test_a_correct_server_fails_nothing(edit: Any) -> None:
    assert judge(STATS, edit, **EACH) == set()
