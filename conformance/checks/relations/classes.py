"""Relations of classification: the classes of an output are the output itself, sorted.

Metadata do not always say whether a model batches, so classes are taken either for those of the whole output or for
those of each item, by the shape in which they come. Labels may stand behind them. Never sent: classification of BYTES
and of empty outputs, which has ended real servers.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.relations.plain_answer import FEW, expect_same
from conformance.checks.support.classes import FORMAT, TAKEN, WRITTEN, entries, ranking, texts
from conformance.checks.support.classes import shown as shown_classes
from conformance.expect import class_texts
from conformance.expect.class_texts import ClassText, Item
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicable, Unmet, about
from conformance.survey.deployed import Deployed, has_classes
from conformance.terms.check import check, rows
from conformance.terms.text import safe, shown_shape
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import ABSENT, Output
from conformance.wire.tensor import Tensor


@check(
    "relations.classes-are-the-sorted-output",
    answers=("CLS-HIGHEST", TAKEN, "CLS-TYPE", "CLS-COUNT", FORMAT, "CLS-VALUE", "CLS-INDEX"),
)
@rows(("1", 1), ("5", 5))
def classes_are_the_sorted_output(target: Target, model: Deployed, count: int) -> None:
    """The classes of an output are its highest elements, highest first, each with its value and its index."""
    for scores in _scores(target, model):
        if count == 1 or _fewest(scores) > 1:
            _expect_sorted(target, model, scores, min(count, _fewest(scores)))


def _scores(target: Target, model: Deployed) -> list[Tensor]:
    """Return outputs that can be classified.

    Raises:
        NotApplicable: there are none.
    """
    found = [tensor for name in model.steady() if has_classes(tensor := model.reference(target, name))]
    if not found:
        raise NotApplicable("the model has no numeric output with elements to classify")
    return found[:FEW]


def _fewest(scores: Tensor) -> int:
    """Return how many classes there are at the least: those of one item, if there are items."""
    return scores.elements // scores.shape[0] if len(scores.shape) > 1 else scores.elements


def _expect_sorted(target: Target, model: Deployed, scores: Tensor, count: int) -> None:
    reply = _ask(target, model, Output(scores.name, classification=count))
    if len(scores.shape) == 1 < count and not reply.succeeded:
        return  # to a model that batches, each element is an item of one class
    try:
        listed = entries(reply, scores.name)
        items = _items(reply, scores, listed, count)
        _expect_rules(reply, scores.name, items)
    except Unmet:
        model.require_steady(target, [scores.name], reply)
        raise


def _ask(target: Target, model: Deployed, *outputs: Output) -> Reply:
    return target.infer(model.request(send=model.sends, outputs=outputs))


def _items(reply: Reply, scores: Tensor, listed: Sequence[ClassText], count: int) -> list[Item]:
    """Return classes and scores together, item by item where the shape has items, else of the whole output."""
    found = expect(reply).output(scores.name)
    if found.datatype != "BYTES":
        raise Unmet("datatype BYTES", f"datatype {safe(found.datatype, 60)}", reply, requirement="CLS-TYPE")
    batch = scores.shape[0] if scores.shape else 1
    size = count if len(scores.shape) > 1 else 1  # of an item, should the model batch
    if found.shape in ((count,), (1, count)) and len(listed) == count:
        return [(listed, scores.array.reshape(-1))]
    if found.shape == (batch, size) and len(listed) == batch * size:
        rows_of = scores.array.reshape(batch, -1)
        return [(listed[k * size : (k + 1) * size], rows_of[k]) for k in range(batch)]
    known = found.shape is not None and len(found.shape) in (1, 2) and found.shape[:-1] in ((), (batch,))
    about = "CLS-COUNT" if known else "CLS-SHAPE"
    expected = f"shape [{count}], or [{batch}, {size}] if the model batches"
    raise Unmet(expected, f"{len(listed)} classes, {shown_shape(found.shape)}", reply, requirement=about)


def _expect_rules(reply: Reply, name: str, items: Sequence[Item]) -> None:
    """Expect the format, the order, the values and the indices of classes."""
    for text in texts(reply, name):
        try:
            class_texts.parse(text)
        except class_texts.ClassTextError as error:
            raise Unmet(WRITTEN, str(error), reply, requirement=FORMAT) from error
    for rule, requirement in (
        (class_texts.ties_in_order, "CLS-HIGHEST"),
        (class_texts.indices_right, "CLS-INDEX"),
        (class_texts.values_right, "CLS-VALUE"),
    ):
        for place, (listed, scores) in enumerate(items):
            if not rule(listed, scores):
                right = shown_classes(ranking(scores, len(listed)))
                about = "CLS-BATCH" if place else requirement  # the first item was right
                raise Unmet(right, shown_classes(listed), reply, requirement=about)


@check("relations.classes-leave-other-outputs-alone", answers="CLS-ONLY")
def classes_leave_other_outputs_alone(target: Target, model: Deployed) -> None:
    """Outputs that do not ask for classes are the same beside one that does."""
    chosen = _scores(target, model)[0].name
    others = [name for name in model.steady() if name != chosen]
    if not others:
        raise NotApplicable("there is one output")
    listed = [Output(name, True if name in model.binary_only else ABSENT) for name in model.outputs if name != chosen]
    expect_same(target, model, _ask(target, model, Output(chosen, classification=1), *listed), names=others)


@check("relations.classes-are-the-same-as-binary-data", answers="CLS-BINARY")
def classes_are_the_same_as_binary_data(target: Target, model: Deployed) -> None:
    """Classes are the same texts whether they come as JSON or as binary data."""
    name = _scores(target, model)[0].name
    as_json = _ask(target, model, Output(name, classification=1))
    right = texts(as_json, name)
    reply = _ask(target, model, Output(name, True, 1))
    expect(reply).forms({name: "binary"})
    found = _binary_texts(reply, name)
    if found != right:
        model.require_steady(target, [name], reply, as_json)
        raise Unmet(f"{name} = {safe(str(right))}, as in JSON", f"{name} = {safe(str(found))}", reply)


def _binary_texts(reply: Reply, name: str) -> list[str]:
    with about("CLS-BINARY"):
        return texts(reply, name)
