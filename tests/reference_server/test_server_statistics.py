"""What the server counts, and how it describes a model to Triton's clients, over both transports."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from google.protobuf import json_format
from tritonclient.grpc import service_pb2

from conformance.transport.reference import ReferenceServer
from reference_server import metadata, models
from reference_server.models import COMPUTE_STEPS
from tests.support.tables import on_each, own_name

Clients = tuple[Any, Any]


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    server = ReferenceServer(grpc=True)
    http = tritonclient.http.InferenceServerClient(server.url.removeprefix("http://"))
    with http, tritonclient.grpc.InferenceServerClient(server.grpc) as grpc:
        yield http, grpc
    server.stop()


def infer(kind: Any, client: Any, model: str, array: Any) -> None:
    client.infer(model, [kind.InferInput("INPUT", array.shape, "INT32").set_data_from_numpy(array)])


def statistics(clients: Clients, model: str) -> Any:
    """Return those of one model, which both transports have to give alike."""
    http, grpc = clients
    answer = http.get_inference_statistics(model)
    over_grpc = grpc.get_inference_statistics(model, "1")
    assert json_format.ParseDict(answer, service_pb2.ModelStatisticsResponse()) == over_grpc
    (found,) = answer["model_stats"]
    return found


def test_nothing_is_counted_before_the_first_inference(clients: Clients) -> None:
    nothing = {"count": 0, "ns": 0}
    names = ("success", "fail", "queue", "cache_hit", "cache_miss", *COMPUTE_STEPS)
    assert statistics(clients, "rank2") == {
        "name": "rank2",
        "version": "1",
        "last_inference": 0,
        "inference_count": 0,
        "execution_count": 0,
        "inference_stats": dict.fromkeys(names, nothing),
        "batch_stats": [],
        "response_stats": {},
        "memory_usage": [],
    }


def test_inferences_are_counted_by_batch(clients: Clients) -> None:
    before = time.time_ns() // 1_000_000
    for size in (1, 4, 4):
        infer(tritonclient.http, clients[0], "batching", np.zeros((size, 3), np.int32))
    infer(tritonclient.grpc, clients[1], "batching", np.zeros((2, 3), np.int32))
    found = statistics(clients, "batching")
    assert before <= found["last_inference"] <= time.time_ns() // 1_000_000
    assert (found["inference_count"], found["execution_count"]) == (11, 4)
    totals = found["inference_stats"]
    assert {name: total["count"] for name, total in totals.items()} == {
        "success": 4, "fail": 0, "queue": 4, "cache_hit": 0, "cache_miss": 0, **dict.fromkeys(COMPUTE_STEPS, 4)
    }  # fmt: skip
    assert totals["success"]["ns"] == sum(totals[name]["ns"] for name in COMPUTE_STEPS) > 0
    batches = {each.pop("batch_size"): each for each in found["batch_stats"]}
    assert {size: [each[name]["count"] for name in COMPUTE_STEPS] for size, each in batches.items()} == {
        1: [1, 1, 1], 2: [1, 1, 1], 4: [2, 2, 2]
    }  # fmt: skip
    for name in COMPUTE_STEPS:
        assert sum(each[name]["ns"] for each in batches.values()) == totals[name]["ns"]


def test_a_batch_is_one_without_batching(clients: Clients) -> None:
    infer(tritonclient.http, clients[0], "identity_int32", np.arange(5, dtype=np.int32))
    found = statistics(clients, "identity_int32")
    assert (found["inference_count"], [each["batch_size"] for each in found["batch_stats"]]) == (1, [1])


@pytest.mark.parametrize("which", [0, 1], ids=["http", "grpc"])
def test_a_refused_request_fails(clients: Clients, which: int) -> None:
    kind = (tritonclient.http, tritonclient.grpc)[which]
    already = statistics(clients, "raw_fixed")
    with pytest.raises(tritonclient.utils.InferenceServerException):
        infer(kind, clients[which], "raw_fixed", np.zeros(1, np.int32))
    found = statistics(clients, "raw_fixed")
    failed = found["inference_stats"]["fail"]
    assert failed["count"] == already["inference_stats"]["fail"]["count"] + 1
    assert failed["ns"] > already["inference_stats"]["fail"]["ns"]
    assert (found["inference_count"], found["execution_count"], found["batch_stats"]) == (0, 0, [])
    assert found["last_inference"] > 0


@pytest.mark.parametrize(("version", "reported"), [("", ["1", "2"]), ("1", ["1"]), ("2", ["2"])])
def test_statistics_of_a_model_are_of_all_versions(clients: Clients, version: str, reported: list[str]) -> None:
    over_http = clients[0].get_inference_statistics("versioned", version)["model_stats"]
    over_grpc = clients[1].get_inference_statistics("versioned", version).model_stats
    assert [each["version"] for each in over_http] == [each.version for each in over_grpc] == reported


def test_statistics_of_all_models(clients: Clients) -> None:
    names = [name for name, model in models.load().items() for _ in model.versions]
    assert [each["name"] for each in clients[0].get_inference_statistics()["model_stats"]] == names
    assert [each.name for each in clients[1].get_inference_statistics().model_stats] == names


@on_each(models.load().values(), own_name)
def test_every_configuration_is_a_model_config(model: models.Model, *, clients: Clients) -> None:
    described = clients[0].get_model_config(model.name)
    assert described == metadata.describe_configuration(model)
    found = clients[1].get_model_config(model.name, "1").config
    assert json_format.ParseDict(described, type(found)()) == found
