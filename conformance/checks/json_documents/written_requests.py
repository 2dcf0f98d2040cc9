"""Requests that say the same in JSON written otherwise: order of members, escapes, white space, undefined members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.checks.support.classes import read_texts
from conformance.checks.support.json_writing import Style, write_escaped_string, write_first_escaped, written
from conformance.checks.support.repeated_requests import attribute_to_isolation
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES
from conformance.spec.fit import ANY, JSON, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.request import InferRequest, Message, RequestedOutput
from conformance.wire.tensor import Tensor

# --- requests that use every object and member ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestKind:
    """A kind of request, of which the JSON is to be written in some other way.

    Attributes:
        role: of the model that it goes to; None where that is a deployed one.
        needs: extensions that it uses.
        request: makes it.
        expect: raises `UnmetError` where the answer is not right.
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
        raise UnmetError('id "in-order"', "another, or none", reply)


def _some_outputs(model: Model) -> list[str]:
    """Return the outputs of a deployed model but for the first of several."""
    names = [spec.name for spec in model.role.outputs]
    return names[1:] or names


def _listing(**options: Any) -> Callable[[Model], InferRequest]:
    """Return what makes a request to a deployed model that lists some of its outputs."""
    return lambda model: model.request(outputs=_some_outputs(model), request_id="in-order", **options)


def _expect_sampled(reply: Reply, model: Model) -> None:
    expect(reply).tensors(tensor for tensor in model.expected(model.sample()) if tensor.name in _some_outputs(model))
    if (reply.answer.document or {}).get("id") not in ("in-order", None):  # a lost one is a matter of OIP-ID
        raise UnmetError('id "in-order"', "another", reply)


OWN = RequestKind(None, (), _listing(send="json"), _expect_sampled, JSON)
OWN_BINARY = RequestKind(None, BINARY, _listing(want="binary", binary_data_output=True), _expect_sampled, ANY)
LISTED_OUTPUTS = ("OUT_BYTES", "OUT_FP32", "OUT_BOOL")
FORMS: Mapping[str, RequestKind] = {
    "json": RequestKind(
        "multi",
        (),
        lambda model: model.request(_tensors(model), send="json", outputs=LISTED_OUTPUTS, request_id="in-order"),
        _expect_tensors,
    ),
    "binary": RequestKind(
        "multi",
        BINARY,
        lambda model: model.request(
            _tensors(model), want="binary", outputs=LISTED_OUTPUTS, binary_data_output=True, request_id="in-order"
        ),
        _expect_tensors,
    ),
    "mixed": RequestKind(
        "multi",
        BINARY,
        lambda model: model.request(
            _tensors(model),
            send={"IN_BOOL", "IN_BYTES"},
            outputs=[
                RequestedOutput("OUT_BYTES", False),
                RequestedOutput("OUT_FP32", True),
                RequestedOutput("OUT_BOOL", False),
            ],
            binary_data_output=False,
            request_id="in-order",
        ),
        _expect_tensors,
    ),
    "classes": RequestKind(
        "scores",
        CLASSES,
        lambda model: model.request(
            send="json", outputs=[RequestedOutput("SCORES", classification=2)], request_id="in-order"
        ),
        lambda reply, _: read_texts(reply, "SCORES"),
    ),
}

# --- the same in other words ------------------------------------------------------------------------------------------

STYLES: Mapping[str, Style] = {
    "members-backwards": Style(backwards=True),
    "data-first": Style(("data", "parameters", "outputs", "datatype", "shape")),
    "shape-last": Style(("name", "datatype", "data", "parameters", "inputs")),
    "datatype-last": Style(("name", "data", "parameters", "shape", "id", "outputs", "inputs")),
    "names-of-members-escaped": Style(name=write_escaped_string),
    "first-letters-of-members-escaped": Style(name=write_first_escaped),
    "strings-escaped": Style(text=write_escaped_string),
    "first-letters-of-strings-escaped": Style(text=write_first_escaped),
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
def request_written_otherwise_is_the_same(target: Target, model: Model, asked: RequestKind, style: Style) -> None:
    """A request means the same in whatever order its members stand, with escapes, and with white space."""
    _expect_like_the_usual(target, model, asked, written(asked.request(model), style))


def _expect_like_the_usual(target: Target, model: Model, asked: RequestKind, message: Message) -> None:
    """Expect the right answer to a message, unless the same request is answered wrongly as it is usually written."""

    def is_wrong_as_usual() -> bool:
        usual = target.send(asked.request(model).message(), fresh=True)
        return not is_met(lambda: asked.expect(usual, model))

    reply = target.send(message)
    with block_if(is_wrong_as_usual, "the same request as it is usually written is answered wrongly"):
        try:
            with attribute_to(None):
                asked.expect(reply, model)
        except UnmetError as unmet:
            attribute_to_isolation(target, unmet, lambda again: asked.expect(again, model))
            raise
    request = asked.request(model)
    listed = sorted(output.name for output in request.outputs or ())
    if (found := _summarize(reply)) != (request.id, listed):
        usual = _summarize(target.send(request.message(), fresh=True))
        if found != usual:
            raise UnmetError(_describe(*usual), _describe(*found), reply)


def _summarize(reply: Reply) -> tuple[object, list[str]]:
    """Return the id and the outputs of an answer."""
    return (reply.answer.document or {}).get("id"), sorted(reply.answer.names())


def _describe(identity: object, outputs: list[str]) -> str:
    return f"{'no id' if identity is None else f'id {format_value(identity)}'} and outputs {', '.join(outputs)}"


# --- members that no object defines -----------------------------------------------------------------------------------

UNDEFINED_MEMBERS: Mapping[str, Any] = {
    "model_name": "of the documents' examples",
    "x-number": 1.5,
    "x-integer": -7,
    "x-true": True,
    "x-false": False,
    "x-null": None,
    "x-empty": "",
}
NESTED_MEMBERS: Mapping[str, Any] = {
    "x-object": {"inputs": [], "data": [[1], {}], "shape": [0]},
    "x-array": [{"name": "x"}, []],
    "x-empty-object": {},
    "x-empty-array": [],
}
# Members that have a meaning in other objects, and none where they stand here.
MISPLACED_MEMBERS: Mapping[str, Mapping[str, Any]] = {
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
            ("values-last", UNDEFINED_MEMBERS, False),
            ("objects-first", NESTED_MEMBERS, True),
            ("of-other-objects", MISPLACED_MEMBERS[level], True),
        )
        for form, asked in FORMS.items()
        if form != "mixed"
    ],
    OWN.row("request-values-last", "request", UNDEFINED_MEMBERS, False),
    OWN.row("request-objects-first", "request", NESTED_MEMBERS, True),
    OWN.row("outputs-values-last", "outputs", UNDEFINED_MEMBERS, False),
    OWN.row("outputs-objects-first", "outputs", NESTED_MEMBERS, True),
    OWN.row("inputs-objects-first", "inputs", NESTED_MEMBERS, True),
    OWN.row("inputs-of-other-objects", "inputs", MISPLACED_MEMBERS["inputs"], True),
)
def undefined_members_change_nothing(
    target: Target, model: Model, asked: RequestKind, level: str, members: Mapping[str, Any], first: bool
) -> None:
    """Members that no object of a request defines, of whatever kind and at whatever place, change nothing."""

    def edit(document: dict[str, Any]) -> None:
        for owner in LEVELS[level](document):
            own = dict(owner)
            owner.clear()
            owner.update({**members, **own} if first else {**own, **members})

    _expect_like_the_usual(target, model, asked, asked.request(model).edited(edit))
