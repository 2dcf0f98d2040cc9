"""What goes wrong over gRPC with two things at once: forms, sizes, ids, versions, and the call before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.models import Model
from reference_server.request import InferRequest
from reference_server.tensors import Tensor

_before: dict[str, bool] = {}


@fault("grpc_contents.decode_typed", breaks="GRPC-TYPED", walks="calls")
def typed_bools_beyond_eight_are_false(original: Any, datatype: str, shape: tuple[int, ...], contents: Any) -> Tensor:
    """Over gRPC, booleans in typed contents are bits of one byte: those behind the eighth are false."""
    tensor: Tensor = original(datatype, shape, contents)
    if datatype != "BOOL" or tensor.elements.size <= 8:
        return tensor
    elements = tensor.elements.copy()
    elements[8:] = False
    return replace(tensor, elements=elements)


@fault("grpc_contents.decode_raw", breaks="GRPC-RAW", walks="calls")
def raw_contents_over_a_page_end_in_zeros(original: Any, datatype: str, shape: tuple[int, ...], data: bytes) -> Tensor:
    """Over gRPC, of raw contents longer than 4 KiB the last 16 bytes are zeros."""
    if datatype != "BYTES" and len(data) > 4096:
        data = data[:-16] + bytes(16)
    return original(datatype, shape, data)  # type: ignore[no-any-return]


@fault("grpc_request.parse", breaks="OIP-VERSIONED/grpc", walks="calls")
def raw_calls_to_a_version_refused(original: Any, model: Model, message: Any) -> InferRequest:
    """Over gRPC, a call that names a version takes no raw contents."""
    if message.model_version and message.raw_input_contents:
        raise InferenceError("raw contents need the latest version")
    return original(model, message)  # type: ignore[no-any-return]


@fault("grpc_response.build", breaks="OIP-ID/grpc", walks="calls")
def ids_lost_beside_lists(original: Any, model: Model, request: InferRequest, produced: Mapping[str, Tensor]) -> Any:
    """Over gRPC, the answer to a call that lists fewer outputs than there are has no id."""
    if len(request.outputs) < len(model.outputs):
        request = replace(request, id=None)
    return original(model, request, produced)


@fault("grpc_request.parse", breaks="OIP-ALIVE/grpc", walks="calls")
def calls_with_an_id_refused_after_a_refusal(original: Any, model: Model, message: Any) -> InferRequest:
    """Over gRPC, a call with an id behind a refused one is refused, too."""
    if _before.pop("refused", False) and message.id:
        raise InferenceError("the stream is broken")
    try:
        return original(model, message)  # type: ignore[no-any-return]
    except InferenceError:
        _before["refused"] = True
        raise


@fault("grpc_response.build", breaks="CLS-PARAMETER/grpc", walks="classified-calls")
def classes_forgotten_beside_an_id(
    original: Any, model: Model, request: InferRequest, produced: Mapping[str, Tensor]
) -> Any:
    """Over gRPC, an output of a call with an id is not classified where the model has labels."""
    if request.id and any(model.labels.values()):
        request = replace(request, outputs=[replace(wish, classes=None) for wish in request.outputs])
    return original(model, request, produced)
