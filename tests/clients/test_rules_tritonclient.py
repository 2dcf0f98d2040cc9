"""What tritonclient makes of each datatype and form is judged well, and is what its caller meant."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.grpc._utils import _get_inference_request

from conformance.clients.inference import Form, Inference, RequestedOutput
from conformance.clients.intent import find_differences
from conformance.clients.rules.judging import judge_request
from conformance.wire.client_request import ClientRequest
from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor
from tests.clients.made_requests import list_ids
from tests.support.tables import on_each

VALUES: dict[str, Any] = {
    "BOOL": [True, False, True],
    "BYTES": ["a", "", "é\0"],
    **{name: [0, 1, 100] for name in DATATYPES if name not in ("BOOL", "BYTES")},
}
FORMS: list[tuple[str, Form]] = [
    *((datatype, "binary") for datatype in DATATYPES),
    *((datatype, "json") for datatype in DATATYPES if datatype not in ("FP16", "BF16")),
]
METHOD = "/inference.GRPCInferenceService/ModelInfer"


def tensor(datatype: str, shape: tuple[int, ...] = (3,)) -> Tensor:
    count = int(np.prod(shape))
    return Tensor.from_values(f"IN_{datatype}", datatype, (VALUES[datatype] * 4)[:count], shape)


def over_http(inference: Inference, coding: Callable[[bytes], bytes] = bytes, *more: tuple[str, str]) -> ClientRequest:
    """Return the request that tritonclient makes over HTTP, with a Content-Type, which it leaves out."""
    inputs = [
        _filled(triton_http.InferInput(one.name, list(one.shape), one.datatype), one, binary_data=form == "binary")
        for one, form in zip(inference.inputs, inference.forms * len(inference.inputs), strict=False)
    ]
    outputs = [
        triton_http.InferRequestedOutput(asked.name, binary_data=asked.form == "binary", class_count=asked.classes or 0)
        for asked in inference.outputs or ()
    ]
    body, length = triton_http.InferenceServerClient.generate_request_body(
        inputs, outputs or None, request_id=inference.id or ""
    )
    kind = "application/json" if length is None else "application/octet-stream"
    header = [] if length is None else [("Inference-Header-Content-Length", str(length))]
    path = f"/v2/models/{inference.model}/infer"
    return ClientRequest("POST", path, (("Content-Type", kind), *header, *more), coding(body))


def over_grpc(inference: Inference) -> ClientRequest:
    """Return the call that tritonclient makes; all of its inputs are in raw contents."""
    inputs = [_filled(triton_grpc.InferInput(one.name, list(one.shape), one.datatype), one) for one in inference.inputs]
    outputs = [
        triton_grpc.InferRequestedOutput(asked.name, class_count=asked.classes or 0)
        for asked in inference.outputs or ()
    ]
    message = _get_inference_request(
        inputs=inputs,
        model_name=inference.model,
        model_version=inference.version or "",
        request_id=inference.id or "",
        outputs=outputs,
        sequence_id=0,
        sequence_start=False,
        sequence_end=False,
        priority=0,
        timeout=None,
        parameters=None,
    )
    return ClientRequest("GRPC", METHOD, (), message.SerializeToString())


def _filled(given: Any, one: Tensor, **more: Any) -> Any:
    given.set_data_from_numpy(one.array, **more)
    return given


@on_each([(datatype, form, shape) for datatype, form in FORMS for shape in ((3,), (2, 2), (1, 2, 1, 3), (0,))])
def test_each_datatype_and_form_over_http(datatype: str, form: Form, shape: tuple[int, ...]) -> None:
    inference = Inference("m", (tensor(datatype, shape),), (form,), (RequestedOutput("X", "binary"),), id="7")
    received = over_http(inference)
    assert judge_request(received).violations == ()
    assert find_differences(received, inference) == ()


@on_each(list(product(DATATYPES, [(3,), (2, 2), (0,)])))
def test_each_datatype_over_grpc(datatype: str, shape: tuple[int, ...]) -> None:
    inference = Inference(
        "m", (tensor(datatype, shape),), outputs=(RequestedOutput("X", classes=2),), version="3", id="7"
    )
    received = over_grpc(inference)
    assert judge_request(received).violations == ()
    assert find_differences(received, inference) == ()


ALL = Inference("m", tuple(tensor(datatype) for datatype in DATATYPES), outputs=(RequestedOutput("X", "json", 2),))


@pytest.mark.parametrize(("coding", "name"), [(gzip.compress, "gzip"), (zlib.compress, "deflate"), (bytes, "identity")])
def test_every_datatype_at_once_and_coded(coding: Callable[[bytes], bytes], name: str) -> None:
    received = over_http(ALL, coding, ("Content-Encoding", name))
    found = judge_request(received)
    assert found.violations == ()
    assert {"CLIENT-SENDS-ORDER", "CLIENT-SENDS-SIZE", "CLIENT-SENDS-BOOL", "CLIENT-SENDS-BYTES"} <= set(found.met)
    assert find_differences(received, ALL) == ()


def test_every_datatype_at_once_over_grpc() -> None:
    received = over_grpc(ALL)
    assert judge_request(received).violations == ()
    assert find_differences(received, ALL) == ()


SMALL = Inference("m", (tensor("INT32"),), outputs=(RequestedOutput("X", classes=2),), version="1", id="7")
# name, what the caller meant, and what a call that says SMALL then misses
DIFFERENT: list[tuple[str, Inference, list[str]]] = [
    ("another-model", Inference("n", SMALL.inputs), ["POST/grpc", "OUTPUTS/grpc"]),
    ("another-version", Inference("m", SMALL.inputs, outputs=SMALL.outputs, version="4"), ["POST/grpc"]),
    ("another-id", Inference("m", SMALL.inputs, outputs=SMALL.outputs, id="8"), ["OUTPUTS/grpc"]),
    ("no-classes", Inference("m", SMALL.inputs, outputs=(RequestedOutput("X"),)), ["OUTPUTS/grpc"]),
    ("another-output", Inference("m", SMALL.inputs, outputs=(RequestedOutput("Y", classes=2),)), ["OUTPUTS/grpc"]),
    ("another-value", Inference("m", (tensor("INT32", (1,)),), outputs=SMALL.outputs), ["VALUES/grpc"]),
    ("another-input", Inference("m", (tensor("FP32"),), outputs=SMALL.outputs), ["VALUES/grpc"]),
]


@pytest.mark.parametrize(("inference", "expected"), [pytest.param(*row[1:], id=row[0]) for row in DIFFERENT])
def test_a_call_that_says_something_else(inference: Inference, expected: list[str]) -> None:
    assert list_ids(find_differences(over_grpc(SMALL), inference)) == expected


def test_entries_in_another_order_than_the_callers() -> None:
    first, second = (Tensor.from_values(name, "INT32", [value]) for name, value in (("A", 1), ("B", 2)))
    sent = over_grpc(Inference("m", (first, second)))
    meant = Inference("m", (Tensor.from_values("A", "INT32", [2]), Tensor.from_values("B", "INT32", [1])))
    assert list_ids(find_differences(sent, meant)) == ["ORDER/grpc"]


def test_bytes_that_are_no_call_differ_in_nothing() -> None:
    assert find_differences(ClientRequest("GRPC", METHOD, (), b"\xff\xff"), SMALL) == ()
