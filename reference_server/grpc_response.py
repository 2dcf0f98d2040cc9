"""An inference response over gRPC: from tensors to a ModelInferResponse.

All outputs of an answer are raw, or all are typed: raw contents must be present for each output or for none. The
documents do not say which: Open Inference Protocol, gRPC, "Inference" allows both, and Triton, Classification
Extension, "GRPC" answers typed `contents` with `bytes_contents`. So the server answers raw inputs with raw outputs,
and typed inputs with typed outputs. FP16 and BF16 have no typed contents, so an output of these datatypes makes the
whole answer raw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tritonclient.grpc import service_pb2

from reference_server import classification, grpc_contents
from reference_server.errors import error_context
from reference_server.models import Model
from reference_server.request import InferRequest, RequestedOutput
from reference_server.tensors import Tensor

Message = Any  # the generated classes have no types
NamedTensor = tuple[str, Tensor]


def build(model: Model, request: InferRequest, produced: Mapping[str, Tensor]) -> Message:
    """Return the answer: the requested outputs, in requested order."""
    outputs = [(output.name, classify_output(model, output, produced[output.name])) for output in request.outputs]
    response = service_pb2.ModelInferResponse(model_name=model.name, model_version=model.version, id=request.id or "")
    if is_raw_answer(request, outputs):
        add_raw(response, outputs)
    else:
        add_typed(response, outputs)
    return response


def classify_output(model: Model, output: RequestedOutput, tensor: Tensor) -> Tensor:
    """Return the classes of an output if the request classifies it, otherwise the tensor itself."""
    if output.classes is None:
        return tensor
    with error_context(f"output '{output.name}'"):
        return classification.classify(tensor, output.classes, model.batching, model.labels.get(output.name, ()))


def is_raw_answer(request: InferRequest, outputs: Sequence[NamedTensor]) -> bool:
    """Say whether the whole answer has raw contents: the request asks for them, or a datatype has no typed contents."""
    return any(output.binary for output in request.outputs) or any(
        tensor.datatype not in grpc_contents.FIELDS for _, tensor in outputs
    )


def add_raw(response: Message, outputs: Sequence[NamedTensor]) -> None:
    """Add the outputs to a response as raw contents, one entry for each output."""
    for name, tensor in outputs:
        response.outputs.add(name=name, datatype=tensor.datatype, shape=tensor.shape)
        response.raw_output_contents.append(grpc_contents.encode_raw(tensor))


def add_typed(response: Message, outputs: Sequence[NamedTensor]) -> None:
    """Add the outputs to a response as typed contents."""
    for name, tensor in outputs:
        entry = response.outputs.add(name=name, datatype=tensor.datatype, shape=tensor.shape)
        grpc_contents.fill_contents(entry.contents, grpc_contents.encode_typed(tensor))
