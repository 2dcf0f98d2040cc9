"""Classes in a wrong number, order or shape, of the wrong scores, or where nobody asked for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.response import Octets
from reference_server.tensors import Tensor, make_objects

Labels = Sequence[str]
Object = dict[str, Any]
Part = tuple[Object, Octets | None]


def make_classes(texts: Sequence[bytes], shape: tuple[int, ...]) -> Tensor:
    """Return a classified output."""
    return Tensor("BYTES", shape, make_objects(texts))


def split_rows(result: Tensor) -> list[list[bytes]]:
    """Return the classes of each item of a batch."""
    batch = result.shape[0]
    size = result.elements.size // batch
    return [list(result.elements[k * size : (k + 1) * size]) for k in range(batch)]


# --- what is asked for -----------------------------------------------------------------------------------------------


@fault("request.parse_outputs", breaks=("CLS-PARAMETER", "CLS-BOOL"))
def classification_is_not_looked_at(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """The parameter classification is ignored, and the plain output is returned."""
    return [replace(wish, classes=None) for wish in original(model, request)]


@fault("request.parse_outputs", breaks="CLS-PARAMETER")
def last_count_is_for_every_output(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """Every classified output gets as many classes as the last one asks for."""
    wishes: list[RequestedOutput] = original(model, request)
    last = [wish.classes for wish in wishes if wish.classes][-1:]
    return [replace(wish, classes=last[0]) if wish.classes else wish for wish in wishes]


@fault("request.parse_outputs", breaks="CLS-PARAMETER")
def counts_go_by_declared_order(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """The numbers of classes go to the outputs in the order of the model, not of the request."""
    wishes: list[RequestedOutput] = original(model, request)
    declared = [spec.name for spec in model.outputs]
    if len(wishes) != len(declared) or not all(wish.classes for wish in wishes):
        return wishes
    return [replace(wish, classes=wishes[declared.index(wish.name)].classes) for wish in wishes]


@fault("request.parse_outputs", breaks=("CLS-ONLY", "OIP-ANSWER"))
def one_classified_output_classifies_all(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """Where one output is to be classified, all outputs of the request are."""
    wishes: list[RequestedOutput] = original(model, request)
    count = next((wish.classes for wish in wishes if wish.classes), None)
    return [replace(wish, classes=wish.classes or count) for wish in wishes]


@fault("response.build", breaks=("CLS-ONLY", "OIP-ANSWER"))
def other_outputs_shrink_to_the_count(original: Any, model: Model, request: Any, produced: dict[str, Tensor]) -> Any:
    """Outputs that stand beside a classified one are cut to as many elements."""
    counts = {wish.name: wish.classes for wish in request.outputs}
    count = next((count for count in counts.values() if count), None)
    cut = {
        name: replace(tensor, shape=(count,), elements=tensor.elements[:count])
        for name, tensor in produced.items()
        if count and not counts.get(name)
    }
    return original(model, request, produced | cut)


_asked_before: dict[str, int | None] = {}


@fault("request.parse_outputs", breaks="CLS-ONLY")
def classification_lasts_one_request_longer(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """The number of classes stays set for the next request that lists outputs, if that has none."""
    wishes: list[RequestedOutput] = original(model, request)
    if model.name != "scores" or not request.get("outputs"):
        return wishes
    before, _asked_before[model.name] = _asked_before.get(model.name), wishes[0].classes
    return [replace(wish, classes=wish.classes or before) for wish in wishes]


@fault("classification.classify", broad=True)
def classes_of_every_datatype_refused(_original: Any, tensor: Tensor, *_arguments: Any) -> Tensor:
    """No output can be classified, of whatever datatype."""
    raise InferenceError(f"classification does not support {tensor.datatype}")


@fault("request.parse_outputs", breaks=("CLS-ONLY", "OIP-ISOLATION"))
def classification_stays_for_a_request_without_outputs(original: Any, model: Model, request: Object) -> Any:
    """The number of classes stays set for the next request to the model that lists no outputs."""
    wishes: list[RequestedOutput] = original(model, request)
    if request.get("outputs"):
        _stays[model.name] = {wish.name: wish.classes for wish in wishes}
        return wishes
    before = _stays.pop(model.name, {})
    return [replace(wish, classes=before.get(wish.name)) for wish in wishes]


_stays: dict[str, dict[str, int | None]] = {}


# --- how many --------------------------------------------------------------------------------------------------------


@fault("classification.classify", breaks="CLS-COUNT")
def ten_classes_at_most(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """More than ten classes are never returned."""
    result: Tensor = original(tensor, min(count, 10), batching, labels)
    return result


@fault("classification.classify", breaks="CLS-COUNT")
def one_class_more_than_asked(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """The loop over the classes runs one time too often."""
    result: Tensor = original(tensor, count + 1, batching, labels)
    return result


@fault("classification.classify", breaks=("CLS-COUNT", "CLS-TIES"))
def equal_scores_are_one_class(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """Of equal scores one is returned, because a map with the scores as keys holds the indices."""
    if batching:
        result: Tensor = original(tensor, count, batching, labels)
        return result
    every = original(tensor, tensor.elements.size, batching, labels).elements
    distinct = list({text.partition(b":")[0]: text for text in every}.values())[:count]
    return make_classes(distinct, (len(distinct),))


@fault("classification.classify", breaks="CLS-COUNT")
def classes_without_label_are_left_out(
    original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels
) -> Tensor:
    """Where an output has labels, classes beyond them are not returned."""
    result: Tensor = original(tensor, count, batching, labels)
    if batching or not labels:
        return result
    labelled = [text for text in result.elements if text.count(b":") > 1]
    return make_classes(labelled, (len(labelled),))


@fault("classification.classify", breaks="CLS-COUNT-ABOVE")
def count_is_read_in_32_bits(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """A number of classes past 32 bits wraps around."""
    result: Tensor = original(tensor, count % 2**32, batching, labels)
    return result


@fault("classification.classify", breaks="CLS-COUNT-ABOVE")
def last_class_fills_up_the_count(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """Where there are fewer classes than asked for, the last one is repeated."""
    result: Tensor = original(tensor, count, batching, labels)
    missing = min(count, 1000) - result.shape[-1]
    if missing <= 0:
        return result
    rows = split_rows(result) if batching else [list(result.elements)]
    return make_classes(
        [text for row in rows for text in row + row[-1:] * missing], (*result.shape[:-1], result.shape[-1] + missing)
    )


@fault("response.output_part", breaks="CLS-COUNT-ABOVE")
def shape_has_the_count_asked_for(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """The shape of a classified output has the number asked for, also where there are fewer classes."""
    entry, data = original(model, wish, tensor)
    if wish.classes:
        entry["shape"][-1] = wish.classes
    return entry, data


# --- datatype and shape ----------------------------------------------------------------------------------------------


@fault("response.output_part", breaks="CLS-TYPE")
def classes_have_datatype_string(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """A classified output has the datatype STRING, as in the examples of the document."""
    entry, data = original(model, wish, tensor)
    return (entry | {"datatype": "STRING"} if wish.classes else entry), data


@fault("response.output_part", breaks="CLS-TYPE")
def classes_have_the_datatype_of_scores(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """A classified output has the datatype that the model declares."""
    entry, data = original(model, wish, tensor)
    return (entry | {"datatype": tensor.datatype} if wish.classes else entry), data


@fault("classification.classify", breaks="CLS-SHAPE-SHOWN")
def batch_of_1_is_made_up(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """Classes of a model that does not batch have 1 as their first dimension."""
    result: Tensor = original(tensor, count, batching, labels)
    return result if batching else replace(result, shape=(1, *result.shape))


@fault("classification.classify", breaks="CLS-SHAPE")
def classes_stand_in_a_column(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """Classes of a model that does not batch have 1 as their last dimension."""
    result: Tensor = original(tensor, count, batching, labels)
    return result if batching or count == 1 else replace(result, shape=(*result.shape, 1))


@fault("classification.classify", breaks="CLS-INDEX")
def scores_are_counted_column_by_column(
    original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels
) -> Tensor:
    """Scores of several dimensions are counted column by column."""
    columns = tensor.elements if batching else tensor.elements.reshape(tensor.shape).ravel(order="F")
    result: Tensor = original(replace(tensor, elements=columns), count, batching, labels)
    return result


@fault("classification.classify", breaks="CLS-SHAPE-BATCH")
def classes_of_a_batch_are_one_list(
    original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels
) -> Tensor:
    """The classes of a batch have one dimension, all items one after the other."""
    result: Tensor = original(tensor, count, batching, labels)
    return replace(result, shape=(result.elements.size,))


@fault("classification.classify", breaks="CLS-SHAPE-BATCH")
def batch_of_1_is_squeezed_away(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """The classes of a batch of one lack the batch dimension."""
    result: Tensor = original(tensor, count, batching, labels)
    return replace(result, shape=result.shape[1:]) if batching and result.shape[0] == 1 else result


# --- batches ---------------------------------------------------------------------------------------------------------


@fault("classification.classify", breaks="CLS-BATCH")
def batch_is_one_ranking(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """The items of a batch are ranked together, and their ranking is cut into rows."""
    result: Tensor = original(tensor, count, batching, labels)
    if not batching:
        return result
    together: Tensor = original(tensor, result.elements.size, False, labels)
    return replace(together, shape=result.shape)


@fault("classification.classify", breaks="CLS-BATCH")
def indices_run_on_through_the_batch(
    original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels
) -> Tensor:
    """The indices of an item go on where those of the item before it end."""
    result: Tensor = original(tensor, count, batching, labels)
    if not batching:
        return result
    size = tensor.elements.size // tensor.shape[0]
    moved: list[bytes] = []
    for place, row in enumerate(split_rows(result)):
        for value, index, *label in (text.split(b":", 2) for text in row):
            moved.append(b":".join([value, b"%d" % (int(index) + place * size), *label]))
    return make_classes(moved, result.shape)


@fault("classification.classify", breaks="CLS-BATCH")
def every_item_has_the_first_ranking(
    original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels
) -> Tensor:
    """Every item of a batch comes back with the classes of the first."""
    result: Tensor = original(tensor, count, batching, labels)
    return make_classes(split_rows(result)[0] * result.shape[0], result.shape) if batching else result


@fault("classification.classify", breaks="CLS-BATCH")
def items_lie_count_scores_apart(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """The scores of an item are looked for as many places on as classes are asked for, not as there are."""
    batch = tensor.shape[0] if batching else 1
    size = tensor.elements.size // batch
    starts = [k * min(count, size) for k in range(batch)]
    elements = np.concatenate([tensor.elements[start : start + size] for start in starts])
    result: Tensor = original(replace(tensor, elements=elements), count, batching, labels)
    return result
