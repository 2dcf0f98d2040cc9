"""Each claim fails a server with its fault, and no correct server that looks wrong."""

from collections.abc import Callable
from typing import Any

import pytest

from conformance.api.pack_testing import change_answers, find_unmet, judge_pack
from conformance.wire.edits import Drop, Set, plus
from reference_server import app, grpc_methods, models
from reference_server.grpc_server import GrpcServer

NAME = "model_configuration"
CONFIG, BATCHING = "/v2/models(/.*)?/config", "/v2/models/batching/config"


def judge(path: str, *edits: Any, grpc: str | None = None, **how: Any) -> set[str]:
    """Return the requirements that a changed server does not meet, without their prefix."""
    server = change_answers(app.create(models.load(NAME)), path, *edits, **how)
    return {name.removeprefix("MODEL-CONFIGURATION-") for name in find_unmet(judge_pack(server, NAME, grpc=grpc))}


def judge_over_grpc(patch: pytest.MonkeyPatch, edit: Callable[[Any], object], method: str = "model_config") -> set[str]:
    """Return the requirements that a server does not meet that changes the answers of a gRPC method."""
    right = getattr(grpc_methods, method)

    def answer(*arguments: Any) -> Any:
        edit(found := right(*arguments))
        return found

    patch.setattr(grpc_methods, method, answer)
    with GrpcServer(models.load(NAME), "127.0.0.1", 0, max_message=2**20) as server:
        return judge("", grpc=server.address)


@pytest.mark.parametrize(("unmet", "path", "edit", "how"), [
    ("LISTED", "/v2", Set("extensions", []), {}),
    ("ANSWER", CONFIG, Set("max_batch_size", 0.5), {}),
    ("ANSWER", CONFIG, Set("input.0.data_type", "INT32"), {}),
    ("NAME", CONFIG, Set("name", "model"), {}),
    ("TENSORS", CONFIG, Set("input.0.data_type", "TYPE_INT64"), {}),
    ("TENSORS", BATCHING, Set("output.0.dims", [4]), {}),
    ("TENSORS", CONFIG, Drop("output.0"), {}),
    ("TENSORS", "/v2/models/model_configuration_batching_texts/config", Set("input.0.dims", [3, 2]), {}),
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


@pytest.mark.parametrize(("unmet", "method", "edit"), [
    ("LISTED", "server_metadata", lambda answer: answer.ClearField("extensions")),
    ("ANSWER", "model_config", lambda answer: answer.Clear()),
    ("NAME", "model_config", lambda answer: answer.config.ClearField("name")),
    ("TENSORS", "model_config", lambda answer: answer.config.input[0].dims.append(1)),
    ("BATCH", "model_config", lambda answer: setattr(answer.config, "max_batch_size", 65)),
    ("MAX-BATCH", "model_config", lambda answer: setattr(answer.config, "max_batch_size", 63)),
])  # fmt: skip
def test_a_fault_over_grpc_fails_its_claim(monkeypatch: Any, unmet: str, method: str, edit: Any) -> None:
    assert judge_over_grpc(monkeypatch, edit, method) == {f"{unmet}/grpc"}


def test_a_server_without_the_call_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {name: one for name, one in grpc_methods.get_methods().items() if name != "ModelConfig"}
    monkeypatch.setattr(grpc_methods, "get_methods", lambda: without)
    assert judge_over_grpc(monkeypatch, lambda _: None) == set()
