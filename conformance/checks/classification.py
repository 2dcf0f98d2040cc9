"""Classification: an output as its highest elements, each a text `value:index[:label]`.

A server can be wrong in the order, in the values, in the indices, in the labels, in the format, in the datatype and in
the shape, and each of them has checks of its own that look past the other faults (`checks._classes`). Inputs travel as
JSON, so that nothing here rests on binary tensor data but the checks that are about it. Never sent: classification of
BYTES and of empty outputs, which has ended real servers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance import classes
from conformance.check import Row, check, rows
from conformance.checks._class_forms import (
    binary_data_is_obeyed,
    binary_data_output,
    next_request_is_plain,
    other_outputs_stay,
)
from conformance.checks._class_limits import (
    REFUSALS,
    bool_right_or_refused,
    nan_somewhere,
    no_class_is_made_up,
    number_0,
    number_with_a_point,
    short_floats_right_or_refused,
    what_is_no_number_is_refused,
)
from conformance.checks._class_texts import (
    index_counts_from_0,
    label_follows_its_index,
    no_label_no_colon,
    text_is_value_index_label,
    value_is_the_score,
)
from conformance.checks._classes import (
    BINARY,
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
from conformance.expect import expect
from conformance.outcome import Unmet
from conformance.roles import Model
from conformance.target.target import Target
from conformance.text import safe, shown_shape
from conformance.wire.request import Output

__all__ = [
    "REFUSALS",
    "binary_data_is_obeyed",
    "binary_data_output",
    "bool_right_or_refused",
    "index_counts_from_0",
    "label_follows_its_index",
    "nan_somewhere",
    "next_request_is_plain",
    "no_class_is_made_up",
    "no_label_no_colon",
    "number_0",
    "number_with_a_point",
    "other_outputs_stay",
    "short_floats_right_or_refused",
    "text_is_value_index_label",
    "value_is_the_score",
    "what_is_no_number_is_refused",
]


# --- what is asked for ----------------------------------------------------------------------------------------------


@check("classification.parameter-is-taken", answers="CLS-HTTP-NUM")
@rows(
    Row("scores", (SCORES,), role="scores"),
    Row("labelled", (SCORES,), role="scores_labelled"),
    Row("batching", (ITEMS,), role="scores_batching"),
    Row("rank-2", (((1, 3, 2), (6, 4, 5)),), role="scores_rank2"),
    Row("integers", ((5, -7, 9),), role="identity_int32"),
    Row("documented", (DOCUMENTED,), role="documented_scores"),
)
def parameter_is_taken(target: Target, model: Model, values: Any) -> None:
    """An output with the parameter classification comes back as classes."""
    texts(ask(target, model, [model.tensor(values)], Output(scored(model), classification=2)), scored(model))


@check("classification.each-output-has-its-count", answers="CLS-HTTP-NUM", role="scores_two_outputs")
@rows(("declared-order", ("SCORES", "RANKS")), ("other-order", ("RANKS", "SCORES")))
def each_output_has_its_count(target: Target, model: Model, order: Sequence[str]) -> None:
    """Two outputs classified in one request each go by their own number."""
    counts = {"SCORES": 1, "RANKS": 3}
    reply = ask(target, model, model.sample(), *[Output(name, classification=counts[name]) for name in order])
    got = {name: len(texts(reply, name)) for name in counts}
    # One number for both, or each the other's. Other wrong numbers are for the check of the number itself.
    if (got["SCORES"], got["RANKS"]) in ((1, 1), (3, 3), (3, 1)):
        raise Unmet("1 class of SCORES and 3 of RANKS", f"{got['SCORES']} and {got['RANKS']}", reply)


@check("classification.as-many-as-asked", answers="CLS-COUNT")
@rows(
    *[Row(f"{count}-of-4", (SCORES, count), role="scores") for count in (1, 2, 3, 4)],
    *[Row(f"batch-{count}-of-4", (ITEMS, count), role="scores_batching", thorough=count == 2) for count in (1, 2, 4)],
    Row("1-of-1", ((7,), 1), role="identity_int32"),
    Row("4-of-4-equal", ((1.0, 1.0, 1.0, 1.0), 4), role="scores"),
    Row("more-than-labels", (SCORES, 4), role="scores_some_labels"),
    Row("37-of-100", (tuple(k * 7 % 100 for k in range(100)), 37), role="identity_int32"),
    Row("1000-of-1000", (tuple(k * 7 % 1000 for k in range(1000)), 1000), role="identity_int32", thorough=True),
    Row("documented", (DOCUMENTED, 2), role="documented_scores"),
)
def as_many_as_asked(target: Target, model: Model, values: Any, count: int) -> None:
    """The last dimension is the number asked for, up to the number of classes."""
    reply = ask(target, model, [model.tensor(values)], Output(scored(model), classification=count))
    found = len(texts(reply, scored(model))) // (len(values) if model.role.batching else 1)
    shape = expect(reply).output(scored(model)).shape
    # In a shape of another rank, which is for the checks of the shape, the last dimension is something else.
    last = shape[-1] if shape and len(shape) == 1 + model.role.batching else found
    if last != count:
        raise Unmet(f"{classes_of(count)} of {scored(model)}", classes_of(last), reply)


# --- datatype and shape ---------------------------------------------------------------------------------------------


@check("classification.datatype-is-bytes", answers="CLS-TYPE")
@rows(
    Row("fp32", (SCORES,), role="scores"),
    Row("int64", ((5, -7, 9),), role="identity_int64"),
    Row("batching", (ITEMS,), role="scores_batching"),
    Row("labelled", (SCORES,), role="scores_labelled"),
    Row("documented", (DOCUMENTED,), role="documented_scores_labelled"),
)
def datatype_is_bytes(target: Target, model: Model, values: Any) -> None:
    """A classified output has datatype BYTES."""
    reply = ask(target, model, [model.tensor(values)], Output(scored(model), classification=2))
    texts(reply, scored(model))
    datatype = expect(reply).output(scored(model)).datatype
    if datatype != "BYTES":
        found = f"datatype {safe(datatype, 60)}" if datatype else "no datatype"
        raise Unmet(f"datatype BYTES of the classes in {scored(model)}", found, reply)


@check("classification.shape-is-count", answers="CLS-SHAPE-NB")
@rows(
    Row("1-of-4", (SCORES, 1), role="scores"),
    Row("4-of-4", (SCORES, 4), role="scores"),
    Row("variable", ((5, -7, 9), 2), role="identity_int32"),
    Row("rank-2", (((1, 3, 2), (6, 4, 5)), 2), role="scores_rank2"),
    Row("rank-3", ((((1, 3), (2, 6)), ((4, 5), (8, 7))), 3), role="rank3"),
    Row("documented", (DOCUMENTED, 2), role="documented_scores"),
)
def shape_is_count(target: Target, model: Model, values: Any, count: int) -> None:
    """Where the model does not batch, the classes have one dimension."""
    reply = ask(target, model, [model.tensor(values)], Output(scored(model), classification=count))
    texts(reply, scored(model))
    shape = expect(reply).output(scored(model)).shape
    if shape is None or len(shape) != 1:
        raise Unmet(f"shape [{count}] of the classes in {scored(model)}", shown_shape(shape), reply)


@check("classification.shape-is-batch-and-count", answers="CLS-SHAPE-B")
@rows(
    Row("batch-1", (ITEMS[:1], 2), role="scores_batching"),
    Row("batch-2", (ITEMS, 3), role="scores_batching"),
    Row("one-class", (ITEMS, 1), role="scores_batching"),
    Row("batch-8", (ITEMS * 4, 2), role="scores_batching", thorough=True),
    Row("labelled", (ITEMS, 2), role="scores_batching_labelled"),
    Row(
        "rank-2-items", ((((10, 40), (20, 30)), ((35, 5), (25, 15)), ((1, 2), (4, 3))), 2), role="scores_batching_rank2"
    ),
)
def shape_is_batch_and_count(target: Target, model: Model, values: Any, count: int) -> None:
    """Where the model batches, the classes have two dimensions, and the first is the batch."""
    reply = ask(target, model, [model.tensor(values)], Output(scored(model), classification=count))
    texts(reply, scored(model))
    shape = expect(reply).output(scored(model)).shape
    if shape is None or len(shape) != 2 or shape[0] != len(values):
        raise Unmet(f"shape [{len(values)}, {count}] of the classes in {scored(model)}", shown_shape(shape), reply)


@check("classification.flattens-row-by-row", answers="CLS-SHAPE-NB")
@rows(
    Row("2x3-floats", (((1, 3, 2), (6, 4, 5)),), role="scores_rank2"),
    Row("3x2", (((1, 3), (2, 6), (4, 5)),), role="rank2"),
    Row("2x2x2", ((((1, 3), (2, 6)), ((4, 5), (8, 7))),), role="rank3"),
)
def flattens_row_by_row(target: Target, model: Model, values: Any) -> None:
    """Where the model does not batch, one ranking goes over all elements, counted row by row."""
    Classified.of(target, model, values).require(classes.counted_alike)


@check("classification.items-are-ranked-apart", answers="CLS-BATCH")
@rows(
    Row("2-items", (ITEMS, 4), role="scores_batching"),
    Row("highest-of-each", (ITEMS, 1), role="scores_batching"),
    Row("2-of-4", (ITEMS, 2), role="scores_batching_labelled"),
    Row("8-items", ([[10.0 + (k * 13 + n * 8) % 101 for k in range(4)] for n in range(8)], 3), role="scores_batching"),
    Row("2x2-items", ((((10, 40), (20, 30)), ((35, 5), (25, 15))), 3), role="scores_batching_rank2"),
)
def items_are_ranked_apart(target: Target, model: Model, values: Any, count: int) -> None:
    """Each item of a batch has its own ranking, with indices that count within the item."""
    Classified.of(target, model, values, count).require(classes.counted_alike)


# --- order ----------------------------------------------------------------------------------------------------------


# Neighbours that FP64 cannot tell apart stand in both orders, so that a sort which keeps them as they come shows too.
RANKED: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("uint8", "identity_uint8", (3, 200, 127, 128, 0, 255)),
    ("uint16", "identity_uint16", (255, 40000, 32767, 32768, 256, 65535, 1)),
    ("uint32", "identity_uint32", (65536, 2**31 - 1, 2**31, 2**32 - 1, 255, 0)),
    ("uint64-sign", "identity_uint64", (2**63 - 1, 2**63, 1, 2**64 - 1, 0)),
    ("uint64-beyond-2^53", "identity_uint64", (2**53, 2**53 + 1, 2**62 + 1, 2**62, 2**64 - 2, 2**64 - 1)),
    ("int8", "identity_int8", (-1, -128, 127, 0, 1, -2)),
    ("int16", "identity_int16", (-1, 255, -32768, 32767, 256, 0)),
    ("int32", "identity_int32", (-1, 65536, -(2**31), 2**31 - 1, 255, 0)),
    ("int64-sign", "identity_int64", (-1, -(2**63), 2**63 - 1, 1, 0)),
    ("int64-beyond-2^53", "identity_int64", (2**53, 2**53 + 1, -(2**53) - 1, -(2**53), 2**62 + 1, 2**62)),
    ("fp32", "identity_fp32", SCORES),
    ("fp32-negatives", "identity_fp32", (-1.0, -2.0, -0.5, -3.0)),
    ("fp32-far-apart", "identity_fp32", (2.0**-100, 2.0**100, -(2.0**100), 1.0, -(2.0**-100), 0.0)),
    ("fp32-neighbours", "identity_fp32", (1.0, 1 + 2**-23, 1 - 2**-24, 1 + 2**-22, 1 + 3 * 2**-23)),
    ("fp64", "identity_fp64", (0.5, -4.0, 8.25, 0.0)),
    ("fp64-far-apart", "identity_fp64", (2.0**900, 2.0**901, 2.0**-900, 2.0**-901, -(2.0**900), 0.0)),
    ("fp64-beyond-fp32", "identity_fp64", (2.0**24, 2.0**24 + 0.25, 2.0**24 + 0.75, 2.0**24 + 0.5)),
    ("fp64-neighbours", "identity_fp64", (1.0, 1 + 2**-52, 1 + 2**-40, 1 + 2**-41, 1 - 2**-53)),
)


@check("classification.highest-come-first", answers="CLS-TOPN")
@rows(
    *[Row(identity, (values, None), role=role) for identity, role, values in RANKED],
    *[Row(f"{count}-of-4", (SCORES, count), role="scores") for count in (1, 2, 3)],
    Row("batch-of-1", (ITEMS[:1], 2), role="scores_batching"),
    Row("100-classes", (tuple(k * 37 % 100 for k in range(100)), 10), role="identity_int32"),
    Row("5000-classes", (tuple(k * 37 % 5000 for k in range(5000)), 100), role="identity_int32", thorough=True),
    Row("fp32-infinities", (INFINITE, None, "binary"), role="identity_fp32", needs=BINARY),
    Row("fp64-infinities", (INFINITE, None, "binary"), role="identity_fp64", needs=BINARY),
    Row("documented", (DOCUMENTED, 2), role="documented_scores"),
)
def highest_come_first(target: Target, model: Model, values: Any, count: int | None, send: Send = "json") -> None:
    """The classes are the highest scores, highest first, as the datatype compares them."""
    Classified.of(target, model, values, count, send=send).require(each(classes.in_order))


@check("classification.ties-in-any-order", answers="CLS-TIES")
@rows(
    Row("all-equal", ((1.0, 1.0, 1.0, 1.0), 4), role="scores"),
    Row("2-of-4-equal", ((1.0, 1.0, 1.0, 1.0), 2), role="scores"),
    Row("two-pairs", ((1.0, 2.0, 1.0, 2.0), 4), role="scores_labelled"),
    Row("three-of-two-pairs", ((1.0, 2.0, 1.0, 2.0), 3), role="scores"),
    Row("zeros-of-both-signs", ((0.0, -0.0, -0.0, 0.0), 4), role="scores"),
    Row("integers", (tuple(k % 3 for k in range(40)), 40), role="identity_int32"),
    Row("6-of-20", (tuple(k % 2 for k in range(20)), 6), role="identity_uint8"),
    Row("batch-of-1", (((2.0, 1.0, 2.0, 1.0),), 3), role="scores_batching"),
)
def ties_in_any_order(target: Target, model: Model, values: Any, count: int) -> None:
    """Among equal scores no index comes twice, and the values never increase."""
    Classified.of(target, model, values, count).require(each(classes.ties_in_order))
