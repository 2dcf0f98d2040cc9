"""Checks of gRPC: what stands in a class. `_grpc_classes` has the others of classification."""

from __future__ import annotations

from typing import Any

from conformance import classes
from conformance.check import Row, check, rows
from conformance.checks._classes import (
    DOCUMENTED,
    ITEMS,
    SCORES,
    WRITTEN,
    Classified,
    Send,
    ask,
    each,
    scored,
    texts,
)
from conformance.checks._grpc import over_grpc
from conformance.checks._grpc_classes import DESCENDING, both_forms
from conformance.classes import ClassText, Scores
from conformance.outcome import Unmet
from conformance.roles import Model
from conformance.target.grpc_door import Door
from conformance.wire.finding import shown as quoted
from conformance.wire.request import Output


@check("grpc.class-is-value-index-label", answers="GRPC-CLS-FMT")
@over_grpc
@rows(
    *both_forms(
        Row("floats", (SCORES,), role="scores"),
        Row("integers", (DESCENDING,), role="identity_int32"),
        Row("odd-labels", (SCORES,), role="scores_odd_labels"),
        Row("batching", (ITEMS,), role="scores_batching_labelled"),
        Row("tiny-and-huge", ((2.0**-900, 2.0**900, -(2.0**900)),), role="identity_fp64"),
        Row("documented", (DOCUMENTED,), role="documented_scores_labelled"),
    )
)
def class_is_value_index_label(door: Door, model: Model, send: Send, values: Any) -> None:
    """Each class is a text value:index or value:index:label."""
    name = scored(model)
    reply = ask(door, model, [model.tensor(values)], Output(name, classification=3), send=send)
    for text in texts(reply, name):
        try:
            classes.parse(text)
        except classes.ClassTextError as error:
            raise Unmet(WRITTEN, f"{quoted(text)}: {error}", reply) from error


@check("grpc.class-value-is-the-score", answers="GRPC-CLS-VALUE")
@over_grpc
@rows(
    *both_forms(
        Row("uint64", ((2**53 + 1, 2**63, 2**64 - 1),), role="identity_uint64"),
        Row("int8", ((-1, -128, 127),), role="identity_int8"),
        Row("int64", ((-(2**53) - 1, 2**53 + 1, -(2**63)),), role="identity_int64"),
        Row("fp32", ((0.25, 123456.75, -1.5, 3.0),), role="identity_fp32"),
        Row("fp64", ((0.5, 123456789.125, -2.5, 2.0**60),), role="identity_fp64"),
        Row("labelled", (SCORES,), role="scores_labelled"),
        Row("documented", (DOCUMENTED,), role="documented_scores"),
    )
)
def class_value_is_the_score(door: Door, model: Model, send: Send, values: Any) -> None:
    """The value in a class is the model's output at that index."""
    Classified.of(door, model, values, send=send).require(each(classes.values_right))


@check("grpc.class-index-counts-from-0", answers="GRPC-CLS-INDEX")
@over_grpc
@rows(
    *both_forms(
        Row("floats", (SCORES,), role="scores"),
        Row("labelled", (SCORES,), role="scores_labelled"),
        Row("300-classes", (tuple(k * 37 % 300 for k in range(300)),), role="identity_int32"),
        Row("batch-of-1", (ITEMS[:1],), role="scores_batching"),
        Row("documented", (DOCUMENTED,), role="documented_scores"),
    )
)
def class_index_counts_from_0(door: Door, model: Model, send: Send, values: Any) -> None:
    """The index in a class is the place of its score, counted from 0."""
    Classified.of(door, model, values, send=send).require(each(classes.indices_right))


@check("grpc.class-label-is-that-of-its-index", answers="GRPC-CLS-LABEL")
@over_grpc
@rows(
    *both_forms(
        Row("all", (SCORES,), role="scores_labelled"),
        Row("some", (SCORES,), role="scores_some_labels"),
        Row("odd", (SCORES,), role="scores_odd_labels"),
        Row("none", (SCORES,), role="scores"),
        Row("batch", (ITEMS,), role="scores_batching_labelled"),
        Row("second-output", (SCORES, "RANKS"), role="scores_two_outputs"),
        Row("other-output-has-them", (SCORES, "SCORES"), role="scores_two_outputs"),
        Row("documented", (DOCUMENTED,), role="documented_scores_labelled"),
    )
)
def class_label_is_that_of_its_index(
    door: Door, model: Model, send: Send, values: Any, name: str | None = None
) -> None:
    """The label of the index stands behind it, and nothing where it has none."""
    case = Classified.of(door, model, values, name=name, send=send)

    def is_right(entry: ClassText, scores: Scores) -> bool:
        # Index or value may be wrong, which is for other checks: the label of either will do.
        places = (entry.index, classes.nearest(entry, scores))
        return entry.label in [case.labels[place] if place < len(case.labels) else None for place in places]

    named = ", ".join(f"{index}:{label}" for index, label in enumerate(case.labels))
    expected = f"classes with the labels {named}, and none for other indices" if named else "classes without labels"
    case.require(each(lambda listed, scores: all(is_right(entry, scores) for entry in listed)), expected)
