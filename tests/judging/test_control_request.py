"""Control requests: as large as the original, in JSON or typed contents, and harmless."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from conformance.expect.content_coding import compress_gzip
from conformance.judging.control_request import (
    RequestContent,
    build_control_request,
    enlarge_content,
    pad_message,
    read_request_content,
    shrink_content,
)
from conformance.judging.reused_answers import find_reuse
from conformance.roles.model import Model
from conformance.roles.roles import load
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import Message, RequestedOutput


def model(role: str) -> Model:
    return Model(load()[role], f"the-{role}")


def found(message: Message, role: str) -> RequestContent:
    read = read_request_content(message, model(role))
    assert read is not None
    return read


def document(asking: RequestContent, role: str) -> dict[str, Any]:
    request = build_control_request(asking, Target(Settings("http://h"), {name: name for name in load()}), model(role))
    assert request is not None
    message = request.message()
    assert message.header("Inference-Header-Content-Length") is None
    read: dict[str, Any] = json.loads(message.body)
    return {**read, "path": message.path}


NUMBERS = model("identity_int32").request([model("identity_int32").tensor(range(70))], request_id="é" * 9)
AS_JSON = model("identity_int32").request([NUMBERS.inputs[0].tensor], send="json", request_id="é" * 9)


@pytest.mark.parametrize(
    "message",
    [
        NUMBERS.message(),
        NUMBERS.message().with_header("Content-Encoding", "gzip").with_body(compress_gzip(NUMBERS.message().body)),
        NUMBERS.message()
        .with_header("Content-Encoding", "gzip")
        .with_body(compress_gzip(NUMBERS.message().body[:9]) + compress_gzip(NUMBERS.message().body[9:])),
        make_infer_message(NUMBERS),
        make_infer_message(AS_JSON),
        AS_JSON.message(),
    ],
    ids=["binary", "gzip", "gzip in two members", "raw contents", "typed contents", "json"],
)
def test_the_twin_is_as_large(message: Message) -> None:
    asking = found(message, "identity_int32")
    assert (asking.max_elements, asking.max_dimension, asking.max_batch_size, asking.id) == (70, 70, 70, "é" * 9)
    made = document(asking, "identity_int32")
    entry = {"name": "INPUT", "shape": [70], "datatype": "INT32", "data": [1001] * 70}
    assert made == {"id": "é" * 9, "inputs": [entry], "path": "/v2/models/the-identity_int32/infer"}
    assert len(json.dumps(entry["data"], separators=(",", ":"))) > 4 * 70


def test_strings_are_as_long() -> None:
    request = model("identity_bytes").request([model("identity_bytes").tensor([b"\xff" * 100, b"", b"xyz"])])
    asking = found(request.message(), "identity_bytes")
    assert asking.max_string_bytes == 100
    assert document(asking, "identity_bytes")["inputs"][0]["data"] == ["a" * 100, "", "aaa"]
    assert found(make_infer_message(request), "identity_bytes").max_string_bytes == 100


@pytest.mark.parametrize(
    ("role", "body", "shape"),
    [
        ("raw_middle", bytes(2 * 5 * 3 * 2), [2, 5, 3]),
        ("raw_batching", bytes(16), [1, 4]),
        ("raw_bytes_one", b"abcde", [1]),
    ],
)
def test_a_raw_request_has_the_shape_that_its_body_fills(role: str, body: bytes, shape: list[int]) -> None:
    (entry,) = document(found(model(role).raw(body), role), role)["inputs"]
    assert entry["shape"] == shape
    if entry["datatype"] == "BYTES":
        assert entry["data"] == ["aaaaa"]


def test_what_has_no_json_form_is_as_large_elsewhere() -> None:
    request = model("identity_fp16").request([model("identity_fp16").tensor([0.5] * 80)])
    made = document(found(request.message(), "identity_fp16"), "identity_fp16")
    assert made["path"] == "/v2/models/identity_fp32/infer"
    assert made["inputs"][0]["shape"] == [80]


def test_a_model_that_is_told_how_much_to_make_is_told_so() -> None:
    request = model("emit").request([model("emit").tensor([5000, 3])])
    asking = found(request.message(), "emit")
    assert asking.max_elements == 5000
    assert document(asking, "emit")["inputs"][0]["data"] == [5000, 3]


def test_the_larger_one_is_larger_and_the_smaller_one_quick() -> None:
    many = model("identity_uint8")
    asking = found(many.request([many.tensor([1] * 100_000)]).message(), "identity_uint8")
    assert enlarge_content(asking, many).max_elements == 100_001
    assert shrink_content(asking, many).max_elements == 32_768
    few = found(NUMBERS.message(), "identity_int32")
    assert shrink_content(few, model("identity_int32")) is few
    assert enlarge_content(few, model("identity_int32")).id == "é" * 9 + "a"
    fixed = model("fixed")
    assert enlarge_content(found(fixed.request().message(), "fixed"), fixed).max_elements == 6


def test_classes_are_counted() -> None:
    request = model("scores").request(send="json", outputs=[RequestedOutput("SCORES", classification=300)])
    assert found(request.message(), "scores").class_counts == {"SCORES": 300}
    assert found(make_infer_message(request), "scores").class_counts == {"SCORES": 300}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"inputs":[{"name":1}]}', b'{"inputs":[{"shape":[9999999999]}]}']
)
def test_what_says_no_size_has_no_twin(body: bytes) -> None:
    assert read_request_content(Message("/v2/models/m/infer", (), body), model("identity_int32")) is None


def test_white_space_fills_a_body() -> None:
    message = pad_message(model("identity_int32").request(send="json").message(), 70_000)
    assert len(message.body) == 70_000
    assert json.loads(message.body) == model("identity_int32").request(send="json").document()


def test_no_twin_is_made_of_what_only_a_zero_keeps_small() -> None:
    entry = b'{"name":"INPUT","datatype":"INT32","shape":[0,4294967296],"data":[]}'
    assert (
        read_request_content(Message("/v2/models/the-rank2/infer", (), b'{"inputs":[%b]}' % entry), model("rank2"))
        is None
    )


def test_no_twin_is_made_of_a_length_past_the_end() -> None:
    role = model("identity_bytes")
    message = role.request([role.tensor([b"abcd"])]).message()
    assert read_request_content(message.with_body(message.body[:-8] + b"\xff\xff\xff\xff" + b"abcd"), role) is None


@pytest.mark.parametrize(("role", "asks"), [("identity_bytes", False), ("identity_int32", True)])
def test_no_classes_of_strings_are_asked_for(role: str, asks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over gRPC one output has classes as its only other form, and some servers end when strings are to be ranked."""
    target = Target(Settings("http://h"))
    refused = Exchange(0, make_infer_message(model(role).request(())), "grpc://h", 400, code="UNKNOWN")
    answered = Reply(replace(refused, status=200, code="OK"))
    send = Mock(return_value=answered)
    monkeypatch.setattr(target, "send", send)
    assert find_reuse(target, model(role), Reply(refused)) is None
    assert send.called is asks
