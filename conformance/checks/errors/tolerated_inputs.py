"""Requests that contradict the metadata: a server that accepts them still has to return correct tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from conformance.checks.errors.impossible_requests import WIDER
from conformance.checks.support.inputs import choose_revealing_inputs
from conformance.expect.difference import find_difference
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Only, Row, claim, rows
from conformance.spec.extensions import BINARY, HTTP
from conformance.spec.fit import JSON, Fit
from conformance.spec.text import format_elements
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.wire.datatypes import DATATYPES
from conformance.wire.request import ABSENT, Form, InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor

# --- against the metadata ---------------------------------------------------------------------------------------------
# All values are small integers, which every datatype can represent. Values are compared in row-major order, whatever
# the datatype and shape of the outputs.


@dataclass(frozen=True, slots=True)
class CountingMismatch:
    """A request to a role, with a mismatched input whose elements are 1, 2, 3, ...

    Attributes:
        name: the name of the mismatched input.
        datatype: the datatype in which the input is sent.
        shape: the shape in which the input is sent.
        accepted_shape: the shape that the model accepts, with the same number of elements.
        binary: the names of the inputs that are binary data, in the order of the request.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    accepted_shape: tuple[int, ...]
    binary: tuple[str, ...]

    def build_request(self, model: Model) -> InferRequest:
        """Return the request with the mismatched input."""
        values = list(range(1, 1 + prod(self.shape)))
        return self._build_with_changed_input(model, Tensor.from_values(self.name, self.datatype, values, self.shape))

    def build_control(self, model: Model) -> tuple[InferRequest, tuple[Tensor, ...]]:
        """Return the control request and its correct outputs.

        The control request has the values of the mismatched request, but conforms to the metadata.
        """
        spec = next(spec for spec in model.role.inputs if spec.name == self.name)
        right = Tensor.from_values(
            self.name, spec.datatype, list(range(1, 1 + prod(self.accepted_shape))), self.accepted_shape
        )
        return self._build_with_changed_input(model, right), model.expected(self._list_inputs(model, right))

    def _list_inputs(self, model: Model, changed: Tensor) -> list[Tensor]:
        """Return all inputs of the model, binary inputs first; `changed` replaces the sample input of the same name."""
        order = [*self.binary, *[spec.name for spec in model.role.inputs if spec.name not in self.binary]]
        others = {tensor.name: tensor for tensor in model.sample()} | {changed.name: changed}
        return [others[name] for name in order]

    def _build_with_changed_input(self, model: Model, changed: Tensor) -> InferRequest:
        """Return a request in which `changed` replaces the sample input of the same name."""
        return model.request(self._list_inputs(model, changed), send=self.binary)


# floating-point datatype -> the integer datatype of the same width
INTEGER_OF_SAME_WIDTH = {"FP16": "INT16", "FP32": "INT32", "FP64": "INT64"}


@dataclass(frozen=True, slots=True)
class RecastMismatch:
    """A request to a deployed model, with inputs that are cast to other datatypes without loss.

    Attributes:
        datatypes: datatype of an input -> the datatype in which it is sent.
        is_binary: whether all inputs are sent as binary data.
    """

    datatypes: Mapping[str, str]
    is_binary: bool

    def build_row(self, name: str) -> Row:
        """Return a row that sends this request to a deployed model."""
        fit = Fit(some_input=frozenset(self.datatypes), is_json=not self.is_binary)
        return Row(name, (self,), needs=BINARY if self.is_binary else (), fit=fit)

    def build_request(self, model: Model) -> InferRequest:
        """Return the request with the mismatched input."""
        return self._build_request(
            model, [self._cast_to_sent_datatype(tensor) for tensor in self._choose_distinguishing_inputs(model)]
        )

    def build_control(self, model: Model) -> tuple[InferRequest, tuple[Tensor, ...]]:
        """Return the control request and its correct outputs."""
        tensors = self._choose_distinguishing_inputs(model)
        return self._build_request(model, tensors), model.expected(tensors)

    def _choose_distinguishing_inputs(self, model: Model) -> Sequence[Tensor]:
        """Return inputs that give other outputs if a server reads the cast bytes in the datatype of the model."""
        drawn = choose_revealing_inputs(
            model,
            lambda tensors: [self._misread_as_model_datatype(self._round_for_integers(tensor)) for tensor in tensors],
        )
        return [self._round_for_integers(tensor) for tensor in drawn]

    def _build_request(self, model: Model, tensors: Sequence[Tensor]) -> InferRequest:
        """Return a request with all inputs in the same encoding."""
        return model.request(tensors, send="binary" if self.is_binary else "json")

    def _round_for_integers(self, tensor: Tensor) -> Tensor:
        """Return the tensor, with elements rounded if the sent datatype is an integer type."""
        other = self.datatypes.get(tensor.datatype, "")
        return replace(tensor, array=np.round(tensor.array)) if other.startswith("INT") else tensor

    def _cast_to_sent_datatype(self, tensor: Tensor) -> Tensor:
        """Return the tensor in the datatype in which it is sent."""
        other = self.datatypes.get(tensor.datatype)
        return Tensor.from_values(tensor.name, other, tensor.array.astype(DATATYPES[other].dtype)) if other else tensor

    def _misread_as_model_datatype(self, tensor: Tensor) -> Tensor:
        """Return the values that a server gets if it reads the cast bytes in the model's datatype.

        The values are clipped to the range of the original elements.
        """
        if tensor.datatype not in self.datatypes:
            return tensor
        read = np.frombuffer(self._cast_to_sent_datatype(tensor).to_bytes(), tensor.array.dtype)[: tensor.elements]
        array = np.nan_to_num(read).clip(tensor.array.min(), tensor.array.max())
        return replace(tensor, array=array.astype(tensor.array.dtype).reshape(tensor.shape))


INPUT = ("INPUT",)


def _build_row(name: str, role: str, mismatch: CountingMismatch) -> Row:
    """Return a row that sends a mismatched request to a role."""
    only = Only(HTTP, "a call has one form of contents") if mismatch.binary not in ((), INPUT) else None
    return Row(name, (mismatch,), role=role, needs=BINARY if mismatch.binary else (), only=only)


THREE, SIX = (3,), (2, 3)
ROWS = (
    _build_row("binary-floats-for-int32", "cast_int32_fp32", CountingMismatch("INPUT", "FP32", THREE, THREE, INPUT)),
    _build_row("binary-int32-for-floats", "identity_fp32", CountingMismatch("INPUT", "INT32", THREE, THREE, INPUT)),
    _build_row("binary-doubles-for-int64", "identity_int64", CountingMismatch("INPUT", "FP64", THREE, THREE, INPUT)),
    _build_row("floats-for-int32-in-json", "cast_int32_fp32", CountingMismatch("INPUT", "FP32", THREE, THREE, ())),
    _build_row(
        "doubles-before-booleans", "multi", CountingMismatch("IN_FP32", "FP64", THREE, THREE, ("IN_FP32", "IN_BOOL"))
    ),
    _build_row(
        "int32-before-booleans", "multi", CountingMismatch("IN_INT64", "INT32", THREE, THREE, ("IN_INT64", "IN_BOOL"))
    ),
    _build_row("binary-dimensions-exchanged", "fixed", CountingMismatch("INPUT", "INT32", SIX[::-1], SIX, INPUT)),
    _build_row("binary-dimensions-in-one", "fixed", CountingMismatch("INPUT", "INT32", (6,), SIX, INPUT)),
    _build_row("dimensions-exchanged-in-json", "fixed", CountingMismatch("INPUT", "INT32", SIX[::-1], SIX, ())),
    _build_row("binary-batch-dimension-missing", "batching", CountingMismatch("INPUT", "INT32", THREE, (1, 3), INPUT)),
)


@claim("errors.input-against-the-metadata-alters-no-tensor", requirements="OIP-SIGNATURE-SAFE")
@rows(
    *ROWS,
    RecastMismatch(WIDER, is_binary=False).build_row("wider-elements-in-json"),
    RecastMismatch(WIDER, is_binary=True).build_row("wider-elements"),
    RecastMismatch(INTEGER_OF_SAME_WIDTH, is_binary=True).build_row("whole-numbers-as-integers"),
)
def input_against_the_metadata_alters_no_tensor(
    target: AnyTarget, model: Model, mismatch: CountingMismatch | RecastMismatch
) -> str:
    """The server refuses an input of an undeclared datatype or shape, or returns the values unchanged."""
    control, expected = mismatch.build_control(model)
    reply = target.send(target.message(mismatch.build_request(model)), fresh=True)
    if not reply.succeeded:
        expect(reply).refused()
        expect_alive(target, model)
        return "refused"

    def is_control_wrong() -> bool:
        return not is_met(lambda: _expect_values(target.send(target.message(control), fresh=True), expected))

    with block_if(is_control_wrong, "the answer is also wrong if the inputs have the declared datatype and shape"):
        _expect_values(reply, expected)
    return "accepted, with the same values"


def _expect_values(reply: Reply, expected: Sequence[Tensor]) -> None:
    """Expect the values of these outputs, ignoring datatype and shape."""
    for tensor in expected:
        array = expect(reply).output(tensor.name).array
        right = tensor.array.reshape(-1).tolist()
        tolerance = MODEL_TOLERANCE if tensor.is_approximate else ROUNDING_TOLERANCE
        if array is None or not are_values_equal(array.reshape(-1).tolist(), right, tolerance, tensor.tolerance):
            found = "no readable values" if array is None else format_elements(array)
            raise UnmetError(f"{tensor.name} = {format_elements(tensor.array)}", found, reply)


# Relative tolerances: for rounding in JSON, and for deployed models, which may compute in wider datatypes.
ROUNDING_TOLERANCE, MODEL_TOLERANCE = 1e-6, 1e-3


def are_values_equal(found: Sequence[object], right: Sequence[object], relative: float, absolute: float) -> bool:
    """Say whether values are equal; numbers may differ by either tolerance."""
    if len(found) != len(right):
        return False
    return all(
        a == b
        or (
            isinstance(a, int | float) and isinstance(b, int | float) and abs(a - b) <= max(relative * abs(b), absolute)
        )
        for a, b in zip(found, right, strict=True)
    )


# --- repeated tensors -------------------------------------------------------------------------------------------------

# Builds a request, and the alternative sets of correct outputs.
RepeatedRequestBuilder = Callable[[Model], tuple[InferRequest, list[tuple[Tensor, ...]]]]


def _request_outputs(*listed: tuple[str, object]) -> RepeatedRequestBuilder:
    """Return a builder of a request for these outputs, each with its `binary_data`; an output may be listed twice."""

    def build(model: Model) -> tuple[InferRequest, list[tuple[Tensor, ...]]]:
        names = {name for name, _ in listed}
        wanted = [RequestedOutput(name, binary) for name, binary in listed]
        expected = tuple(tensor for tensor in model.expected(model.sample()) if tensor.name in names)
        return model.request(send="json", outputs=wanted), [expected]

    return build


def _repeat_first_output(binary: object) -> RepeatedRequestBuilder:
    """Return a builder of a request that lists the first output again after the last one."""

    def build(model: Model) -> tuple[InferRequest, list[tuple[Tensor, ...]]]:
        names = [spec.name for spec in model.role.outputs]
        return _request_outputs(*[(name, binary) for name in (*dict.fromkeys((names[0], names[-1])), names[0])])(model)

    return build


def _repeat_first_input(send: Form) -> RepeatedRequestBuilder:
    """Return a builder of a request with the first input twice, with different values, before the other inputs."""

    def build(model: Model) -> tuple[InferRequest, list[tuple[Tensor, ...]]]:
        first, *others = model.sample()
        again = Tensor.from_values(first.name, first.datatype, first.array[::-1].copy())
        request = model.request([first, again, *others], send=send)
        return request, [model.expected([one, *others]) for one in (first, again)]

    return build


_FORM = Only(HTTP, "calls cannot ask for the form of an output")


@claim("errors.repeated-tensor-alters-none", requirements="OIP-TWICE-SAFE")
@rows(
    Row(
        "output-in-json", (_request_outputs(("SUM", ABSENT), ("DIFFERENCE", ABSENT), ("SUM", ABSENT)),), role="add_sub"
    ),
    Row(
        "binary-output",
        (_request_outputs(("SUM", True), ("SUM", True), ("DIFFERENCE", True)),),
        role="add_sub",
        needs=BINARY,
        only=_FORM,
    ),
    Row(
        "output-in-two-forms",
        (_request_outputs(("OUT_BOOL", True), ("OUT_INT64", True), ("OUT_BOOL", False), ("OUT_FP32", True)),),
        role="multi",
        needs=BINARY,
        only=_FORM,
    ),
    Row("first-output-in-json", (_repeat_first_output(ABSENT),), fit=JSON),
    Row("first-output-as-binary-data", (_repeat_first_output(True),), needs=BINARY, fit=JSON, only=_FORM),
    Row("input-in-json", (_repeat_first_input("json"),), role="add_sub", fit=Fit(min_rank=1, is_json=True)),
    Row("binary-input", (_repeat_first_input("binary"),), role="add_sub", needs=BINARY, fit=Fit(min_rank=1)),
)
def repeated_tensor_alters_none(target: AnyTarget, model: Model, build: RepeatedRequestBuilder) -> str:
    """The server refuses a request that names a tensor twice, or returns all outputs correctly."""
    request, candidates = build(model)
    reply = target.send(target.message(request), fresh=True)
    if not reply.succeeded:
        expect(reply).refused()
        expect_alive(target, model)
        return "refused"

    def is_wrong_without_repeats() -> bool:
        once = target.send(target.message(_remove_repeated_tensors(request)), fresh=True)
        return not is_met(lambda: _expect_outputs_right(once, candidates[0]))

    wrong = [unmet for expected in candidates if (unmet := _find_first_wrong_output(reply, expected))]
    with block_if(is_wrong_without_repeats, "the answer is also wrong if the request names each tensor only once"):
        if len(wrong) == len(candidates):
            raise wrong[0]
    return f"{len(reply.answer.outputs)} outputs"


def _remove_repeated_tensors(request: InferRequest) -> InferRequest:
    """Return the request without repeated tensors; the first tensor of each name stays."""
    inputs = {item.tensor.name: item for item in reversed(request.inputs)}
    outputs = {output.name: output for output in reversed(request.outputs or ())}
    return replace(
        request,
        inputs=tuple(item for item in request.inputs if inputs[item.tensor.name] is item),
        outputs=tuple(output for output in request.outputs or () if outputs[output.name] is output) or None,
    )


def _find_first_wrong_output(reply: Reply, expected: Sequence[Tensor]) -> UnmetError | None:
    """Return the failure of the first wrong output; None if all outputs are as expected."""
    try:
        _expect_outputs_right(reply, expected)
    except UnmetError as unmet:
        return unmet
    return None


def _expect_outputs_right(reply: Reply, expected: Sequence[Tensor]) -> None:
    """Expect each of these outputs at least once, and every occurrence to be correct."""
    for tensor in expected:
        expect(reply).output(tensor.name)
        for output in reply.answer.outputs:
            if output.name != tensor.name:
                continue
            through_json = False if reply.is_over_grpc else None
            found = find_difference(tensor, output, reply.body, through_json=through_json)
            if found:
                raise UnmetError(found.expected, found.actual, reply, offset=found.offset)
