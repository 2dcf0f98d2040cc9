"""Replay the golden calls of `fixtures/grpc`, and compare each answer with the expectation of its case.

The suite does not generate these messages: they were written byte for byte, each with a description of its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.checks.support.controls import is_right
from conformance.checks.support.golden_classes import LIST_REQUIREMENTS, expect_classes
from conformance.expect.attribution import attribute_missing_grpc_output
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.golden_calls import GrpcCase, load_all
from conformance.roles.golden_requests import ExpectedOutput as Expected
from conformance.roles.model import Model
from conformance.spec.check import Only, Row, check, rows
from conformance.spec.extensions import CLASSES_OVER_GRPC, GRPC
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire import tensor
from conformance.wire.finding import format_value
from conformance.wire.grpc_request import GRPC_METHOD, SERVICE, Pb, load_stubs
from conformance.wire.request import SAME_NAMES, Form, Message, RequestedOutput
from conformance.wire.tensor import Tensor


def build_case_message(case: GrpcCase, model: Model) -> Message:
    """Return the call of a case, byte for byte, to the model that fills its role on the target.

    Raises NotApplicableError: the target uses other tensor names than those in the bytes.
    """
    if model.names != SAME_NAMES:
        raise NotApplicableError(f"the bytes of the call name tensors that have other names on {model.name}")
    body = case.body
    if (model.name, model.version) != (case.role, ""):
        request = load_stubs().ModelInferRequest.FromString(body)
        request.model_name, request.model_version = model.name, model.version
        body = request.SerializeToString(deterministic=True)
    return Message(f"/{SERVICE}/ModelInfer", (), body, GRPC_METHOD)


def _list_rows(*, refused: bool) -> Iterator[Row]:
    """Yield a row for each golden call whose case has this value of `refused`."""
    for case in load_all():
        if case.refused == refused:
            needs = CLASSES_OVER_GRPC if _has_classes(case) else ()
            yield Row(case.name, (case,), role=case.role, requirements=case.requirements, needs=needs)


def _has_classes(case: GrpcCase) -> bool:
    """Say whether a case expects classes."""
    return any(output.classes is not None for output in case.outputs)


@check(
    "grpc.golden-call-is-answered",
    over=(GRPC,),
    only=Only(GRPC, "`golden.valid-case-is-answered` has the golden bytes of requests"),
)
@rows(*_list_rows(refused=False))
def golden_call_is_answered(target: GrpcTarget, model: Model, case: GrpcCase) -> None:
    """The server answers a golden call with the golden outputs."""
    reply = target.send(build_case_message(case, model))
    expect(reply).answered()
    with block_if(
        lambda: _is_simpler_call_wrong(target, model, case),
        "the answers to simpler calls with these tensors are also wrong",
    ):
        _expect_case_outputs(case, model, reply)


@check(
    "grpc.golden-call-is-refused",
    over=(GRPC,),
    only=Only(GRPC, "`golden.invalid-case-is-refused` has the golden bytes of requests"),
)
@rows(*_list_rows(refused=True))
def golden_call_is_refused(target: GrpcTarget, model: Model, case: GrpcCase) -> None:
    """The server refuses a golden call with one fault; some calls may get a correct answer instead."""
    reply = target.send(build_case_message(case, model), fresh=True)
    if reply.succeeded and case.outputs:
        _expect_case_outputs(case, model, reply)
        return
    expect(reply).refused(case.name.replace("-", " "))
    expect_alive(target, model)


def _expect_case_outputs(case: GrpcCase, model: Model, reply: Reply) -> None:
    """Expect exactly the outputs of a case."""
    names = sorted(output.name for output in case.outputs)
    if sorted(reply.answer.names()) != names:
        found = f"outputs {format_value(list(reply.answer.names()))}"
        raise UnmetError(
            f"outputs {format_value(names)}",
            found,
            reply,
            requirement=attribute_missing_grpc_output(reply.exchange.message),
        )
    for output in case.outputs:
        if output.classes is None:
            expect(reply).tensors([model.allow_rounding(_build_tensor(output))], through_json=False)
        else:
            _expect_case_classes(case, model, reply, output)


def _expect_case_classes(case: GrpcCase, model: Model, reply: Reply, output: Expected) -> None:
    """Expect the classes of a case; attribute wrong lists of classes in a batch to CLS-BATCH/grpc."""
    try:
        expect_classes(model, reply, output)
    except UnmetError as unmet:
        if "CLS-BATCH/grpc" in case.requirements and unmet.requirement in LIST_REQUIREMENTS:
            unmet.requirement = "CLS-BATCH/grpc"
        raise


def _build_tensor(output: Expected) -> Tensor:
    """Return an expected output as a tensor."""
    return Tensor.from_values(output.name, output.datatype, list(output.values or ()), output.shape)


# --- causes of a failure ----------------------------------------------------------------------------------------------


def _is_simpler_call_wrong(target: GrpcTarget, model: Model, case: GrpcCase) -> bool:
    """Say whether the same tensors get a wrong answer in a simpler call.

    One simpler call has its inputs in declared order and requests no classes; another sends a single batch item.
    """
    request = load_stubs().ModelInferRequest.FromString(case.body)
    send: Form = "binary" if request.raw_input_contents else "json"
    declared = [spec.name for spec in model.role.inputs]
    tensors = sorted(_decode_inputs(request), key=lambda each: declared.index(each.name))
    if _has_classes(case) or [each.name for each in request.inputs] != declared:
        return not (
            is_right(target, model, tensors, send)
            and is_met(lambda: _expect_first_item_classes(target, model, case, tensors))
        )
    return False


def _expect_first_item_classes(target: GrpcTarget, model: Model, case: GrpcCase, tensors: Sequence[Tensor]) -> None:
    """Expect the correct classes if only the first batch item is sent; do nothing if the case has no batch."""
    (output, *others) = case.outputs
    if not model.role.batching or output.classes is None or others:
        return
    count = output.shape[-1]
    item = [Tensor(each.name, each.datatype, each.array[:1].shape, each.array[:1]) for each in tensors]
    wanted = RequestedOutput(output.name, classification=count)
    reply = target.infer(model.request(item, send="json", outputs=[wanted]))
    alone = replace(output, shape=(1, count), classes=output.classes[:count])
    expect_classes(model, reply, alone)


def _decode_inputs(request: Pb) -> Iterator[Tensor]:
    """Yield the inputs of a message as tensors."""
    for index, entry in enumerate(request.inputs):
        if request.raw_input_contents:
            array = tensor.decode(entry.datatype, tuple(entry.shape), request.raw_input_contents[index])
            yield Tensor(entry.name, entry.datatype, tuple(entry.shape), array)
        else:
            ((_, values),) = entry.contents.ListFields()
            yield Tensor.from_values(entry.name, entry.datatype, list(values), tuple(entry.shape))
