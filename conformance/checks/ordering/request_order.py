"""Requests: binary inputs are read in the order of the JSON. Seen alone: binary in, JSON out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from conformance.checks.ordering.tensors_and_orders import (
    _ALL_BINARY,
    INPUTS,
    Names,
    _alternating,
    _in_order,
    _in_whole_words,
    _label,
    _sample,
    _some,
    _tensors,
)
from conformance.checks.support.binary_sides import expect_together, is_right, takes_none, takes_several
from conformance.expect.unmet import blocked_where
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

# --- requests ----------------------------------------------------------------------------------------------------------


@check("ordering.request-follows-its-json", answers="BIN-ORDER-I", role="multi")
@rows(*[Row(_label(order), (order,), thorough=index % 5 > 0) for index, order in enumerate(permutations(INPUTS))])
def request_follows_its_json(target: Target, multi: Model, order: Names) -> None:
    """Binary inputs are read in the order in which the request's JSON lists them."""
    tensors = _in_order(_sample(multi), order)
    _expect_apart(target, multi, tensors)


@check("ordering.request-of-equal-sizes-follows-its-json", answers="BIN-ORDER-I", role="multi")
@rows(*[Row(_label(order), (order,), thorough=index % 5 > 0) for index, order in enumerate(permutations(INPUTS[:3]))])
def request_of_equal_sizes_follows_its_json(target: Target, multi: Model, order: Names) -> None:
    """Binary inputs are told apart by their place, not by their size: three of them have eight bytes each."""
    tensors = _in_order(_tensors(multi), (*order, "IN_BYTES"))
    _expect_apart(target, multi, tensors)


@check("ordering.inputs-of-one-datatype-keep-apart", answers="BIN-ORDER-I", role="add_sub")
@rows(("B-A", ("B", "A")), ("A-B", ("A", "B")))
def inputs_of_one_datatype_keep_apart(target: Target, model: Model, order: Names) -> None:
    """Two binary inputs of one datatype and shape are not exchanged."""
    tensors = _in_order([_in_whole_words(tensor) for tensor in model.sample()], order)
    _expect_apart(target, model, tensors)


def _expect_apart(target: Target, model: Model, tensors: Sequence[Tensor]) -> None:
    """Expect binary inputs right together, unless no request with several of them is answered."""
    reply = target.infer(model.request(tensors))
    with blocked_where(lambda: not takes_several(target), "two inputs that are alike are wrong, too"):
        expect_together(reply, target, tensors, model.expected(tensors), "read")


@check("ordering.inputs-without-elements-change-no-order", answers="BIN-ORDER-I")
@rows(
    *[
        Row(f"{_label(order)}-empty-{'-'.join(_label((name,)) for name in empty)}", (order, empty), role="multi")
        for order in (INPUTS, INPUTS[::-1], (*INPUTS[2:], *INPUTS[:2]))
        for empty in (*[(name,) for name in order], order[::2], order[1:3])
    ],
)
def inputs_without_elements_change_no_order(target: Target, multi: Model, order: Names, empty: Names) -> str | None:
    """Binary inputs beside others that have no elements are read in the order of the JSON, too."""
    tensors = [_emptied(tensor) if tensor.name in empty else tensor for tensor in _in_order(_tensors(multi), order)]
    reply = target.infer(multi.request(tensors))
    if takes_none(target, multi, tensors, reply):
        return "no inputs without elements are taken, as JSON either"
    full = _in_order(_tensors(multi), order)
    with blocked_where(
        lambda: not is_right(target, multi, full, "read"), "the inputs are wrong where all have elements, too"
    ):
        filled = [tensor for tensor in multi.expected(tensors) if tensor.elements]
        expect_together(reply, target, [tensor for tensor in tensors if tensor.elements], filled, "read")
    return None


def _emptied(tensor: Tensor) -> Tensor:
    return Tensor.of(tensor.name, tensor.datatype, tensor.array[:0])


@check("ordering.json-inputs-take-no-bytes", answers="BIN-MIXED-I", role="multi")
@rows(
    *[(_label(INPUTS, chosen), INPUTS, chosen) for chosen in _some(INPUTS)],
    *[
        Row(label, (order, chosen), thorough=True)
        for label, order, chosen in map(_alternating, permutations(INPUTS))
        if order != INPUTS
    ],
)
def json_inputs_take_no_bytes(target: Target, multi: Model, order: Names, binary: Names) -> None:
    """JSON inputs stand between binary ones and take none of the bytes behind the JSON."""
    tensors = _in_order(_tensors(multi), order)
    reply = target.infer(multi.request(tensors, send=binary))
    with blocked_where(lambda: not is_right(target, multi, tensors, "read"), _ALL_BINARY):
        expect_together(reply, target, [t for t in tensors if t.name in binary], multi.expected(tensors), "read")
