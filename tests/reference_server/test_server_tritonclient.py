"""Another project's client, tritonclient, gets what it sent over both transports: every datatype, raw, classes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from numpy.typing import NDArray
from tritonclient.utils import InferenceServerException

from tests.support.grpc_serving import serve
from tests.support.serving import Server
from tests.support.tables import on_each

EXTENSIONS = ["binary_tensor_data", "model_configuration", "statistics", "classification"]
NO_JSON = {"FP16", "BF16"}
Array = NDArray[Any]
ARRAYS: dict[str, Array] = {
    "BOOL": np.array([True, False, True]),
    "UINT8": np.array([0, 1, 255], np.uint8),
    "UINT16": np.array([0x0102, 65535], np.uint16),
    "UINT32": np.array([0x01020304, 2**32 - 1], np.uint32),
    "UINT64": np.array([0x0102030405060708, 2**53 + 1, 2**64 - 1], np.uint64),
    "INT8": np.array([-128, 1, 127], np.int8),
    "INT16": np.array([-32768, 0x0102], np.int16),
    "INT32": np.array([-(2**31), 0x01020304], np.int32),
    "INT64": np.array([-(2**63), 2**53 + 1, 2**63 - 1], np.int64),
    "FP16": np.array([0.1, -65504, 6e-8, np.inf, np.nan], np.float16),
    "FP32": np.array([0.1, -3.4028235e38, 1e-45, -0.0], np.float32),
    "FP64": np.array([0.1, 1.7976931348623157e308, 5e-324, -0.0], np.float64),
    "BYTES": np.array([b"", b"a", "猫".encode(), b"x" * 300], object),
    "BF16": np.array([1.5, -2.25, 3.39e38, -0.0], ml_dtypes.bfloat16),
}


def expect_same_bits(actual: Array, expected: Array) -> None:
    """Compare bits, so that -0.0 and NaN count."""
    assert actual.shape == expected.shape
    if expected.dtype == object:
        assert [item if isinstance(item, bytes) else item.encode() for item in actual.flat] == list(expected.flat)
    else:
        assert (actual.dtype, actual.tobytes()) == (expected.dtype, expected.tobytes())


class Triton(NamedTuple):
    """A client, and the module that it is of."""

    kind: Any
    client: Any

    def send(self, name: str, datatype: str, array: Array, **form: bool) -> Any:
        """Return an input; over HTTP it takes `binary_data`."""
        return self.kind.InferInput(name, list(array.shape), datatype).set_data_from_numpy(array, **form)


@pytest.fixture(scope="module")
def http(server: Server) -> Iterator[Triton]:
    with tritonclient.http.InferenceServerClient(server.url.removeprefix("http://")) as opened:
        yield Triton(tritonclient.http, opened)


@pytest.fixture(scope="module")
def grpc() -> Iterator[Triton]:
    with serve() as opened, tritonclient.grpc.InferenceServerClient(opened.address) as connected:
        yield Triton(tritonclient.grpc, connected)


@pytest.fixture(params=["http", "grpc"])
def triton(request: pytest.FixtureRequest) -> Triton:
    found: Triton = request.getfixturevalue(request.param)
    return found


# --- one transport ---------------------------------------------------------------------------------------------------


@on_each(list(product(ARRAYS, [True, False], [True, False, None], [False, True])))
def test_every_datatype(datatype: str, binary: bool, output: bool | None, empty: bool, *, http: Triton) -> None:
    array = ARRAYS[datatype][:0] if empty else ARRAYS[datatype]
    model = f"identity_{datatype.lower()}"
    if not binary and datatype in NO_JSON:
        with pytest.raises(InferenceServerException):  # by the client, or for FP16 by the server
            http.client.infer(model, [http.send("INPUT", datatype, array, binary_data=binary)])
        return
    outputs = None if output is None else [http.kind.InferRequestedOutput("OUTPUT", binary_data=output)]
    inputs = [http.send("INPUT", datatype, array, binary_data=binary)]
    if output is False and datatype in NO_JSON:
        with pytest.raises(InferenceServerException, match="JSON cannot represent"):
            http.client.infer(model, inputs, outputs=outputs)
        return
    result = http.client.infer(model, inputs, outputs=outputs, request_id="Füße")
    expect_same_bits(result.as_numpy("OUTPUT"), array)
    assert result.get_response()["id"] == "Füße"


@on_each(list(product(ARRAYS, [False, True], [True, False])))
def test_every_datatype_over_grpc(datatype: str, empty: bool, listed: bool, *, grpc: Triton) -> None:
    array = ARRAYS[datatype][:0] if empty else ARRAYS[datatype]
    outputs = [grpc.kind.InferRequestedOutput("OUTPUT")] if listed else None
    inputs = [grpc.send("INPUT", datatype, array)]
    result = grpc.client.infer(f"identity_{datatype.lower()}", inputs, outputs=outputs, request_id="Füße")
    expect_same_bits(result.as_numpy("OUTPUT"), array)
    assert result.get_response().id == "Füße"


def test_raw(http: Triton) -> None:
    body = np.array([[1, -2], [3, 0x01020304]], np.int32).tobytes()
    response = http.client._post("v2/models/raw_fixed/infer", body, {"Inference-Header-Content-Length": 0}, None)
    assert response.status_code == 200
    result = http.kind.InferResult(response, verbose=False)
    expect_same_bits(result.as_numpy("OUTPUT"), np.array([[1, -2], [3, 0x01020304]], np.float32))


@pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
def test_compression(grpc: Triton, compression: str | None) -> None:
    array = np.arange(100_000, dtype=np.int32)
    inputs = [grpc.send("INPUT", "INT32", array)]
    result = grpc.client.infer("identity_int32", inputs, compression_algorithm=compression)
    expect_same_bits(result.as_numpy("OUTPUT"), array)


def test_method_that_there_is_not(grpc: Triton) -> None:
    with pytest.raises(InferenceServerException, match="UNIMPLEMENTED"):
        grpc.client.get_trace_settings("scores")


# --- both ------------------------------------------------------------------------------------------------------------


def test_several_tensors(triton: Triton) -> None:
    def form(is_binary: bool) -> dict[str, bool]:
        return {"binary_data": is_binary} if triton.kind is tritonclient.http else {}

    arrays = {name: ARRAYS[name] for name in ("BYTES", "FP32", "INT64", "BOOL")}
    inputs = [triton.send(f"IN_{name}", name, array, **form(name != "FP32")) for name, array in arrays.items()]
    outputs = [triton.kind.InferRequestedOutput(f"OUT_{name}", **form(name != "INT64")) for name in sorted(arrays)]
    for result in (triton.client.infer("multi", inputs, outputs=outputs), triton.client.infer("multi", inputs)):
        for name, array in arrays.items():
            expect_same_bits(result.as_numpy(f"OUT_{name}"), array)


def test_order_of_elements(triton: Triton) -> None:
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    expect_same_bits(triton.client.infer("rank3", [triton.send("INPUT", "INT16", array)]).as_numpy("OUTPUT"), array)


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "JSON"])
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("scores_batching", [[b"0.75:3", b"0.5:1"], [b"4.0:0", b"3.0:1"]]),
        ("scores_batching_labelled", [[b"0.75:3:fish", b"0.5:1:dog"], [b"4.0:0:cat", b"3.0:1:dog"]]),
    ],
)
def test_class_count(triton: Triton, model: str, expected: list[list[bytes]], binary: bool) -> None:
    scores = np.array([[0.25, 0.5, 0.125, 0.75], [4, 3, 2, 1]], np.float32)
    form = {"binary_data": binary} if triton.kind is tritonclient.http else {}
    wish = triton.kind.InferRequestedOutput("SCORES", class_count=2, **form)
    result = triton.client.infer(model, [triton.send("INPUT", "FP32", scores)], outputs=[wish])
    expect_same_bits(result.as_numpy("SCORES"), np.array(expected, object))


def test_metadata(triton: Triton) -> None:
    form = {"as_json": True} if triton.kind is tritonclient.grpc else {}
    assert triton.client.is_server_live()
    assert triton.client.is_server_ready()
    assert triton.client.is_model_ready("scores")
    assert triton.client.is_model_ready("scores", "1")
    assert triton.client.get_server_metadata(**form)["extensions"] == EXTENSIONS
    (output,) = triton.client.get_model_metadata("scores", **form)["outputs"]
    assert (output["name"], output["datatype"], [*map(int, output["shape"])]) == ("SCORES", "FP32", [4])


def test_refusal(triton: Triton) -> None:
    with pytest.raises(InferenceServerException, match=r"inputs\[0\] 'X': the model has no such input") as refused:
        triton.client.infer("scores", [triton.send("X", "FP32", np.zeros(4, np.float32))])
    assert "INVALID_ARGUMENT" in str(refused.value) or triton.kind is tritonclient.http
