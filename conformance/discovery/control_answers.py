"""Control requests to deployed models: they provide the expected outputs of a model whose function is unknown.

A control request is a plain request with the same inputs as the request of a check. A plain request has no options and
uses JSON in both directions; over gRPC it has typed contents. Tensors that JSON or typed contents cannot represent are
sent as binary data or raw contents. Each control request is sent once, and its answer is cached. Answers to the
requests of checks are compared with the answer to the control request, floats within the tolerance for JSON and the
noise of the model, which discovery measures. Outputs that differ more between two equal requests are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import cycle, islice
from types import MappingProxyType

import numpy as np

from conformance.discovery.deployed_model import (
    Change,
    DeclinedError,
    DeployedModel,
    allow_noise,
    find_largest_magnitude,
)
from conformance.expect.difference import are_distinct, find_difference
from conformance.expect.unmet import BlockedError, NotApplicableError
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.datatypes import lookup
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import INFERENCE_HEADER, Message
from conformance.wire.response import Output as Found
from conformance.wire.tensor import Tensor

# Before a row fails: how many of its latest control requests are repeated, and how many requests that takes in all.
MAX_REPEATED = 6
REPETITIONS = 42
MIN_VALUES = 3  # that answers must share with answers to other requests, so that this is no chance
MAX_ALIKE = 2  # requests with the same answer at most, if the answer is to show which request it belongs to
NO_NOISE: Mapping[str, float] = MappingProxyType({})
# Floats that differ by more than this, relative to the largest element, differ for another reason than rounding.
MAX_NOISE = 0.02


@dataclass(slots=True)
class ControlAnswers:
    """Sends control requests to the models of one target over one transport, and caches the answers.

    `is_over_grpc`: whether control requests are sent as gRPC calls.
    """

    target: Target
    is_over_grpc: bool = False
    _row_requests: dict[str, Message] = field(default_factory=dict)
    _unsteady: set[str] = field(default_factory=set)
    _answers: dict[str, Reply] = field(default_factory=dict)
    # What rows ask for again and again: the requests by their inputs and form, and the outputs that answers have.
    _requests: dict[tuple[object, ...], tuple[str, Message]] = field(default_factory=dict)
    _outputs: dict[tuple[str, tuple[str, ...]], tuple[Tensor, ...]] = field(default_factory=dict)

    def request_outputs(self, model: DeployedModel, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the deterministic outputs of a control request with these inputs; send it unless its answer is cached.

        The inputs may be in any order.

        Raises:
            DeclinedError: the model does not accept these inputs.
            NotApplicableError: the model is not deterministic.
            BlockedError: the model answers no plain request any more, or its answer cannot be parsed.
        """
        if model.name in self._unsteady:
            raise NotApplicableError(f"{model.name} is not deterministic")
        declared = [spec.name for spec in model.role.inputs]
        ordered = sorted(tensors, key=lambda tensor: declared.index(tensor.name))
        request = self._send_control_request(model, ordered)
        reply = self._answers[request]
        if not reply.succeeded:
            raise self._build_refusal_error(model, reply)
        names = model.list_comparable_outputs()
        if (request, names) not in self._outputs:
            self._outputs[request, names] = tuple(self._read_output(model, reply, name) for name in names)
        return self._outputs[request, names]

    def begin_row(self) -> None:
        """Start a new row: `find_change` no longer repeats the control requests of the previous row."""
        self._row_requests.clear()

    def find_change(self, model: DeployedModel, expected: Tensor | None = None) -> Change:
        """Repeat the latest control requests of the row, each between others; return how their answers changed.

        A request whose answer has the expected output, which another answer lacks, is always repeated.
        The answer that a request gets most often replaces the cached one. If repeated answers have values of no
        request, `request_outputs` treats the model as not deterministic and no longer returns its outputs.
        """
        asked = self._choose_repeated_requests(model, expected)
        if not asked:
            return Change.NONE
        found = {name: [self._answers[name]] for name in asked}
        turns = islice(cycle([*asked, *reversed(asked)]), REPETITIONS)
        for number, name in enumerate(turns):
            again = self.target.send(asked[name], fresh=True)
            found[name] += [again] if again.succeeded and number else []  # any request may be before the first
        self._answers |= {name: _find_usual_answer(replies, model) for name, replies in found.items()}
        self._outputs.clear()
        wrong = [
            (self._count_values_of_another(model, name, reply), reply is found[name][0])
            for name, replies in found.items()
            for reply in replies
            if _has_other_values(self._answers[name], reply, model)
        ]
        is_noisy = not wrong and self._has_noise_together(model, asked)
        has_usual_answers = (
            2 * len(wrong) < REPETITIONS
        )  # unlike a model whose answers depend on earlier ones by design
        if is_noisy or not (has_usual_answers and all(count or is_cached for count, is_cached in wrong)):
            self._unsteady.add(model.name)
        elif sum(count for count, _ in wrong) >= MIN_VALUES:
            return Change.OTHER_REQUEST
        return Change.OTHER_VALUES if wrong or is_noisy else Change.NONE

    def _choose_repeated_requests(self, model: DeployedModel, expected: Tensor | None) -> dict[str, Message]:
        """Return the latest control requests of the row, and a further one, so that each has another one before it."""

        def has_expected_output(item: tuple[str, Message]) -> bool:
            output = self._answers[item[0]].answer.output(expected.name) if expected else None
            if expected is None or output is None or output.array is None:
                return False
            return np.array_equal(output.array, expected.array)

        latest = sorted(self._row_requests.items(), key=has_expected_output)[-MAX_REPEATED:]
        if latest:
            self._send_control_request(model, model.draw(model.salt + 1))
        chosen = dict([*latest, *list(self._row_requests.items())[-1:]])
        return {name: message for name, message in chosen.items() if self._answers[name].succeeded}

    def _count_values_of_another(self, model: DeployedModel, name: str, reply: Reply) -> int:
        """Return how many different values an answer shares with the answer to another request; 0 if there is none.

        An answer that many requests have, such as a label, shows nothing. Nor does one that noise may have made of the
        right answer: the noise of a model that depends on the time grows with it.
        """
        names = model.list_comparable_outputs()
        others = [
            answer
            for other, answer in self._answers.items()
            if other.startswith(f"control {model.name} ")
            and other != name
            and not find_differing_outputs(answer, reply, names, model.noise)
            and _is_distinct(self._answers[name], answer, model)
        ]
        tensors = filter(None, (as_tensor(output) for output in reply.answer.outputs if output.name in names))
        counts = [len(set(one.array.reshape(-1).tolist())) - (not lookup(one.datatype).is_float) for one in tensors]
        return sum(counts) if 0 < len(others) <= MAX_ALIKE else 0

    def _has_noise_together(self, model: DeployedModel, asked: Mapping[str, Message]) -> bool:
        """Whether control requests in flight together get answers that differ by noise that discovery did not see.

        Larger differences may be outputs of another request, so they do not show that a model is not deterministic.
        """
        names = model.list_comparable_outputs()
        twice = [(self._answers[name], message) for name, message in asked.items()] * 2
        replies = self.target.send_together([message for _, message in twice])
        return any(
            set(find_differing_outputs(usual, reply, names, model.noise)) & set(measure_noise(usual, reply, names))
            for (usual, _), reply in zip(twice, replies, strict=True)
        )

    def _send_control_request(self, model: DeployedModel, tensors: Sequence[Tensor]) -> str:
        """Send a control request unless its answer is cached; return the name of the answer.

        The request has a scope of its own in the recording, because several processes of a run may send it.
        """
        form = model.name, model.version, model.outputs, model.binary_only, model.trouble, model.json_trouble
        key = *form, _digest_tensors(tensors)
        if key not in self._requests:
            self._requests[key] = self._build_control_request(replace(model, tensors=tuple(tensors)))
        name, message = self._requests[key]
        if name not in self._answers:
            with self.target.scope(name):
                self._answers[name] = self.target.send_until_not_busy(message)
        self._row_requests[name] = message
        return name

    def _build_control_request(self, model: DeployedModel) -> tuple[str, Message]:
        request = model.build_plain_request()
        message = make_infer_message(request) if self.is_over_grpc else request.message()
        digest = blake2b(message.body, digest_size=8).hexdigest()
        return f"control {model.name} {digest}" + (" over gRPC" if self.is_over_grpc else ""), message

    def _build_refusal_error(self, model: DeployedModel, reply: Reply) -> Exception:
        """Return the error for a refused control request.

        Return a `DeclinedError` if the model still accepts the inputs that discovery found, else a `BlockedError`.
        """
        if self._answers[self._send_control_request(model, model.tensors)].succeeded:
            return DeclinedError(f"{model.name} refuses these inputs in a plain request: {reply.outcome()}")
        return BlockedError(f"{model.name} answers no plain request: {reply.outcome()}")

    def _read_output(self, model: DeployedModel, reply: Reply, name: str) -> Tensor:
        output = reply.answer.output(name)
        if output is None or (tensor := as_tensor(output)) is None:
            found = "; ".join(map(str, output.findings)) if output else reply.outcome()
            raise BlockedError(
                f"output {name} of {model.name} cannot be read in the answer to a plain request: {found}"
            )
        return replace(model.allow_rounding(tensor), is_approximate=True)


def _digest_tensors(tensors: Iterable[Tensor]) -> bytes:
    """Return a digest of names, datatypes, shapes and elements."""
    digest = blake2b(digest_size=16)
    for tensor in tensors:
        digest.update(repr((tensor.name, tensor.datatype, tensor.shape)).encode())
        digest.update(tensor.to_bytes())
    return digest.digest()


def as_tensor(output: Found) -> Tensor | None:
    """Convert a parsed output to a tensor of exact values; None if it could not be decoded."""
    if output.array is None or output.shape is None:
        return None
    return Tensor(output.name, output.datatype, output.shape, output.array)


def read_outputs(model: Model, outputs: Iterable[Found]) -> list[Tensor]:
    """Return the outputs of an answer that could be decoded, with the tolerance of the model that computed them."""
    return [model.allow_rounding(tensor) for tensor in map(as_tensor, outputs) if tensor is not None]


def measure_noise(first: Reply, second: Reply, names: Sequence[str]) -> dict[str, float]:
    """Return output -> the largest difference of its floats between two answers to the same request.

    Differences are relative to the largest element. Outputs that are equal, or that differ by more than noise, are left
    out: a tensor of another request is not noise.
    """
    pairs = {name: (first.answer.output(name), second.answer.output(name)) for name in names}
    found: dict[str, float] = {}
    for name, (one, other) in pairs.items():
        a, b = one and as_tensor(one), other and as_tensor(other)
        if a and b and (a.datatype, a.shape) == (b.datatype, b.shape) and lookup(a.datatype).is_float:
            with np.errstate(invalid="ignore"):  # equal infinities, and NaN
                difference = find_largest_magnitude(a.array.astype("<f8") - b.array.astype("<f8"))
            noise = difference / (find_largest_magnitude(a.array) or 1)
            found |= {name: noise} if 0 < noise <= MAX_NOISE else {}
    return found


def find_differing_outputs(
    first: Reply, second: Reply, names: Sequence[str] | None = None, noise: Mapping[str, float] = NO_NOISE
) -> list[str]:
    """Return the names of the outputs that differ between two answers to the same request.

    Compares only the outputs in `names`, if given. Compares floats within the tolerance for JSON and the noise of the
    model: batching or several processors may change the last bits of a correct answer.
    """
    every = dict.fromkeys((*first.answer.names(), *second.answer.names()))
    wanted = [name for name in every if names is None or name in names]
    return [name for name in wanted if not _is_same_output(first, second, name, noise.get(name, 0))]


def _has_other_values(first: Reply, second: Reply, model: DeployedModel) -> bool:
    """Whether a steady output is present in both answers with the same datatype, but with other values.

    A missing output or another datatype is a fault of the server, not a sign of a nondeterministic model.
    """
    if first.body == second.body and first.header(INFERENCE_HEADER) == second.header(INFERENCE_HEADER):
        return False  # mostly so, and quicker than to compare the values
    names = find_differing_outputs(first, second, model.list_comparable_outputs(), model.noise)
    pairs = [(first.answer.output(name), second.answer.output(name)) for name in names]
    return any(one and other and one.datatype == other.datatype for one, other in pairs)


def _is_distinct(first: Reply, second: Reply, model: DeployedModel) -> bool:
    """Whether a steady output differs so much between the answers to two requests that noise is no reason."""
    pairs = [(first.answer.output(name), second.answer.output(name)) for name in model.list_comparable_outputs()]
    tensors = [(one and as_tensor(one), other and as_tensor(other)) for one, other in pairs]
    return any(one and other and are_distinct(model.allow_rounding(one), other) for one, other in tensors)


def _find_usual_answer(replies: Sequence[Reply], model: DeployedModel) -> Reply:
    """Return the answer that most of these answers to one request agree with."""
    return max(replies, key=lambda one: sum(not _has_other_values(one, other, model) for other in replies))


def _is_same_output(first: Reply, second: Reply, name: str, noise: float) -> bool:
    a, b = first.answer.output(name), second.answer.output(name)
    if a is None or b is None or (a.datatype, a.shape) != (b.datatype, b.shape):
        return False
    one, other = as_tensor(a), as_tensor(b)
    if one is None or other is None:
        return one is other
    return find_difference(allow_noise(one, noise), b, second.body, through_json=True) is None
