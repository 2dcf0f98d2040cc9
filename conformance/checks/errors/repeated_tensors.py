"""Inputs given twice and outputs listed twice, where the server takes them: every tensor is right all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.expect.difference import find_difference
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY
from conformance.spec.fit import JSON, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import ABSENT, Form, InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor

# A request, and the sets of outputs of which one is right.
MakeRepeated = Callable[[Model], tuple[InferRequest, list[tuple[Tensor, ...]]]]


def _outputs(*listed: tuple[str, object]) -> MakeRepeated:
    """Return what lists outputs, some of them twice, with a value of `binary_data` each."""

    def make(model: Model) -> tuple[InferRequest, list[tuple[Tensor, ...]]]:
        names = {name for name, _ in listed}
        wanted = [RequestedOutput(name, binary) for name, binary in listed]
        expected = tuple(tensor for tensor in model.expected(model.sample()) if tensor.name in names)
        return model.request(send="json", outputs=wanted), [expected]

    return make


def _first_output(binary: object) -> MakeRepeated:
    """Return what lists the first output, the last one where there are several, and the first one again."""

    def make(model: Model) -> tuple[InferRequest, list[tuple[Tensor, ...]]]:
        names = [spec.name for spec in model.role.outputs]
        return _outputs(*[(name, binary) for name in (*dict.fromkeys((names[0], names[-1])), names[0])])(model)

    return make


def _inputs(send: Form) -> MakeRepeated:
    """Return what gives the first input twice, with other values, before any others."""

    def make(model: Model) -> tuple[InferRequest, list[tuple[Tensor, ...]]]:
        first, *others = model.sample()
        again = Tensor.of(first.name, first.datatype, first.array[::-1].copy())
        request = model.request([first, again, *others], send=send)
        return request, [model.expected([one, *others]) for one in (first, again)]

    return make


@check("errors.repeated-tensor-alters-none", answers="OIP-TWICE-SAFE")
@rows(
    Row("output-in-json", (_outputs(("SUM", ABSENT), ("DIFFERENCE", ABSENT), ("SUM", ABSENT)),), role="add_sub"),
    Row("binary-output", (_outputs(("SUM", True), ("SUM", True), ("DIFFERENCE", True)),), role="add_sub", needs=BINARY),
    Row(
        "output-in-two-forms",
        (_outputs(("OUT_BOOL", True), ("OUT_INT64", True), ("OUT_BOOL", False), ("OUT_FP32", True)),),
        role="multi",
        needs=BINARY,
    ),
    Row("first-output-in-json", (_first_output(ABSENT),), fit=JSON),
    Row("first-output-as-binary-data", (_first_output(True),), needs=BINARY, fit=JSON),
    Row("input-in-json", (_inputs("json"),), role="add_sub", fit=Fit(min_rank=1, is_json=True)),
    Row("binary-input", (_inputs("binary"),), role="add_sub", needs=BINARY, fit=Fit(min_rank=1)),
)
def repeated_tensor_alters_none(target: Target, model: Model, make: MakeRepeated) -> str:
    """A request that gives an input twice or lists an output twice is refused, or all its tensors are right."""
    request, candidates = make(model)
    reply = target.send(request.message(), fresh=True)
    if not reply.succeeded:
        expect(reply).refused()
        expect_alive(target, model)
        return "refused"

    def is_wrong_once() -> bool:
        plain = _with_each_once(request) if model.is_own_oracle else model.request(want="binary")
        expected = candidates[0] if model.is_own_oracle else model.expected(model.sample())
        once = target.send(plain.message(), fresh=True)
        return not is_met(lambda: _expect_all(once, expected))

    wrong = [unmet for expected in candidates if (unmet := _unmet(reply, expected))]
    with block_if(is_wrong_once, "the request is answered wrongly with each tensor once, too"):
        if len(wrong) == len(candidates):
            raise wrong[0]
    return f"{len(reply.answer.outputs)} outputs"


def _with_each_once(request: InferRequest) -> InferRequest:
    """Return a request with the first of the tensors of each name."""
    inputs = {item.tensor.name: item for item in reversed(request.inputs)}
    outputs = {output.name: output for output in reversed(request.outputs or ())}
    return replace(
        request,
        inputs=tuple(item for item in request.inputs if inputs[item.tensor.name] is item),
        outputs=tuple(output for output in request.outputs or () if outputs[output.name] is output) or None,
    )


def _unmet(reply: Reply, expected: Sequence[Tensor]) -> UnmetError | None:
    try:
        _expect_all(reply, expected)
    except UnmetError as unmet:
        return unmet
    return None


def _expect_all(reply: Reply, expected: Sequence[Tensor]) -> None:
    """Expect each of these outputs, once or more often, and right wherever it stands."""
    for tensor in expected:
        expect(reply).output(tensor.name)
        for output in reply.answer.outputs:
            found = find_difference(tensor, output, reply.body) if output.name == tensor.name else None
            if found:
                raise UnmetError(found.expected, found.actual, reply, offset=found.offset)
