"""Answers of every kind, and what their JSON says of itself by the schema.

One document answers for several requirements: the place of a fault decides which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from conformance.checks.support.schemas import Fault, find_faults
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model, RequestBuilder
from conformance.spec.check import Row
from conformance.spec.extensions import BINARY
from conformance.spec.fit import JSON
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.wire.finding import format_value
from conformance.wire.request import Message, RequestedOutput

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
