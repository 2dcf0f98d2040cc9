"""Checks of gRPC: classification.

A class is the same text over gRPC as over HTTP, so the rules by which a list of them is judged are those of the checks
there (`_classes`, `conformance.classes`), each looking for one fault. Never sent by default: classification of BYTES and
of empty outputs, which has ended real servers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from conformance import classes
from conformance.check import Row, check, rows
from conformance.checks._classes import (
    DOCUMENTED,
    INFINITE,
    ITEMS,
    SCORES,
    Classified,
    Send,
    ask,
    classes_of,
    each,
    scored,
    texts,
)
from conformance.checks._grpc import over_grpc
from conformance.compare import difference
from conformance.expect import expect
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model
from conformance.target.grpc_door import Door
from conformance.text import safe, shown_shape
from conformance.wire.request import Output

FORMS: tuple[Send, ...] = ("json", "binary")
DESCENDING = (9, 5, -7)
SQUARES = (((10, 40), (20, 30)), ((35, 5), (25, 15)))


def both_forms(*cases: Row) -> list[Row]:
    """Return each row twice: with inputs in typed and in raw contents."""
    named = {"json": "typed", "binary": "raw"}
    return [
        Row(f"{row.id}-{named[form]}", (form, *row.values), row.role, row.answers, row.thorough, row.needs)
        for row in cases
        for form in FORMS
    ]


@check("grpc.parameter-is-taken", answers="GRPC-CLS-PARAM")
@over_grpc
@rows(
    *both_forms(
        Row("scores", (SCORES,), role="scores"),
        Row("labelled", (SCORES,), role="scores_labelled"),
        Row("batching", (ITEMS,), role="scores_batching"),
        Row("rank-2", (((1, 3, 2), (6, 4, 5)),), role="scores_rank2"),
        Row("integers", ((5, -7, 9),), role="identity_int32"),
        Row("documented", (DOCUMENTED,), role="documented_scores"),
    )
)
def parameter_is_taken(door: Door, model: Model, send: Send, values: Any) -> None:
    """An output with the parameter classification comes back as classes."""
    name = scored(model)
    texts(ask(door, model, [model.tensor(values)], Output(name, classification=2), send=send), name)


@check("grpc.classes-are-bytes", answers="GRPC-CLS-TYPE")
@over_grpc
@rows(
    *both_forms(
        Row("fp32", (SCORES,), role="scores"),
        Row("int64", (DESCENDING,), role="identity_int64"),
        Row("batching", (ITEMS,), role="scores_batching"),
        Row("documented", (DOCUMENTED,), role="documented_scores_labelled"),
    )
)
def classes_are_bytes(door: Door, model: Model, send: Send, values: Any) -> None:
    """A classified output has datatype BYTES."""
    name = scored(model)
    reply = ask(door, model, [model.tensor(values)], Output(name, classification=2), send=send)
    texts(reply, name)
    datatype = expect(reply).output(name).datatype
    if datatype != "BYTES":
        raise Unmet(f"datatype BYTES of the classes in {name}", f"datatype {safe(datatype, 60) or 'none'}", reply)


@check("grpc.classes-have-their-shape", answers="GRPC-CLS-SHAPE")
@over_grpc
@rows(
    *both_forms(
        Row("1-of-4", (SCORES, 1), role="scores"),
        Row("4-of-4", (SCORES, 4), role="scores"),
        Row("rank-2", (((1, 3, 2), (6, 4, 5)), 2), role="scores_rank2"),
        Row("documented", (DOCUMENTED, 2), role="documented_scores"),
        Row("batch-1", (ITEMS[:1], 2), role="scores_batching"),
        Row("batch-2", (ITEMS, 3), role="scores_batching"),
        Row("rank-2-items", (SQUARES, 2), role="scores_batching_rank2"),
    )
)
def classes_have_their_shape(door: Door, model: Model, send: Send, values: Any, count: int) -> None:
    """Classes have the shape [batch, count] where the model batches, and [count] where it does not."""
    name = scored(model)
    reply = ask(door, model, [model.tensor(values)], Output(name, classification=count), send=send)
    found = len(texts(reply, name))
    shape = expect(reply).output(name).shape
    batch = [len(values)] if model.role.batching else []
    # The number of classes is for its own check.
    if shape is None or list(shape[: len(batch)]) != batch or len(shape) != len(batch) + 1 or prod(shape) != found:
        wanted = [*batch, found // (batch or [1])[0]]
        raise Unmet(f"shape {wanted} of the classes in {name}", shown_shape(shape), reply)


@check("grpc.as-many-classes-as-asked", answers="GRPC-CLS-COUNT")
@over_grpc
@rows(
    *both_forms(
        *[Row(f"{count}-of-4", (SCORES, count), role="scores") for count in (1, 2, 3, 4)],
        *[Row(f"batch-{count}-of-4", (ITEMS, count), role="scores_batching") for count in (1, 4)],
        Row("1-of-1", ((7,), 1), role="identity_int32"),
        Row("more-than-labels", (SCORES, 4), role="scores_some_labels"),
        Row("37-of-100", (tuple(k * 7 % 100 for k in range(100)), 37), role="identity_int32"),
        Row("documented", (DOCUMENTED, 2), role="documented_scores"),
    )
)
def as_many_classes_as_asked(door: Door, model: Model, send: Send, values: Any, count: int) -> None:
    """There are as many classes as were asked for, up to the number of scores."""
    name = scored(model)
    reply = ask(door, model, [model.tensor(values)], Output(name, classification=count), send=send)
    found = len(texts(reply, name))
    right = count * (len(values) if model.role.batching else 1)
    if found != right:
        raise Unmet(f"{classes_of(right)} of {name}", classes_of(found), reply)


@check("grpc.highest-classes-come-first", answers="GRPC-CLS-TOPN")
@over_grpc
@rows(
    *both_forms(
        Row("uint8", ((3, 200, 127, 128, 0, 255),), role="identity_uint8"),
        Row("uint16", ((255, 40000, 32767, 32768, 256, 1),), role="identity_uint16"),
        Row("uint32", ((65536, 2**31 - 1, 2**31, 2**32 - 1, 0),), role="identity_uint32"),
        Row("uint64", ((2**63 - 1, 2**63, 2**53, 2**53 + 1, 2**64 - 1),), role="identity_uint64"),
        Row("int8", ((-1, -128, 127, 0, 1, -2),), role="identity_int8"),
        Row("int16", ((-1, 255, -32768, 32767, 0),), role="identity_int16"),
        Row("int32", ((-1, 65536, -(2**31), 2**31 - 1, 0),), role="identity_int32"),
        Row("int64", ((-1, -(2**63), 2**63 - 1, 2**53, 2**53 + 1),), role="identity_int64"),
        Row("fp32", (SCORES,), role="identity_fp32"),
        Row("fp32-infinities", (INFINITE,), role="identity_fp32"),
        Row("fp32-neighbours", ((1.0, 1 + 2**-23, 1 - 2**-24, 1 + 2**-22),), role="identity_fp32"),
        Row("fp64", ((0.5, -4.0, 8.25, 0.0),), role="identity_fp64"),
        Row("fp64-neighbours", ((1.0, 1 + 2**-52, 1 + 2**-40, 1 - 2**-53),), role="identity_fp64"),
        Row("ties", ((1.0, 2.0, 1.0, 2.0),), role="scores"),
        *[Row(f"{count}-of-4", (SCORES, count), role="scores") for count in (1, 2, 3)],
        Row("batch-of-1", (ITEMS[:1], 2), role="scores_batching"),
        Row("100-classes", (tuple(k * 37 % 100 for k in range(100)), 10), role="identity_int32"),
        Row("documented", (DOCUMENTED, 2), role="documented_scores"),
    )
)
def highest_classes_come_first(door: Door, model: Model, send: Send, values: Any, count: int | None = None) -> None:
    """The classes are the highest scores, highest first, as the datatype compares them."""
    Classified.of(door, model, values, count, send=send).require(each(classes.ties_in_order))


@check("grpc.items-are-ranked-apart", answers="GRPC-CLS-BATCH")
@over_grpc
@rows(
    *both_forms(
        Row("2-items", (ITEMS, 4), role="scores_batching"),
        Row("highest-of-each", (ITEMS, 1), role="scores_batching"),
        Row("2x2-items", (SQUARES, 3), role="scores_batching_rank2"),
    )
)
def items_are_ranked_apart(door: Door, model: Model, send: Send, values: Any, count: int) -> None:
    """Each item of a batch has its own ranking, with indices that count within the item."""
    Classified.of(door, model, values, count, send=send).require(classes.counted_alike)


@check("grpc.other-outputs-stay", answers="GRPC-CLS-ONLY", role="scores_two_outputs")
@over_grpc
@rows(
    *both_forms(
        Row("integers", ("RANKS", ("SCORES", "RANKS"))),
        Row("integers-listed-first", ("RANKS", ("RANKS", "SCORES"))),
        Row("floats", ("SCORES", ("SCORES", "RANKS"))),
    )
)
def other_outputs_stay(door: Door, model: Model, send: Send, plain: str, order: Sequence[str]) -> None:
    """An output that does not ask for classes keeps its datatype, shape and values beside one that does."""
    outputs = [Output(name) if name == plain else Output(name, classification=2) for name in order]
    reply = ask(door, model, model.sample(), *outputs, send=send)
    (right,) = (tensor for tensor in model.expected(model.sample()) if tensor.name == plain)
    expect(reply).answered()
    found = difference(right, reply.answer.output(plain), reply.body, through_json=False)
    if found is None:
        return
    usual = ask(door, model, model.sample(), *map(Output, order), send=send)
    if difference(right, usual.answer.output(plain), usual.body, through_json=False):
        raise Blocked(f"{plain} is wrong where nothing is classified, too")
    raise Unmet(found.expected, found.actual, reply, offset=found.offset)
