"""A raw binary request: no JSON at all, the body is the model's one input.

Source: Triton, Binary Tensor Data Extension, "Raw Binary Request". The body of a BYTES input is the bytes of its one
element without a length prefix: the body's size says it already, and Triton reads it so.
"""

from __future__ import annotations

import math

from reference_server import tensors
from reference_server.datatypes import NUMPY
from reference_server.errors import InferenceError, error_context
from reference_server.models import VARIABLE, Model
from reference_server.signature import TensorSpec
from reference_server.tensors import Tensor


def parse_body(model: Model, body: bytes) -> dict[str, Tensor]:
    """Read the whole body as the model's input; a batching model gets a batch of one.

    Raises InferenceError where the model is not eligible or the body's size does not fit its shape.
    """
    if len(model.inputs) != 1:
        raise InferenceError(f"a raw binary request needs a model of one input, '{model.name}' has {len(model.inputs)}")
    spec = model.inputs[0]
    with error_context(f"raw binary request, input '{spec.name}'"):
        if spec.datatype == "BYTES":
            shape, elements = bytes_shape(spec), tensors.make_objects([body])
        else:
            shape = deduce_shape(spec, len(body))
            elements = tensors.decode_binary(spec.datatype, shape, memoryview(body)).elements
    return {spec.name: Tensor(spec.datatype, (1, *shape) if model.batching else shape, elements)}


def bytes_shape(spec: TensorSpec) -> tuple[int, ...]:
    """Return the shape [1], the only one that a raw BYTES input may have."""
    if spec.shape != (1,):
        raise InferenceError(f"BYTES need the declared shape [1], the model has {list(spec.shape)}")
    return spec.shape


def deduce_shape(spec: TensorSpec, size: int) -> tuple[int, ...]:
    """Return the shape of `size` bytes: the variable dimension, if there is one, takes what the others leave."""
    if spec.shape.count(VARIABLE) > 1:
        raise InferenceError(f"the declared shape {list(spec.shape)} has more than one variable dimension")
    unit = NUMPY[spec.datatype].itemsize * math.prod(extent for extent in spec.shape if extent != VARIABLE)
    if VARIABLE not in spec.shape and size != unit:
        raise InferenceError(f"the body has {size} bytes, but shape {list(spec.shape)} of {spec.datatype} takes {unit}")
    if size % unit:
        raise InferenceError(
            f"the body has {size} bytes, but shape {list(spec.shape)} of {spec.datatype} takes a multiple of {unit}"
        )
    return tuple(size // unit if extent == VARIABLE else extent for extent in spec.shape)
