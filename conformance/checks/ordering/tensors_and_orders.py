"""Orders, selections, and distinguishable tensors, for the checks of order.

These checks judge only tensors that the server handles correctly one by one: `datatypes` and `byte_layout` judge the
encoding of elements. INT64 elements stay below 2^53, because some servers read JSON numbers as doubles. Tensors fill
whole words, so that a server that aligns them does not fail here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations

from conformance.checks.support.inputs import choose_inputs_of_distinct_outputs
from conformance.roles.model import Model
from conformance.spec.check import Row
from conformance.wire.tensor import Tensor

INPUTS = ("IN_INT64", "IN_BOOL", "IN_FP32", "IN_BYTES")
OUTPUTS = ("OUT_INT64", "OUT_BOOL", "OUT_FP32", "OUT_BYTES")

Names = tuple[str, ...]
# Reorders names, or selects some of them.
Order = Callable[[Names], Names]

WRONG_AS_BINARY_DATA = "the answer is also wrong if all these tensors are binary data"
# Orders of the tensors of a deployed model other than the declared one.
OTHER_ORDERS: Mapping[str, Order] = {
    "in-reverse": lambda names: names[::-1],
    "first-one-last": lambda names: (*names[1:], names[0]),
}
# Rows of deployed models with JSON and binary tensors: minimum number of tensors, their order, the binary tensors.
CHOICES: Mapping[str, tuple[int, tuple[Order, Order]]] = {
    "first-one-binary": (2, (lambda names: names, lambda names: names[:1])),
    "last-one-binary": (2, (lambda names: names, lambda names: names[-1:])),
    "every-other-binary-in-reverse": (3, (lambda names: names[::-1], lambda names: names[::2])),
}


def make_constant_order(names: Names) -> Order:
    """Return an order that always gives these names."""
    return lambda _: names


def label_order(order: Names, binary: Names | None = None) -> str:
    """Return the id of a row: the names of the tensors in order, with JSON tensors in lower case."""
    words = {name: name.partition("_")[2] for name in order}
    return "-".join(word if binary is None or name in binary else word.lower() for name, word in words.items())


def list_choices(names: Names) -> list[Names]:
    """Return every subset of the names, in their order, except the empty and the complete one."""
    return [choice for count in range(1, len(names)) for choice in combinations(names, count)]


def make_choice_rows(names: Names) -> list[Row]:
    """Return rows with some binary tensors: each subset in declared order; every second tensor in a few other orders."""
    chosen = [
        Row(label_order(names, some), (make_constant_order(names), make_constant_order(some)), role="multi")
        for some in list_choices(names)
    ]
    rotated = [names[place:] + names[:place] for place in range(1, len(names))]
    orders = [names[::-1], *rotated, (names[1], names[0], *names[2:])]
    return chosen + [
        Row(label_order(order, order[::2]), (make_constant_order(order), make_constant_order(order[::2])), role="multi")
        for order in orders
    ]


# --- tensors ----------------------------------------------------------------------------------------------------------


def sort_tensors(tensors: Iterable[Tensor], order: Names) -> list[Tensor]:
    """Return the tensors in the order of these names."""
    by_name = {tensor.name: tensor for tensor in tensors}
    return [by_name[name] for name in order]


def keep_two_elements(tensor: Tensor) -> Tensor:
    """Return the tensor cut to its first two elements."""
    return Tensor.from_values(tensor.name, tensor.datatype, tensor.array[:2])


def make_sample(model: Model) -> list[Tensor]:
    """Return inputs of different outputs; the inputs of the role `multi` have different sizes in bytes."""
    if model.is_deployed or model.role.name != "multi":
        return list(choose_inputs_of_distinct_outputs(model))
    salt = model.salt
    values = {
        "IN_INT64": [0x0001020304050607 + salt * (k + 1) for k in range(3)],
        "IN_BOOL": [(k * k + salt) % 3 == 0 for k in range(8)],
        "IN_FP32": [1.5 + salt, 2.75, -4.25, 8.0],
        "IN_BYTES": ["", f"{salt:03}xy", "abc", "d", "efg"],
    }
    return [Tensor.from_values(spec.name, spec.datatype, values[spec.name]) for spec in model.role.inputs]


def make_tensors(multi: Model) -> list[Tensor]:
    """Return inputs of `multi` with different numbers of elements but eight bytes each, except BYTES.

    For a deployed model, return sample inputs.
    """
    if multi.is_deployed:
        return list(multi.sample())
    salt = multi.salt
    values = {
        "IN_INT64": [0x0001020304050607 + salt],
        "IN_BOOL": [True, False, False, True, True, True, False, salt % 2 == 0],
        "IN_FP32": [salt + 0.5, -2.25],
        "IN_BYTES": ["", f"{salt:03}xy", "abcdefg"],
    }
    return [Tensor.from_values(spec.name, spec.datatype, values[spec.name]) for spec in multi.role.inputs]
