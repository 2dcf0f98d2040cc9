"""A step as a request: which tensors travel in which form, which outputs are asked for, and the bytes of it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conformance.checks.walk.covering import Step
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


@dataclass(frozen=True, slots=True)
class StepRequest:
    """A request, and what is right for it.

    Attributes:
        message: the bytes.
        request: what they say; of a raw request, what the same tensors would be as binary data.
        tensors: the inputs, in declared order.
        expected: all outputs of the model for them, in declared order.
        forms: output -> `binary` or `json`, `classes` of either, or empty where that is left open.
        is_raw: whether it is a raw binary request.
    """

    model: Model
    message: Message
    request: InferRequest
    tensors: tuple[Tensor, ...]
    expected: tuple[Tensor, ...]
    forms: Mapping[str, str]
    is_raw: bool = False


def make_request(step: Step, model: Model, salt: int, tensors: Sequence[Tensor] | None = None) -> StepRequest:
    """Return the request of a step, with other tensors for each salt; or with these."""
    given = tuple(make_tensors(step, model, salt) if tensors is None else tensors)
    request, expected = _request(step, model, given, salt), _expected(model, given)
    if step["send"] == "raw":
        message = _spelled(model.raw(bytes(given[0].to_bytes())), step)
        forms = {tensor.name: "binary" for tensor in expected}
        return StepRequest(model, message, request, given, expected, forms, is_raw=True)
    return StepRequest(model, _message(request, step), request, given, expected, _forms(request, model))


def make_call(step: Step, model: Model, salt: int, tensors: Sequence[Tensor] | None = None) -> StepRequest:
    """Return the same as a call; the form of its answer is the server's to choose."""
    given = tuple(make_tensors(step, model, salt, over_grpc=True) if tensors is None else tensors)
    request = _request(step, model, given, salt)
    forms = dict.fromkeys(_forms(request, model), "")
    return StepRequest(model, make_infer_message(request), request, given, _expected(model, given), forms)


def _expected(model: Model, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    with np.errstate(all="ignore"):  # a cast may meet NaN or overflow to infinity: that is the right output then
        return model.expected(tensors)


def _request(step: Step, model: Model, tensors: Sequence[Tensor], salt: int) -> InferRequest:
    """Return what a step asks for."""
    ordered = {"reversed": tensors[::-1], "rotated": (*tensors[1:], *tensors[:1])}.get(step["order"], tensors)
    identity = IDS.get(step["id"], "").format(salt=salt)
    return model.request(
        tuple(ordered),
        send=[tensor.name for place, tensor in enumerate(ordered) if _is_binary(step, place)],
        outputs=_outputs(step, model),
        binary_data_output=_for_all(step),
        request_id=identity or None,
        nested=step["nesting"] == "nested",
    )


def _is_binary(step: Step, place: int) -> bool:
    return step["send"] in ("binary", "raw") or (step["send"] == "mixed" and place % 2 == 1)


def _for_all(step: Step) -> object:
    """Return `binary_data_output`."""
    return {"all-binary": True, "json-of-all-binary": True, "no-binary": False}.get(step["want"], ABSENT)


def _outputs(step: Step, model: Model) -> list[RequestedOutput] | None:
    """Return the outputs that a step lists, or None where it lists none."""
    names = [spec.name for spec in model.role.outputs]
    listed = {"reversed": names[::-1], "last-alone": names[-1:], "last-first": [*names[-1:], *names[:-1]]}
    chosen = listed.get(step["outputs"], names)
    want = step["want"]
    if step["classes"] != "none":
        return [_classified(step, model, name, place) for place, name in enumerate(chosen)]
    if want in ("nothing", "all-binary", "no-binary", "raw"):
        # What is listed without `binary_data` under `binary_data_output` has two readings, which `overrides` is for.
        is_listed = step["outputs"] != "unlisted" and want != "all-binary"
        return [RequestedOutput(name) for name in chosen] if is_listed else None
    flags = {"json": (False,), "json-of-all-binary": (False,), "binary": (True,), "mixed": (True, False)}[want]
    return [RequestedOutput(name, flags[place % len(flags)]) for place, name in enumerate(chosen)]


def _classified(step: Step, model: Model, name: str, place: int) -> RequestedOutput:
    """Return an output as classes; of several outputs the second is left as it is."""
    binary = {"json": False, "binary": True}.get(step["want"], ABSENT)
    if place:
        return RequestedOutput(name, binary)
    return RequestedOutput(name, binary, count_classes(step, model))


def count_classes(step: Step, model: Model) -> int:
    """Return how many classes a step asks for."""
    there = model.count_classes(make_tensors(step, model, 0))
    return there if step["classes"] == "all" else min(int(step["classes"]), there)


def _forms(request: InferRequest, model: Model) -> dict[str, str]:
    """Return the form that each output of the answer has to have."""
    by_default = "binary" if request.binary_data_output is True else "json"
    if request.outputs is None:
        return {spec.name: by_default for spec in model.role.outputs}
    return {output.name: _form(output, by_default) for output in request.outputs}


def _form(output: RequestedOutput, by_default: str) -> str:
    if output.binary_data is not ABSENT:
        return "binary" if output.binary_data else "json"
    return "" if by_default == "binary" else "json"


# --- bytes ----------------------------------------------------------------------------------------------------------


def _message(request: InferRequest, step: Step) -> Message:
    """Return the message of a request, its JSON written as the step says."""
    tensors = [item.tensor for item in request.inputs if item.binary]
    return _spelled(frame_text(request.path, write_json(request.written(), step), tensors, request.names), step)


def _spelled(message: Message, step: Step) -> Message:
    """Return the message with the names of its headers in other letters, which mean the same (RFC 9110, 5.1)."""
    spell = {"lower": str.lower, "upper": str.upper}.get(step["header_case"], str)
    return replace(message, headers=tuple((spell(name), value) for name, value in message.headers))
