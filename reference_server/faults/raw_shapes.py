"""Raw binary requests given to the wrong models, in wrong shapes or with wrong sizes, or answered wrongly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from reference_server import tensors
from reference_server.datatypes import NUMPY
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.framing import HEADER
from reference_server.models import VARIABLE, Model
from reference_server.request import InferRequest
from reference_server.signature import TensorSpec
from reference_server.tensors import Tensor

Inputs = dict[str, Tensor]
Shape = tuple[int, ...]


# --- which models, which shape ---------------------------------------------------------------------------------------


@fault("raw.parse_body", breaks=("RAW-ONE-INPUT", "OIP-ANSWER"))
def raw_models_need_one_output(original: Any, model: Model, body: bytes) -> Inputs:
    """A raw request to a model with two outputs is refused."""
    if len(model.outputs) != 1:
        raise InferenceError("a raw binary request needs a model of one output")
    return dict(original(model, body))


@fault("raw.parse_body", breaks="RAW-SEVERAL-INPUTS")
def raw_body_fills_the_first_of_several_inputs(original: Any, model: Model, body: bytes) -> Inputs:
    """The raw body goes to the first input, and the others are given one zero each."""
    if len(model.inputs) == 1:
        return dict(original(model, body))
    first, *others = model.inputs
    elements = np.frombuffer(body, dtype=NUMPY[first.datatype])
    empty = {spec.name: Tensor(spec.datatype, (1,), make_zero(spec)) for spec in others}
    return {first.name: Tensor(first.datatype, elements.shape, elements), **empty}


def make_zero(spec: TensorSpec) -> Any:
    """Return one element that is nothing."""
    return tensors.make_objects([b""]) if spec.datatype == "BYTES" else np.zeros(1, dtype=NUMPY[spec.datatype])


@fault("raw.deduce_shape", breaks=("RAW-ONE-VARIABLE", "OIP-ANSWER"))
def raw_shape_is_flat(original: Any, spec: TensorSpec, size: int) -> Shape:
    """The shape of a raw body is the number of its elements, whatever the model declares."""
    return (math.prod(original(spec, size)),)


@fault("raw.deduce_shape", breaks="RAW-TWO-VARIABLES")
def second_variable_dimension_becomes_1(original: Any, spec: TensorSpec, size: int) -> Shape:
    """Of several variable dimensions the first takes everything, and the others become 1."""
    if VARIABLE not in spec.shape:
        return tuple(original(spec, size))
    at = spec.shape.index(VARIABLE)
    rest = (1 if extent == VARIABLE else extent for extent in spec.shape[at + 1 :])
    filled = TensorSpec(spec.name, spec.datatype, (*spec.shape[: at + 1], *rest))
    return tuple(original(filled, size))


@fault("raw.parse_body", breaks=("RAW-BATCH-OF-ONE", "RAW-SIZE"))
def raw_batch_grows_with_the_body(original: Any, model: Model, body: bytes) -> Inputs:
    """A raw body of several items is taken for a batch of as many."""
    spec = model.inputs[0]
    if not model.batching or VARIABLE in spec.shape:
        return dict(original(model, body))
    size = NUMPY[spec.datatype].itemsize * math.prod(spec.shape)
    batch = max(1, len(body) // size) if len(body) % size == 0 else 1
    tensor = original(model, body[: len(body) // batch])[spec.name]
    elements = np.frombuffer(body, dtype=NUMPY[spec.datatype])
    return {spec.name: Tensor(spec.datatype, (batch, *tensor.shape[1:]), elements)}


@fault("raw.parse_body", breaks=("RAW-BATCH-OF-ONE", "OIP-ANSWER"))
def raw_batch_dimension_is_left_out(original: Any, model: Model, body: bytes) -> Inputs:
    """A batching model gets a raw body without the batch dimension."""
    inputs: Inputs = original(model, body)
    if not model.batching:
        return inputs
    ((name, tensor),) = inputs.items()
    return {name: Tensor(tensor.datatype, tensor.shape[1:], tensor.elements)}


# --- sizes -----------------------------------------------------------------------------------------------------------


def read_resized(original: Any, model: Model, body: bytes, size: int) -> Inputs:
    """Read a raw body of numbers cut, or filled up with zeros, to a size."""
    return dict(original(model, body[:size] + bytes(max(0, size - len(body)))))


def count_row_bytes(model: Model) -> int:
    """Return the bytes of one row of the one input, that is of its fixed dimensions; 0 where bytes are not counted."""
    spec, *others = model.inputs
    if others or spec.datatype == "BYTES" or spec.shape.count(VARIABLE) > 1:
        return 0
    return NUMPY[spec.datatype].itemsize * math.prod(extent for extent in spec.shape if extent != VARIABLE)


def is_fixed(model: Model) -> bool:
    """Whether the first input has no variable dimension."""
    return VARIABLE not in model.inputs[0].shape


@fault("raw.parse_body", breaks="RAW-SIZE")
def short_raw_body_is_filled_with_zeros(original: Any, model: Model, body: bytes) -> Inputs:
    """A raw body that is short of a fixed shape is filled up with zeros."""
    short = is_fixed(model) and len(body) < count_row_bytes(model)
    return read_resized(original, model, body, count_row_bytes(model) if short else len(body))


@fault("raw.parse_body", breaks="RAW-SIZE")
def long_raw_body_is_cut(original: Any, model: Model, body: bytes) -> Inputs:
    """Of a raw body that is longer than a fixed shape the end is dropped."""
    long = count_row_bytes(model) and is_fixed(model) and len(body) > count_row_bytes(model)
    return read_resized(original, model, body, count_row_bytes(model) if long else len(body))


@fault("raw.parse_body", breaks="RAW-SIZE")
def remainder_of_a_raw_body_is_dropped(original: Any, model: Model, body: bytes) -> Inputs:
    """What a raw body has beyond whole rows of a variable dimension is dropped."""
    loose = count_row_bytes(model) and not is_fixed(model)
    return read_resized(original, model, body, len(body) - len(body) % count_row_bytes(model) if loose else len(body))


# --- the answer ------------------------------------------------------------------------------------------------------


def is_raw(http: Request) -> bool:
    """Whether a request is a raw one."""
    return http.headers.get(HEADER) == "0"


@fault("request.parse_raw", breaks="RAW-OUTPUTS")
def raw_answer_has_one_output(original: Any, model: Model, body: bytes) -> InferRequest:
    """The answer to a raw request has the first output of the model and no other."""
    wanted: InferRequest = original(model, body)
    return InferRequest(None, wanted.inputs, wanted.outputs[:1])


@fault("app.Service.infer", breaks=("OIP-JSON", "OIP-OUTPUT-MEMBERS"))
async def raw_answer_is_raw(original: Any, service: Any, http: Request) -> Response:
    """The answer to a raw request is the outputs' binary data under an inference header of 0, without any JSON."""
    answer: Response = await original(service, http)
    if not is_raw(http) or HEADER not in answer.headers:
        return answer
    data = bytes(answer.body)[int(answer.headers[HEADER]) :]
    return Response(data, media_type="application/octet-stream", headers={HEADER: "0"})
