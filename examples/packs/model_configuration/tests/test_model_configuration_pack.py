"""Each claim fails a server with its fault, and no correct server that looks wrong."""

from typing import Any

import pytest

from conformance.api.pack_testing import change_answers, find_unmet, judge_pack
from conformance.wire.edits import Drop, Set, plus
from reference_server import app, models

CONFIG, BATCHING = "/v2/models(/.*)?/config", "/v2/models/batching/config"


def judge(path: str, *edits: Any, **how: Any) -> set[str]:
    """Return the requirements that a changed server does not meet, without their prefix."""
    server = change_answers(app.create(models.load()), path, *edits, **how)
    found = find_unmet(judge_pack(server, "model_configuration"))
    return {name.removeprefix("MODEL-CONFIGURATION-") for name in found}


@pytest.mark.parametrize(("unmet", "path", "edit", "how"), [
    ("LISTED", "/v2", Set("extensions", []), {}),
    ("ANSWER", CONFIG, Set("max_batch_size", 0.5), {}),
    ("ANSWER", CONFIG, Set("input.0.data_type", "INT32"), {}),
    ("NAME", CONFIG, Set("name", "model"), {}),
    ("TENSORS", CONFIG, Set("input.0.data_type", "TYPE_INT64"), {}),
    ("TENSORS", BATCHING, Set("output.0.dims", [4]), {}),
    ("TENSORS", CONFIG, Drop("output.0"), {}),
    ("BATCH", BATCHING, Set("max_batch_size", plus(1)), {}),
    ("MAX-BATCH", BATCHING, Set("max_batch_size", plus(-1)), {}),
    ("VERSION", "/v2/models/versioned/versions/2/config", Set("platform", "other"), {}),
    ("UNKNOWN", CONFIG, Drop("error"), {"of_errors": True}),
    ("UNKNOWN", CONFIG, Set("name", "?"), {"of_errors": True, "status": 200}),
])  # fmt: skip
def test_a_fault_fails_its_claim(unmet: str, path: str, edit: Any, how: dict[str, Any]) -> None:
    assert judge(path, edit, **how) == {unmet}


def write_canonical_json(document: dict[str, Any]) -> None:
    """Write names in camel case, 64-bit integers as text, and nothing that has its default value."""
    if size := document.pop("max_batch_size"):
        document["maxBatchSize"] = size
    for tensor in (*document["input"], *document["output"]):
        tensor.update(dataType=tensor.pop("data_type"), dims=list(map(str, tensor["dims"])))


def leave_out_batch_size(document: dict[str, Any]) -> None:
    """Describe a model that batches as one whose first dimension is variable."""
    if document.pop("max_batch_size"):
        for tensor in (*document["input"], *document["output"]):
            tensor["dims"].insert(0, -1)


@pytest.mark.parametrize("edit", [write_canonical_json, leave_out_batch_size, Set("version_policy", {})])
def test_a_correct_server_fails_nothing(edit: Any) -> None:
    assert judge(CONFIG, edit) == set()
