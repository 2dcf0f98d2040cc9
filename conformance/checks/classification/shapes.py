"""The datatype and the shape of classes."""

from __future__ import annotations

from math import prod
from typing import Any

from conformance.checks.support.classes import (
    DESCENDING,
    DOCUMENTED,
    ITEMS,
    SCORES,
    SQUARES,
    ask,
    both_forms,
    scored,
    texts,
)
from conformance.expect.expectation import expect
from conformance.expect.unmet import Unmet
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import GRPC
from conformance.terms.text import safe, shown_shape
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.peer import Peer
from conformance.transport.target import Target
from conformance.wire.request import Form, Output

# --- datatype and shape ---------------------------------------------------------------------------------------------


@check("classification.datatype-is-bytes", answers="CLS-TYPE")
@rows(
    Row("fp32", (SCORES,), role="scores"),
    Row("int64", ((5, -7, 9),), role="identity_int64"),
    Row("batching", (ITEMS,), role="scores_batching"),
    Row("labelled", (SCORES,), role="scores_labelled"),
    Row("documented", (DOCUMENTED,), role="documented_scores_labelled"),
)
@check("grpc.classes-are-bytes", answers="GRPC-CLS-TYPE", over=(GRPC,))
@rows(
    *both_forms(
        Row("fp32", (SCORES,), role="scores"),
        Row("int64", (DESCENDING,), role="identity_int64"),
        Row("batching", (ITEMS,), role="scores_batching"),
        Row("documented", (DOCUMENTED,), role="documented_scores_labelled"),
    )
)
def datatype_is_bytes(target: Peer, model: Model, values: Any, send: Form = "json") -> None:
    """A classified output has datatype BYTES."""
    name = scored(model)
    reply = ask(target, model, [model.tensor(values)], Output(name, classification=2), send=send)
    texts(reply, name)
    datatype = expect(reply).output(name).datatype
    if datatype != "BYTES":
        found = f"datatype {safe(datatype, 60)}" if datatype else "no datatype"
        raise Unmet(f"datatype BYTES of the classes in {name}", found, reply)


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


@check("grpc.classes-have-their-shape", answers="GRPC-CLS-SHAPE", over=(GRPC,))
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
def classes_have_their_shape(target: GrpcTarget, model: Model, values: Any, count: int, send: Form) -> None:
    """Classes have the shape [batch, count] where the model batches, and [count] where it does not."""
    name = scored(model)
    reply = ask(target, model, [model.tensor(values)], Output(name, classification=count), send=send)
    found = len(texts(reply, name))
    shape = expect(reply).output(name).shape
    batch = [len(values)] if model.role.batching else []
    # The number of classes is for its own check.
    if shape is None or list(shape[: len(batch)]) != batch or len(shape) != len(batch) + 1 or prod(shape) != found:
        wanted = [*batch, found // (batch or [1])[0]]
        raise Unmet(f"shape {wanted} of the classes in {name}", shown_shape(shape), reply)
