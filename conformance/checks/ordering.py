"""The order of binary data: that of the JSON before it, whatever the model declares.

Requests are seen alone (binary in, JSON out) and so are answers (JSON in, binary out). Only values are judged: whether
an output came in the form that was asked for is a matter of `overrides`. An answer may list its outputs in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, permutations

from conformance.check import Row, check, rows
from conformance.expect import expect
from conformance.roles import Model
from conformance.target.target import Target
from conformance.wire.request import Output
from conformance.wire.tensor import Tensor

INPUTS = ("IN_INT64", "IN_BOOL", "IN_FP32", "IN_BYTES")
OUTPUTS = ("OUT_INT64", "OUT_BOOL", "OUT_FP32", "OUT_BYTES")


Names = tuple[str, ...]


def _label(order: Names, binary: Names | None = None) -> str:
    """Return a row's id: the tensors in order, in small letters those that are JSON."""
    words = {name: name.partition("_")[2] for name in order}
    return "-".join(word if binary is None or name in binary else word.lower() for name, word in words.items())


def _some(names: Names) -> list[Names]:
    """Return every choice of at least one of the names and not of all, in their order."""
    return [choice for count in range(1, len(names)) for choice in combinations(names, count)]


def _alternating(order: Names) -> tuple[str, Names, Names]:
    return _label(order, order[::2]), order, order[::2]


# --- requests ----------------------------------------------------------------------------------------------------------


@check("ordering.request-follows-its-json", answers="BIN-ORD-I", role="multi")
@rows(*[Row(_label(order), (order,), thorough=index % 5 > 0) for index, order in enumerate(permutations(INPUTS))])
def request_follows_its_json(target: Target, multi: Model, order: Names) -> None:
    """Binary inputs are read in the order in which the request's JSON lists them."""
    tensors = _in_order(multi.sample(), order)
    expect(target.infer(multi.request(tensors))).tensors(multi.expected(tensors))


@check("ordering.request-of-equal-sizes-follows-its-json", answers="BIN-ORD-I", role="multi")
@rows(*[Row(_label(order), (order,), thorough=index % 5 > 0) for index, order in enumerate(permutations(INPUTS[:3]))])
def request_of_equal_sizes_follows_its_json(target: Target, multi: Model, order: Names) -> None:
    """Binary inputs are told apart by their place, not by their size: three of them have eight bytes each."""
    tensors = _in_order(_tensors(multi), (*order, "IN_BYTES"))
    expect(target.infer(multi.request(tensors))).tensors(multi.expected(tensors))


@check("ordering.inputs-of-one-datatype-keep-apart", answers="BIN-ORD-I", role="add_sub")
@rows(("B-A", ("B", "A")), ("A-B", ("A", "B")))
def inputs_of_one_datatype_keep_apart(target: Target, model: Model, order: Names) -> None:
    """Two binary inputs of one datatype and shape are not exchanged."""
    tensors = _in_order(model.sample(), order)
    expect(target.infer(model.request(tensors))).tensors(model.expected(tensors))


@check("ordering.json-inputs-take-no-bytes", answers="BIN-MIX-I", role="multi")
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
    expect(target.infer(multi.request(tensors, send=binary))).tensors(multi.expected(tensors))


# --- answers -----------------------------------------------------------------------------------------------------------


@check("ordering.response-follows-its-json", answers="BIN-ORD-O", role="multi")
@rows(
    *[(_label(order), order) for order in permutations(OUTPUTS, 3)],
    *[Row(_label(order), (order,), thorough=True) for order in permutations(OUTPUTS, 4)],
    *[Row(_label(order), (order,), thorough=True) for order in permutations(OUTPUTS, 2)],
)
def response_follows_its_json(target: Target, multi: Model, order: Names) -> None:
    """Tensor bytes follow the order in which the answer's own JSON lists the outputs."""
    reply = target.infer(multi.request(send="json", want="binary", outputs=order))
    expect(reply).tensors([tensor for tensor in multi.expected(multi.sample()) if tensor.name in order])


@check("ordering.all-outputs-follow-the-answers-json", answers="BIN-ORD-O")
@rows(*[Row(role, role=role) for role in ("multi", "add_sub", "raw_two_outputs")])
def all_outputs_follow_the_answers_json(target: Target, model: Model) -> None:
    """Tensor bytes follow the answer's own JSON when the request lists no outputs."""
    reply = target.infer(model.request(send="json", binary_data_output=True))
    expect(reply).tensors(model.expected(model.sample()))


@check("ordering.empty-output-takes-no-bytes", answers="BIN-ORD-O", role="emit")
@rows(
    *[
        (f"{'-'.join(order)}-{counts[0]}-{counts[1]}", order, counts)
        for order in permutations(("NUMBERS", "TEXTS"))
        for counts in ((0, 2), (3, 0), (3, 2))
    ]
)
def empty_output_takes_no_bytes(target: Target, emit: Model, order: Names, counts: tuple[int, int]) -> None:
    """A binary output without elements takes no bytes from the one beside it."""
    tensors = [emit.tensor(counts)]
    reply = target.infer(emit.request(tensors, send="json", want="binary", outputs=order))
    expect(reply).tensors(emit.expected(tensors))


@check("ordering.json-outputs-take-no-bytes", answers="BIN-MIX-O", role="multi")
@rows(
    *[(_label(OUTPUTS, chosen), OUTPUTS, chosen) for chosen in _some(OUTPUTS)],
    *[
        Row(label, (order, chosen), thorough=True)
        for label, order, chosen in map(_alternating, permutations(OUTPUTS))
        if order != OUTPUTS
    ],
)
def json_outputs_take_no_bytes(target: Target, multi: Model, order: Names, binary: Names) -> None:
    """JSON outputs stand between binary ones and take none of the bytes behind the JSON."""
    tensors = _tensors(multi)
    wanted = [Output(name, name in binary) for name in order]
    expect(target.infer(multi.request(tensors, send="json", outputs=wanted))).tensors(multi.expected(tensors))


# --- what is sent ------------------------------------------------------------------------------------------------------


def _in_order(tensors: Iterable[Tensor], order: Names) -> list[Tensor]:
    by_name = {tensor.name: tensor for tensor in tensors}
    return [by_name[name] for name in order]


def _tensors(multi: Model) -> list[Tensor]:
    """Return tensors of different lengths: eight bytes for each input but BYTES."""
    salt = multi.salt
    values = {
        "IN_INT64": [2**53 + 1 + salt],
        "IN_BOOL": [True, False, False, True, True, True, False, salt % 2 == 0],
        "IN_FP32": [salt + 0.5, -2.25],
        "IN_BYTES": ["", f"{salt}é", "abc"],
    }
    return [Tensor.of(spec.name, spec.datatype, values[spec.name]) for spec in multi.role.inputs]
