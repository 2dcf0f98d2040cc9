"""Binary inputs are read in the order of the request's JSON; outputs are JSON, so that only requests are judged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from conformance.checks.ordering.tensors_and_orders import (
    CHOICES,
    INPUTS,
    OTHER_ORDERS,
    WRONG_AS_BINARY_DATA,
    Names,
    Order,
    keep_two_elements,
    label_order,
    make_choice_rows,
    make_constant_order,
    make_sample,
    make_tensors,
    sort_tensors,
)
from conformance.checks.support.controls import (
    are_equal_inputs_right,
    expect_right,
    expect_several_tensors,
    is_refused_as_json_too,
    is_right,
    is_right_in_name_order,
    mark_not_applicable_if,
)
from conformance.checks.support.inputs import (
    InputsBuilder,
    choose_revealing_inputs,
    make_empty_inputs,
    reassign_by_position,
    require_several_inputs,
)
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, attribute_to, block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import SEVERAL_INPUTS, Fit
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

# --- requests ----------------------------------------------------------------------------------------------------------


def _make_two_elements(model: Model) -> list[Tensor]:
    """Return inputs of two elements each."""
    return [keep_two_elements(tensor) for tensor in model.sample()]


_SECOND_FIRST = make_constant_order(("INPUT1", "INPUT0"))


@check("ordering.request-follows-its-json", requirements=("BIN-ORDER-I", "OIP-ANSWER"))
@rows(
    *[Row(label_order(order), (make_constant_order(order),), role="multi") for order in permutations(INPUTS)],
    *[
        Row(f"{label_order(order)}-of-equal-sizes", (make_constant_order((*order, "IN_BYTES")), make_tensors), "multi")
        for order in permutations(INPUTS[:3])
    ],
    *[
        Row(f"{label}-of-one-datatype", (make_constant_order(order), _make_two_elements), "add_sub")
        for label, order in (("B-A", ("B", "A")), ("A-B", ("A", "B")))
    ],
    Row(
        "of-one-datatype-returned", (_SECOND_FIRST, make_sample, True), "raw_two_inputs", ("BIN-ORDER-I", "OIP-ANSWER")
    ),
    Row("as-declared", (lambda names: names, None), fit=SEVERAL_INPUTS),
    *[Row(name, (order, None), fit=SEVERAL_INPUTS) for name, order in OTHER_ORDERS.items()],
)
def request_follows_its_json(
    target: Target, model: Model, order: Order, build: InputsBuilder | None = make_sample, in_json: bool = False
) -> None:
    """The server reads binary inputs in the order in which the request's JSON lists them, and JSON inputs by name."""
    tensors = sort_tensors(build(model), order(())) if build else _find_order_revealing_inputs(model, order)
    if in_json:
        with (
            block_if(lambda: not is_right(target, model, tensors[::-1], "json"), _WRONG_IN_DECLARED_ORDER),
            attribute_to("OIP-ANSWER"),
        ):
            expect_right(target, model, tensors, "json")
    with (
        mark_not_applicable_if(lambda: _is_misread_in_json(target, model, tensors), _ASSIGNED_BY_POSITION),
        block_if(lambda: _is_every_order_misread(target, model), _WRONG_IN_DECLARED_ORDER),
        block_if(lambda: not are_equal_inputs_right(target), "the answer to two equal inputs is also wrong"),
    ):
        reply = target.infer(model.request(tensors, outputs=model.build_outputs_member()))
        expect_several_tensors(reply, target, model, tensors, model.expected(tensors), "read")


# --- the order of a deployed model ---


_WRONG_IN_DECLARED_ORDER = "the answer to the inputs in declared order is also wrong"
_ASSIGNED_BY_POSITION = "the model assigns inputs by position, not by name, in plain JSON as well"


def _find_order_revealing_inputs(model: Model, order: Order) -> list[Tensor]:
    """Return inputs in `order` whose answer shows whether the server reads them in the declared order instead.

    If `order` is the declared order, the answer shows whether the server reads them in reverse.

    Raises NotApplicableError: for all drawn inputs, the answer does not show the order.
    """
    names = order(tuple(tensor.name for tensor in require_several_inputs(model)))

    def misread(declared: Sequence[Tensor]) -> Sequence[Tensor] | None:
        """Return the inputs as read in declared order; in reverse, if they are sent in declared order."""
        tensors = sort_tensors(declared, names)
        return reassign_by_position(declared, tensors[::-1] if tensors == list(declared) else tensors)

    return sort_tensors(choose_revealing_inputs(model, misread), names)


def _is_every_order_misread(target: Target, model: Model) -> bool:
    """Say whether a deployed model misreads binary inputs both in the declared order and sorted by name.

    Returns False for the model of a role, and if a deployed model reads single binary inputs and two binary inputs
    together correctly: then the number of inputs is the cause, not their order.
    """
    if not model.is_deployed:
        return False
    declared = model.sample()
    if is_right(target, model, declared) or is_right_in_name_order(target, model, declared):
        return False
    names = [tensor.name for tensor in declared]
    return bool(model.binary_inputs) or not all(
        is_right(target, model, declared, some) for some in (*[[name] for name in names], names[-2:])
    )


def _is_misread_in_json(target: Target, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether a deployed model misreads the inputs as JSON in this order, or JSON cannot represent all inputs."""
    return model.is_deployed and (bool(model.binary_inputs) or not is_right(target, model, tensors, "json"))


@check("ordering.inputs-without-elements-change-no-order", requirements="BIN-ORDER-I")
@rows(
    *[
        Row(
            f"{label_order(order)}-empty-{'-'.join(label_order((name,)) for name in empty)}",
            (order, empty),
            role="multi",
        )
        for order in (INPUTS, INPUTS[::-1], (*INPUTS[2:], *INPUTS[:2]))
        for empty in (*[(name,) for name in order], order[::2], order[1:3])
    ],
    Row("deployed-first-one-empty-in-reverse", (None, None), fit=Fit(min_inputs=3, is_json=True)),
)
def inputs_without_elements_change_no_order(
    target: Target, multi: Model, order: Names | None, empty: Names | None
) -> str | None:
    """The server reads binary inputs in the order of the JSON even if some of them are empty."""
    if order is None or empty is None:
        _expect_own_inputs_beside_empty(target, multi)
        return None
    tensors = [
        Tensor.from_values(tensor.name, tensor.datatype, tensor.array[:0]) if tensor.name in empty else tensor
        for tensor in sort_tensors(make_tensors(multi), order)
    ]
    reply = target.infer(multi.request(tensors))
    if is_refused_as_json_too(target, multi, tensors, reply):
        return "the model refuses inputs without elements, in JSON as well"
    full = sort_tensors(make_tensors(multi), order)
    with block_if(lambda: not is_right(target, multi, full), "the answer is also wrong if all inputs have elements"):
        if not reply.succeeded and not target.infer(multi.request(sort_tensors(tensors, INPUTS))).succeeded:
            expect(reply, "BIN-DATATYPES-I").answered()  # the server refuses such inputs in any order
        filled = [tensor for tensor in multi.expected(tensors) if tensor.elements]
        expect_several_tensors(reply, target, multi, [tensor for tensor in tensors if tensor.elements], filled, "read")
    return None


def _expect_own_inputs_beside_empty(target: Target, model: Model) -> None:
    """Expect a deployed model to read inputs in reverse order if the first declared input has no elements."""
    declared = require_several_inputs(model)
    tensors = make_empty_inputs(target, model, declared[0].name)[::-1]
    with (
        mark_not_applicable_if(lambda: _is_misread_in_json(target, model, tensors), _ASSIGNED_BY_POSITION),
        block_if(
            lambda: not is_right(target, model, declared[::-1]), "the answer is also wrong if all inputs have elements"
        ),
        block_if(lambda: not is_right(target, model, tensors[::-1]), _WRONG_IN_DECLARED_ORDER),
    ):
        expect_right(target, model, tensors)


@check("ordering.json-inputs-take-no-bytes", requirements="BIN-MIXED-I")
@rows(
    *make_choice_rows(INPUTS),
    *[Row(name, choice, fit=Fit(min_inputs=least)) for name, (least, choice) in CHOICES.items()],
)
def json_inputs_take_no_bytes(target: Target, model: Model, order: Order, choose: Order) -> None:
    """JSON inputs between binary ones take none of the bytes after the JSON."""
    declared = require_several_inputs(model) if model.is_deployed else make_tensors(model)
    names = order(tuple(tensor.name for tensor in declared))
    tensors, binary = sort_tensors(declared, names), {*choose(names), *model.binary_inputs}
    sent = [tensor for tensor in tensors if tensor.name in binary]
    if len(sent) == len(tensors):
        raise NotApplicableError("JSON cannot represent any input that the row sends as JSON")
    reply = target.infer(model.request(tensors, send=binary, outputs=model.build_outputs_member()))
    with (
        mark_not_applicable_if(lambda: _is_misread_in_json(target, model, tensors), _ASSIGNED_BY_POSITION),
        block_if(lambda: not is_right(target, model, tensors), WRONG_AS_BINARY_DATA),
    ):
        expect_several_tensors(reply, target, model, sent, model.expected(tensors), "read")
