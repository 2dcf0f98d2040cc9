"""Calls of ModelInfer that the server cannot carry out, or that contradict a model's metadata, each by one fault."""

from __future__ import annotations

from dataclasses import replace

from conformance.checks.errors.deployed_requests import sample_inputs
from conformance.checks.support.over_grpc import change_nothing, make_faulty_call, set_shape, set_typed
from conformance.checks.support.refusals import Refusal
from conformance.spec.fit import JSON, Fit
from conformance.wire.grpc_request import Edit, Pb


def _model(request: Pb) -> None:
    request.model_name = "there-is-no-such-model"


def _output(request: Pb) -> None:
    request.outputs.add(name="THERE_IS_NO_SUCH_OUTPUT")


def _input(request: Pb) -> None:
    request.inputs[0].name = "THERE_IS_NO_SUCH_INPUT"


def _inputs(request: Pb) -> None:
    del request.inputs[:]


def _without_the_last_input(request: Pb) -> None:
    del request.inputs[-1]


def _datatype(name: str) -> Edit:
    def edit(request: Pb) -> None:
        request.inputs[0].datatype = name

    return edit


def _further_input(request: Pb) -> None:
    entry = request.inputs.add(name="FURTHER", datatype="INT32", shape=[1])
    entry.contents.int_contents.append(1)


def _as_floats(request: Pb) -> None:
    request.inputs[0].datatype = "FP32"
    set_typed("fp32_contents", 1.0, 2.0, 3.0)(request)


MISNAMED_OVER_GRPC: tuple[Refusal, ...] = (
    replace(
        make_faulty_call(
            "needed-input-under-an-unknown-name", "OIP-SIGNATURE/grpc", "identity_int32", _input, unknown=True
        ),
        tensors=sample_inputs,
        fit=Fit(max_inputs=1, is_json=True),  # of several, the first may be optional
    ),
)
_CALLS: tuple[Refusal, ...] = (
    make_faulty_call("unknown-model", "OIP-REFUSAL/grpc", "identity_int32", _model, unknown=True),
    make_faulty_call("unknown-output", "OIP-REFUSAL/grpc", "identity_int32", _output, unknown=True),
    make_faulty_call("no-inputs", "OIP-REFUSAL/grpc", "identity_int32", _inputs),
    make_faulty_call("needed-input-missing", "OIP-REFUSAL/grpc", "add_sub", _without_the_last_input),
    make_faulty_call(
        "cut-message", "OIP-REFUSAL/grpc", "identity_int32", change_nothing, body=lambda body: body[:-2], unknown=True
    ),
    make_faulty_call(
        "no-message", "OIP-REFUSAL/grpc", "identity_int32", change_nothing, body=lambda _: b"\xff\xff\xff", unknown=True
    ),
    make_faulty_call(
        "json-for-a-message",
        "OIP-REFUSAL/grpc",
        "identity_int32",
        change_nothing,
        body=lambda _: b'{"inputs":[]}',
        unknown=True,
    ),
    make_faulty_call("another-datatype", "OIP-SIGNATURE/grpc", "identity_int32", _as_floats),
    make_faulty_call("unknown-datatype", "OIP-SIGNATURE/grpc", "identity_int32", _datatype("INT33")),
    make_faulty_call("another-shape", "OIP-SIGNATURE/grpc", "fixed", set_shape(3, 2)),
    make_faulty_call("another-rank", "OIP-SIGNATURE/grpc", "fixed", set_shape(6)),
    make_faulty_call("negative-shape", "OIP-SIGNATURE/grpc", "identity_int32", set_shape(-3)),
    make_faulty_call("further-input", "OIP-SIGNATURE/grpc", "identity_int32", _further_input, unknown=True),
)
# Those that follow the model's signature, and so go to deployed models, too.
_FITTING = ("unknown-model", "unknown-output", "no-inputs", "no-message", "unknown-datatype")
REFUSALS_OVER_GRPC: tuple[Refusal, ...] = (
    *MISNAMED_OVER_GRPC,
    *[replace(call, fit=JSON if call.fault in _FITTING else None) for call in _CALLS],
)
