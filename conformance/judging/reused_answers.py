"""Finds whether a server reuses the outputs of an earlier request that has the same inputs but other options.

A response cache does so if its key leaves out the requested outputs. The row that meets it first may be about any
option, and would accuse the server of ignoring this option. Control requests show the cause: the server obeys the same
options with inputs that it has not seen, but not with inputs of a request with other options. Names, datatypes and
forms of outputs are compared, and the number of classes: they depend on no input.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any
from zlib import crc32

import numpy as np

from conformance.expect.attribution import to_grpc_requirement
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec
from conformance.spec.text import escape_text, format_shape
from conformance.transport.broken_request import is_busy
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.grpc_request import make_infer_message, parse_request
from conformance.wire.json_text import parse_json
from conformance.wire.request import ABSENT, INFERENCE_HEADER, InferRequest, Message, RequestedOutput
from conformance.wire.tensor import Tensor

ISOLATION = "OIP-ISOLATION"
TRIALS = 2  # so that a server whose answers vary at random, or by turns, is rarely accused
VARIABLE_SIZE, MAX_ELEMENT = 8, 100  # of inputs that are drawn at random


def find_reuse(target: Target, model: Model, reply: Reply) -> UnmetError | None:
    """Return the violation of OIP-ISOLATION if a reply is wrong because the server reuses outputs, else None."""
    request = _read_options(reply.exchange.message, model) if _is_comparable(reply) else None
    if request is None or not model.role.outputs:
        return None
    inputs = iter([_make_inputs(model, reply.exchange.message, number) for number in range(1 + 2 * TRIALS)])
    other = _choose_other_options(request, model, is_over_grpc=reply.is_over_grpc)
    if other is None:
        return None
    usual = _send(target, request, model, next(inputs), reply)
    right, found = _summarize(usual, request), None
    if not usual.succeeded or right == _summarize(reply, request):
        return None
    for seen, unseen in zip(inputs, inputs, strict=True):
        before = _send(target, other, model, seen, reply)
        obeyed, again = (_send(target, request, model, tensors, reply) for tensors in (unseen, seen))
        is_right = [_summarize(one, request) == right for one in (obeyed, again)]
        if is_right != [True, False] or not (before.succeeded and _is_comparable(again)):
            return None
        found = UnmetError(
            f"{_describe(obeyed)}, as in the answer to the same request with other inputs",
            f"{_describe(again)}, after a request with the same inputs and other options",
            again,
            requirement=to_grpc_requirement(ISOLATION) if reply.is_over_grpc else ISOLATION,
            since=before.exchange.number,
        )
    return found


def _is_comparable(reply: Reply) -> bool:
    """Say whether a reply is an answer, or a refusal that is not for the load of the server."""
    return reply.succeeded or (reply.is_refusal and not is_busy(reply))


# --- options ----------------------------------------------------------------------------------------------------------


def _read_options(message: Message, model: Model) -> InferRequest | None:
    """Return a request with the options of a message; None if it goes to another model, is raw, or is no request."""
    if message.path.endswith("/ModelInfer"):
        call = parse_request(message)
        if call is None or call.model_name != model.name:
            return None
        return model.request((), outputs=[_read_called_output(output, message) for output in call.outputs] or None)
    document: Any = parse_json(message.body[: message.json_length]).value
    if message.path != model.infer_path or message.header(INFERENCE_HEADER) == "0" or not isinstance(document, dict):
        return None
    try:
        flag = (document.get("parameters") or {}).get("binary_data_output", ABSENT)
        outputs = [_read_output(output, message) for output in document.get("outputs") or ()]
    except (LookupError, TypeError, AttributeError):
        return None
    return model.request((), outputs=outputs or None, binary_data_output=flag)


def _read_called_output(output: Any, message: Message) -> RequestedOutput:
    count = output.parameters["classification"].int64_param if "classification" in output.parameters else ABSENT
    return RequestedOutput(message.names.get(output.name, output.name), classification=count)


def _read_output(output: Any, message: Message) -> RequestedOutput:
    given = output.get("parameters") or {}
    values = (given.get(name, ABSENT) for name in ("binary_data", "classification"))
    return RequestedOutput(message.names.get(output["name"], output["name"]), *values)


def _choose_other_options(request: InferRequest, model: Model, *, is_over_grpc: bool) -> InferRequest | None:
    """Return a request whose answer has other outputs, or outputs in another form; None if there is none to be had."""
    names = [spec.name for spec in model.role.outputs]
    last = model.build_plain_output(names[-1])
    if len(names) == 1 and _is_plain(request):
        if is_over_grpc and model.role.outputs[0].datatype == "BYTES":
            return None  # strings have no classes, and some servers end when they are asked for them
        other = replace(last, classification=1) if is_over_grpc else replace(last, binary_data=True)
        return model.request((), outputs=[other])
    is_one_listed = len(request.outputs or ()) == 1
    return model.request((), outputs=model.build_outputs_member() if is_one_listed else [last])


def _is_plain(request: InferRequest) -> bool:
    """Say whether a request asks for no output as binary data or as classes."""
    flags = [output.binary_data for output in request.outputs or ()] or [ABSENT]
    is_binary = any((request.binary_data_output if flag is ABSENT else flag) is True for flag in flags)
    return not is_binary and all(output.classification is ABSENT for output in request.outputs or ())


# --- requests ---------------------------------------------------------------------------------------------------------


def _make_inputs(model: Model, message: Message, number: int) -> tuple[Tensor, ...]:
    """Return inputs that the server has not seen, as far as the model allows; they depend on a message and a number."""
    seed = crc32(message.body) + number
    if model.is_deployed:
        return replace(model, salt=seed % 256).sample()
    generator = np.random.default_rng(seed)
    return tuple(_draw_tensor(generator, model, *pair) for pair in zip(model.role.inputs, model.sample(), strict=True))


def _draw_tensor(generator: np.random.Generator, model: Model, spec: TensorSpec, sample: Tensor) -> Tensor:
    """Return random elements for an input; variable dimensions have the size `VARIABLE_SIZE`."""
    batch = sample.shape[: len(sample.shape) - len(spec.shape)]
    shape = (*batch, *[VARIABLE_SIZE if size < 0 else size for size in spec.shape])
    most = len(model.role.table) if model.role.compute == "table" else MAX_ELEMENT
    elements = generator.integers(1, most, prod(shape), endpoint=True)
    if spec.datatype == "BOOL":
        elements = elements % 2
    values = [b"%d" % element for element in elements] if spec.datatype == "BYTES" else elements
    return Tensor.from_values(spec.name, spec.datatype, values, shape)


def _send(target: Target, options: InferRequest, model: Model, tensors: tuple[Tensor, ...], reply: Reply) -> Reply:
    """Send a request with these options and inputs, over the transport of a reply."""
    request = model.request(
        tensors, send=model.plain_input_form, outputs=options.outputs, binary_data_output=options.binary_data_output
    )
    return target.send(make_infer_message(request) if reply.is_over_grpc else request.message(), fresh=True)


# --- answers ----------------------------------------------------------------------------------------------------------


def _summarize(reply: Reply, request: InferRequest) -> list[tuple[str, str, bool, str]]:
    """Return name, datatype and form of each output, and the shape of classes; over gRPC, servers choose the form.

    A refusal has no outputs.
    """
    classified = {output.name for output in request.outputs or () if output.classification is not ABSENT}
    return sorted(
        (one.name, one.datatype, one.binary and not reply.is_over_grpc, str(one.name in classified and one.shape))
        for one in reply.answer.outputs
    )


def _describe(reply: Reply) -> str:
    if not reply.succeeded:
        return escape_text(reply.outcome())
    outputs = [
        f"{escape_text(one.name, 60)} {escape_text(one.datatype, 20)} {format_shape(one.shape)}"
        f"{' as binary data' if one.binary and not reply.is_over_grpc else ''}"
        for one in reply.answer.outputs
    ]
    return f"outputs {', '.join(outputs)}"
