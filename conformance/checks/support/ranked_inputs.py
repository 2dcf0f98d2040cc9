"""Choose inputs for classification; for a deployed model, the inputs whose scores detect the most faults.

Scores that are not in descending order reveal a server that does not sort classes by score. Scores that all differ
reveal a wrong index. If the first dimension of an output may be a batch dimension, the inputs contain one batch item,
so that the ranking is the same with and without batching. The checks of batches send several items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from conformance.discovery.deployed_model import DeclinedError, is_classifiable
from conformance.expect import class_texts
from conformance.expect.class_texts import Scores
from conformance.expect.difference import find_largest_error
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import Row
from conformance.spec.fit import SCORED
from conformance.wire.tensor import Tensor

Case = tuple[tuple[Tensor, ...], Tensor]  # inputs, and the output that is classified

# Four scores whose order is neither that of the indices nor its reverse.
SCORES = (0.25, 0.75, -1.5, 3.0)
# The input of the documents' example; its scores are 1.1, 3.3, 0.5 and 2.4.
DOCUMENTED = ((1, 2), (3, 4))
# JSON has no infinities: these travel as binary data.
INFINITE = (1.0, -math.inf, 0.0, math.inf)
DESCENDING = (9, 5, -7)
# Two items, each of two rows.
SQUARES = (((10, 40), (20, 30)), ((35, 5), (25, 15)))
# Scores of two items, which interleave: 5, 10, 15, 20, ...
ITEMS = ((10.0, 40.0, 20.0, 30.0), (35.0, 5.0, 25.0, 15.0))


# The row for deployed models with scores, which use their own inputs.
OWN = Row("deployed", fit=SCORED)
SEVERAL_SCORED = replace(SCORED, min_outputs=2)


def choose_inputs(model: Model, name: str, values: Any = None, *, items: int = 1) -> Case:
    """Return inputs, and the expected output `name` for these inputs.

    The first input has these `values`. Without values, several sets of inputs are tried. Inputs whose scores are not in
    descending order are preferred, and among these, inputs whose scores all differ. Inputs that may be a batch have
    `items` batch items, if the model accepts that number.

    Raises NotApplicableError: no set of inputs gives an output with elements that can be ranked.
    """
    if values is not None:
        tensors = (model.tensor(values), *model.sample()[1:])
        return tensors, find_output(model, tensors, name)
    drawn = [(tensors, find_output(model, tensors, name)) for tensors in model.draw_several()]
    drawn = [_set_item_count(model, case, items) for case in drawn if is_classifiable(case[1])]
    if not drawn:
        raise NotApplicableError(f"{name} of {model.name} has no elements to classify")
    return max(drawn, key=lambda case: (any(map(is_unsorted, _split_rows(case[1]))), not has_ties(case[1])))


def _set_item_count(model: Model, case: Case, items: int) -> Case:
    """Return the case with `items` batch items if the model accepts that number, else the unchanged case."""
    tensors, output = case
    with_items = model.repeat_to_batch(tensors, items)
    if with_items is tensors or len(output.shape) < 2:
        return case
    try:
        found = find_output(model, with_items, output.name)
    except DeclinedError:
        return case
    return (with_items, found) if found.shape == (items, *output.shape[1:]) else case


def choose_class_count(model: Model, output: Tensor) -> int:
    """Return how many classes to request of an output: 2 if possible, but 1 if each element may be a batch item."""
    return 1 if len(output.shape) == 1 and model.may_batch(output) else model.limit_classes(output, 2)


def find_tied_inputs(model: Model) -> tuple[Tensor, ...]:
    """Return inputs of a deployed model whose output has equal scores.

    Inputs filled with one element are tried first, then sample inputs.

    Raises NotApplicableError: no inputs give equal scores.
    """
    name, drawn = model.find_classifiable_outputs()[0], list(model.draw_several())
    for tensors in ([_fill_with_first_element(tensor) for tensor in drawn[0]], *drawn):
        output = find_output(model, tensors, name)
        if is_classifiable(output) and has_ties(output):
            return tuple(tensors)
    raise NotApplicableError(f"{model.name} returns no equal scores")


def _fill_with_first_element(tensor: Tensor) -> Tensor:
    elements = np.resize(tensor.array.reshape(-1)[:1], tensor.shape)
    return Tensor(tensor.name, tensor.datatype, tensor.shape, elements)


def find_half_negated_inputs(model: Model) -> tuple[Tensor, ...]:
    """Return the sample inputs of a deployed model, with every other FP32 or FP64 element negated.

    Raises NotApplicableError: the model refuses these inputs, or its output for these inputs cannot be ranked.
    """
    tensors = tuple(
        _negate_every_other_element(tensor) if tensor.datatype in ("FP32", "FP64") else tensor
        for tensor in model.sample()
    )
    if not is_classifiable(find_output(model, tensors, model.find_classifiable_outputs()[0])):
        raise NotApplicableError(f"{model.name} returns no scores for negative inputs")
    return tensors


def _negate_every_other_element(tensor: Tensor) -> Tensor:
    elements = tensor.array.reshape(-1).copy()
    elements[::2] *= -1
    return Tensor(tensor.name, tensor.datatype, tensor.shape, elements.reshape(tensor.shape))


def find_unbatched_inputs(model: Model, count: int) -> tuple[Tensor, ...]:
    """Return one-dimensional inputs of a deployed model with `count` elements, which are not a batch.

    Raises NotApplicableError: an input has several dimensions, so more elements may be more batch items.
    """
    if any(len(tensor.shape) > 1 for tensor in model.sample()):
        raise NotApplicableError(f"more elements for {model.name} may be more batch items")
    return tuple(model.build_salted_inputs(count, model.salt))


def find_output(model: Model, tensors: Sequence[Tensor], name: str) -> Tensor:
    """Return the expected output `name` of a model for these inputs."""
    return next(tensor for tensor in model.find_outputs(tensors) if tensor.name == name)


def _split_rows(output: Tensor) -> Scores:
    """Return an output as a matrix: one row for each index of its first dimension, or a single row for a vector."""
    return output.array.reshape(output.shape[0] if len(output.shape) > 1 else 1, -1)


def is_unsorted(scores: Scores) -> bool:
    """Say whether some score is higher than the previous score."""
    values = class_texts.to_python_numbers(scores)
    return any(one < other for one, other in pairwise(values))


def has_ties(output: Tensor) -> bool:
    """Say whether any batch item has scores that are equal, or so near that noise may change their order."""
    rows = _split_rows(output)
    if error := find_largest_error(output):
        return bool((np.diff(np.sort(rows.astype("<f8"))) <= 2 * error).any())
    return any(np.unique(row).size < row.size for row in rows)
