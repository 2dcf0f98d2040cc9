"""Control requests to deployed models: they provide the expected outputs of a model whose function is unknown.

A control request is a plain request with the same inputs as the request of a check. A plain request has no options and
uses JSON in both directions; over gRPC it has typed contents. Tensors that JSON or typed contents cannot represent are
sent as binary data or raw contents. Each control request is sent once, and its answer is cached. Answers to the
requests of checks are compared with the answer to the control request, floats within the tolerance for JSON. Outputs
that differ between two equal requests are not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from conformance.discovery.deployed_model import DeclinedError, DeployedModel
from conformance.expect.difference import find_difference
from conformance.expect.unmet import BlockedError, NotApplicableError
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import Message
from conformance.wire.response import Output as Found
from conformance.wire.tensor import Tensor

# Before a row fails: how many of its latest control requests are repeated, and how many extra times the last one is.
MAX_REPEATED = 8
REPETITIONS = 16


@dataclass(slots=True)
class ControlOracle:
    """Sends control requests to the models of one target over one transport, and caches the answers.

    Attributes:
        target: the target.
        is_over_grpc: whether control requests are sent as gRPC calls.
    """

    target: Target
    is_over_grpc: bool = False
    _row_requests: dict[str, Message] = field(default_factory=dict)
    _unsteady: set[str] = field(default_factory=set)
    _answers: dict[str, Reply] = field(default_factory=dict)

    def request_outputs(self, model: DeployedModel, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the deterministic outputs of a control request with these inputs; send it unless its answer is cached.

        The inputs may be in any order.

        Raises:
            DeclinedError: the model does not accept these inputs.
            NotApplicable: the model is not deterministic.
            Blocked: the model answers no plain request any more, or its answer cannot be parsed.
        """
        if model.name in self._unsteady:
            raise NotApplicableError(f"{model.name} is not deterministic")
        declared = [spec.name for spec in model.role.inputs]
        ordered = sorted(tensors, key=lambda tensor: declared.index(tensor.name))
        reply = self._send_control_request(model, ordered)
        if not reply.succeeded:
            raise self._build_refusal_error(model, reply)
        return tuple(self._read_output(model, reply, name) for name in model.list_comparable_outputs())

    def begin_row(self) -> None:
        """Start a new row: `has_changed` no longer repeats the control requests of the previous row."""
        self._row_requests.clear()

    def has_changed(self, model: DeployedModel) -> bool:
        """Repeat the latest control requests of the row; return whether any answer now has other values.

        After a change, `request_outputs` treats the model as not deterministic and no longer returns its outputs.

        """
        latest = list(self._row_requests.items())[-MAX_REPEATED:]
        for name, message in [*latest, *latest[-1:] * REPETITIONS]:
            again = self.target.send(message, fresh=True)
            if again.succeeded and _has_other_values(self._answers[name], again, model.list_comparable_outputs()):
                self._unsteady.add(model.name)
                return True
        return False

    def _send_control_request(self, model: DeployedModel, tensors: Sequence[Tensor]) -> Reply:
        """Send a control request, or return the cached answer.

        The request has a scope of its own in the recording, because several processes of a run may send it.
        """
        request = replace(model, tensors=tuple(tensors)).build_plain_request()
        message = make_infer_message(request) if self.is_over_grpc else request.message()
        digest = blake2b(message.body, digest_size=8).hexdigest()
        name = f"control {model.name} {digest}" + (" over gRPC" if self.is_over_grpc else "")
        if name not in self._answers:
            with self.target.scope(name):
                self._answers[name] = self.target.send_until_not_busy(message)
        self._row_requests[name] = message
        return self._answers[name]

    def _build_refusal_error(self, model: DeployedModel, reply: Reply) -> Exception:
        """Return the error for a refused control request.

        Return a `DeclinedError` if the model still accepts the inputs that discovery found, else a `BlockedError`.
        """
        if self._send_control_request(model, model.tensors).succeeded:
            return DeclinedError(f"{model.name} refuses these inputs in a plain request: {reply.outcome()}")
        return BlockedError(f"{model.name} answers no plain request: {reply.outcome()}")

    def _read_output(self, model: DeployedModel, reply: Reply, name: str) -> Tensor:
        output = reply.answer.output(name)
        if output is None or (tensor := as_tensor(output)) is None:
            found = "; ".join(map(str, output.findings)) if output else reply.outcome()
            raise BlockedError(
                f"output {name} of {model.name} cannot be read in the answer to a plain request: {found}"
            )
        return replace(tensor, is_approximate=True)


def as_tensor(output: Found) -> Tensor | None:
    """Convert a parsed output to a tensor; None if the output could not be decoded."""
    if output.array is None or output.shape is None:
        return None
    return Tensor(output.name, output.datatype, output.shape, output.array)


def find_differing_outputs(first: Reply, second: Reply, names: Sequence[str] | None = None) -> list[str]:
    """Return the names of the outputs that differ between two answers to the same request.

    Compares only the outputs in `names`, if given. Compares floats within the tolerance for JSON: batching or several
    processors may change the last bits of a correct answer.
    """
    every = dict.fromkeys((*first.answer.names(), *second.answer.names()))
    return [name for name in every if (names is None or name in names) and not _is_same_output(first, second, name)]


def _has_other_values(first: Reply, second: Reply, names: Sequence[str]) -> bool:
    """Whether one of these outputs is present in both answers with the same datatype, but with other values.

    A missing output or another datatype is a fault of the server, not a sign of a nondeterministic model.
    """
    pairs = [
        (first.answer.output(name), second.answer.output(name)) for name in find_differing_outputs(first, second, names)
    ]
    return any(one and other and one.datatype == other.datatype for one, other in pairs)


def _is_same_output(first: Reply, second: Reply, name: str) -> bool:
    a, b = first.answer.output(name), second.answer.output(name)
    if a is None or b is None or (a.datatype, a.shape) != (b.datatype, b.shape):
        return False
    one, other = as_tensor(a), as_tensor(b)
    return (
        one is other
        if one is None or other is None
        else find_difference(one, b, second.body, through_json=True) is None
    )
