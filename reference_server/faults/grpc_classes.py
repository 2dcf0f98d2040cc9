"""Classification faults that affect only gRPC."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.faults import Fault, fault, steps
from reference_server.faults.classification import classify_all, replace_index, replace_value
from reference_server.faults.edits import copy_row, on_strings
from reference_server.request import RequestedOutput
from reference_server.tensors import BINARY_ONLY, Tensor, make_objects

Message = Any
Breaks = str | tuple[str, ...]


def is_classified(output: RequestedOutput) -> bool:
    """Whether a call classifies an output."""
    return output.classes is not None


def is_classified_float(output: RequestedOutput, tensor: Tensor) -> bool:
    """Whether a call classifies an output of floating-point numbers."""
    return is_classified(output) and tensor.elements.dtype.kind == "f"


def get_index(text: bytes) -> int:
    """Return the index of a class string."""
    return int(text.split(b":")[1])


def change_class_shapes(breaks: Breaks, change: Callable[[list[int]], list[int]], *, batching: bool) -> Fault:
    """Return a fault: `change` rewrites the shape of each classified output of models that batch, or of the others."""

    def rewrite(response: Message, request: Any) -> Message:
        for output, entry in zip(request.outputs, response.outputs, strict=True):
            if output.classes:
                entry.shape[:] = change(list(entry.shape))
        return response

    return steps.BUILD_RESPONSE.after(breaks, rewrite, when=lambda model: model.batching == batching)


# --- the parameter ---------------------------------------------------------------------------------------------------


def _is_below_1(entry: Message) -> bool:
    given = entry.parameters.get("classification")
    return given is not None and given.HasField("int64_param") and given.int64_param < 1


grpc_classification_is_ignored = steps.GET_CLASS_COUNT.instead(
    ("CLS-PARAMETER/grpc", "CLS-COUNT-WRONG/grpc", "CLS-BOOL/grpc", "CLS-FP16/grpc"), lambda: None
).says("The server ignores the parameter `classification` over gRPC.")
grpc_count_below_1_is_no_classification = steps.GET_CLASS_COUNT.instead(
    "CLS-COUNT-WRONG/grpc", lambda: None, when=_is_below_1
).says("If `classification` is below 1, the server returns the output without classification.")
grpc_count_is_at_least_2 = steps.GET_CLASS_COUNT.after("CLS-COUNT/grpc", lambda count: count and max(count, 2)).says(
    "If a request asks for one class, the server returns two."
)
grpc_count_is_32_bits = steps.GET_CLASS_COUNT.after(
    "CLS-COUNT-ABOVE/grpc", lambda count: count and max(count % 2**32, 1)
).says("The server keeps only the low 32 bits of the number of requested classes.")


# --- form ------------------------------------------------------------------------------------------------------------


@fault(steps.BUILD_RESPONSE, breaks="CLS-TYPE/grpc")
def grpc_classes_have_datatype_string(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server gives classes the datatype STRING, like examples in the Classification Extension, not BYTES."""
    response = original(model, request, produced)
    for output, entry in zip(request.outputs, response.outputs, strict=True):
        if output.classes:
            entry.datatype = "STRING"
    return response


grpc_classes_always_have_a_batch = change_class_shapes(
    "CLS-SHAPE-SHOWN/grpc", lambda shape: [1, *shape], batching=False
).says("The server adds a batch dimension to the classes of models that do not batch.")
grpc_classes_stand_in_a_column = change_class_shapes(
    "CLS-SHAPE/grpc", lambda shape: [*shape, 1] if shape[0] > 1 else shape, batching=False
).says("If a model does not batch, the server appends a dimension of 1 to the shape of two or more classes.")
grpc_classes_of_a_batch_are_one_list = change_class_shapes(
    "CLS-SHAPE-BATCH/grpc", lambda shape: [math.prod(shape)], batching=True
).says("The server flattens the shape of a batch of classes to one dimension.")

# --- order, values, indices, labels ----------------------------------------------------------------------------------


def _sort_by_index(found: Tensor) -> Tensor:
    size = found.shape[-1] or 1
    rows = [list(found.elements[k : k + size]) for k in range(0, len(found.elements), size)]
    return replace(found, elements=make_objects(text for row in rows for text in sorted(row, key=get_index)))


def _count_through_batch(found: Tensor, tensor: Tensor) -> Tensor:
    size, step = found.shape[1], tensor.elements.size // tensor.shape[0]
    texts = [replace_index(text, get_index(text) + step * (k // size)) for k, text in enumerate(found.elements)]
    return replace(found, elements=make_objects(texts))


def respell_values(spelling: str) -> Callable[[Tensor], Tensor]:
    """Return a function that writes the values of class strings in a format of Python."""
    return on_strings(lambda text: replace_value(text, format(float(text.partition(b":")[0]), spelling)))


grpc_classes_in_order_of_their_index = steps.CLASSIFY_OUTPUT.after(
    ("CLS-HIGHEST/grpc", "CLS-TIES/grpc", "GRPC-CLS-SAME-AS-HTTP"), _sort_by_index, when=is_classified
).says("The server sorts the classes of an output by index instead of by value.")
grpc_indices_count_through_the_batch = steps.CLASSIFY_OUTPUT.after(
    ("CLS-BATCH/grpc", "GRPC-CLS-SAME-AS-HTTP"),
    _count_through_batch,
    when=lambda model, output: model.batching and is_classified(output),
).says("The server numbers classes through the whole batch instead of from 0 in each item.")
grpc_classes_have_a_blank_behind_the_colon = steps.CLASSIFY_OUTPUT.after(
    "CLS-FORMAT/grpc", on_strings(lambda text: text.replace(b":", b": ", 1)), when=is_classified
).says("The server writes a blank after the first colon of a class string.")
grpc_values_have_six_digits = steps.CLASSIFY_OUTPUT.after(
    "CLS-VALUE-EXACT/grpc", respell_values(".6g"), when=is_classified_float
).says("The server writes floating-point values in class strings with six significant digits.")
grpc_values_have_one_decimal = steps.CLASSIFY_OUTPUT.after(
    ("CLS-VALUE/grpc", "CLS-VALUE-EXACT/grpc", "GRPC-CLS-SAME-AS-HTTP"), respell_values(".1f"), when=is_classified_float
).says("The server rounds floating-point values in class strings to one decimal.")
grpc_indices_count_from_1 = steps.CLASSIFY_OUTPUT.after(
    ("CLS-INDEX/grpc", "GRPC-CLS-SAME-AS-HTTP"),
    on_strings(lambda text: replace_index(text, get_index(text) + 1)),
    when=is_classified,
).says("The server counts class indices from 1 instead of 0.")
grpc_classes_have_no_labels = steps.CLASSIFY_OUTPUT.after(
    ("CLS-LABEL/grpc", "GRPC-CLS-SAME-AS-HTTP"),
    on_strings(lambda text: b":".join(text.split(b":", 2)[:2])),
    when=is_classified,
).says("The server omits the labels of classes.")
grpc_missing_labels_leave_their_colon = steps.CLASSIFY_OUTPUT.after(
    ("CLS-NO-LABEL/grpc", "GRPC-CLS-SAME-AS-HTTP"),
    on_strings(lambda text: text if text.count(b":") > 1 else text + b":"),
    when=is_classified,
).says("The server ends a class string without a label with a colon.")


def _classify_by_request(requested: list[RequestedOutput], message: Message) -> list[RequestedOutput]:
    count = message.parameters["classification"].int64_param + 1
    return [replace(output, classes=output.classes or count) for output in requested]


grpc_classification_on_the_request_counted_from_0 = steps.PARSE_CALL_OUTPUTS.after(
    "CLS-ONLY/grpc", _classify_by_request, when=lambda message: "classification" in message.parameters
).says("The server applies `classification` of the whole request to every output, and returns one class too many.")
grpc_one_classified_output_classifies_all = steps.PARSE_CALL_OUTPUTS.after("CLS-ONLY/grpc", classify_all).says(
    "If a request classifies one output, the server classifies all outputs of the request."
)
grpc_short_floats_are_ranked_by_their_bits = steps.CLASSIFY_OUTPUT.before(
    "CLS-FP16/grpc",
    tensor=lambda tensor: Tensor("UINT16", tensor.shape, tensor.elements.view("<u2")),
    when=lambda output, tensor: output.classes and tensor.datatype in BINARY_ONLY,
).says("The server classifies FP16 and BF16 scores as the unsigned integers with the same bits.")
grpc_bool_scores_are_their_places = steps.CLASSIFY_OUTPUT.before(
    "CLS-BOOL/grpc",
    tensor=lambda tensor: Tensor("INT32", tensor.shape, np.arange(tensor.elements.size, dtype="<i4")),
    when=lambda output, tensor: output.classes and tensor.datatype == "BOOL",
).says("The server classifies a BOOL output by the positions of its elements instead of their values.")


def _use_first_index(found: Tensor) -> Tensor:
    first: dict[bytes, int] = {}

    def change(text: bytes) -> bytes:
        return replace_index(text, first.setdefault(text.partition(b":")[0], get_index(text)))

    return on_strings(change)(found)


grpc_equal_scores_have_one_index = steps.CLASSIFY_OUTPUT.after(
    "CLS-TIES/grpc", _use_first_index, when=lambda model, output: not model.batching and is_classified(output)
).says("If a model does not batch, the server gives classes of equal values the index of the first of them.")
grpc_last_of_nine_items_ranked_like_the_first = steps.CLASSIFY_OUTPUT.after(
    "CLS-BATCH/grpc",
    lambda found: copy_row(found, 8, 0, -1),
    when=lambda model, output: model.batching and is_classified(output),
    walks="classified-calls",
).says("In a batch of more than eight items, the server returns the classes of the first item for the last item.")
