"""Requests that say the same in JSON written otherwise: order of members, escapes, white space, undefined members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.checks.support.again import blame_what_was_before
from conformance.checks.support.classes import texts
from conformance.checks.support.json_writing import Style, escaped, first_escaped, written
from conformance.expect.expectation import expect
from conformance.expect.unmet import Unmet, about, blocked_where, holds
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import BINARY, CLASSES
from conformance.terms.fit import ANY, JSON, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import InferRequest, Message, Output
from conformance.wire.tensor import Tensor

# --- requests that use every object and member ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A kind of request, of which the JSON is to be written in some other way.

    Attributes:
        role: of the model that it goes to; None where that is a deployed one.
        needs: extensions that it uses.
        request: makes it.
        expect: raises `Unmet` where the answer is not right.
        fit: the deployed models that it goes to.
    """

    role: str | None
    needs: tuple[str, ...]
    request: Callable[[Model], InferRequest]
    expect: Callable[[Reply, Model], object]
    fit: Fit | None = None

    def row(self, name: str, *values: Any) -> Row:
        """Return a row with this and other values."""
        return Row(name, (self, *values), role=self.role, needs=self.needs, fit=self.fit)


def _tensors(model: Model) -> list[Tensor]:
    """Return sample inputs whose strings, if any, are neither names of members nor beyond ASCII."""
    ascii_texts = [f"{model.salt}x", "", 'quote " and \\']
    return [Tensor.of(t.name, "BYTES", ascii_texts) if t.datatype == "BYTES" else t for t in model.sample()]


def _expect_tensors(reply: Reply, model: Model) -> None:
    expect(reply).tensors(tensor for tensor in model.expected(_tensors(model)) if tensor.name != "OUT_INT64")
    if (reply.answer.document or {}).get("id") != "in-order":
        raise Unmet('id "in-order"', "another, or none", reply)


def _listing(**options: Any) -> Callable[[Model], InferRequest]:
    """Return what makes a request to a deployed model that lists its outputs."""
    return lambda m: m.request(outputs=[spec.name for spec in m.role.outputs], request_id="in-order", **options)


def _expect_sampled(reply: Reply, model: Model) -> None:
    expect(reply).tensors(model.expected(model.sample()))
    if (reply.answer.document or {}).get("id") not in ("in-order", None):  # a lost one is a matter of OIP-ID
        raise Unmet('id "in-order"', "another", reply)


OWN = Asked(None, (), _listing(send="json"), _expect_sampled, JSON)
OWN_BINARY = Asked(None, BINARY, _listing(want="binary", binary_data_output=True), _expect_sampled, ANY)
LISTED = ("OUT_BYTES", "OUT_FP32", "OUT_BOOL")
FORMS: Mapping[str, Asked] = {
    "json": Asked(
        "multi",
        (),
        lambda model: model.request(_tensors(model), send="json", outputs=LISTED, request_id="in-order"),
        _expect_tensors,
    ),
    "binary": Asked(
        "multi",
        BINARY,
        lambda model: model.request(
            _tensors(model), want="binary", outputs=LISTED, binary_data_output=True, request_id="in-order"
        ),
        _expect_tensors,
    ),
    "mixed": Asked(
        "multi",
        BINARY,
        lambda model: model.request(
            _tensors(model),
            send={"IN_BOOL", "IN_BYTES"},
            outputs=[Output("OUT_BYTES", False), Output("OUT_FP32", True), Output("OUT_BOOL", False)],
            binary_data_output=False,
            request_id="in-order",
        ),
        _expect_tensors,
    ),
    "classes": Asked(
        "scores",
        CLASSES,
        lambda model: model.request(send="json", outputs=[Output("SCORES", classification=2)], request_id="in-order"),
        lambda reply, _: texts(reply, "SCORES"),
    ),
}

# --- the same in other words ------------------------------------------------------------------------------------------

STYLES: Mapping[str, Style] = {
    "members-backwards": Style(backwards=True),
    "data-first": Style(("data", "parameters", "outputs", "datatype", "shape")),
    "shape-last": Style(("name", "datatype", "data", "parameters", "inputs")),
    "datatype-last": Style(("name", "data", "parameters", "shape", "id", "outputs", "inputs")),
    "names-of-members-escaped": Style(name=escaped),
    "first-letters-of-members-escaped": Style(name=first_escaped),
    "strings-escaped": Style(text=escaped),
    "first-letters-of-strings-escaped": Style(text=first_escaped),
    "blanks-around-every-token": Style(gap=" "),
    "lines-and-tabs-around-every-token": Style(gap="\r\n\t"),
}
# Those that deployed models get.
OWN_STYLES = ("members-backwards", "names-of-members-escaped", "strings-escaped", "lines-and-tabs-around-every-token")


@check("json.request-written-otherwise-is-the-same", answers="OIP-WRITTEN")
@rows(
    *[asked.row(f"{name}-{form}", style) for name, style in STYLES.items() for form, asked in FORMS.items()],
    *[OWN.row(name, STYLES[name]) for name in OWN_STYLES],
    OWN_BINARY.row("members-backwards-of-binary-data", STYLES["members-backwards"]),
)
def request_written_otherwise_is_the_same(target: Target, model: Model, asked: Asked, style: Style) -> None:
    """A request means the same in whatever order its members stand, with escapes, and with white space."""
    _expect_like_the_usual(target, model, asked, written(asked.request(model), style))


def _expect_like_the_usual(target: Target, model: Model, asked: Asked, message: Message) -> None:
    """Expect the right answer to a message, unless the same request is answered wrongly as it is usually written."""

    def is_wrong_as_usual() -> bool:
        usual = target.send(asked.request(model).message(), fresh=True)
        return not holds(lambda: asked.expect(usual, model))

    reply = target.send(message)
    with blocked_where(is_wrong_as_usual, "the same request as it is usually written is answered wrongly"):
        try:
            with about(None):
                asked.expect(reply, model)
        except Unmet as unmet:
            blame_what_was_before(target, unmet, lambda again: asked.expect(again, model))
            raise


# --- members that no object defines -----------------------------------------------------------------------------------

UNDEFINED: Mapping[str, Any] = {
    "model_name": "of the documents' examples",
    "x-number": 1.5,
    "x-integer": -7,
    "x-true": True,
    "x-false": False,
    "x-null": None,
    "x-empty": "",
}
NESTED: Mapping[str, Any] = {
    "x-object": {"inputs": [], "data": [[1], {}], "shape": [0]},
    "x-array": [{"name": "x"}, []],
    "x-empty-object": {},
    "x-empty-array": [],
}
# Members that have a meaning in other objects, and none where they stand here.
ELSEWHERE: Mapping[str, Mapping[str, Any]] = {
    "request": {"name": "OUT_BOOL", "shape": [1], "datatype": "FP64", "data": [7.5]},
    "inputs": {"id": "of an input", "inputs": [], "outputs": [{"name": "NO_SUCH_OUTPUT"}]},
    "outputs": {"id": "of an output", "shape": [1], "datatype": "FP64", "data": [7.5]},
}
LEVELS: Mapping[str, Callable[[dict[str, Any]], list[dict[str, Any]]]] = {
    "request": lambda document: [document],
    "inputs": lambda document: document["inputs"],
    "outputs": lambda document: document["outputs"],
}


@check("json.undefined-members-change-nothing", answers="OIP-MEMBERS")
@rows(
    *[
        asked.row(f"{level}-{kind}-{form}", level, members, first)
        for level in LEVELS
        for kind, members, first in (
            ("values-last", UNDEFINED, False),
            ("objects-first", NESTED, True),
            ("of-other-objects", ELSEWHERE[level], True),
        )
        for form, asked in FORMS.items()
        if form != "mixed"
    ],
    OWN.row("request-values-last", "request", UNDEFINED, False),
    OWN.row("inputs-objects-first", "inputs", NESTED, True),
    OWN.row("inputs-of-other-objects", "inputs", ELSEWHERE["inputs"], True),
)
def undefined_members_change_nothing(
    target: Target, model: Model, asked: Asked, level: str, members: Mapping[str, Any], first: bool
) -> None:
    """Members that no object of a request defines, of whatever kind and at whatever place, change nothing."""

    def edit(document: dict[str, Any]) -> None:
        for owner in LEVELS[level](document):
            own = dict(owner)
            owner.clear()
            owner.update({**members, **own} if first else {**own, **members})

    _expect_like_the_usual(target, model, asked, asked.request(model).edited(edit))
