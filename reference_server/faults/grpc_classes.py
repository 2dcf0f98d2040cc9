"""Classification faults that affect only gRPC."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.faults import fault
from reference_server.faults.classification import replace_index, replace_value
from reference_server.faults.edits import copy_row
from reference_server.request import RequestedOutput
from reference_server.tensors import BINARY_ONLY, Tensor, make_objects

Message = Any


def rewrite_classes(found: Tensor, output: RequestedOutput, change: Callable[[bytes], bytes]) -> Tensor:
    """Return an output; if the output is classified, `change` rewrites each class string."""
    return found if output.classes is None else replace(found, elements=make_objects(map(change, found.elements)))


def rewrite_class_shapes(response: Message, request: Any, change: Callable[[list[int]], list[int]]) -> Message:
    """Return a response in which `change` has rewritten the shape of each classified output."""
    for output, entry in zip(request.outputs, response.outputs, strict=True):
        if output.classes:
            entry.shape[:] = change(list(entry.shape))
    return response


# --- the parameter ---------------------------------------------------------------------------------------------------


@fault(
    "grpc_request.get_class_count",
    breaks=("CLS-PARAMETER/grpc", "CLS-COUNT-WRONG/grpc", "CLS-BOOL/grpc", "CLS-FP16/grpc"),
)
def grpc_classification_is_ignored(original: Any, entry: Message) -> int | None:  # noqa: ARG001
    """The server ignores the parameter `classification` over gRPC."""
    return None


@fault("grpc_request.get_class_count", breaks="CLS-COUNT-WRONG/grpc")
def grpc_count_below_1_is_no_classification(original: Any, entry: Message) -> Any:
    """If `classification` is below 1, the server returns the output without classification."""
    given = entry.parameters.get("classification")
    is_low = given is not None and given.HasField("int64_param") and given.int64_param < 1
    return None if is_low else original(entry)


@fault("grpc_request.get_class_count", breaks="CLS-COUNT/grpc")
def grpc_count_is_at_least_2(original: Any, entry: Message) -> Any:
    """If a request asks for one class, the server returns two."""
    count = original(entry)
    return count and max(count, 2)


@fault("grpc_request.get_class_count", breaks="CLS-COUNT-ABOVE/grpc")
def grpc_count_is_32_bits(original: Any, entry: Message) -> Any:
    """The server keeps only the low 32 bits of the number of requested classes."""
    count = original(entry)
    return count if count is None else max(count % 2**32, 1)


# --- form ------------------------------------------------------------------------------------------------------------


@fault("grpc_response.build", breaks="CLS-TYPE/grpc")
def grpc_classes_have_datatype_string(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server gives classes the datatype STRING, like examples in the Classification Extension, not BYTES."""
    response = original(model, request, produced)
    for output, entry in zip(request.outputs, response.outputs, strict=True):
        if output.classes:
            entry.datatype = "STRING"
    return response


@fault("grpc_response.build", breaks="CLS-SHAPE-SHOWN/grpc")
def grpc_classes_always_have_a_batch(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server adds a batch dimension to the classes of models that do not batch."""
    response = original(model, request, produced)
    return response if model.batching else rewrite_class_shapes(response, request, lambda shape: [1, *shape])


@fault("grpc_response.build", breaks="CLS-SHAPE/grpc")
def grpc_classes_stand_in_a_column(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """If a model does not batch, the server appends a dimension of 1 to the shape of two or more classes."""
    response = original(model, request, produced)
    if model.batching:
        return response
    return rewrite_class_shapes(response, request, lambda shape: [*shape, 1] if shape[0] > 1 else shape)


@fault("grpc_response.build", breaks="CLS-SHAPE-BATCH/grpc")
def grpc_classes_of_a_batch_are_one_list(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server flattens the shape of a batch of classes to one dimension."""
    response = original(model, request, produced)
    return rewrite_class_shapes(response, request, lambda shape: [math.prod(shape)]) if model.batching else response


# --- order, values, indices, labels ----------------------------------------------------------------------------------


@fault("grpc_response.classify_output", breaks=("CLS-HIGHEST/grpc", "CLS-TIES/grpc", "GRPC-CLS-SAME-AS-HTTP"))
def grpc_classes_in_order_of_their_index(original: Any, model: Any, output: RequestedOutput, tensor: Tensor) -> Tensor:
    """The server sorts the classes of an output by index instead of by value."""
    found: Tensor = original(model, output, tensor)
    if output.classes is None:
        return found
    size = found.shape[-1] or 1
    rows = [list(found.elements[k : k + size]) for k in range(0, len(found.elements), size)]
    ordered = [sorted(row, key=lambda text: int(text.split(b":")[1])) for row in rows]
    return replace(found, elements=make_objects(text for row in ordered for text in row))


@fault("grpc_response.classify_output", breaks=("CLS-BATCH/grpc", "GRPC-CLS-SAME-AS-HTTP"))
def grpc_indices_count_through_the_batch(original: Any, model: Any, output: RequestedOutput, tensor: Tensor) -> Tensor:
    """The server numbers classes through the whole batch instead of from 0 in each item."""
    found: Tensor = original(model, output, tensor)
    if output.classes is None or not model.batching:
        return found
    size, step = found.shape[1], tensor.elements.size // tensor.shape[0]
    texts = [
        replace_index(text, int(text.split(b":")[1]) + step * (k // size)) for k, text in enumerate(found.elements)
    ]
    return replace(found, elements=make_objects(texts))


@fault("grpc_response.classify_output", breaks="CLS-FORMAT/grpc")
def grpc_classes_have_a_blank_behind_the_colon(
    original: Any, model: Any, output: RequestedOutput, tensor: Tensor
) -> Tensor:
    """The server writes a blank after the first colon of a class string."""
    return rewrite_classes(original(model, output, tensor), output, lambda text: text.replace(b":", b": ", 1))


@fault("grpc_response.classify_output", breaks="CLS-VALUE-EXACT/grpc")
def grpc_values_have_six_digits(original: Any, model: Any, output: RequestedOutput, tensor: Tensor) -> Tensor:
    """The server writes floating-point values in class strings with six significant digits."""
    found: Tensor = original(model, output, tensor)
    if tensor.elements.dtype.kind != "f":
        return found
    return rewrite_classes(found, output, lambda text: replace_value(text, f"{float(text.partition(b':')[0]):.6g}"))


@fault("grpc_response.classify_output", breaks=("CLS-VALUE/grpc", "CLS-VALUE-EXACT/grpc", "GRPC-CLS-SAME-AS-HTTP"))
def grpc_values_have_one_decimal(original: Any, model: Any, output: RequestedOutput, tensor: Tensor) -> Tensor:
    """The server rounds floating-point values in class strings to one decimal."""
    found: Tensor = original(model, output, tensor)
    if tensor.elements.dtype.kind != "f":
        return found
    return rewrite_classes(found, output, lambda text: replace_value(text, f"{float(text.partition(b':')[0]):.1f}"))


@fault("grpc_response.classify_output", breaks=("CLS-INDEX/grpc", "GRPC-CLS-SAME-AS-HTTP"))
def grpc_indices_count_from_1(original: Any, model: Any, output: RequestedOutput, tensor: Tensor) -> Tensor:
    """The server counts class indices from 1 instead of 0."""
    found: Tensor = original(model, output, tensor)
    return rewrite_classes(found, output, lambda text: replace_index(text, int(text.split(b":")[1]) + 1))


@fault("grpc_response.classify_output", breaks=("CLS-LABEL/grpc", "GRPC-CLS-SAME-AS-HTTP"))
def grpc_classes_have_no_labels(original: Any, model: Any, output: RequestedOutput, tensor: Tensor) -> Tensor:
    """The server omits the labels of classes."""
    found: Tensor = original(model, output, tensor)
    return rewrite_classes(found, output, lambda text: b":".join(text.split(b":", 2)[:2]))


@fault("grpc_response.classify_output", breaks=("CLS-NO-LABEL/grpc", "GRPC-CLS-SAME-AS-HTTP"))
def grpc_missing_labels_leave_their_colon(original: Any, model: Any, output: RequestedOutput, tensor: Tensor) -> Tensor:
    """The server ends a class string without a label with a colon."""
    found: Tensor = original(model, output, tensor)
    return rewrite_classes(found, output, lambda text: text if text.count(b":") > 1 else text + b":")


@fault("grpc_request.parse_outputs", breaks="CLS-ONLY/grpc")
def grpc_one_classified_output_classifies_all(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """If a request classifies one output, the server classifies all outputs of the request."""
    requested: list[RequestedOutput] = original(model, message)
    count = next((output.classes for output in requested if output.classes), None)
    return [replace(output, classes=output.classes or count) for output in requested]


@fault("grpc_response.classify_output", breaks="CLS-FP16/grpc")
def grpc_short_floats_are_ranked_by_their_bits(
    original: Any, model: Any, output: RequestedOutput, tensor: Tensor
) -> Tensor:
    """The server classifies FP16 and BF16 scores as the unsigned integers with the same bits."""
    if output.classes and tensor.datatype in BINARY_ONLY:
        tensor = Tensor("UINT16", tensor.shape, tensor.elements.view("<u2"))
    return original(model, output, tensor)


@fault("grpc_response.classify_output", breaks="CLS-BOOL/grpc")
def grpc_bool_scores_are_their_places(original: Any, model: Any, output: RequestedOutput, tensor: Tensor) -> Tensor:
    """The server classifies a BOOL output by the positions of its elements instead of their values."""
    if output.classes and tensor.datatype == "BOOL":
        tensor = Tensor("INT32", tensor.shape, np.arange(tensor.elements.size, dtype="<i4"))
    return original(model, output, tensor)


@fault("grpc_response.classify_output", breaks=("CLS-TIES/grpc", "CLS-HIGHEST/grpc"))
def grpc_equal_scores_have_one_index(original: Any, model: Any, output: RequestedOutput, tensor: Tensor) -> Tensor:
    """If a model does not batch, the server gives classes of equal values the index of the first of them."""
    found: Tensor = original(model, output, tensor)
    first: dict[bytes, int] = {}

    def change(text: bytes) -> bytes:
        value, index = text.split(b":")[:2]
        return replace_index(text, first.setdefault(value, int(index)))

    return found if model.batching else rewrite_classes(found, output, change)


@fault("grpc_response.classify_output", breaks="CLS-BATCH/grpc", walks="classified-calls")
def grpc_last_of_nine_items_ranked_like_the_first(
    original: Any, model: Any, output: RequestedOutput, tensor: Tensor
) -> Tensor:
    """In a batch of more than eight items, the server returns the classes of the first item for the last item."""
    found: Tensor = original(model, output, tensor)
    return copy_row(found, 8, 0, -1) if model.batching and output.classes is not None else found
