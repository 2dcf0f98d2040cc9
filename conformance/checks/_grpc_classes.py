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
    WRITTEN,
    Classified,
    Send,
    ask,
    classes_of,
    each,
    scored,
    shown,
    texts,
)
from conformance.checks._grpc import Refusal, expect_right, over_grpc, refusal_rows, refuses, still_answers
from conformance.checks._grpc_refusals import WRONG_PARAMETERS
from conformance.checks._values import blocked_where
from conformance.classes import ClassText, Scores
from conformance.compare import difference
from conformance.expect import expect
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model
from conformance.target.exchange import Reply
from conformance.target.grpc_door import Door
from conformance.text import safe, shown_shape
from conformance.wire.finding import shown as quoted
from conformance.wire.request import Output
from conformance.wire.tensor import Tensor

FORMS: tuple[Send, ...] = ("json", "binary")
DESCENDING = (9, 5, -7)
SQUARES = (((10, 40), (20, 30)), ((35, 5), (25, 15)))


def _both_forms(*cases: Row) -> list[Row]:
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
    *_both_forms(
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
    *_both_forms(
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
    *_both_forms(
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
    *_both_forms(
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
    *_both_forms(
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
    *_both_forms(
        Row("2-items", (ITEMS, 4), role="scores_batching"),
        Row("highest-of-each", (ITEMS, 1), role="scores_batching"),
        Row("2x2-items", (SQUARES, 3), role="scores_batching_rank2"),
    )
)
def items_are_ranked_apart(door: Door, model: Model, send: Send, values: Any, count: int) -> None:
    """Each item of a batch has its own ranking, with indices that count within the item."""
    Classified.of(door, model, values, count, send=send).require(classes.counted_alike)


@check("grpc.class-is-value-index-label", answers="GRPC-CLS-FMT")
@over_grpc
@rows(
    *_both_forms(
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
    *_both_forms(
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
    *_both_forms(
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
    *_both_forms(
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


@check("grpc.other-outputs-stay", answers="GRPC-CLS-ONLY", role="scores_two_outputs")
@over_grpc
@rows(
    *_both_forms(
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
    if _is_refused(door, model, reply):
        return
    batch = len(values) if model.role.batching else 1
    there = tensor.elements // batch
    case = Classified.of(door, model, values, count)
    shape = expect(case.reply).output(name).shape or ()
    if len(case.listed) != there * batch or prod(shape) != len(case.listed):
        expected = f"a refusal, or {classes_of(there)}" + (f" for each of {batch} items" if model.role.batching else "")
        raise Unmet(expected, f"{classes_of(len(case.listed))} under {shown_shape(shape)}", case.reply)
    for part, _ in case.items():
        if len({entry.index for entry in part}) != there:
            raise Unmet(f"{there} different indices", shown(part), case.reply)


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
