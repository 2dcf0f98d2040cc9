"""The datatype and the shape of classes."""

from __future__ import annotations

from math import prod
from typing import Any

from conformance.checks.support.classes import (
    ClassifiedAnswer,
    apply_to_items,
    apply_to_rows,
    describe_class_count,
    find_scored_output,
    read_texts,
)
from conformance.checks.support.ranked_inputs import DOCUMENTED, ITEMS, OWN, SCORES, choose_inputs
from conformance.expect import class_texts
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Row, claim, rows
from conformance.spec.fit import SCORED
from conformance.spec.text import escape_text, format_shape
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.wire.request import Form

DEPLOYED_ITEM_COUNT = 3  # batch items in a request to a deployed model

# --- datatype and shape ---------------------------------------------------------------------------------------------


@claim("classification.datatype-is-bytes", requirements="CLS-TYPE")
@rows(
    Row("fp32", (SCORES,), role="scores"),
    Row("int64", ((5, -7, 9),), role="identity_int64"),
    Row("batching", (ITEMS,), role="scores_batching"),
    Row("labelled", (SCORES,), role="scores_labelled"),
    Row("documented", (DOCUMENTED,), role="documented_scores_labelled"),
    OWN,
)
def datatype_is_bytes(target: AnyTarget, model: Model, values: Any = None, send: Form = "json") -> None:
    """The server gives a classified output the datatype BYTES."""
    case = ClassifiedAnswer.ask(target, model, values, 2, send=send)
    read_texts(case.reply, case.name)
    datatype = expect(case.reply).output(case.name).datatype
    if datatype != "BYTES":
        found = f"datatype {escape_text(datatype, 60)}" if datatype else "no datatype"
        raise UnmetError(f"datatype BYTES of the classes in {case.name}", found, case.reply)


@claim("classification.shape-is-count", requirements=("CLS-SHAPE", "CLS-SHAPE-SHOWN"))
@rows(
    Row("1-of-4", (SCORES, 1), role="scores"),
    Row("4-of-4", (SCORES, 4), role="scores"),
    Row("variable", ((5, -7, 9), 2), role="identity_int32"),
    Row("documented", (DOCUMENTED, 2), role="documented_scores"),
    Row("deployed", (None, 2), fit=SCORED),
)
def shape_is_count(target: AnyTarget, model: Model, values: Any, count: int, send: Form = "json") -> None:
    """The server gives classes the shape [count] or [1, count] where the model does not batch."""
    case = ClassifiedAnswer.ask(target, model, values, count, send=send)
    found, shape = len(read_texts(case.reply, case.name)), expect(case.reply).output(case.name).shape
    if values is None:
        _require_one_ranking(case)
    _expect_shape_filled(case, found, shape)
    _expect_unbatched_shape(case.reply, case.name, found, shape)


def _expect_shape_filled(case: ClassifiedAnswer, found: int, shape: tuple[int, ...] | None) -> None:
    """Expect a shape of as many classes as an answer over gRPC has; over HTTP this is a requirement of JSON."""
    if case.reply.is_over_grpc and shape is not None and prod(shape) != found:
        raise UnmetError(f"a shape of {describe_class_count(found)} for {case.name}", format_shape(shape), case.reply)


def _require_one_ranking(case: ClassifiedAnswer) -> None:
    """Raise `NotApplicableError` if the output of a deployed model may be a batch of several rankings.

    Raises:
        NotApplicableError: the output has several dimensions, or each element of its single dimension may be a batch item.
    """
    if len(case.right.shape) > 1 or case.batch > 1:
        raise NotApplicableError(f"{case.name} of {case.model.name} may be a batch of several rankings")


def _expect_unbatched_shape(reply: Reply, name: str, count: int, shape: tuple[int, ...] | None) -> None:
    """Expect the shape [count] or [1, count] of a model that does not batch; another check judges the count."""
    if shape is not None and len(shape) == 1:
        return
    is_batch_of_one = shape is not None and len(shape) == 2 and shape[0] == 1
    raise UnmetError(
        f"shape [{count}] of the classes in {name}" + ("" if is_batch_of_one else f", or [1, {count}]"),
        format_shape(shape),
        reply,
        requirement="CLS-SHAPE-SHOWN" if is_batch_of_one else None,
    )


@claim("classification.shape-is-batch-and-count", requirements="CLS-SHAPE-BATCH")
@rows(
    Row("batch-1", (ITEMS[:1], 2), role="scores_batching"),
    Row(
        "rank-2-items", ((((10, 40), (20, 30)), ((35, 5), (25, 15)), ((1, 2), (4, 3))), 2), role="scores_batching_rank2"
    ),
    Row("batch-2", (ITEMS, 3), role="scores_batching"),
    Row("one-class", (ITEMS, 1), role="scores_batching"),
    Row("batch-8", (ITEMS * 4, 2), role="scores_batching"),
    Row("labelled", (ITEMS, 2), role="scores_batching_labelled"),
    Row("deployed", (None, 2), fit=SCORED),
)
def shape_is_batch_and_count(target: AnyTarget, model: Model, values: Any, count: int, send: Form = "json") -> None:
    """The server gives classes the shape [batch, count] where the model batches."""
    if values is None:
        _expect_deployed_batches(target, model, count, send)
    else:
        _expect_batched_shape(ClassifiedAnswer.ask(target, model, values, count, send=send))


def _expect_batched_shape(case: ClassifiedAnswer) -> None:
    """Expect classes in the shape [batch, count]."""
    found, items = len(read_texts(case.reply, case.name)), case.right.shape[0]
    shape = expect(case.reply).output(case.name).shape
    _expect_shape_filled(case, found, shape)
    if shape is None or len(shape) != 2 or shape[0] != items:
        count = found // items if case.reply.is_over_grpc else case.count
        raise UnmetError(f"shape [{items}, {count}] of the classes in {case.name}", format_shape(shape), case.reply)


def _expect_deployed_batches(target: AnyTarget, model: Model, count: int, send: Form) -> None:
    """Expect the classes of a batch in the shape [batch, count], for several items and for a single item.

    Raises NotApplicableError: the output is perhaps not a batch, because it has one dimension, its first dimension is
    fixed, or the server ranks it as a whole, which has the shape [count] for a single item as well.
    """
    name = find_scored_output(model)
    several, one = (choose_inputs(model, name, items=items) for items in (DEPLOYED_ITEM_COUNT, 1))
    case = ClassifiedAnswer.ask(target, model, None, count, send=send, tensors=several[0])
    found, shape = len(read_texts(case.reply, name)), expect(case.reply).output(name).shape
    whole = [(found,)] if case.right.shape[:1] == (1,) else [(found,), (1, found)]
    is_one_ranking = found == case.count and shape in whole
    if len(case.right.shape) < 2 or not model.may_batch(case.right) or is_one_ranking:
        raise NotApplicableError(f"it is unknown whether {name} of {model.name} is a batch")
    _expect_batched_shape(case)
    if one[1].shape[0] == 1 < case.right.shape[0]:
        _expect_batched_shape(ClassifiedAnswer.ask(target, model, None, count, send=send, tensors=one[0]))


@claim("classification.scores-of-several-dimensions", requirements=("CLS-SHAPE-MATRIX", "CLS-INDEX"))
@rows(
    Row("2x3", (((1, 3, 2), (6, 4, 5)),), role="scores_rank2"),
    Row("3x2", (((1, 3), (2, 6), (4, 5)),), role="rank2"),
    Row("2x2x2", ((((1, 3), (2, 6)), ((4, 5), (8, 7))),), role="rank3"),
)
def scores_of_several_dimensions(target: AnyTarget, model: Model, values: Any, send: Form = "json") -> str:
    """The server ranks the scores of a matrix together or row by row, if the model does not batch."""
    case = ClassifiedAnswer.ask(target, model, values, 2, send=send)
    shape = format_shape(expect(case.reply).output(case.name).shape)
    row_count = case.scores.shape[0]
    if len(case.listed) == 2 * row_count:
        case.expect_rule(apply_to_rows(row_count, class_texts.has_right_indices), requirement="CLS-INDEX")
        return f"a ranking for each row, {shape}"
    case.expect_rule(apply_to_items(class_texts.has_right_indices), requirement="CLS-INDEX")
    return f"one ranking over all scores, {shape}"
