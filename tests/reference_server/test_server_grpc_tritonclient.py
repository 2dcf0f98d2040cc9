"""Another project's client, tritonclient over gRPC, gets what it sent: every datatype, classes, metadata, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from numpy.typing import NDArray

from tests.support.arrays import ARRAYS, expect_same_bits
from tests.support.grpc_serving import serve

EXTENSIONS = ["binary_tensor_data", "model_configuration", "statistics", "classification"]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with serve() as opened, triton.InferenceServerClient(opened.address) as connected:
        yield connected


def sent(name: str, datatype: str, array: NDArray[Any]) -> Any:
    """Return an input."""
    return triton.InferInput(name, list(array.shape), datatype).set_data_from_numpy(array)


@pytest.mark.parametrize("datatype", ARRAYS)
@pytest.mark.parametrize("empty", [False, True], ids=["full", "empty"])
@pytest.mark.parametrize("listed", [True, False], ids=["listed", "omitted"])
def test_every_datatype(client: Any, datatype: str, empty: bool, listed: bool) -> None:
    array = ARRAYS[datatype][:0] if empty else ARRAYS[datatype]
    outputs = [triton.InferRequestedOutput("OUTPUT")] if listed else None
    model = f"identity_{datatype.lower()}"
    result = client.infer(model, [sent("INPUT", datatype, array)], outputs=outputs, request_id="Füße")
    expect_same_bits(result.as_numpy("OUTPUT"), array)
    assert result.get_response().id == "Füße"


def test_several_tensors(client: Any) -> None:
    arrays = {name: ARRAYS[name] for name in ("BYTES", "FP32", "INT64", "BOOL")}
    inputs = [sent(f"IN_{name}", name, array) for name, array in arrays.items()]
    outputs = [triton.InferRequestedOutput(f"OUT_{name}") for name in sorted(arrays)]
    for result in (client.infer("multi", inputs, outputs=outputs), client.infer("multi", inputs)):
        for name, array in arrays.items():
            expect_same_bits(result.as_numpy(f"OUT_{name}"), array)


def test_order_of_elements(client: Any) -> None:
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    expect_same_bits(client.infer("rank3", [sent("INPUT", "INT16", array)]).as_numpy("OUTPUT"), array)


@pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
def test_compression(client: Any, compression: str | None) -> None:
    array = np.arange(100_000, dtype=np.int32)
    result = client.infer("identity_int32", [sent("INPUT", "INT32", array)], compression_algorithm=compression)
    expect_same_bits(result.as_numpy("OUTPUT"), array)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("scores_batching", [[b"0.75:3", b"0.5:1"], [b"4.0:0", b"3.0:1"]]),
        ("scores_batching_labelled", [[b"0.75:3:fish", b"0.5:1:dog"], [b"4.0:0:cat", b"3.0:1:dog"]]),
    ],
)
def test_class_count(client: Any, model: str, expected: list[list[bytes]]) -> None:
    scores = np.array([[0.25, 0.5, 0.125, 0.75], [4, 3, 2, 1]], np.float32)
    wish = triton.InferRequestedOutput("SCORES", class_count=2)
    result = client.infer(model, [sent("INPUT", "FP32", scores)], outputs=[wish])
    expect_same_bits(result.as_numpy("SCORES"), np.array(expected, object))


def test_metadata(client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("scores")
    assert client.is_model_ready("scores", "1")
    assert client.get_server_metadata().extensions == EXTENSIONS
    (output,) = client.get_model_metadata("scores").outputs
    assert (output.name, output.datatype, output.shape) == ("SCORES", "FP32", [4])


def test_refusal(client: Any) -> None:
    with pytest.raises(triton.InferenceServerException, match=r"INVALID_ARGUMENT\] inputs\[0\] 'X': the model has no"):
        client.infer("scores", [sent("X", "FP32", np.zeros(4, np.float32))])
    with pytest.raises(triton.InferenceServerException, match="UNIMPLEMENTED"):
        client.get_trace_settings("scores")
