"""Build the request of a step: the form of each input, the requested outputs, and the message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from conformance.checks.support.covering import Step
from conformance.checks.walk.json_writing import write_json
from conformance.checks.walk.tensors import make_tensors
from conformance.roles.model import Model
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import ABSENT, InferRequest, Message, RequestedOutput, frame_text
from conformance.wire.tensor import Tensor

IDS: Mapping[str, str] = {
    "ascii": "walk-{salt}",
    "two-bytes": "é{salt}ß",
    "three-bytes": "{salt}猫",
    "four-bytes": "😀{salt}",
    "quotes": 'q"\\/{salt}\t',
    "long": "l" * 80 + "-{salt}",
}


# value of the axis `classified` -> the indices of the outputs that are classified
CLASSIFIED_INDICES: Mapping[str, Sequence[int]] = {"first": (0,), "second": (1,), "both": (0, 1)}


@dataclass(frozen=True, slots=True)
class StepRequest:
    """The request of a step, and the expected answer.

    Attributes:
        request: the request before encoding; for a raw request, the equivalent request with binary data.
        tensors: the inputs, in declared order.
        expected: all outputs of the model for these inputs, in declared order.
        forms: output name -> the expected form, `binary` or `json`; empty if any form is allowed.
        is_raw: whether the message is a raw binary request.
        salt: the number from which the id of the request derives.
    """

    model: Model
    message: Message
    request: InferRequest
    tensors: tuple[Tensor, ...]
    expected: tuple[Tensor, ...]
    forms: Mapping[str, str]
    is_raw: bool = False
    salt: int = 0


def make_request(step: Step, model: Model, salt: int, tensors: Sequence[Tensor] | None = None) -> StepRequest:
    """Return the request of a step, with these `tensors` as inputs, or with inputs derived from `salt`."""
    inputs = tuple(make_tensors(step, model, salt) if tensors is None else tensors)
    request, expected = _build_request(step, model, inputs, salt), _compute_outputs(model, inputs)
    if step["send"] == "raw":
        message = _change_case_of_header_names(model.raw(bytes(inputs[0].to_bytes())), step)
        forms = {tensor.name: "binary" for tensor in expected}
        return StepRequest(model, message, request, inputs, expected, forms, is_raw=True, salt=salt)
    return StepRequest(
        model, _write_message(request, step), request, inputs, expected, _map_output_forms(request, model), salt=salt
    )


def make_call(step: Step, model: Model, salt: int, tensors: Sequence[Tensor] | None = None) -> StepRequest:
    """Return the request of a step as a gRPC call; the server chooses typed or raw contents for the answer."""
    inputs = tuple(make_tensors(step, model, salt, over_grpc=True) if tensors is None else tensors)
    request = _build_request(step, model, inputs, salt)
    forms = dict.fromkeys(_map_output_forms(request, model), "")
    return StepRequest(
        model, make_infer_message(request), request, inputs, _compute_outputs(model, inputs), forms, salt=salt
    )


def _compute_outputs(model: Model, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    with np.errstate(all="ignore"):  # a cast may meet NaN or overflow to infinity: that is the right output then
        return model.expected(tensors)


def _build_request(step: Step, model: Model, tensors: Sequence[Tensor], salt: int) -> InferRequest:
    """Return the request of a step before its encoding."""
    ordered = {"reversed": tensors[::-1], "rotated": (*tensors[1:], *tensors[:1])}.get(step["order"], tensors)
    identity = IDS.get(step["id"], "").format(salt=salt)
    return model.request(
        tuple(ordered),
        send=[tensor.name for position, tensor in enumerate(ordered) if _is_binary(step, position)],
        outputs=_list_requested_outputs(step, model),
        binary_data_output=_choose_binary_data_output(step),
        request_id=identity or None,
        nested=step["nesting"] == "nested",
    )


def _is_binary(step: Step, position: int) -> bool:
    return step["send"] in ("binary", "raw") or (step["send"] == "mixed" and position % 2 == 1)


def _choose_binary_data_output(step: Step) -> object:
    """Return the value of `binary_data_output` for a step."""
    return {"all-binary": True, "json-of-all-binary": True, "no-binary": False}.get(step["want"], ABSENT)


def _list_requested_outputs(step: Step, model: Model) -> list[RequestedOutput] | None:
    """Return the outputs that the request of a step lists; None if it lists no outputs."""
    names = [spec.name for spec in model.role.outputs]
    listed = {"reversed": names[::-1], "last-alone": names[-1:], "last-first": [*names[-1:], *names[:-1]]}
    chosen = listed.get(step["outputs"], names)
    want = step["want"]
    if step["classes"] != "none":
        return [_make_requested_output(step, model, name) for name in chosen]
    if want in ("nothing", "all-binary", "no-binary", "raw"):
        # With `binary_data_output`, an output without `binary_data` is ambiguous: the area `overrides` judges it.
        is_listed = step["outputs"] != "unlisted" and want != "all-binary"
        return [RequestedOutput(name) for name in chosen] if is_listed else None
    flags = {"json": (False,), "json-of-all-binary": (False,), "binary": (True,), "mixed": (True, False)}[want]
    return [RequestedOutput(name, flags[position % len(flags)]) for position, name in enumerate(chosen)]


def _make_requested_output(step: Step, model: Model, name: str) -> RequestedOutput:
    """Return a requested output, with `classification` if the step asks for its classes."""
    binary = {"json": False, "binary": True}.get(step["want"], ABSENT)
    outputs = [spec.name for spec in model.role.outputs]
    if outputs.index(name) not in CLASSIFIED_INDICES[step["classified"]]:
        return RequestedOutput(name, binary)
    return RequestedOutput(name, binary, count_classes(step, model, outputs.index(name)))


def count_classes(step: Step, model: Model, position: int) -> int:
    """Return the number of classes that a step requests of the output at this position."""
    available = model.count_classes(make_tensors(step, model, 0), position)
    wanted = {"all": available, "all-but-one": available - 1}.get(step["classes"])
    return max(1, min(int(step["classes"]), available) if wanted is None else wanted)


def has_more_classes_than_row(step: Step, model: Model) -> bool:
    """Say whether a step requests more classes of a matrix than a row of it has, from a model that does not batch.

    A server may rank each row of such a matrix, and may refuse a count above the number of classes.
    """
    if step["classes"] == "none" or model.role.batching:
        return False
    shapes = [tensor.shape for tensor in _compute_outputs(model, make_tensors(step, model, 0))]
    return any(
        len(shapes[position]) > 1 and count_classes(step, model, position) > prod(shapes[position][1:])
        for position in CLASSIFIED_INDICES[step["classified"]]
    )


def _map_output_forms(request: InferRequest, model: Model) -> dict[str, str]:
    """Return output name -> the expected form, `json` or `binary`; an empty mapping if any form is allowed."""
    default_form = "binary" if request.binary_data_output is True else "json"
    if request.outputs is None:
        return {spec.name: default_form for spec in model.role.outputs}
    return {output.name: _find_output_form(output, default_form) for output in request.outputs}


def _find_output_form(output: RequestedOutput, default_form: str) -> str:
    if output.binary_data is not ABSENT:
        return "binary" if output.binary_data else "json"
    return "" if default_form == "binary" else "json"


# --- bytes ----------------------------------------------------------------------------------------------------------


def _write_message(request: InferRequest, step: Step) -> Message:
    """Return the message of a request, with its JSON in the spelling of the step."""
    tensors = [item.tensor for item in request.inputs if item.binary]
    return _change_case_of_header_names(
        frame_text(request.path, write_json(request.build_sent_document(), step), tensors, request.names), step
    )


def _change_case_of_header_names(message: Message, step: Step) -> Message:
    """Return the message with its header names in upper or lower case, which is equivalent (RFC 9110, 5.1)."""
    change_case = {"lower": str.lower, "upper": str.upper}.get(step["header_case"], str)
    return replace(message, headers=tuple((change_case(name), value) for name, value in message.headers))
