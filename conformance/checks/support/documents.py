"""JSON documents of servers, held against their schemas: answers and metadata, and whether the server is up.

One document answers for several requirements: the place of a fault decides which.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model, RequestBuilder
from conformance.spec import data_files
from conformance.spec.check import Row
from conformance.spec.extensions import BINARY
from conformance.spec.fit import JSON
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.json_text import parse_json
from conformance.wire.request import Message, RequestedOutput

# --- schemas ----------------------------------------------------------------------------------------------------------
# Which requirement a fault breaks is for the checks to say, by its place: one document answers for several requirements.

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        path: members and places in arrays from the top of the document: ("outputs", 0, "name"). A missing member is
            named, as if it were there.
        rule: the keyword of the schema that is not met: "type", "required", "enum".
        expected: what the schema asks for there.
        value: what stands there, None for a missing member.
    """

    path: Path
    rule: str
    expected: str
    value: Any

    @property
    def place(self) -> str:
        """The path as a reader writes it: outputs[0].name."""
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path]
        return "".join(steps).lstrip(".") or "the document"

    @property
    def actual(self) -> str:
        """What stands there, as text."""
        return "nothing" if self.rule == "required" else format_value(self.value)


def find_faults(schema: str, document: Any) -> list[Fault]:
    """Return the faults of a document by their places; none where it is valid.

    Args:
        schema: the file's name without `.schema.json`.
        document: a parsed JSON value.

    Raises:
        FileNotFoundError: there is no such schema.
    """
    found: list[Fault] = []
    for error in _validator(schema).iter_errors(document):
        found += [fault for fault in _faults(error) if fault not in found]
    return sorted(found, key=lambda fault: [str(step) for step in fault.path])


@cache
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # slow to import, and needed by few checks

    return Draft202012Validator(json.loads((data_files.find_folder("schemas") / f"{schema}.schema.json").read_bytes()))


def _faults(error: ValidationError) -> Iterator[Fault]:
    path = tuple(error.absolute_path)
    if error.validator == "required" and isinstance(error.validator_value, list):
        for name in error.validator_value:
            if isinstance(error.instance, dict) and name not in error.instance:
                yield Fault((*path, name), "required", "there", None)
        return
    rule = str(error.validator)
    yield Fault(path, rule, _asked(rule, error.validator_value), error.instance)


def _asked(rule: str, value: Any) -> str:
    """Return what a keyword of the schema asks for, in words."""
    if rule == "type":
        return " or ".join(_TYPES[name] for name in ([value] if isinstance(value, str) else value))
    return f"{rule} {json.dumps(value)[:120]}"


_TYPES = {
    **{name: f"a {name}" for name in ("string", "number", "boolean")},
    **{name: f"an {name}" for name in ("array", "integer", "object")},
    "null": "null",
}


# --- answers ----------------------------------------------------------------------------------------------------------
# One document answers for several requirements: the place of a fault decides which.

_MULTI_MIXED = (RequestedOutput("OUT_BYTES", True), RequestedOutput("OUT_INT64"), RequestedOutput("OUT_FP32", True))


def make_requester(**arguments: Any) -> RequestBuilder:
    """Return what makes a JSON request with these arguments of `Model.request`."""
    return lambda model: model.request(send="json", **arguments)


def _raw(model: Model) -> Message:
    return model.raw(bytes(model.sample(batch=1)[0].to_bytes()))


ANSWERS: tuple[Row, ...] = (
    Row("json", (make_requester(),), role="multi", fit=JSON),
    Row("json-of-one-output", (make_requester(outputs=["OUT_BOOL"]),), role="multi"),
    Row("json-with-id", (make_requester(request_id="42"),), role="multi"),
    Row("json-of-a-batch", (make_requester(),), role="batching"),
    Row("json-of-rank-3", (make_requester(),), role="rank3"),
    Row("json-without-elements", (lambda m: m.request([m.tensor([0, 0])], send="json"),), role="emit"),
    Row("binary", (make_requester(want="binary"),), role="multi", needs=BINARY, fit=JSON),
    Row("binary-by-default", (make_requester(binary_data_output=True),), role="multi", needs=BINARY),
    Row(
        "binary-without-elements",
        (lambda m: m.request([m.tensor([0, 2])], send="json", want="binary"),),
        role="emit",
        needs=BINARY,
    ),
    Row("mixed", (make_requester(outputs=_MULTI_MIXED),), role="multi", needs=BINARY),
    Row("raw", (_raw,), role="raw_two_outputs", needs=("raw",)),
    Row(
        "classes",
        (make_requester(outputs=[RequestedOutput("SCORES", classification=2)]),),
        role="scores",
        needs=("classification",),
    ),
)


def expect_only(reply: Reply, listed: Sequence[str]) -> None:
    """Expect no outputs but those that the request lists, each once; that they are all there is judged before."""
    found = list(reply.answer.names())
    if sorted(found) != sorted(listed):
        wanted, actual = (f"outputs {format_value(list(names))}" for names in (listed, found))
        raise UnmetError(f"{wanted} and no others", actual, reply, requirement="OIP-OUTPUTS-ONLY")


def expect_no_null(reply: Reply, document: Any) -> None:
    """Expect of an answer or of metadata that what an optional member has nothing to say of is left out."""
    for place, item in _described(document):
        for name in _OPTIONAL:
            if name in item and item[name] is None:
                raise UnmetError(f"{place}{name} left out, or with a value", "null", reply, requirement="OIP-NULL")
        parameters = item.get("parameters")
        for name, value in parameters.items() if isinstance(parameters, dict) else ():
            if value is None:
                where = f"{place}parameters.{escape_text(name, 60)}"
                raise UnmetError(f"{where} left out, or with a value", "null", reply, requirement="OIP-NULL")


# Of answers, of their outputs and of metadata.
_OPTIONAL = ("id", "model_version", "versions", "parameters", "data")


def _described(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a document that have members of the protocol, each with its place."""
    if isinstance(document, dict):
        yield "", document
        outputs = document.get("outputs")
        for index, item in enumerate(outputs if isinstance(outputs, list) else ()):
            if isinstance(item, dict):
                yield f"outputs[{index}].", item


def expect_fits_schema(reply: Reply, requirement: str) -> None:
    """Expect that an answer's JSON fits its schema wherever that decides the requirement."""
    expect(reply, "OIP-ANSWER").answered()
    document = reply.answer.document
    if document is None and not reply.answer.find_by_kind("json-not-object"):
        raise UnmetError(
            "JSON", "; ".join(finding.described for finding in reply.answer.findings), reply, requirement="OIP-JSON"
        )
    for fault in find_faults("response", document if document is not None else []):
        if _decides(fault) == requirement:
            expected = f"{fault.place} in the answer to be {fault.expected}"
            raise UnmetError(expected, fault.actual, reply, requirement=requirement)


def _decides(fault: Fault) -> str | None:
    """Return the requirement that a fault of an answer breaks; None where that belongs to another area."""
    place = re.sub(r"\[[0-9]+\]", "[]", fault.place)
    if place == "outputs[].datatype" and isinstance(fault.value, str):
        return None  # no datatype of the protocol: judged where the right one is known
    if place == "outputs[]" and fault.rule == "oneOf":
        return None  # data or binary_data_size: judged by size
    return _DECIDES.get(place)


_DECIDES = {
    "model_name": "OIP-MODEL-NAME",
    "model_version": "OIP-MODEL-VERSION",
    "outputs[].shape[]": "OIP-SHAPE",
    **dict.fromkeys(("the document", "outputs", "outputs[]"), "OIP-OUTPUT-MEMBERS"),
    **dict.fromkeys(("outputs[].name", "outputs[].shape", "outputs[].datatype"), "OIP-OUTPUT-MEMBERS"),
}


# --- metadata ---------------------------------------------------------------------------------------------------------


def expect_document(reply: Reply, schema: str, members: tuple[str, ...]) -> dict[str, Any]:
    """Return the JSON object of an answer, which fits the schema at least in these members."""
    expect(reply).answered()
    kind = schema.replace("_", " ")
    document, findings = parse_json(reply.body)
    if not isinstance(document, dict):
        raise UnmetError(
            f"a JSON object as {kind}", findings[0].described if findings else format_value(document), reply
        )
    for fault in find_faults(schema, document):
        if fault.path[0] in members:
            raise UnmetError(f"{fault.place} in {kind} to be {fault.expected}", fault.actual, reply)
    return document


# Statuses of a path that the server does not know, or not with this method.
ABSENT_STATUSES = (404, 405, 501)


def expect_health(target: Target, model: Model, of: str) -> Reply:
    """Expect a success of what says that a server is `live` or a `model` ready, where that model answers requests.

    Whether the server is `ready` is its own affair, since another model may not be.
    """
    reply = target.get(f"{model.path}/ready" if of == "model" else f"/v2/health/{of}")
    if of != "ready" or reply.status is None or reply.status in ABSENT_STATUSES:
        expect(reply).answered()
    return reply


def list_versions(target: Target, model: Model) -> list[str]:
    """Return the versions that a model's metadata list; none where they do not."""
    listed = (target.get(replace(model, version="").path).answer.document or {}).get("versions")
    return [version for version in listed if isinstance(version, str)] if isinstance(listed, list) else []


def fits(declared: tuple[int, ...], shape: list[Any]) -> bool:
    """Say whether a shape in metadata is the declared one, or leaves dimensions open."""
    return len(declared) == len(shape) and all(b in (a, -1) for a, b in zip(declared, shape, strict=True))
