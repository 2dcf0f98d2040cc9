"""Parameters with unusual names, which a server has to ignore like any other unknown parameter.

A name may be any string. Servers read names into objects, maps and attributes of programming languages, in which some
names have a special meaning. A server may limit the contents of strings (RFC 8259, 9), so that it may refuse a name, as
some parsers refuse `__proto__`; but it must not misread it, or fail at it. An error with status 500 refuses control
characters such as NUL, as frameworks answer an exception of a parser, and is advised against.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from conformance.checks.support.classes import read_texts
from conformance.expect.class_texts import CLASS_DATATYPES
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_refusal_status, is_error_object
from conformance.expect.unmet import BlockedError, NotApplicableError, is_met
from conformance.roles.model import Model, RequestBuilder
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES
from conformance.spec.text import escape_text, format_elements
from conformance.transport.client_names import is_client_refused
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.outputs import Output
from conformance.wire.request import InferRequest, Message, RequestedOutput

USUAL_NAME = "oip_conformance_unknown"
NAMES: Mapping[str, Sequence[str]] = {
    "words-of-javascript": ("constructor", "toString", "valueOf", "hasOwnProperty", "__proto__", "prototype"),
    "words-of-python": ("__class__", "__init__", "__dict__", "__getattr__", "self", "None"),
    "words-of-java-and-go": ("getClass", "hashCode", "this", "func", "nil"),
    "words-of-json": ("null", "true", "NaN", "0", "-1"),
    "signs": ("a.b", "a/b", "$ref", "a[0]", "a b", "%s", "{}", "#"),
    "escapes": ('q"', "back\\slash", "tab\t", "line\n", "nul\0"),
    "letters-beyond-ascii": ("größe", "猫", "😀", "\u2028"),
    "blank": ("", " "),
}
EVERY_NAME = {"every-name": [name for names in NAMES.values() for name in names]}
CONTROL_CHARACTERS = re.compile("[\0-\x1f]")
SERVER_ERROR = 500
# Values of the parameters, used in turn.
VALUES = ("text", 3, True, 0.5)
# Adds parameters to a document, in front of those that it has or behind them.
AddParameters = Callable[[dict[str, Any], Mapping[str, Any], bool], None]


def _add_to_owner(owner: dict[str, Any], added: Mapping[str, Any], is_last: bool) -> None:
    own = owner.get("parameters", {})
    owner["parameters"] = {**own, **added} if is_last else {**added, **own}


def _add_to_inputs(document: dict[str, Any], added: Mapping[str, Any], is_last: bool) -> None:
    for item in document["inputs"]:
        _add_to_owner(item, added, is_last)


def _add_to_outputs(document: dict[str, Any], added: Mapping[str, Any], is_last: bool) -> None:
    for item in document["outputs"]:
        _add_to_owner(item, added, is_last)


PLACES: Mapping[str, AddParameters] = {"request": _add_to_owner, "input": _add_to_inputs, "output": _add_to_outputs}


def _make_json_request(model: Model) -> InferRequest:
    return model.request(send="json", outputs=[spec.name for spec in model.role.outputs])


def _make_class_request(model: Model) -> InferRequest:
    outputs = [RequestedOutput(spec.name, classification=2) for spec in model.role.outputs]
    return model.request(send="json", outputs=outputs)


# place of the parameters -> a request with a parameter of the binary extension at this place
WITH_BINARY_DATA: Mapping[str, RequestBuilder] = {
    "request": lambda model: model.request(send="json", binary_data_output=True),
    "input": lambda model: model.request(send="binary"),
    "output": lambda model: model.request(send="json", want="binary"),
}


def _make_rows() -> Iterator[Row]:
    """Yield rows with all names, and rows with a group of names, for parameters of the request, inputs and outputs."""
    for place in PLACES:
        yield _make_row("every-name", place)
        yield _make_row("every-name", place, has_binary_data=True)
    for turn, name in enumerate(NAMES):
        for index, place in enumerate(PLACES):
            yield _make_row(name, place, has_binary_data=(index + turn) % 2 == 1)
    values = ("output", _assign_values(EVERY_NAME["every-name"]), _make_class_request)
    yield Row("every-name-with-classes", values, role="scores", needs=CLASSES)


def _make_row(name: str, place: str, *, has_binary_data: bool = False) -> Row:
    """Return a row with the names of a group, in the parameters of the request, inputs or outputs."""
    added = _assign_values({**EVERY_NAME, **NAMES}[name])
    if not has_binary_data:
        return Row(f"{name}-of-{place}", (place, added, _make_json_request), role="add_sub")
    values = (place, added, WITH_BINARY_DATA[place])
    return Row(f"{name}-of-{place}-with-binary-data", values, role="add_sub", needs=BINARY)


def _assign_values(names: Sequence[str]) -> dict[str, Any]:
    """Return parameters with these names."""
    return {name: VALUES[index % len(VALUES)] for index, name in enumerate(names)}


def _rename_to_usual_names(added: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters under usual names, to see whether the server refuses their values or their number."""
    return {f"{USUAL_NAME}_{index}": value for index, value in enumerate(added.values())}


@check("json.parameter-of-any-name-is-like-others", requirements="OIP-PARAMETER-NAMES")
@rows(*_make_rows())
def parameter_of_any_name_is_like_others(
    target: Target, model: Model, place: str, added: Mapping[str, Any], build_request: RequestBuilder
) -> str:
    """The server gives a request with undefined parameters the same answer whatever their names are, or refuses it.

    Raises NotApplicableError: the server does not ignore undefined parameters, or it refuses a name.
    """
    request = build_request(model)
    plain = target.send(request.message(), fresh=True)
    if not plain.succeeded or any(_read_elements(plain, output) is None for output in plain.answer.outputs):
        raise BlockedError("the answer to the request without further parameters is also wrong")
    reply = target.send(_add_parameters(request, place, added), fresh=True)
    if is_met(lambda: _expect_same_outputs(reply, plain)):
        return "answered"
    usual = target.send(_add_parameters(request, place, _rename_to_usual_names(added)), fresh=True)
    if not is_met(lambda: _expect_same_outputs(usual, plain)):
        raise NotApplicableError(f"the same parameters of the {place} under usual names are not ignored either")
    raised: Reply | None = None
    for name, value in added.items():  # one at a time, so that a refused name hides no other
        one = target.send(_add_parameters(request, place, {name: value}), fresh=True)
        if one.status == SERVER_ERROR and is_error_object(one) and CONTROL_CHARACTERS.search(name):
            raised = raised or one
        elif not is_client_refused(one):
            _expect_same_outputs(one, plain)
    if raised is not None and reply.is_refusal:
        expect_refusal_status(raised)
    if not is_client_refused(reply):
        _expect_same_outputs(reply, plain)
    raise NotApplicableError(f"the target refuses such names: {escape_text(reply.outcome())}")


@check("json.parameter-in-front-of-others-is-like-one-behind", requirements="OIP-WRITTEN", role="add_sub")
@rows(*[Row(place, (place, build_request), needs=BINARY) for place, build_request in WITH_BINARY_DATA.items()])
def parameter_in_front_of_others_is_like_one_behind(
    target: Target, model: Model, place: str, build_request: RequestBuilder
) -> None:
    """The server finds a parameter of the binary tensor data extension behind an undefined parameter, too.

    Raises NotApplicableError: the server does not ignore undefined parameters.
    """
    added = {USUAL_NAME: VALUES[0]}
    request = build_request(model)
    behind = request.encode_with(lambda document: PLACES[place](document, added, True))
    in_front = _add_parameters(request, place, added)
    usual = target.send(behind, fresh=True)
    if not usual.succeeded:
        raise NotApplicableError(f"a parameter of the {place} that is not defined is not ignored")
    _expect_same_outputs(target.send(in_front, fresh=True), usual)


def _add_parameters(request: InferRequest, place: str, added: Mapping[str, Any]) -> Message:
    """Return a request with parameters added to the request, inputs or outputs, before existing parameters."""
    return request.encode_with(lambda document: PLACES[place](document, added, False))


def _expect_same_outputs(reply: Reply, plain: Reply) -> None:
    """Expect the outputs of `plain`, the reply to the request without further parameters, in the same encoding."""
    for right in plain.answer.outputs:
        found = expect(reply).output(right.name)
        expected, actual = _describe_output(plain, right), _describe_output(reply, found)
        if actual != expected:
            raise expect(reply).unmet(
                f"{right.name} as without further parameters: {escape_text(expected, 120)}", escape_text(actual, 120)
            )


def _describe_output(reply: Reply, output: Output) -> str:
    elements = _read_elements(reply, output) or "elements that cannot be read"
    return f"{output.datatype} {output.shape} {'as binary data' if output.binary else 'as JSON'}: {elements}"


def _read_elements(reply: Reply, output: Output) -> str | None:
    if output.array is None:
        return ", ".join(read_texts(reply, output.name)) if output.datatype in CLASS_DATATYPES else None
    return format_elements(output.array)
