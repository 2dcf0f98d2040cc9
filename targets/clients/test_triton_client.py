"""Triton's HTTP client against the reference server: compressed both ways, classes, raw requests, outputs omitted.

Every datatype in every form is in `tests/reference_server/test_server_tritonclient.py`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton

pytest_plugins = "bundled"

CODINGS = [None, "gzip", "deflate"]
SCORES = np.array([[0.25, 0.5, 0.125, 0.75], [4, 3, 2, 1]], np.float32)


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Any]:
    with triton.InferenceServerClient(url.removeprefix("http://")) as opened:
        yield opened


def tensor(name: str, datatype: str, array: Any, binary: bool = True) -> Any:
    return triton.InferInput(name, list(array.shape), datatype).set_data_from_numpy(array, binary_data=binary)


# --- compression -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accepted", CODINGS)
@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_compression(client: Any, binary: bool, coding: str | None, accepted: str | None) -> None:
    """Decided: decoded and, where it is asked for, encoded. The documents are silent; RFC 9110, 8.4 lets a server."""
    arrays = {"INT64": np.arange(2000) * 0x01020304, "BOOL": np.array([True, False])}
    arrays |= {"FP32": np.array([0.1, -0.0], np.float32), "BYTES": np.array([b"", "猫".encode()], object)}
    inputs = [tensor(f"IN_{name}", name, array, binary) for name, array in arrays.items()]
    outputs = [triton.InferRequestedOutput(f"OUT_{name}", binary_data=binary) for name in arrays]
    result = client.infer(
        "multi",
        inputs,
        outputs=outputs,
        request_compression_algorithm=coding,
        response_compression_algorithm=accepted,
    )
    for name, array in arrays.items():
        found = result.as_numpy(f"OUT_{name}")
        if name == "BYTES":
            assert [text if isinstance(text, bytes) else text.encode() for text in found] == array.tolist()
        else:
            assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("accepted", CODINGS)
def test_answers_are_compressed(client: Any, accepted: str | None) -> None:
    """What the test above cannot see: that the answer was in a coding at all."""
    headers = {"Accept-Encoding": accepted} if accepted else {}
    body = b'{"inputs":[{"name":"INPUT","shape":[2],"datatype":"INT32","data":[7,8]}]}'
    response = client._post("v2/models/identity_int32/infer", body, headers, None)
    assert response.get("content-encoding") == accepted


# --- classes, raw requests, outputs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, [[b"0.75:3:fish"], [b"4.0:0:cat"]]),
        (2, [[b"0.75:3:fish", b"0.5:1:dog"], [b"4.0:0:cat", b"3.0:1:dog"]]),
    ],
)
def test_class_count(client: Any, count: int, expected: list[list[bytes]], coding: str | None) -> None:
    wish = triton.InferRequestedOutput("SCORES", class_count=count)
    result = client.infer(
        "scores_batching_labelled",
        [tensor("INPUT", "FP32", SCORES)],
        outputs=[wish],
        request_compression_algorithm=coding,
        response_compression_algorithm=coding,
    )
    assert result.as_numpy("SCORES").tolist() == expected


PACKED: dict[str | None, Callable[[bytes], bytes]] = {None: bytes, "gzip": gzip.compress, "deflate": zlib.compress}


@pytest.mark.parametrize("coding", CODINGS)
def test_raw_bytes(client: Any, coding: str | None) -> None:
    body = PACKED[coding](bytes.fromhex("01000000 feffffff 03000000 04030201"))
    headers: dict[str, Any] = {"Inference-Header-Content-Length": 0}
    headers |= {"Content-Encoding": coding, "Accept-Encoding": coding} if coding else {}
    response = client._post("v2/models/raw_fixed/infer", body, headers, None)
    result = triton.InferResult(response, verbose=False)
    assert result.as_numpy("OUTPUT").tolist() == [[1, -2], [3, 0x01020304]]


def test_outputs_omitted(client: Any) -> None:
    """The client then asks for all outputs as binary data."""
    result = client.infer("documented_all_outputs", [tensor("input_tensor", "FP32", np.array([[1, 2]], np.float32))])
    assert [output["parameters"] for output in result.get_response()["outputs"]] == [
        {"binary_data_size": 12},
        {"binary_data_size": 16},
    ]
    assert result.as_numpy("output_tensor0").tolist() == [[1, 2], [2, 1], [0, 0]]


@pytest.mark.parametrize("coding", CODINGS)
def test_no_elements(client: Any, coding: str | None) -> None:
    empty = tensor("INPUT", "INT32", np.array([], np.int32))
    result = client.infer("identity_int32", [empty], request_compression_algorithm=coding)
    assert result.as_numpy("OUTPUT").tolist() == []


@pytest.mark.parametrize(
    "options",
    [
        {"sequence_id": 5, "sequence_start": True},
        {"priority": 3, "timeout": 1_000_000},
        {"parameters": {"text": "x", "number": 1, "yes": True}},
        {"model_version": "1"},
        {"headers": {"X-Other": "x"}, "query_params": {"test": 1}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_of_other_extensions_are_let_pass(client: Any, options: dict[str, Any]) -> None:
    """Decided: parameters that the server does not know change nothing, as in the base protocol."""
    result = client.infer("identity_int32", [tensor("INPUT", "INT32", np.array([7], np.int32))], **options)
    assert result.as_numpy("OUTPUT").tolist() == [7]


# --- what the server refuses -----------------------------------------------------------------------------------------


def test_shared_memory_input_is_refused(client: Any) -> None:
    """Decided: refused. Shared memory is another extension, which the server does not list; there is no data."""
    shared = triton.InferInput("INPUT", [5], "INT32")
    shared.set_shared_memory("region", 20)
    with pytest.raises(triton.InferenceServerException, match="has neither data nor"):
        client.infer("identity_int32", [shared])


def test_nan_as_json_is_refused(client: Any) -> None:
    """The client writes the bare word NaN. Decided: refused, since that is not JSON (RFC 8259)."""
    with pytest.raises(triton.InferenceServerException, match="NaN is not a JSON number"):
        client.infer("identity_fp32", [tensor("INPUT", "FP32", np.array([np.nan], np.float32), binary=False)])


def test_endpoints_of_other_extensions_are_not_there(client: Any) -> None:
    """Decided: 404. The server lists neither a model repository nor logging."""
    for ask in (client.get_model_repository_index, client.get_log_settings):
        with pytest.raises(triton.InferenceServerException) as refused:
            ask()
        assert refused.value.status() == "404"
