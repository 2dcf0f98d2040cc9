"""Another project's client, tritonclient, gets what it sent: every datatype, binary and JSON, raw, classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
from numpy.typing import NDArray

from tests.support.arrays import ARRAYS, expect_same_bits
from tests.support.serving import Server

EXTENSIONS = ["binary_tensor_data", "model_configuration", "statistics", "classification"]
NO_JSON = {"FP16", "BF16"}


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Any]:
    with triton.InferenceServerClient(server.url.removeprefix("http://")) as opened:
        yield opened


def sent(name: str, datatype: str, array: NDArray[Any], binary: bool = True) -> Any:
    """Return an input."""
    tensor = triton.InferInput(name, list(array.shape), datatype)
    return tensor.set_data_from_numpy(array, binary_data=binary)


@pytest.mark.parametrize("datatype", ARRAYS)
@pytest.mark.parametrize("empty", [False, True], ids=["full", "empty"])
@pytest.mark.parametrize("output", [True, False, None], ids=["binary out", "JSON out", "omitted"])
@pytest.mark.parametrize("binary", [True, False], ids=["binary in", "JSON in"])
def test_every_datatype(client: Any, datatype: str, binary: bool, output: bool | None, empty: bool) -> None:
    array = ARRAYS[datatype][:0] if empty else ARRAYS[datatype]
    if not binary and datatype in NO_JSON:
        with pytest.raises(triton.InferenceServerException):  # by the client, or for FP16 by the server
            client.infer(f"identity_{datatype.lower()}", [sent("INPUT", datatype, array, binary)])
        return
    outputs = None if output is None else [triton.InferRequestedOutput("OUTPUT", binary_data=output)]
    inputs = [sent("INPUT", datatype, array, binary)]
    if output is False and datatype in NO_JSON:
        with pytest.raises(triton.InferenceServerException, match="no JSON form"):
            client.infer(f"identity_{datatype.lower()}", inputs, outputs=outputs)
        return
    result = client.infer(f"identity_{datatype.lower()}", inputs, outputs=outputs, request_id="Füße")
    expect_same_bits(result.as_numpy("OUTPUT"), array)
    assert result.get_response()["id"] == "Füße"


def test_several_tensors(client: Any) -> None:
    arrays = {name: ARRAYS[name] for name in ("BYTES", "FP32", "INT64", "BOOL")}
    inputs = [sent(f"IN_{name}", name, array, binary=name != "FP32") for name, array in arrays.items()]
    outputs = [triton.InferRequestedOutput(f"OUT_{name}", binary_data=name != "INT64") for name in sorted(arrays)]
    for result in (client.infer("multi", inputs, outputs=outputs), client.infer("multi", inputs)):
        for name, array in arrays.items():
            expect_same_bits(result.as_numpy(f"OUT_{name}"), array)


def test_order_of_elements(client: Any) -> None:
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    expect_same_bits(client.infer("rank3", [sent("INPUT", "INT16", array)]).as_numpy("OUTPUT"), array)


def test_raw(client: Any) -> None:
    body = np.array([[1, -2], [3, 0x01020304]], np.int32).tobytes()
    response = client._post("v2/models/raw_fixed/infer", body, {"Inference-Header-Content-Length": 0}, None)
    assert response.status_code == 200
    result = triton.InferResult(response, verbose=False)
    expect_same_bits(result.as_numpy("OUTPUT"), np.array([[1, -2], [3, 0x01020304]], np.float32))


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "JSON"])
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("scores_batching", [[b"0.75:3", b"0.5:1"], [b"4.0:0", b"3.0:1"]]),
        ("scores_batching_labelled", [[b"0.75:3:fish", b"0.5:1:dog"], [b"4.0:0:cat", b"3.0:1:dog"]]),
    ],
)
def test_class_count(client: Any, model: str, expected: list[list[bytes]], binary: bool) -> None:
    scores = np.array([[0.25, 0.5, 0.125, 0.75], [4, 3, 2, 1]], np.float32)
    wish = triton.InferRequestedOutput("SCORES", binary_data=binary, class_count=2)
    result = client.infer(model, [sent("INPUT", "FP32", scores)], outputs=[wish])
    expect_same_bits(result.as_numpy("SCORES"), np.array(expected, object))


def test_metadata(client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("scores")
    assert client.is_model_ready("scores", "1")
    assert client.get_server_metadata()["extensions"] == EXTENSIONS
    assert client.get_model_metadata("scores")["outputs"] == [{"name": "SCORES", "datatype": "FP32", "shape": [4]}]


def test_refusal(client: Any) -> None:
    with pytest.raises(triton.InferenceServerException, match=r"inputs\[0\] 'X': the model has no such input"):
        client.infer("scores", [sent("X", "FP32", np.zeros(4, np.float32))])
