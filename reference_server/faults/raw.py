"""Raw binary requests that the server does not recognise, reads wrongly or answers wrongly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from reference_server import tensors
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.framing import HEADER
from reference_server.models import VARIABLE, Model
from reference_server.request import InferRequest
from reference_server.tensors import NUMPY, Tensor, TensorSpec

Inputs = dict[str, Tensor]
Shape = tuple[int, ...]
RAW_BYTES_REQUIREMENTS = ("RAW-BYTES",)


def replace_elements(inputs: Inputs, elements: Any) -> Inputs:
    """Return the inputs of a model that has one input, with the elements of this input replaced."""
    ((name, tensor),) = inputs.items()
    return {name: Tensor(tensor.datatype, tensor.shape, elements)}


def is_bytes(model: Model) -> bool:
    """Whether the model's input is BYTES."""
    return model.inputs[0].datatype == "BYTES"


# --- the body -------------------------------------------------------------------------------------------------------


@fault("framing.parse_json_length", breaks=("RAW-HEADER-ZERO", "OIP-ANSWER"))
def inference_header_0_means_none(original: Any, values: Any, body_length: int) -> int | None:
    """The server treats an inference header of 0 as absent, because it tests the length for truth."""
    return original(values, body_length) or None


@fault("request.parse_body", breaks=("RAW-HEADER-ZERO", "OIP-ANSWER"))
def raw_body_with_a_brace_is_refused(original: Any, model: Model, body: bytes) -> Inputs:
    """The server refuses a raw body that begins with a brace, as JSON with a wrong inference header."""
    if body[:1] == b"{":
        raise InferenceError("the body is JSON, but the inference header is 0")
    return original(model, body)


@fault("request.parse_body", breaks=("RAW-HEADER-ZERO", "RAW-SIZE", *RAW_BYTES_REQUIREMENTS))
def raw_body_is_stripped_of_white_space(original: Any, model: Model, body: bytes) -> Inputs:
    """The server strips white space from both ends of a raw body."""
    return original(model, body.strip(b" \t\r\n"))


@fault("request.parse_body", breaks=("RAW-ENCODING", "OIP-ANSWER"))
def raw_body_is_read_big_endian(original: Any, model: Model, body: bytes) -> Inputs:
    """The server reads the elements of a raw body as big-endian."""
    inputs: Inputs = original(model, body)
    return inputs if is_bytes(model) else replace_elements(inputs, next(iter(inputs.values())).elements.byteswap())


@fault("request.parse_body", breaks="RAW-ENCODING")
def raw_elements_beyond_the_finite_are_zeros(original: Any, model: Model, body: bytes) -> Inputs:
    """The server reads NaN and infinities in a raw body as zeros."""
    inputs: Inputs = original(model, body)
    elements = next(iter(inputs.values())).elements
    if elements.dtype.kind != "f":
        return inputs
    return replace_elements(inputs, np.where(np.isfinite(elements), elements, np.zeros_like(elements)))


@fault("request.parse_body", breaks=("RAW-ENCODING", "RAW-BYTES"))
def raw_body_ends_with_the_first_buffer(original: Any, model: Model, body: bytes) -> Inputs:
    """The server reads only the first 32 KiB of a raw body."""
    return original(model, body[: 32 * 1024])


# --- BYTES ------------------------------------------------------------------------------------------------------------


@fault("request.parse_body", breaks=RAW_BYTES_REQUIREMENTS)
def raw_bytes_are_refused(original: Any, model: Model, body: bytes) -> Inputs:
    """The server refuses a raw request to a model whose input is BYTES."""
    if is_bytes(model):
        raise InferenceError("a raw binary request needs numbers, the input is BYTES")
    return original(model, body)


@fault("request.parse_body", breaks=RAW_BYTES_REQUIREMENTS)
def raw_bytes_end_at_the_first_nul(original: Any, model: Model, body: bytes) -> Inputs:
    """The server ends a raw body for a BYTES input at the first NUL byte, as C strings do."""
    return original(model, body.partition(b"\0")[0] if is_bytes(model) else body)


@fault("request.parse_body", breaks=RAW_BYTES_REQUIREMENTS)
def raw_bytes_pass_through_latin_1(original: Any, model: Model, body: bytes) -> Inputs:
    """The server decodes a raw body for a BYTES input from Latin-1 and encodes it in UTF-8."""
    return original(model, body.decode("latin-1").encode() if is_bytes(model) else body)


@fault("request.parse_body", breaks=RAW_BYTES_REQUIREMENTS)
def raw_bytes_length_fits_one_byte(original: Any, model: Model, body: bytes) -> Inputs:
    """The server keeps the length of a raw body for a BYTES input in one byte: 300 bytes become 44."""
    return original(model, body[: len(body) % 256] if is_bytes(model) else body)


@fault("request.get_bytes_shape", breaks="RAW-BYTES-SHAPE")
def raw_bytes_of_variable_shape_are_one(original: Any, spec: TensorSpec) -> Shape:
    """The server accepts a raw body for a BYTES input of shape [-1] as one element."""
    return (1,) if spec.shape == (VARIABLE,) else tuple(original(spec))


@fault("request.parse_body", breaks="RAW-BYTES-SHAPE-SAFE")
def raw_bytes_of_two_filled_up(original: Any, model: Model, body: bytes) -> Inputs:
    """The server reads a raw body for a BYTES input of shape [2] as one element, and adds an empty one."""
    spec = model.inputs[0]
    if len(model.inputs) > 1 or spec.datatype != "BYTES" or spec.shape != (2,):
        return original(model, body)
    return {spec.name: Tensor("BYTES", (2,), tensors.make_objects([body, b""]))}


# --- eligible models and shapes ---------------------------------------------------------------------------------------


@fault("request.parse_body", breaks=("RAW-ONE-INPUT", "OIP-ANSWER"))
def raw_models_need_one_output(original: Any, model: Model, body: bytes) -> Inputs:
    """The server refuses a raw request to a model that has more than one output."""
    if len(model.outputs) != 1:
        raise InferenceError("a raw binary request needs a model with one output")
    return original(model, body)


@fault("request.parse_body", breaks="RAW-SEVERAL-INPUTS")
def raw_body_fills_the_first_of_several_inputs(original: Any, model: Model, body: bytes) -> Inputs:
    """The server gives a raw body to the first of several inputs, and one zero or empty string to the others."""
    if len(model.inputs) == 1:
        return original(model, body)
    first, *others = model.inputs
    elements = np.frombuffer(body, dtype=NUMPY[first.datatype])
    zeros = {
        spec.name: tensors.make_objects([b""]) if spec.datatype == "BYTES" else np.zeros(1, NUMPY[spec.datatype])
        for spec in others
    }
    empty = {spec.name: Tensor(spec.datatype, (1,), zeros[spec.name]) for spec in others}
    return {first.name: Tensor(first.datatype, elements.shape, elements), **empty}


@fault("request.deduce_shape", breaks=("RAW-ONE-VARIABLE", "OIP-ANSWER"))
def raw_shape_is_flat(original: Any, spec: TensorSpec, size: int) -> Shape:
    """The server gives a raw input one dimension, the number of its elements, whatever the model declares."""
    return (math.prod(original(spec, size)),)


@fault("request.deduce_shape", breaks="RAW-TWO-VARIABLES")
def second_variable_dimension_becomes_1(original: Any, spec: TensorSpec, size: int) -> Shape:
    """The server computes the first of several variable dimensions from a raw body, and sets the others to 1."""
    if VARIABLE not in spec.shape:
        return original(spec, size)
    at = spec.shape.index(VARIABLE)
    rest = (1 if extent == VARIABLE else extent for extent in spec.shape[at + 1 :])
    filled = TensorSpec(spec.name, spec.datatype, (*spec.shape[: at + 1], *rest))
    return original(filled, size)


@fault("request.parse_body", breaks=("RAW-BATCH-OF-ONE", "RAW-SIZE"))
def raw_batch_grows_with_the_body(original: Any, model: Model, body: bytes) -> Inputs:
    """The server reads a raw body of several items as a batch of several, although it must be a batch of one."""
    spec = model.inputs[0]
    if not model.batching or VARIABLE in spec.shape:
        return original(model, body)
    size = NUMPY[spec.datatype].itemsize * math.prod(spec.shape)
    batch = max(1, len(body) // size) if len(body) % size == 0 else 1
    tensor = original(model, body[: len(body) // batch])[spec.name]
    elements = np.frombuffer(body, dtype=NUMPY[spec.datatype])
    return {spec.name: Tensor(spec.datatype, (batch, *tensor.shape[1:]), elements)}


@fault("request.parse_body", breaks=("RAW-BATCH-OF-ONE", "OIP-ANSWER"))
def raw_batch_dimension_is_left_out(original: Any, model: Model, body: bytes) -> Inputs:
    """The server omits the batch dimension of a raw input when the model batches."""
    inputs: Inputs = original(model, body)
    if not model.batching:
        return inputs
    ((name, tensor),) = inputs.items()
    return {name: Tensor(tensor.datatype, tensor.shape[1:], tensor.elements)}


# --- sizes ------------------------------------------------------------------------------------------------------------


def read_resized(original: Any, model: Model, body: bytes, size: int) -> Inputs:
    """Read a raw body of numbers, truncated or zero-padded to `size` bytes."""
    return original(model, body[:size] + bytes(max(0, size - len(body))))


def count_row_bytes(model: Model) -> int:
    """Return the bytes of the only input if its variable dimension is 1.

    Return 0 for several inputs, a BYTES input, or several variable dimensions.
    """
    spec, *others = model.inputs
    if others or spec.datatype == "BYTES" or spec.shape.count(VARIABLE) > 1:
        return 0
    return NUMPY[spec.datatype].itemsize * math.prod(extent for extent in spec.shape if extent != VARIABLE)


def has_fixed_shape(model: Model) -> bool:
    """Whether all dimensions of the model's first input are fixed."""
    return VARIABLE not in model.inputs[0].shape


@fault("request.parse_body", breaks="RAW-SIZE")
def short_raw_body_is_filled_with_zeros(original: Any, model: Model, body: bytes) -> Inputs:
    """The server adds zeros to a raw body that is too short for a fixed shape."""
    short = has_fixed_shape(model) and len(body) < count_row_bytes(model)
    return read_resized(original, model, body, count_row_bytes(model) if short else len(body))


@fault("request.parse_body", breaks="RAW-SIZE")
def long_raw_body_is_cut(original: Any, model: Model, body: bytes) -> Inputs:
    """The server drops the end of a raw body that is too long for a fixed shape."""
    long = count_row_bytes(model) and has_fixed_shape(model) and len(body) > count_row_bytes(model)
    return read_resized(original, model, body, count_row_bytes(model) if long else len(body))


@fault("request.parse_body", breaks="RAW-SIZE")
def remainder_of_a_raw_body_is_dropped(original: Any, model: Model, body: bytes) -> Inputs:
    """The server drops the end of a raw body that does not fill a whole row of a variable shape."""
    loose = count_row_bytes(model) and not has_fixed_shape(model)
    return read_resized(original, model, body, len(body) - len(body) % count_row_bytes(model) if loose else len(body))


# --- the answer -------------------------------------------------------------------------------------------------------


def is_raw(http: Request) -> bool:
    """Whether a request is a raw binary request."""
    return http.headers.get(HEADER) == "0"


@fault("request.parse_raw", breaks="RAW-OUTPUTS")
def raw_answer_has_one_output(original: Any, model: Model, body: bytes) -> InferRequest:
    """The server answers a raw request with only the first output of the model."""
    wanted: InferRequest = original(model, body)
    return InferRequest(None, wanted.inputs, wanted.outputs[:1])


@fault("app.Service.infer", breaks=("OIP-JSON", "OIP-OUTPUT-MEMBERS"))
async def raw_answer_is_raw(original: Any, service: Any, http: Request) -> Response:
    """The server answers a raw request with binary data alone, without JSON, and an inference header of 0."""
    answer: Response = await original(service, http)
    if not is_raw(http) or HEADER not in answer.headers:
        return answer
    data = bytes(answer.body)[int(answer.headers[HEADER]) :]
    return Response(data, media_type="application/octet-stream", headers={HEADER: "0"})
