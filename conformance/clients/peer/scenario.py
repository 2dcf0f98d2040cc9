"""State that the HTTP and the gRPC peer share: inferences, scripted answers, received requests, and model metadata.

Both transports use the same metadata. The gRPC peer converts the JSON to the message with the same fields.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final

from conformance.clients.answers.script import (
    VERSION,
    CallAnswer,
    Ending,
    HttpAnswer,
    Script,
    Tensors,
    make_json_answer,
)
from conformance.clients.inference import Inference
from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.wire.client_request import ClientRequest
from conformance.wire.request import INFERENCE_HEADER, Message
from conformance.wire.tensor import Tensor

_FAILURES: Final = {
    Ending.CLOSE: TransportFailure(FailureKind.BROKEN, "the peer closed the connection, as scripted"),
    Ending.CLOSE_LATER: TransportFailure(FailureKind.BROKEN, "the peer closed the idle connection, as scripted"),
    Ending.RESET: TransportFailure(FailureKind.BROKEN, "the peer reset the connection, as scripted"),
    Ending.SILENT: TransportFailure(FailureKind.TIMEOUT, "the peer fell silent, as scripted"),
}


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """An inference request that the peer received, and its answer.

    Attributes:
        received: the request.
        answer: the scripted answer.
        address: the address of the peer, as given to the client.
        number: the index of the request among those of a row.
    """

    received: ClientRequest
    answer: HttpAnswer | CallAnswer
    address: str
    number: int = 0

    def to_exchange(self, number: int | None = None) -> Exchange:
        """Convert the request and its answer to an exchange, for reports; `number` replaces the request's number."""
        exchange_number = self.number if number is None else number
        message = Message(
            self.received.path,
            self.received.headers,
            self.received.body,
            self.received.method,
            json_length=_find_json_length(self.received),
        )
        url = f"{self.address}{self.received.path}"
        chunked = self.received.is_chunked
        if isinstance(self.answer, HttpAnswer):
            failure = _FAILURES.get(self.answer.ending)
            headers, body = self.answer.headers, self.answer.body
            return Exchange(
                exchange_number, message, url, self.answer.status, headers, body, failure, is_chunked=chunked
            )
        ending = Ending.SILENT if self.answer.is_silent else Ending.CLOSE if self.answer.is_closed else Ending.KEEP
        code, details = self.answer.code, self.answer.details
        return Exchange(
            exchange_number,
            message,
            url,
            None,
            (),
            self.answer.message,
            _FAILURES.get(ending),
            code=code,
            details=details,
        )


def _find_json_length(received: ClientRequest) -> int:
    """Return the length of the JSON that the inference header declares, but at most the length of the body.

    If there is no valid inference header, return the length of the body; over gRPC, return 0.

    """
    stated = received.header(INFERENCE_HEADER) or ""
    length = int(stated) if stated.isascii() and stated.isdigit() and len(stated) < 12 else len(received.body)
    return 0 if received.is_over_grpc else min(length, len(received.body))


class ScriptFault(Exception):  # noqa: N818 - a bug of the suite, not an error of a peer
    """A script raised an exception, which is a bug of the suite."""


class Scenario:
    """The inferences of one call of the adapter, their script, and the requests that the peer received for them.

    Attributes:
        inferences: each has a model of its own, so that the model name in a request identifies the inference.
        fault: the exception that the script raised, or None.
    """

    def __init__(self, inferences: Sequence[Inference], script: Script) -> None:
        self.inferences = tuple(inferences)
        self.script = script
        self.fault: Exception | None = None
        self._requests: list[tuple[int, ReceivedRequest]] = []
        self._has_ended = False
        self._taken: set[int] = set()
        self._lock = threading.Lock()

    def match_inference(self, model: str | None) -> int:
        """Return the index of the inference with this model, and mark this inference as requested.

        For an unknown model, take the first inference that no request has matched, or else the last inference.
        """
        with self._lock:
            names = [one.model for one in self.inferences]
            unrequested = (index for index in range(len(names)) if index not in self._taken)
            index = names.index(model) if model in names else next(unrequested, len(names) - 1)
            self._taken.add(index)
            return index

    def answer(self, received: ClientRequest, index: int) -> HttpAnswer | CallAnswer:
        """Return the scripted answer to a request for the inference at this index.

        The answer to an invalid or incomplete request is an error with status 400.

        Raises ScriptFault: the script raised an exception.
        """
        if received.trouble:
            return make_json_answer(400, {"error": received.trouble}, received)
        if self.script.barrier is not None:
            self.script.barrier.wait()
        inference = self.inferences[index]
        made = self.script.grpc if received.is_over_grpc else self.script.http
        try:
            return made(received, inference, self.script.list_requested_outputs(inference))
        except Exception as error:
            self.fault = error
            raise ScriptFault(str(error)) from error

    def list_outputs(self, except_index: int | None = None) -> Tensors:
        """Return all output tensors of the inferences, except those of the inference at index `except_index`."""
        asked = [outputs for index, outputs in enumerate(self._outputs) if index != except_index]
        return tuple(chain.from_iterable(asked))

    @cached_property
    def _outputs(self) -> list[Tensors]:
        """The output tensors of each inference, computed once: each result is compared with those of all others."""
        return [tuple(self.script.outputs(inference)) for inference in self.inferences]

    def store_request(self, index: int, request: ReceivedRequest) -> None:
        """Store a received request, unless the scenario has ended. Peers call this before they send the answer."""
        with self._lock:
            if not self._has_ended:
                self._requests.append((index, request))

    def end(self) -> list[tuple[int, ReceivedRequest]]:
        """End the scenario: store no further requests, and return the stored ones like `list_requests`."""
        with self._lock:
            self._has_ended = True
            return list(self._requests)

    def list_requests(self) -> list[tuple[int, ReceivedRequest]]:
        """Return the requests received so far, in order, each with the index of its inference."""
        with self._lock:
            return list(self._requests)


class PeerScript:
    """All scenarios of a run. A late request to a model of an earlier scenario belongs to that scenario.

    `current`: the last scenario; None before the first one.
    """

    def __init__(self) -> None:
        self._by_model: dict[str, Scenario] = {}
        self.current: Scenario | None = None
        self._outputs: Tensors = ()

    def start_scenario(self, inferences: Sequence[Inference], script: Script) -> Scenario:
        """Answer these inferences by a script from now on; the returned scenario records their requests."""
        scenario = Scenario(inferences, script)
        self._by_model.update({one.model: scenario for one in inferences})
        self.current = scenario
        self._outputs = scenario.list_outputs() or self._outputs
        return scenario

    def list_outputs(self) -> Tensors:
        """Return the output tensors of the last scenario that had outputs."""
        return self._outputs

    def find_scenario(self, model: str | None) -> Scenario | None:
        """Return the scenario with this model, or else the current scenario; None before the first scenario."""
        return self._by_model.get(model, self.current) if model is not None else self.current

    def count_requests(self, model: str) -> int:
        """Return the number of received requests in the scenario of a model."""
        scenario = self._by_model.get(model)
        return 0 if scenario is None else len(scenario.list_requests())

    def find_inference(self, model: str) -> tuple[Inference, Script] | None:
        """Return the inference with this model and the script for it; None for an unknown model."""
        scenario = self._by_model.get(model)
        if scenario is None:
            return None
        return next(one for one in scenario.inferences if one.model == model), scenario.script


# --- metadata ---------------------------------------------------------------------------------------------------------


SERVER: Final = {
    "name": "scripted-peer",
    "version": "1",
    "extensions": ["binary_tensor_data", "classification", "model_configuration", "statistics"],
}


def make_model_metadata(inference: Inference, script: Script) -> dict[str, Any]:
    """Return the metadata of an inference's model."""
    return {
        "name": inference.model,
        "versions": [inference.version or VERSION],
        "platform": "",
        "inputs": [_build_signature(one) for one in inference.inputs],
        "outputs": [_build_signature(one) for one in _list_declared_outputs(inference, script)],
    }


def make_model_config(inference: Inference, script: Script) -> dict[str, Any]:
    """Return the configuration, without batching, of an inference's model. Clients that form batches may request it."""
    return {
        "name": inference.model,
        "platform": "",
        "backend": "",
        "max_batch_size": 0,
        "input": [_build_config_entry(one) for one in inference.inputs],
        "output": [_build_config_entry(one) for one in _list_declared_outputs(inference, script)],
    }


def make_model_statistics(inference: Inference, count: int) -> dict[str, Any]:
    """Return the statistics of an inference's model: `count` inferences."""
    model_version = {"name": inference.model, "version": inference.version or VERSION}
    return {"model_stats": [{**model_version, "inference_count": count, "execution_count": count}]}


def _list_declared_outputs(inference: Inference, script: Script) -> tuple[Tensor, ...]:
    """Return the outputs for the metadata: those of the script; for a script of errors, return the inputs."""
    return script.outputs(inference) or inference.inputs


def _build_signature(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}


def _build_config_entry(tensor: Tensor) -> dict[str, Any]:
    kind = "STRING" if tensor.datatype == "BYTES" else tensor.datatype
    return {"name": tensor.name, "data_type": f"TYPE_{kind}", "dims": list(tensor.shape)}
