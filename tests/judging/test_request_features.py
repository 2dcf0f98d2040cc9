"""What is said of a request: of its bytes, over HTTP and over gRPC, and how it was sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conformance.expect.unmet import UnmetError
from conformance.judging.request_features import MAX_PARSED_BYTES, collect_answered_features, collect_failed_features
from conformance.roles.model import Model
from conformance.roles.roles import load
from conformance.transport.exchange import Exchange, FailureKind, Reply, TransportFailure
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import Message, RequestedOutput

INT32, STRINGS, MULTI = (Model(load()[name], name) for name in ("identity_int32", "identity_bytes", "multi"))


def exchange(message: Message, **more: Any) -> Exchange:
    return Exchange(0, message, "http://h", **{"status": 200, **more})


def features(message: Message, **more: Any) -> list[str]:
    found = collect_answered_features([exchange(message, **more)])
    assert found is not None
    return [text for text, _ in found["features"]]


def test_a_request_in_json() -> None:
    assert features(INT32.request(send="json").message()) == [
        "with inputs in JSON", "with INT32 in JSON", "with INT32", "that lists no outputs",
        "with `Content-Type: application/json`", "to the model identity_int32",
    ]  # fmt: skip


def of_http(model: Model, *arguments: Any, **named: Any) -> Callable[[], Message]:
    return lambda: model.request(*arguments, **named).message()


def of_grpc(model: Model, **named: Any) -> Callable[[], Message]:
    return lambda: make_infer_message(model.request(**named))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (of_http(INT32), "with INT32 as binary data"),
        (of_http(STRINGS, [STRINGS.tensor([])]), "with an empty BYTES input as binary data"),
        (of_http(INT32, [INT32.tensor(range(9))], send="json"), "with an input of more than 8 elements"),
        (of_http(MULTI, send="json"), "with several inputs"),
        (of_http(INT32, send="json", outputs=["OUTPUT"]), "that lists outputs"),
        (of_http(MULTI, send="json", outputs=["OUT_FP32", "OUT_BOOL"]), "that lists several outputs"),
        (of_http(INT32, outputs=[RequestedOutput("OUTPUT", classification=1)]), "that asks for a classification"),
        (of_http(INT32, send="json", want="binary"), "with `binary_data` true"),
        (of_http(INT32, send="json", binary_data_output=False), "with `binary_data_output` false"),
        (of_http(INT32, send="json", request_id="a-1"), "with an id"),
        (of_http(INT32, send="json", request_id="a 1"), "with an id of more than letters and digits"),
        (of_http(INT32, send="json", request_id="é1"), "with an id beyond ASCII"),
        (lambda: INT32.raw(b"1234"), "with a raw body"),
        (lambda: replace(INT32, version="1").request().message(), "with a version in its path"),
        (lambda: INT32.request().message().with_header("X", "y"), "with `X: y`"),
        (of_grpc(INT32), "with INT32 in raw contents"),
        (of_grpc(INT32, send="json"), "with INT32 in typed contents"),
        (of_grpc(INT32, request_id="a"), "with an id"),
        (of_grpc(INT32), "to the model identity_int32"),
    ],
)
def test_what_is_said_of_a_request(make: Callable[[], Message], said: str) -> None:
    assert said in features(make())


def test_how_a_request_was_sent() -> None:
    sent = features(INT32.request().message(), is_chunked=True, note="body in 2 chunks, sizes in capitals")
    assert {"in chunks", 'sent as "body in 2 chunks"', 'sent as "sizes in capitals"'} < set(sent)


@pytest.mark.parametrize("body", [b"{", b"[1]", b'{"inputs": [1, {"shape": 2}], "outputs": {}}', b"\xff" * 9])
def test_a_request_that_is_none_is_not_in_the_way(body: bytes) -> None:
    assert features(Message("/v2/models/m/infer", (), body, json_length=len(body)))[-1] == "to the model m"


def test_of_a_long_request_the_size_is_said() -> None:
    message = INT32.request([INT32.tensor(np.arange(MAX_PARSED_BYTES))], send="json").message()
    assert {"that lists no outputs", "with a body of more than 64 KiB"} < set(features(message))
    assert "with INT32" not in features(message)


@pytest.mark.parametrize(
    ("more", "requirement", "answer"),
    [
        ({"status": 400}, "OIP-ANSWER", "refused"),
        ({"status": 503}, "OIP-ANSWER", "server_error"),
        ({"status": None, "failure": TransportFailure(FailureKind.CLOSED, "closed")}, "OIP-ANSWER", "none"),
        ({"status": 200}, "OIP-ANSWER", "wrong"),
        ({"status": 200}, "OIP-REFUSAL", "wrong"),
        ({"status": 400}, "OIP-ERROR", None),
    ],
)
def test_how_a_request_failed(more: dict[str, Any], requirement: str, answer: str | None) -> None:
    unmet = UnmetError("x", "y", Reply(exchange(INT32.request().message(), **more)))
    sent = collect_failed_features(unmet, requirement)
    assert (sent and sent["answer"]) == answer


def test_only_requests_for_inference_count() -> None:
    message = INT32.request().message()
    others = [exchange(Message("/v2", method="GET")), exchange(message, status=400), exchange(message, as_octets=True)]
    assert collect_answered_features(others) is None
    assert collect_failed_features(UnmetError("x", "y"), "OIP-ANSWER") is None


def test_of_a_row_over_both_transports_the_first_counts() -> None:
    sent = collect_answered_features([exchange(make()) for make in (of_grpc(INT32, send="json"), of_http(INT32))])
    assert sent is not None
    assert sent["over"] == "grpc"
    assert "with INT32 as binary data" not in [text for text, _ in sent["features"]]


def test_the_narrower_of_two_features_of_an_id_comes_first() -> None:
    said = features(INT32.request(request_id="é").message())
    assert said.index("with an id beyond ASCII") < said.index("with an id of more than letters and digits")
