"""The order of binary data: that of the JSON before it, whatever the model declares.

Requests are seen alone (binary in, JSON out) and so are answers (JSON in, binary out). Only values are judged, of
tensors that the server gets right alone: how their elements are encoded is a matter of `datatypes` and `bytes`, whether
an output came in the form that was asked for one of `overrides`. An answer may list its outputs in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, permutations

from conformance.check import Row, check, rows
from conformance.checks._values import blocked_where, expect_together, is_right, takes_none, takes_several
from conformance.roles import Model
from conformance.target.target import Target
from conformance.wire.request import Output
from conformance.wire.tensor import Tensor

INPUTS = ("IN_INT64", "IN_BOOL", "IN_FP32", "IN_BYTES")
OUTPUTS = ("OUT_INT64", "OUT_BOOL", "OUT_FP32", "OUT_BYTES")


Names = tuple[str, ...]
_ALL_BINARY = "they are wrong where all are binary data, too"


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
    tensors = _in_order(_sample(multi), order)
    _expect_apart(target, multi, tensors)


@check("ordering.request-of-equal-sizes-follows-its-json", answers="BIN-ORD-I", role="multi")
@rows(*[Row(_label(order), (order,), thorough=index % 5 > 0) for index, order in enumerate(permutations(INPUTS[:3]))])
def request_of_equal_sizes_follows_its_json(target: Target, multi: Model, order: Names) -> None:
    """Binary inputs are told apart by their place, not by their size: three of them have eight bytes each."""
    tensors = _in_order(_tensors(multi), (*order, "IN_BYTES"))
    _expect_apart(target, multi, tensors)


@check("ordering.inputs-of-one-datatype-keep-apart", answers="BIN-ORD-I", role="add_sub")
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
    reply = target.infer(multi.request(tensors, send=binary))
    with blocked_where(lambda: not is_right(target, multi, tensors, "read"), _ALL_BINARY):
        expect_together(reply, target, [t for t in tensors if t.name in binary], multi.expected(tensors), "read")


# --- answers -----------------------------------------------------------------------------------------------------------


@check("ordering.response-follows-its-json", answers="BIN-ORD-O", role="multi")
@rows(
    *[(_label(order), order) for order in permutations(OUTPUTS, 3)],
    *[Row(_label(order), (order,), thorough=True) for order in permutations(OUTPUTS, 4)],
    *[Row(_label(order), (order,), thorough=True) for order in permutations(OUTPUTS, 2)],
)
def response_follows_its_json(target: Target, multi: Model, order: Names) -> None:
    """Tensor bytes follow the order in which the answer's own JSON lists the outputs."""
    tensors = _sample(multi)
    reply = target.infer(multi.request(tensors, send="json", want="binary", outputs=order))
    right = [tensor for tensor in multi.expected(tensors) if tensor.name in order]
    expect_together(reply, target, tensors, right, "written")


@check("ordering.all-outputs-follow-the-answers-json", answers="BIN-ORD-O")
@rows(*[Row(role, role=role) for role in ("multi", "add_sub", "raw_two_outputs")])
def all_outputs_follow_the_answers_json(target: Target, model: Model) -> None:
    """Tensor bytes follow the answer's own JSON when the request lists no outputs."""
    tensors = _sample(model)
    reply = target.infer(model.request(tensors, send="json", binary_data_output=True))
    expect_together(reply, target, tensors, model.expected(tensors), "written")


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
    expect_together(reply, target, tensors, emit.expected(tensors), "written")


@check("ordering.empty-output-between-others-takes-no-bytes", answers="BIN-ORD-O", role="multi")
@rows("IN_BOOL", "IN_FP32")
def empty_output_between_others_takes_no_bytes(target: Target, multi: Model, empty: str) -> None:
    """A binary output without elements takes no bytes between two that have some."""
    tensors = [Tensor.of(t.name, t.datatype, [], [0]) if t.name == empty else t for t in _sample(multi)]
    reply = target.infer(multi.request(tensors, send="json", want="binary"))
    if not takes_none(target, multi, tensors, reply):
        expect_together(reply, target, tensors, multi.expected(tensors), "written")


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
    reply = target.infer(multi.request(tensors, send="json", outputs=wanted))
    doubled = bool(reply.answer.of_kind("data-and-size"))  # which is for the checks of the sizes
    with blocked_where(lambda: doubled or not _is_right_in_order(target, multi, tensors, order), _ALL_BINARY):
        expect_together(reply, target, tensors, multi.expected(tensors), "written")


def _is_right_in_order(target: Target, multi: Model, tensors: Sequence[Tensor], order: Names) -> bool:
    """Say whether the outputs are right where all are binary data, in this order and in the declared one."""
    return all(is_right(target, multi, tensors, "written", outputs) for outputs in (None, order))


# --- what is sent ------------------------------------------------------------------------------------------------------


def _in_order(tensors: Iterable[Tensor], order: Names) -> list[Tensor]:
    by_name = {tensor.name: tensor for tensor in tensors}
    return [by_name[name] for name in order]


# INT64 elements stay below 2^53, which is as far as the JSON of some servers goes; tensors fill whole words, so that
# nobody who aligns them is found out here.


def _in_whole_words(tensor: Tensor) -> Tensor:
    """Return the first two elements of a tensor of INT32."""
    return Tensor.of(tensor.name, tensor.datatype, tensor.array[:2])


def _sample(model: Model) -> list[Tensor]:
    """Return sample tensors; those of `multi` differ in size."""
    if model.role.name != "multi":
        return list(model.sample())
    salt = model.salt
    values = {
        "IN_INT64": [0x0001020304050607 + salt * (k + 1) for k in range(3)],
        "IN_BOOL": [(k * k + salt) % 3 == 0 for k in range(8)],
        "IN_FP32": [1.5 + salt, 2.75, -4.25, 8.0],
        "IN_BYTES": ["", f"{salt:03}xy", "abc", "d", "efg"],
    }
    return [Tensor.of(spec.name, spec.datatype, values[spec.name]) for spec in model.role.inputs]


def _tensors(multi: Model) -> list[Tensor]:
    """Return tensors of different lengths: eight bytes for each input but BYTES."""
    salt = multi.salt
    values = {
        "IN_INT64": [0x0001020304050607 + salt],
        "IN_BOOL": [True, False, False, True, True, True, False, salt % 2 == 0],
        "IN_FP32": [salt + 0.5, -2.25],
        "IN_BYTES": ["", f"{salt:03}xy", "abcdefg"],
    }
    return [Tensor.of(spec.name, spec.datatype, values[spec.name]) for spec in multi.role.inputs]
