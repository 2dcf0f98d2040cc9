"""KServe's own client against the reference server: the example of its page, and what else the client sends.

Source: KServe, Binary Tensor Data Extension, "Client Implementation". The page's program does not run as it is printed;
each correction is said where it is made.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import numpy as np
import pytest

# Correction: the page imports ModelServer too, and uses it nowhere.
from kserve import InferenceRESTClient, InferInput, InferRequest
from kserve.inference_client import RESTConfig
from kserve.protocol.infer_type import RequestedOutput

pytest_plugins = "bundled"

HEADER = "Inference-Header-Content-Length"


class Wire(httpx.AsyncHTTPTransport):
    """Keeps the last request and the last answer."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.request = request
        self.response = await super().handle_async_request(request)
        return self.response


def connected(wire: Wire | None = None) -> Any:
    """Make a client with the page's settings, to be closed, which the page does not; `wire` sees what it sends."""
    return InferenceRESTClient(config=RESTConfig(verbose=True, protocol="v2", transport=wire or Wire()))


def ask(url: str, request: InferRequest, wire: Wire | None = None) -> Any:
    """Send a request as the page does."""

    async def infer() -> Any:  # Correction: the page awaits outside of any function.
        async with connected(wire) as client:
            return await client.infer(
                url,
                # Correction: the page asks "TestModel" in the URL and "mymodel" in the body, for what is one model.
                model_name=request.model_name,
                data=request,
                headers={"Host": "test-server.com"},
                timeout=2,
            )

    return asyncio.run(infer())


def tensor(name: str, datatype: str, array: Any, binary_data: bool = True) -> InferInput:
    """Make an input as the page does."""
    made = InferInput(name=name, datatype=datatype, shape=list(array.shape))
    made.set_data_from_numpy(array, binary_data=binary_data)
    return made


# --- the example of the page -----------------------------------------------------------------------------------------


def test_the_example_of_the_page(url: str) -> None:
    # Create input data
    fp16_data = np.array([[1.1, 2.22], [3.345, 4.34343]], dtype=np.float16)
    uint32_data = np.array([[1, 2], [3, 4]], dtype=np.uint32)
    # np.bool is right where the page has it: numpy 1.24 dropped the name, numpy 2 has it again.
    bool_data = np.array([True, False, True], dtype=np.bool)

    # Correction: the page's program says input_0 and output_0, its JSON example input0 and output0.
    inputs = [
        tensor("input0", "FP16", fp16_data, binary_data=True),
        tensor("input1", "UINT32", uint32_data, binary_data=False),
        tensor("input2", "BOOL", bool_data, binary_data=True),
    ]
    # Correction: RequestedOutput has no argument binary_data; it is one of the parameters.
    outputs = [
        RequestedOutput(name="output0", parameters={"binary_data": True}),
        RequestedOutput(name="output1", parameters={"binary_data": False}),
    ]
    request = InferRequest(
        model_name="documented_mixed",
        request_id="2ja0ls9j1309",
        infer_inputs=inputs,
        request_outputs=outputs,  # Correction: not requested_outputs.
    )
    wire = Wire()
    response = ask(url, request, wire)

    # Correction: output0 is binary because it is asked for as such, not because it stands first; so ask by name.
    found = {output.name: output for output in response.outputs}
    assert response.id == "2ja0ls9j1309"
    # Row k of output0 is [input2[k], element k of input0]; output1 is input0 + input1 (conformance/roles/roles.toml).
    expected = np.array([[1, 1.1], [0, 2.22], [1, 3.345]], np.float16)
    assert (found["output0"].datatype, found["output0"].as_numpy().tobytes()) == ("FP16", expected.tobytes())
    total = fp16_data.astype(np.float32) + uint32_data.astype(np.float32)
    assert (found["output1"].datatype, found["output1"].as_numpy().tolist()) == ("FP32", total.tolist())

    # What went over the wire. Erratum of the page: 2 x 2 elements of FP16 are 8 bytes, not 16 as in its JSON example.
    sent = wire.request
    assert sent.headers["Content-Type"] == "application/octet-stream"
    assert len(sent.content) - int(sent.headers[HEADER]) == 8 + 3
    assert sent.content.endswith(b"\x66\x3c\x71\x40\xb1\x42\x58\x44\x01\x00\x01")
    assert wire.response.headers["Content-Type"] == "application/octet-stream"
    assert HEADER in wire.response.headers


def test_all_outputs_as_binary_data(url: str) -> None:
    """The request of "Requesting All Outputs As Binary Data", made with the client."""
    data = np.array([[32.045, 399.043]], np.float32)
    request = InferRequest(
        model_name="documented_all_outputs",
        infer_inputs=[tensor("input_tensor", "FP32", data, binary_data=False)],
        parameters={"binary_data_output": True},
    )
    wire = Wire()
    first, second = ask(url, request, wire).outputs
    half = data.astype(np.float16)
    assert first.as_numpy().tolist() == [*half.tolist(), half[0, ::-1].tolist(), [0, 0]]
    assert second.as_numpy().tolist() == [data[0].tolist(), data[0, ::-1].tolist()]
    assert (wire.request.headers["Content-Type"], HEADER in wire.request.headers) == ("application/json", False)
    assert HEADER in wire.response.headers


# --- what else the client sends --------------------------------------------------------------------------------------

ARRAYS = {
    "BOOL": np.array([True, False, True]),
    "UINT8": np.array([0, 1, 255], np.uint8),
    "UINT64": np.array([2**53 + 1, 2**64 - 1], np.uint64),
    "INT16": np.array([-32768, 0x0102], np.int16),
    "FP16": np.array([0.1, -65504, np.inf], np.float16),
    "FP32": np.array([0.1, -3.4028235e38, -0.0], np.float32),
    "FP64": np.array([0.1, 5e-324, -0.0], np.float64),
}


# FP16 has no JSON form: see below.
FORMS = [(name, i, o) for name in ARRAYS if name != "FP16" for i in (True, False) for o in (True, False, None)]


@pytest.mark.parametrize(("datatype", "binary_in", "binary_out"), [*FORMS, ("FP16", True, True)])
def test_datatypes(url: str, datatype: str, binary_in: bool, binary_out: bool | None) -> None:
    array = ARRAYS[datatype]
    wish = None if binary_out is None else [RequestedOutput("OUTPUT", {"binary_data": binary_out})]
    request = InferRequest(
        f"identity_{datatype.lower()}", [tensor("INPUT", datatype, array, binary_in)], request_outputs=wish
    )
    (output,) = ask(url, request).outputs
    assert (output.datatype, output.shape, output.as_numpy().tobytes()) == (datatype, [*array.shape], array.tobytes())


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_strings(url: str, binary: bool) -> None:
    array = np.array([b"", b"a", "猫".encode(), b"x" * 300], object)
    wish = [RequestedOutput("OUTPUT", {"binary_data": binary})]
    (output,) = ask(
        url, InferRequest("identity_bytes", [tensor("INPUT", "BYTES", array, binary)], request_outputs=wish)
    ).outputs
    assert [text.encode() for text in output.as_numpy().tolist()] == array.tolist()


@pytest.mark.parametrize(("datatype", "dtype"), [("INT32", np.int32), ("BYTES", object)])
def test_binary_input_without_elements(url: str, datatype: str, dtype: Any) -> None:
    """The client then sends `binary_data_size` 0 with `data` null and no inference header.

    Decided: taken. Whether binary data of no bytes are present, and want the header, the documents leave open.
    """
    wire = Wire()
    request = InferRequest(f"identity_{datatype.lower()}", [tensor("INPUT", datatype, np.array([], dtype))])
    (output,) = ask(url, request, wire).outputs
    assert b'"parameters":{"binary_data_size":0},"data":null' in wire.request.content
    assert (HEADER in wire.request.headers, output.shape) == (False, [0])


def test_server_and_model_are_ready(url: str) -> None:
    async def states() -> list[bool]:
        async with connected() as client:
            ready = client.is_model_ready(url, "documented_mixed")
            return [await client.is_server_ready(url), await client.is_server_live(url), await ready]

    assert asyncio.run(states()) == [True, True, True]


# --- what the server refuses -----------------------------------------------------------------------------------------


def test_fp16_as_json_is_refused(url: str) -> None:
    """Decided: refused. The KServe page says that FP16 lacks a proper JSON form ("Best Practices")."""
    wish = [RequestedOutput("OUTPUT", {"binary_data": False})]
    request = InferRequest("identity_fp16", [tensor("INPUT", "FP16", ARRAYS["FP16"])], request_outputs=wish)
    with pytest.raises(httpx.HTTPStatusError, match="JSON cannot represent FP16"):
        ask(url, request)


def test_nan_as_json_is_refused(url: str) -> None:
    """The client sends null for it. Decided: refused, since null is no number (RFC 8259 has no NaN)."""
    array = np.array([1, np.nan], np.float32)
    with pytest.raises(httpx.HTTPStatusError, match="data element 1 is null, expected a number"):
        ask(url, InferRequest("identity_fp32", [tensor("INPUT", "FP32", array, binary_data=False)]))


def test_an_unknown_input_is_refused(url: str) -> None:
    with pytest.raises(httpx.HTTPStatusError, match="the model has no such input"):
        ask(url, InferRequest("identity_int32", [tensor("X", "INT32", np.array([1], np.int32))]))
