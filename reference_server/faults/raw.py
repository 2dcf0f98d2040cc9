"""Raw binary requests that the server does not recognise, reads wrongly or answers wrongly."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from starlette.responses import Response

from reference_server import tensors
from reference_server.faults import fault, steps
from reference_server.faults.edits import is_binary, is_raw, on_each
from reference_server.framing import HEADER
from reference_server.models import VARIABLE, Model
from reference_server.request import InferRequest
from reference_server.tensors import NUMPY, Tensor, TensorSpec

Inputs = dict[str, Tensor]
Shape = tuple[int, ...]


def replace_elements(inputs: Inputs, elements: Any) -> Inputs:
    """Return the inputs of a model that has one input, with the elements of this input replaced."""
    ((name, tensor),) = inputs.items()
    return {name: Tensor(tensor.datatype, tensor.shape, elements)}


def is_bytes(model: Model) -> bool:
    """Whether the model's input is BYTES."""
    return model.inputs[0].datatype == "BYTES"


# --- the body -------------------------------------------------------------------------------------------------------


@fault(steps.PARSE_LENGTH, breaks="RAW-HEADER-ZERO")
def inference_header_0_means_none(original: Any, values: Any, body_length: int) -> int | None:
    """The server treats an inference header of 0 as absent, because it tests the length for truth."""
    return original(values, body_length) or None


def _zero_beyond_the_finite(inputs: Inputs) -> Inputs:
    elements = next(iter(inputs.values())).elements
    is_right = np.isfinite(elements) if elements.dtype.kind == "f" else True
    return replace_elements(inputs, np.where(is_right, elements, np.zeros_like(elements)))


raw_body_with_a_brace_is_refused = steps.PARSE_BODY.refuse(
    ("RAW-HEADER-ZERO", "OIP-ANSWER"), lambda body: body[:1] == b"{"
).says("The server refuses a raw body that begins with a brace, as JSON with a wrong inference header.")
raw_body_is_stripped_of_white_space = steps.PARSE_BODY.before(
    ("RAW-HEADER-ZERO", "RAW-SIZE", "RAW-BYTES"), body=lambda body: body.strip(b" \t\r\n")
).says("The server strips white space from both ends of a raw body.")
raw_body_is_read_big_endian = steps.PARSE_BODY.after(
    ("RAW-ENCODING", "OIP-ANSWER"),
    lambda inputs: replace_elements(inputs, next(iter(inputs.values())).elements.byteswap()),
    when=lambda model: not is_bytes(model),
).says("The server reads the elements of a raw body as big-endian.")
raw_elements_beyond_the_finite_are_zeros = steps.PARSE_BODY.after(
    "RAW-ENCODING", _zero_beyond_the_finite, when=lambda model: not is_bytes(model)
).says("The server reads NaN and infinities in a raw body as zeros.")
raw_body_ends_with_the_first_buffer = steps.PARSE_BODY.before(
    ("RAW-ENCODING", "RAW-BYTES"), body=lambda body: body[: 32 * 1024]
).says("The server reads only the first 32 KiB of a raw body.")

# --- BYTES ------------------------------------------------------------------------------------------------------------

raw_bytes_are_refused = steps.PARSE_BODY.refuse("RAW-BYTES", is_bytes).says(
    "The server refuses a raw request to a model whose input is BYTES."
)
raw_bytes_end_at_the_first_nul = steps.PARSE_BODY.before(
    "RAW-BYTES", body=lambda body: body.partition(b"\0")[0], when=is_bytes
).says("The server ends a raw body for a BYTES input at the first NUL byte, as C strings do.")
raw_bytes_pass_through_latin_1 = steps.PARSE_BODY.before(
    "RAW-BYTES", body=lambda body: body.decode("latin-1").encode(), when=is_bytes
).says("The server decodes a raw body for a BYTES input from Latin-1 and encodes it in UTF-8.")
raw_bytes_length_fits_one_byte = steps.PARSE_BODY.before(
    "RAW-BYTES", body=lambda body: body[: len(body) % 256], when=is_bytes
).says("The server keeps the length of a raw body for a BYTES input in one byte: 300 bytes become 44.")
raw_bytes_of_variable_shape_are_one = steps.GET_BYTES_SHAPE.instead(
    "RAW-BYTES-SHAPE", lambda: (1,), when=lambda spec: spec.shape == (VARIABLE,)
).says("The server accepts a raw body for a BYTES input of shape [-1] as one element.")


@fault(steps.PARSE_BODY, breaks="RAW-BYTES-SHAPE-SAFE")
def raw_bytes_of_two_filled_up(original: Any, model: Model, body: bytes) -> Inputs:
    """The server reads a raw body for a BYTES input of shape [2] as one element, and adds an empty one."""
    spec = model.inputs[0]
    if len(model.inputs) > 1 or spec.datatype != "BYTES" or spec.shape != (2,):
        return original(model, body)
    return {spec.name: Tensor("BYTES", (2,), tensors.make_objects([body, b""]))}


# --- eligible models and shapes ---------------------------------------------------------------------------------------


raw_models_need_one_output = steps.PARSE_BODY.refuse(
    ("RAW-ONE-INPUT", "OIP-ANSWER"), lambda model: len(model.outputs) != 1
).says("The server refuses a raw request to a model that has more than one output.")


@fault(steps.PARSE_BODY, breaks="RAW-SEVERAL-INPUTS")
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


raw_shape_is_flat = steps.DEDUCE_SHAPE.after("RAW-ONE-VARIABLE", lambda shape: (math.prod(shape),)).says(
    "The server gives a raw input one dimension, the number of its elements, whatever the model declares."
)


@fault(steps.DEDUCE_SHAPE, breaks="RAW-TWO-VARIABLES")
def second_variable_dimension_becomes_1(original: Any, spec: TensorSpec, size: int) -> Shape:
    """The server computes the first of several variable dimensions from a raw body, and sets the others to 1."""
    if VARIABLE not in spec.shape:
        return original(spec, size)
    at = spec.shape.index(VARIABLE)
    rest = (1 if extent == VARIABLE else extent for extent in spec.shape[at + 1 :])
    filled = TensorSpec(spec.name, spec.datatype, (*spec.shape[: at + 1], *rest))
    return original(filled, size)


@fault(steps.PARSE_BODY, breaks=("RAW-BATCH-OF-ONE", "RAW-SIZE"))
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


raw_batch_dimension_is_left_out = steps.PARSE_BODY.after(
    "RAW-BATCH-OF-ONE",
    on_each(lambda tensor: replace(tensor, shape=tensor.shape[1:])),
    when=lambda model: model.batching,
).says("The server omits the batch dimension of a raw input when the model batches.")

# --- sizes ------------------------------------------------------------------------------------------------------------


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


short_raw_body_is_filled_with_zeros = steps.PARSE_BODY.before(
    "RAW-SIZE", body=lambda body, model: body.ljust(count_row_bytes(model), b"\0"), when=has_fixed_shape
).says("The server adds zeros to a raw body that is too short for a fixed shape.")
long_raw_body_is_cut = steps.PARSE_BODY.before(
    "RAW-SIZE",
    body=lambda body, model: body[: count_row_bytes(model)],
    when=lambda model: has_fixed_shape(model) and count_row_bytes(model),
).says("The server drops the end of a raw body that is too long for a fixed shape.")
remainder_of_a_raw_body_is_dropped = steps.PARSE_BODY.before(
    "RAW-SIZE",
    body=lambda body, model: body[: len(body) - len(body) % count_row_bytes(model)],
    when=lambda model: not has_fixed_shape(model) and count_row_bytes(model),
).says("The server drops the end of a raw body that does not fill a whole row of a variable shape.")

# --- the answer -------------------------------------------------------------------------------------------------------

raw_answer_has_one_output = steps.PARSE_RAW.after(
    "RAW-OUTPUTS", lambda wanted: InferRequest(None, wanted.inputs, wanted.outputs[:1])
).says("The server answers a raw request with only the first output of the model.")


def _drop_json(answer: Response) -> Response:
    data = bytes(answer.body)[int(answer.headers[HEADER]) :]
    return Response(data, media_type="application/octet-stream", headers={HEADER: "0"})


raw_answer_is_raw = steps.INFER.after(
    ("OIP-JSON", "OIP-OUTPUT-MEMBERS"), _drop_json, when=lambda http, result: is_raw(http) and is_binary(result)
).says("The server answers a raw request with binary data alone, without JSON, and an inference header of 0.")
