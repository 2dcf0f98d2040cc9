"""Encodes an `InferRequest` for gRPC, as a protobuf message. Sans-I/O.

An input that is binary data over HTTP is sent in `raw_input_contents`; an input that is JSON over HTTP is sent in typed
`contents`. The parameters `binary_data` and `binary_data_output`, which only HTTP has, are left out.

The generated protobuf classes are those of tritonclient, a package of the extra `grpc`; they are imported on first use.
Source: Open Inference Protocol, gRPC, "Inference" and "Tensor Data".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from conformance.wire.datatypes import DATATYPES
from conformance.wire.request import ABSENT, InferRequest, Input, Message, Names
from conformance.wire.tensor import Tensor

SERVICE: Final = "inference.GRPCInferenceService"
# The method of a `Message` that is a gRPC call; its path names the method of the service.
GRPC_METHOD: Final = "GRPC"

# The field of `InferTensorContents` for each datatype that has one.
CONTENTS_FIELDS: Final[Mapping[str, str]] = {
    datatype.name: datatype.contents for datatype in DATATYPES.values() if datatype.contents
}

Pb = Any  # the generated classes have no types
Edit = Callable[[Pb], object]


@cache
def load_stubs() -> Any:
    """Return the module of the generated protobuf classes."""
    from tritonclient.grpc import service_pb2  # part of the extra, and slow to import

    return service_pb2


def make_grpc_call(method: str, **fields: Any) -> Message:
    """Return a call of a method of the inference service; `fields` are the fields of the request message."""
    return _build_message(method, getattr(load_stubs(), f"{method}Request")(**fields))


def make_infer_message(request: InferRequest, edit: Edit | None = None) -> Message:
    """Return an inference request as a call of ModelInfer.

    `edit` changes the protobuf message before serialization, for example to make the request invalid.
    """
    built = load_stubs().ModelInferRequest(model_name=request.model, model_version=request.version, id=request.id or "")
    for item in request.inputs:
        _add_input(built, item, request.names)
    for output in request.outputs or ():
        entry = built.outputs.add(name=request.names.outputs.get(output.name, output.name))
        if output.classification is not ABSENT:
            entry.parameters["classification"].int64_param = output.classification
    if edit:
        edit(built)
    return _build_message("ModelInfer", built, request.names)


def _build_message(method: str, request: Pb, names: Names | None = None) -> Message:
    body = request.SerializeToString(deterministic=True)
    return Message(f"/{SERVICE}/{method}", (), body, GRPC_METHOD, names=names.reversed_outputs if names else {})


def _add_input(request: Pb, item: Input, names: Names) -> None:
    tensor = item.tensor
    name = names.inputs.get(tensor.name, tensor.name)
    entry = request.inputs.add(name=name, datatype=tensor.datatype, shape=tensor.shape)
    if item.binary:
        request.raw_input_contents.append(bytes(tensor.to_bytes()))
    else:
        fill_contents(entry.contents, tensor)


def fill_contents(contents: Pb, tensor: Tensor, field: str = "") -> None:
    """Write a tensor's elements to the typed contents of an input: to `field`, or to the field of its datatype."""
    contents.SetInParent()
    getattr(contents, field or CONTENTS_FIELDS[tensor.datatype]).extend(tensor.array.reshape(-1).tolist())


def parse_request(message: Message) -> Pb | None:
    """Parse the request message of a gRPC call; None if the method is unknown or the bytes are invalid."""
    from google.protobuf.message import DecodeError

    try:
        return getattr(load_stubs(), f"{message.path.rpartition('/')[2]}Request").FromString(message.body)
    except (AttributeError, DecodeError):
        return None
