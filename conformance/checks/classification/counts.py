"""Classification is asked for: an output comes as classes, as many as the parameter says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.checks.support.classes import DOCUMENTED, ITEMS, SCORES, ask, both_forms, classes_of, scored, texts
from conformance.expect.expectation import expect
from conformance.expect.unmet import Unmet, blocked_where, holds
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import GRPC
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.peer import Peer
from conformance.transport.target import Target
from conformance.wire.request import Form, Output

# --- what is asked for ----------------------------------------------------------------------------------------------


@check("classification.parameter-is-taken", answers="CLS-PARAMETER")
@rows(
    Row("scores", (SCORES,), role="scores"),
    Row("labelled", (SCORES,), role="scores_labelled"),
    Row("batching", (ITEMS,), role="scores_batching"),
    Row("rank-2", (((1, 3, 2), (6, 4, 5)),), role="scores_rank2"),
    Row("integers", ((5, -7, 9),), role="identity_int32"),
    Row("documented", (DOCUMENTED,), role="documented_scores"),
)
@check("grpc.parameter-is-taken", answers="CLS-PARAMETER/grpc", over=(GRPC,))
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
def parameter_is_taken(target: Peer, model: Model, values: Any, send: Form = "json") -> None:
    """An output with the parameter classification comes back as classes."""
    name = scored(model)
    texts(ask(target, model, [model.tensor(values)], Output(name, classification=2), send=send), name)


# Which output is classified, and how the outputs are listed.
_LISTS = (
    Row("first-of-two", ("SCORES", ("SCORES", "RANKS"))),
    Row("second-of-two", ("RANKS", ("SCORES", "RANKS"))),
    Row("first-of-two-turned", ("RANKS", ("RANKS", "SCORES"))),
    Row("second-of-two-turned", ("SCORES", ("RANKS", "SCORES"))),
    Row("second-alone", ("RANKS", ("RANKS",))),
)


@check("classification.parameter-is-taken-in-any-place", answers="CLS-PARAMETER", role="scores_two_outputs")
@rows(*_LISTS)
@check("grpc.parameter-is-taken-in-any-place", answers="CLS-PARAMETER/grpc", role="scores_two_outputs", over=(GRPC,))
@rows(*both_forms(*_LISTS))
def parameter_is_taken_in_any_place(
    target: Peer, model: Model, name: str, listed: Sequence[str], send: Form = "json"
) -> None:
    """The parameter classification is taken of whichever requested output has it."""
    outputs = [Output(each, classification=2) if each == name else Output(each) for each in listed]
    with blocked_where(lambda: _is_plain_wrong(target, model, listed, send), _UNCLASSIFIED):
        texts(ask(target, model, model.sample(), *outputs, send=send), name)


_UNCLASSIFIED = "so listed the outputs are wrong where nothing is classified, too"


def _is_plain_wrong(target: Peer, model: Model, listed: Sequence[str], send: Form) -> bool:
    """Say whether outputs are wrong in this order where none is classified."""
    reply = ask(target, model, model.sample(), *map(Output, listed), send=send)
    right = [tensor for tensor in model.expected(model.sample()) if tensor.name in listed]
    return not holds(lambda: expect(reply).tensors(right))


@check("classification.each-output-has-its-count", answers="CLS-PARAMETER", role="scores_two_outputs")
@rows(("declared-order", ("SCORES", "RANKS")), ("other-order", ("RANKS", "SCORES")))
@check("grpc.each-output-has-its-count", answers="CLS-PARAMETER/grpc", role="scores_two_outputs", over=(GRPC,))
@rows(*both_forms(Row("declared-order", (("SCORES", "RANKS"),)), Row("other-order", (("RANKS", "SCORES"),))))
def each_output_has_its_count(target: Peer, model: Model, order: Sequence[str], send: Form = "json") -> None:
    """Two outputs classified in one request each go by their own number."""
    counts = {"SCORES": 1, "RANKS": 3}
    outputs = [Output(name, classification=counts[name]) for name in order]
    reply = ask(target, model, model.sample(), *outputs, send=send)
    with blocked_where(lambda: _is_plain_wrong(target, model, order, send), _UNCLASSIFIED):
        _expect_counts(reply, {name: len(texts(reply, name)) for name in counts})


def _expect_counts(reply: Reply, got: Mapping[str, int]) -> None:
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


@check("grpc.as-many-classes-as-asked", answers="CLS-COUNT/grpc", over=(GRPC,))
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
def as_many_over_grpc(target: GrpcTarget, model: Model, values: Any, count: int, send: Form) -> None:
    """There are as many classes as were asked for, up to the number of scores."""
    name = scored(model)
    reply = ask(target, model, [model.tensor(values)], Output(name, classification=count), send=send)
    found = len(texts(reply, name))
    right = count * (len(values) if model.role.batching else 1)
    if found != right:
        raise Unmet(f"{classes_of(right)} of {name}", classes_of(found), reply)
