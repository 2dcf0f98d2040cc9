"""Checks of gRPC: where classification ends, and that it is the same as over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance import classes
from conformance.check import Row, check, rows
from conformance.checks._classes import (
    DOCUMENTED,
    ITEMS,
    SCORES,
    ask,
    expect_each_once,
    scored,
    shown,
    texts,
)
from conformance.checks._grpc import Refusal, expect_right, over_grpc, refusal_rows, refuses, still_answers
from conformance.checks._grpc_classes import DESCENDING, SQUARES
from conformance.checks._grpc_refusals import WRONG_PARAMETERS
from conformance.checks._values import blocked_where
from conformance.classes import ClassText
from conformance.expect import expect
from conformance.outcome import Unmet
from conformance.roles import Model
from conformance.target.exchange import Reply
from conformance.target.grpc_door import Door
from conformance.text import safe, shown_shape
from conformance.wire.request import Output
from conformance.wire.tensor import Tensor


@check("grpc.no-class-is-made-up", answers="GRPC-CLS-CLAMP")
@over_grpc
@rows(
    Row("5-of-4", (SCORES, 5), role="scores"),
    Row("100-of-4", (SCORES, 100), role="scores_labelled"),
    Row("2^32+2-of-4", (SCORES, 2**32 + 2), role="scores"),
    Row("2^63-1-of-4", (SCORES, 2**63 - 1), role="scores"),
    Row("batch", (ITEMS, 5), role="scores_batching"),
)
def no_class_is_made_up(door: Door, model: Model, values: Any, count: int) -> None:
    """A count above that of the scores is refused, or gives each class once."""
    name, tensor = scored(model), model.tensor(values)
    reply = ask(door, model, [tensor], Output(name, classification=count))
    if not _is_refused(door, model, reply):
        expect_each_once(reply, model, name, tensor)


def _is_refused(door: Door, model: Model, reply: Reply) -> bool:
    """Whether a call that a server need not serve was refused; the server has to go on answering."""
    if reply.status is None or reply.status < 400:
        return False
    still_answers(door, model)
    return True


@check("grpc.wrong-parameter-is-refused", answers="GRPC-CLS-NEG")
@over_grpc
@rows(*refusal_rows(WRONG_PARAMETERS, "GRPC-CLS-NEG"))
def wrong_parameter_is_refused(door: Door, model: Model, refusal: Refusal) -> None:
    """A negative count, or one that is no int64_param, is refused."""
    refuses(door, model, refusal)


@check("grpc.number-0", answers="GRPC-CLS-ZERO", role="scores")
@over_grpc
def number_0(door: Door, model: Model) -> str:
    """A server asked for 0 classes does something of its own choice."""
    reply = ask(door, model, model.sample(), Output("SCORES", classification=0))
    if _is_refused(door, model, reply):
        return f"refused: {reply.outcome()}"
    output = expect(reply, "GRPC-ALIVE").output("SCORES")
    if output.datatype == model.role.outputs[0].datatype:
        return "the plain output"
    size = 0 if output.array is None else output.array.size
    return f"{size} classes, {shown_shape(output.shape)}"


# Roles whose outputs can be classified: not those of BYTES, BOOL and 16-bit floats.
_SAME: tuple[tuple[str, Any], ...] = (
    ("scores", SCORES),
    ("scores_labelled", SCORES),
    ("scores_some_labels", SCORES),
    ("scores_odd_labels", SCORES),
    ("scores_batching", ITEMS),
    ("scores_batching_labelled", ITEMS),
    ("scores_rank2", ((1, 3, 2), (6, 4, 5))),
    ("scores_batching_rank2", SQUARES),
    ("scores_two_outputs", SCORES),
    ("documented_scores", DOCUMENTED),
    ("documented_scores_labelled", DOCUMENTED),
    ("rank3", (((1, 3), (2, 6)), ((4, 5), (8, 7)))),
    *[(f"identity_{kind}", (5, 3, 9)) for kind in ("uint8", "uint16", "uint32", "uint64")],
    *[(f"identity_{kind}", DESCENDING) for kind in ("int8", "int16", "int32", "int64", "fp32", "fp64")],
)


@check("grpc.classes-are-those-of-http", answers="GRPC-CLS-DOORS")
@over_grpc
@rows(*[Row(role, (values,), role=role, needs=("http", "classification")) for role, values in _SAME])
def classes_are_those_of_http(door: Door, model: Model, values: Any) -> None:
    """The same request for classes gives the same classes over gRPC as over HTTP."""
    name = scored(model)
    tensors = (model.tensor(values), *model.sample()[1:])
    wanted = Output(name, classification=2)
    over_http = ask(door.target, model, tensors, wanted)
    over_grpc = ask(door, model, tensors, wanted)
    usual, found = (_understood(texts(reply, name)) for reply in (over_http, over_grpc))
    if usual != found:
        with blocked_where(lambda: not _is_plain_right(door, model, tensors), "the plain output is wrong, too"):
            _expect_alike(usual, found, over_grpc)


def _is_plain_right(door: Door, model: Model, tensors: Sequence[Tensor]) -> bool:
    try:
        expect_right(door.infer(model.request(tensors, send="json")), model, tensors)
    except Unmet:
        return False
    return True


def _expect_alike(usual: Sequence[ClassText], found: Sequence[ClassText], over_grpc: Reply) -> None:
    if len(usual) != len(found) or not all(map(_is_alike, usual, found)):
        raise Unmet(f"{safe(shown(usual), 300)}, as over HTTP", safe(shown(found), 300), over_grpc)


def _understood(listed: Sequence[str]) -> list[ClassText]:
    return [entry for text in listed if (entry := classes.understand(text)) is not None]


def _is_alike(one: ClassText, other: ClassText) -> bool:
    same = one.value == other.value or classes.same_value(other.value, float(one.value))
    return same and (one.index, one.label) == (other.index, other.label)
