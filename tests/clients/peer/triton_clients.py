"""tritonclient over HTTP and gRPC, in this process, as an adapter: a client that somebody else wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from conformance.clients.inference import ClientOutput, Inference, Introduction, Result
from conformance.spec.extensions import HTTP
from conformance.wire.tensor import Tensor

AT_ONCE = 32


class TritonClients:
    """One client object for each address and time."""

    introduction = Introduction("tritonclient", "", "Python", ("http", "grpc"))

    def __init__(self) -> None:
        self._http: dict[tuple[str, float], Any] = {}
        self._grpc: dict[str, Any] = {}

    def close(self) -> None:
        for client in (*self._http.values(), *self._grpc.values()):
            client.close()

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        if transport == HTTP:
            client = self._http_client(address, timeout)
            if at_once and not any(_cannot(one, HTTP) for one in inferences):
                pending = [_asked(one, HTTP, client.async_infer, timeout) for one in inferences]
                return [_given(asked.get_result, HTTP) for asked in pending]
            return [_made(one, client, HTTP, timeout) for one in inferences]
        client = self._grpc.setdefault(address, tritonclient.grpc.InferenceServerClient(address))
        with ThreadPoolExecutor(AT_ONCE if at_once else 1) as pool:
            return list(pool.map(lambda one: _made(one, client, transport, timeout), inferences))

    def _http_client(self, address: str, timeout: float) -> Any:
        if (address, timeout) not in self._http:
            self._http[address, timeout] = tritonclient.http.InferenceServerClient(
                address.removeprefix("http://"), concurrency=AT_ONCE, network_timeout=timeout
            )
        return self._http[address, timeout]


def _made(inference: Inference, client: Any, transport: str, timeout: float) -> Result:
    if reason := _cannot(inference, transport):
        return Result(cannot=reason)
    started = time.monotonic()
    result = _given(lambda: _asked(inference, transport, client.infer, timeout), transport)
    return replace(result, elapsed=time.monotonic() - started)


def _cannot(inference: Inference, transport: str) -> str:
    if inference.is_raw:
        return "there is no way to send a raw binary request with the infer call"
    if inference.all_outputs == "json" or (inference.all_outputs and inference.outputs):
        return "what all outputs come as cannot be said"
    forms = {inference.get_form(place) for place in range(len(inference.inputs))}
    return "only raw contents are sent" if transport != HTTP and "json" in forms else ""


def _asked(inference: Inference, transport: str, call: Callable[..., Any], timeout: float) -> Any:
    module = tritonclient.http if transport == HTTP else tritonclient.grpc
    inputs = [_input(module, inference, place, transport) for place in range(len(inference.inputs))]
    outputs = None if inference.outputs is None else [_output(module, one, transport) for one in inference.outputs]
    options: dict[str, Any] = {"model_version": inference.version or "", "request_id": inference.id or ""}
    if transport == HTTP:
        options["request_compression_algorithm"] = inference.coding
        options["response_compression_algorithm"] = inference.accepts
    else:
        options["client_timeout"] = timeout
    return call(inference.model, inputs, outputs=outputs, **options)


def _input(module: Any, inference: Inference, place: int, transport: str) -> Any:
    one = inference.inputs[place]
    made = module.InferInput(one.name, list(one.shape), one.datatype)
    options = {"binary_data": inference.get_form(place) == "binary"} if transport == HTTP else {}
    made.set_data_from_numpy(one.array, **options)
    return made


def _output(module: Any, asked: Any, transport: str) -> Any:
    options = {} if transport != HTTP or asked.form is None else {"binary_data": asked.form == "binary"}
    return module.InferRequestedOutput(asked.name, class_count=asked.classes or 0, **options)


def _given(get: Callable[[], Any], transport: str) -> Result:
    try:
        result = get()
        response = result.get_response() if transport == HTTP else result.get_response(as_json=True)
        entries = response.get("outputs", [])
        outputs = tuple(_tensor(entry["name"], entry["datatype"], result.as_numpy(entry["name"])) for entry in entries)
        return Result(outputs)
    except InferenceServerException as error:
        return Result(error=str(error), status=error.status() or "")
    except Exception as error:  # whatever goes wrong, the caller hears of it
        return Result(error=f"{type(error).__name__}: {error}")


def _tensor(name: str, datatype: str, array: Any) -> ClientOutput:
    if array is None:
        return ClientOutput(name, trouble="the client gives None")
    if datatype == "BYTES":
        array = np.array(array, dtype=object)
    return ClientOutput(name, Tensor.from_values(name, datatype, array))
