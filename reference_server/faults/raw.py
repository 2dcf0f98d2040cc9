"""Raw binary requests taken for something else, cut or counted wrongly, let through or answered wrongly."""

from __future__ import annotations

from typing import Any

from reference_server import tensors
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.models import VARIABLE, Model
from reference_server.signature import TensorSpec
from reference_server.tensors import Tensor

Inputs = dict[str, Tensor]
Shape = tuple[int, ...]

BYTES_BODY = ("RAW-BYTES",)


def replace_elements(inputs: Inputs, elements: Any) -> Inputs:
    """Return the one input with other elements."""
    ((name, tensor),) = inputs.items()
    return {name: Tensor(tensor.datatype, tensor.shape, elements)}


def is_bytes(model: Model) -> bool:
    """Whether the model's input is BYTES."""
    return model.inputs[0].datatype == "BYTES"


# --- what the body is ------------------------------------------------------------------------------------------------


@fault("framing.json_length", breaks=("RAW-HEADER-ZERO", "OIP-ANSWER"))
def inference_header_0_means_none(original: Any, values: Any, body_length: int) -> int | None:
    """An inference header of 0 counts as absent, because a zero length is tested for truth."""
    return original(values, body_length) or None


@fault("raw.parse_body", breaks=("RAW-HEADER-ZERO", "OIP-ANSWER"))
def raw_body_with_a_brace_is_refused(original: Any, model: Model, body: bytes) -> Inputs:
    """A raw body that begins like a JSON object is refused as a forgotten inference header."""
    if body[:1] == b"{":
        raise InferenceError("the body is JSON, but the inference header is 0")
    return dict(original(model, body))


@fault("raw.parse_body", breaks=("RAW-HEADER-ZERO", "RAW-SIZE", *BYTES_BODY))
def raw_body_is_stripped_of_white_space(original: Any, model: Model, body: bytes) -> Inputs:
    """White space around a raw body is dropped as if it were text."""
    return dict(original(model, body.strip(b" \t\r\n")))


# --- how the body is read --------------------------------------------------------------------------------------------


@fault("raw.parse_body", breaks=("RAW-ENCODING", "OIP-ANSWER"))
def raw_body_is_read_big_endian(original: Any, model: Model, body: bytes) -> Inputs:
    """The elements of a raw body are read in network byte order."""
    inputs: Inputs = original(model, body)
    return inputs if is_bytes(model) else replace_elements(inputs, next(iter(inputs.values())).elements.byteswap())


@fault("raw.parse_body", breaks=("RAW-ENCODING", "OIP-ANSWER"))
def raw_body_is_read_column_by_column(original: Any, model: Model, body: bytes) -> Inputs:
    """The elements of a raw body are taken in column-major order."""
    inputs: Inputs = original(model, body)
    (tensor,) = inputs.values()
    return replace_elements(inputs, tensor.elements.reshape(tensor.shape, order="F").ravel())


@fault("raw.parse_body", breaks=("RAW-ENCODING", "RAW-BYTES"), large=True)
def raw_body_ends_with_the_first_buffer(original: Any, model: Model, body: bytes) -> Inputs:
    """A raw body is read up to 32 KiB, the first buffer, and the rest is never fetched."""
    return dict(original(model, body[: 32 * 1024]))


# --- BYTES -----------------------------------------------------------------------------------------------------------


@fault("raw.parse_body", breaks=BYTES_BODY)
def raw_bytes_are_refused(original: Any, model: Model, body: bytes) -> Inputs:
    """A raw request to a BYTES input is refused, whatever its shape."""
    if is_bytes(model):
        raise InferenceError("a raw binary request needs numbers, the input is BYTES")
    return dict(original(model, body))


@fault("raw.parse_body", breaks=BYTES_BODY)
def raw_bytes_end_at_the_first_nul(original: Any, model: Model, body: bytes) -> Inputs:
    """The raw body of a BYTES input ends at its first zero byte, as a C string does."""
    return dict(original(model, body.partition(b"\0")[0] if is_bytes(model) else body))


@fault("raw.parse_body", breaks=BYTES_BODY)
def raw_bytes_pass_through_latin_1(original: Any, model: Model, body: bytes) -> Inputs:
    """The raw body of a BYTES input is read as Latin-1 and kept as UTF-8."""
    return dict(original(model, body.decode("latin-1").encode() if is_bytes(model) else body))


@fault("raw.parse_body", breaks=BYTES_BODY)
def raw_bytes_length_fits_one_byte(original: Any, model: Model, body: bytes) -> Inputs:
    """The length that is put in front of a raw BYTES body is counted in one byte, and wraps past 255."""
    return dict(original(model, body[: len(body) % 256] if is_bytes(model) else body))


@fault("raw.bytes_shape", breaks="RAW-BYTES-SHAPE")
def raw_bytes_of_variable_shape_are_one(original: Any, spec: TensorSpec) -> Shape:
    """A raw body for BYTES of a variable dimension is taken for one element."""
    return (1,) if spec.shape == (VARIABLE,) else tuple(original(spec))


@fault("raw.parse_body", breaks="RAW-BYTES-SHAPE-SAFE")
def raw_bytes_of_two_filled_up(original: Any, model: Model, body: bytes) -> Inputs:
    """A raw body for BYTES of two elements is the first, and the second is empty."""
    spec = model.inputs[0]
    if len(model.inputs) > 1 or spec.datatype != "BYTES" or spec.shape != (2,):
        return dict(original(model, body))
    return {spec.name: Tensor("BYTES", (2,), tensors.make_objects([body, b""]))}
