"""Refusals of requests that a server may refuse, because JSON may not be able to carry the answer.

This module judges the error object; other areas judge the answers to such requests. A server may notice the problem
only after it has written a part of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.expect.refusals import ERROR, expect_error_object, is_refused
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES
from conformance.transport.target import Target
from conformance.wire.request import InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor

NAN = float("nan")
NO_UTF_8 = b"\xff\xfe"


def _build_request(*elements: object) -> Callable[[Model], InferRequest]:
    """Return a builder of a request with these elements as binary input and with JSON outputs."""
    return lambda model: model.request([model.tensor(list(elements))])


def _build_request_of_several_inputs(**elements: Sequence[object]) -> Callable[[Model], InferRequest]:
    """Return a builder of a request to a model with several inputs.

    `elements` replaces the sample elements of inputs, by datatype.
    """

    def build(model: Model) -> InferRequest:
        changed = [
            Tensor.from_values(tensor.name, tensor.datatype, elements.get(tensor.datatype, tensor.array))
            for tensor in model.sample()
        ]
        return model.request(changed)

    return build


def _request_classes(*elements: object) -> Callable[[Model], InferRequest]:
    """Return a builder of a request for two classes of these elements."""
    return lambda model: model.request(
        [model.tensor(list(elements))], outputs=[RequestedOutput(model.role.outputs[0].name, classification=2)]
    )


@check("errors.permitted-refusal-is-an-oip-error", answers=("OIP-ERROR", "OIP-ALIVE"))
@rows(
    Row("nan-first", (_build_request(NAN, 1.0, 2.0),), role="identity_fp32", needs=BINARY),
    Row("nan-last-of-many", (_build_request(*range(300), NAN),), role="identity_fp64", needs=BINARY),
    Row("nan-in-one-of-four", (_build_request_of_several_inputs(FP32=[1.5, NAN, 2.5]),), role="multi", needs=BINARY),
    Row("infinity", (_build_request(1.0, float("inf")),), role="identity_fp64", needs=BINARY),
    Row("no-utf-8-first", (_build_request(NO_UTF_8, "a"),), role="identity_bytes", needs=BINARY),
    Row("no-utf-8-last-of-many", (_build_request(*["a"] * 300, NO_UTF_8),), role="identity_bytes", needs=BINARY),
    Row(
        "no-utf-8-in-one-of-four",
        (_build_request_of_several_inputs(BYTES=[b"a", NO_UTF_8, b"c"]),),
        role="multi",
        needs=BINARY,
    ),
    Row("fp16", (_build_request(1.5, -2.0),), role="identity_fp16", needs=BINARY),
    Row("fp16-behind-a-cast", (_build_request(1.5, -2.0),), role="cast_fp32_fp16", needs=BINARY),
    Row("classes-of-fp16", (_request_classes(1.5, -2.0),), role="identity_fp16", needs=(*BINARY, *CLASSES)),
    Row("classes-of-booleans", (_request_classes(True, False),), role="identity_bool", needs=(*BINARY, *CLASSES)),
    Row("classes-of-nan", (_request_classes(1.5, NAN, 2.5),), role="identity_fp32", needs=(*BINARY, *CLASSES)),
)
def permitted_refusal_is_an_oip_error(target: Target, model: Model, build: Callable[[Model], InferRequest]) -> str:
    """The server answers a request that it may refuse, or refuses it with a JSON object that has the string `error`."""
    reply = target.send(build(model).message(), fresh=True)
    if reply.succeeded:
        return "answered"
    expect_error_object(reply, ERROR)
    is_refused(target, model, reply)
    return "refused"
