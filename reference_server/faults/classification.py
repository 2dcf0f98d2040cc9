"""Classes in a wrong number, order or shape, of the wrong scores, or where nobody asked for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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


@fault("request.parse_outputs", breaks=("CLS-ONLY", "OIP-ANSWER"))
def one_classified_output_classifies_all(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """Where one output is to be classified, all outputs of the request are."""
    wishes: list[RequestedOutput] = original(model, request)
    count = next((wish.classes for wish in wishes if wish.classes), None)
    return [replace(wish, classes=wish.classes or count) for wish in wishes]


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
def one_class_more_than_asked(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """The loop over the classes runs one time too often."""
    result: Tensor = original(tensor, count + 1, batching, labels)
    return result


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
def batch_of_1_is_squeezed_away(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """The classes of a batch of one lack the batch dimension."""
    result: Tensor = original(tensor, count, batching, labels)
    return replace(result, shape=result.shape[1:]) if batching and result.shape[0] == 1 else result


# --- batches ---------------------------------------------------------------------------------------------------------


@fault("classification.classify", breaks="CLS-BATCH")
def every_item_has_the_first_ranking(
    original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels
) -> Tensor:
    """Every item of a batch comes back with the classes of the first."""
    result: Tensor = original(tensor, count, batching, labels)
    return make_classes(split_rows(result)[0] * result.shape[0], result.shape) if batching else result
