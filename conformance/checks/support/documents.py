"""Validate inference answers and metadata against their schemas; expect answers from health endpoints.

Several requirements apply to one document: the location of a fault decides which requirement is unmet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.checks.support.controls import expect_answered_or_block
from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError
from conformance.roles.model import Model, RequestBuilder
from conformance.spec import data_files
from conformance.spec.check import Only, Row
from conformance.spec.extensions import BINARY, GRPC, HTTP
from conformance.spec.fit import ANY, JSON
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.broken_request import is_broken
from conformance.transport.exchange import Reply
from conformance.transport.target import BUSY_PAUSES_S
from conformance.wire.finding import format_value
from conformance.wire.json_text import parse_json
from conformance.wire.request import Message, RequestedOutput

# --- schemas ----------------------------------------------------------------------------------------------------------
# The checks decide by the location of a fault which requirement it breaks: several requirements apply to one document.

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

T = TypeVar("T")
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One violation of a schema in a document.

    Attributes:
        path: member names and array indices from the root of the document: ("outputs", 0, "name"). For a missing
            member, the path includes its name.
        rule: the keyword of the schema that is violated: "type", "required", "enum".
        expected: what the schema requires at this path.
        value: the value found at this path, None for a missing member.
    """

    path: Path
    rule: str
    expected: str
    value: Any

    @property
    def formatted_path(self) -> str:
        """The path in readable form: outputs[0].name."""
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path]
        return "".join(steps).lstrip(".") or "the document"

    @property
    def actual(self) -> str:
        """The value found at this path, as text for messages."""
        return "nothing" if self.rule == "required" else format_value(self.value)


def find_faults(schema: str, document: Any) -> list[Fault]:
    """Return the faults of a document, sorted by path; an empty list if it is valid.

    Args:
        schema: the name of the schema file without `.schema.json`.
        document: a parsed JSON value.

    Raises:
        FileNotFoundError: there is no such schema.
    """
    found: list[Fault] = []
    for error in _load_validator(schema).iter_errors(document):
        found += [fault for fault in _list_faults(error) if fault not in found]
    return sorted(found, key=lambda fault: [str(step) for step in fault.path])


@cache
def _load_validator(schema: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # slow to import, and needed by few checks

    return Draft202012Validator(json.loads((data_files.find_folder("schemas") / f"{schema}.schema.json").read_bytes()))


def _list_faults(error: ValidationError) -> Iterator[Fault]:
    path = tuple(error.absolute_path)
    if error.validator == "required" and isinstance(error.validator_value, list):
        for name in error.validator_value:
            if isinstance(error.instance, dict) and name not in error.instance:
                yield Fault((*path, name), "required", "there", None)
        return
    rule = str(error.validator)
    yield Fault(path, rule, _describe_rule(rule, error.validator_value), error.instance)


def _describe_rule(rule: str, value: Any) -> str:
    """Describe what a keyword of the schema requires."""
    if rule == "type":
        return " or ".join(_TYPES[name] for name in ([value] if isinstance(value, str) else value))
    return f"{rule} {json.dumps(value)[:120]}"


_TYPES = {
    **{name: f"a {name}" for name in ("string", "number", "boolean")},
    **{name: f"an {name}" for name in ("array", "integer", "object")},
    "null": "null",
}


# --- answers ----------------------------------------------------------------------------------------------------------
# Several requirements apply to one document: the location of a fault decides which of them is unmet.

_MULTI_MIXED = (RequestedOutput("OUT_BYTES", True), RequestedOutput("OUT_INT64"), RequestedOutput("OUT_FP32", True))


def make_requester(**arguments: Any) -> RequestBuilder:
    """Return a function that builds a JSON request for a model, with these arguments of `Model.request`."""
    return lambda model: model.request(send="json", **arguments)


def _make_raw_request(model: Model) -> Message:
    return model.raw(bytes(model.sample(batch=1)[0].to_bytes()))


_FORM = Only(HTTP, "calls cannot ask for the form of an output")
_CONTENTS = Only(GRPC, "over HTTP the rows with binary data say the same of models without a JSON form")

ANSWERS: tuple[Row, ...] = (
    Row("json", (make_requester(),), role="multi", fit=JSON),
    Row("json-of-one-output", (make_requester(outputs=["OUT_BOOL"]),), role="multi"),
    Row("json-with-id", (make_requester(request_id="42"),), role="multi"),
    Row("json-of-a-batch", (make_requester(),), role="batching"),
    Row("json-of-rank-3", (make_requester(),), role="rank3"),
    Row("json-without-elements", (lambda m: m.request([m.tensor([0, 0])], send="json"),), role="emit"),
    Row("raw-contents", (lambda m: m.request(),), role="multi", fit=ANY, only=_CONTENTS),
    Row("raw-contents-of-strings", (lambda m: m.request(),), role="identity_bytes", only=_CONTENTS),
    Row("binary", (make_requester(want="binary"),), role="multi", needs=BINARY, fit=JSON, only=_FORM),
    Row("binary-by-default", (make_requester(binary_data_output=True),), role="multi", needs=BINARY, only=_FORM),
    Row(
        "binary-without-elements",
        (lambda m: m.request([m.tensor([0, 2])], send="json", want="binary"),),
        role="emit",
        needs=BINARY,
        only=_FORM,
    ),
    Row("mixed", (make_requester(outputs=_MULTI_MIXED),), role="multi", needs=BINARY, only=_FORM),
    Row("raw", (_make_raw_request,), role="raw_two_outputs", needs=("raw",)),
    Row(
        "classes",
        (make_requester(outputs=[RequestedOutput("SCORES", classification=2)]),),
        role="scores",
        needs=("classification",),
    ),
)


def expect_only_listed_outputs(reply: Reply, listed: Sequence[str]) -> None:
    """Expect the answer to contain each listed output once, and no other output (OIP-OUTPUTS-ONLY).

    Callers check first that no listed output is missing.
    """
    found = list(reply.answer.names())
    if sorted(found) != sorted(listed):
        wanted, actual = (f"outputs {format_value(list(names))}" for names in (listed, found))
        raise UnmetError(f"{wanted} and no other outputs", actual, reply, requirement="OIP-OUTPUTS-ONLY")


def expect_no_null(reply: Reply, document: Any) -> None:
    """Expect an answer or metadata to omit an optional member that has no value, instead of setting it to null."""
    for prefix, item in _list_document_parts(document):
        for name in _OPTIONAL:
            if name in item and item[name] is None:
                raise UnmetError(
                    f"{prefix}{name} to be left out, or to have a value", "null", reply, requirement="OIP-NULL"
                )
        parameters = item.get("parameters")
        for name, value in parameters.items() if isinstance(parameters, dict) else ():
            if value is None:
                path = f"{prefix}parameters.{escape_text(name, 60)}"
                raise UnmetError(f"{path} to be left out, or to have a value", "null", reply, requirement="OIP-NULL")


# Optional members of answers, of their outputs and of metadata.
_OPTIONAL = ("id", "model_version", "versions", "parameters", "data")


def _list_document_parts(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the document and its outputs, each after the prefix of its members' paths, such as `outputs[0].`."""
    if isinstance(document, dict):
        yield "", document
        outputs = document.get("outputs")
        for index, item in enumerate(outputs if isinstance(outputs, list) else ()):
            if isinstance(item, dict):
                yield f"outputs[{index}].", item


def expect_fits_schema(reply: Reply, requirement: str) -> None:
    """Expect an answer to have no schema fault that breaks this requirement.

    Raises:
        BlockedError: a call is not answered; the checks of each form of contents judge that.
    """
    require_answered_call(reply)
    expect(reply, "OIP-ANSWER").answered()
    document = reply.answer.document
    if document is None and not reply.answer.find_by_kind("json-not-object"):
        findings = "; ".join(finding.described for finding in reply.answer.findings)
        raise UnmetError("JSON", findings, reply, requirement=attribution.attribute_json_text(reply) or "OIP-JSON")
    for fault in find_faults("response", document if document is not None else []):
        if _attribute_fault(fault) == requirement:
            expected = f"{fault.formatted_path} in the answer to be {fault.expected}"
            raise UnmetError(expected, fault.actual, reply, requirement=requirement)


def _attribute_fault(fault: Fault) -> str | None:
    """Return the requirement that a fault of an answer breaks; None if other checks judge the fault."""
    if "parameters" in (fault.path[0], *fault.path[2:3]):
        return None if fault.path[-1] == "binary_data_size" else "OIP-PARAMETERS-O"
    path = re.sub(r"\[[0-9]+\]", "[]", fault.formatted_path)
    if path == "outputs[].datatype" and isinstance(fault.value, str):
        return None  # an unknown datatype: judged by checks that know the expected one
    if path == "outputs[]" and fault.rule == "oneOf":
        return None  # `data` or `binary_data_size`: judged by the area `sizes`
    return _REQUIREMENTS.get(path)


_REQUIREMENTS = {
    "model_name": "OIP-MODEL-NAME",
    "model_version": "OIP-MODEL-VERSION",
    "outputs[].shape[]": "OIP-SHAPE",
    **dict.fromkeys(("the document", "outputs", "outputs[]"), "OIP-OUTPUT-MEMBERS"),
    **dict.fromkeys(("outputs[].name", "outputs[].shape", "outputs[].datatype"), "OIP-OUTPUT-MEMBERS"),
}


# --- metadata ---------------------------------------------------------------------------------------------------------


def expect_document(reply: Reply, schema: str, members: tuple[str, ...]) -> dict[str, Any]:
    """Expect the JSON of an answer to be an object in which the listed members fit the schema; return the object."""
    kind = schema.replace("_", " ")
    document, findings = parse_json(reply.body)
    if not isinstance(document, dict):
        raise UnmetError(
            f"a JSON object with {kind}", findings[0].described if findings else format_value(document), reply
        )
    for fault in find_faults(schema, document):
        if fault.path[0] in members:
            raise UnmetError(f"{fault.formatted_path} in {kind} to be {fault.expected}", fault.actual, reply)
    return document


def expect_json(reply: Reply, schema: Mapping[str, Any], requirement: str | None = None) -> Any:
    """Expect an answer with JSON that is valid under a JSON schema; return the JSON value."""
    from jsonschema import Draft202012Validator  # slow to import, and needed by few checks

    expect(reply, requirement).answered()
    document, findings = parse_json(reply.body)
    if document is None and findings:
        raise UnmetError("JSON", findings[0].described, reply, requirement=requirement)
    for error in Draft202012Validator(schema).iter_errors(document):
        for fault in _list_faults(error):
            raise UnmetError(
                f"{fault.formatted_path} to be {fault.expected}", fault.actual, reply, requirement=requirement
            )
    return document


def expect_extension_listed(target: AnyTarget, name: str) -> None:
    """Expect that server metadata list an extension."""
    reply = target.describe()
    expect_described(reply)
    listed = (reply.answer.document or {}).get("extensions")
    if not isinstance(listed, list) or name not in listed:
        raise UnmetError(f"{name} among the extensions in server metadata", f"extensions {format_value(listed)}", reply)


# Statuses of a server that does not know a path, or does not support the method.
ABSENT_STATUSES = (404, 405, 501)
# Statuses for a client that may not use an endpoint; over gRPC PERMISSION_DENIED and UNAUTHENTICATED stand for them. No
# document forbids that, and one describes it ("HTTP/REST and GRPC Protocol", "Restricted Protocols").
_CREDENTIALS_STATUSES = (401, 403, 407)


def require_permission(reply: Reply, subject: str) -> None:
    """Block the row if the server refuses this client, not the request."""
    if reply.status in _CREDENTIALS_STATUSES:
        outcome = escape_text(reply.outcome())
        raise BlockedError(f"{subject} is not served to this client: {outcome}; --target-header sends credentials")


def expect_described(reply: Reply, requirement: str = "OIP-ENDPOINTS") -> None:
    """Expect an answer of any form from an endpoint; without one, the endpoint is what lacks, not a member.

    Raises:
        BlockedError: the endpoint is not for this client.
    """
    require_permission(reply, reply.exchange.message.path)
    expect(reply, requirement).answered()
    expect_answered_call(reply)


# Members of the answers to health requests; a body may lack them.
_HEALTH_TYPES: Mapping[str, type] = {"name": str, "live": bool, "ready": bool}


def expect_health(target: AnyTarget, model: Model, subject: str) -> Reply:
    """Ask for the health of a subject (`AnyTarget.ask_health`), expect that it is reported, and return the reply.

    The server may report that it is not ready, since another model may not be; but an internal error reports nothing.
    """
    reply = target.ask_health(subject, model)
    if subject != "ready":
        require_permission(reply, reply.exchange.message.path)
    document = reply.answer.document or {}
    denied = [name for name in ("live", "ready") if document.get(name) is False]
    if subject != "ready" or reply.status in ABSENT_STATUSES or (is_broken(reply) and not denied):
        expect(reply).answered()
    if subject != "ready" and denied:
        wanted = f"no `{denied[0]}: false` while the server answers inference requests"
        raise UnmetError(wanted, reply.outcome(), reply, requirement="OIP-HEALTH")
    for name, kind in _HEALTH_TYPES.items() if reply.succeeded else ():
        if (found := document.get(name)) is not None and not isinstance(found, kind):
            wanted = f"`{name}` to be {'a string' if kind is str else 'true or false'}"
            raise UnmetError(wanted, format_value(found), reply, requirement="OIP-HEALTH")
    return reply


def require_answered_call(reply: Reply) -> None:
    """Block the row if a call over gRPC is not answered; the checks of plain calls and of contents judge that."""
    if reply.is_over_grpc:
        expect_answered_or_block(reply)


def expect_answered_call(reply: Reply) -> None:
    """Expect an answer; over gRPC, expect the response message of the method."""
    expect(reply).answered()
    if reply.is_over_grpc and reply.answer.document is None:
        name = f"{reply.exchange.message.path.rpartition('/')[2]}Response"
        raise UnmetError(f"a {name}", f"{len(reply.body)} bytes that are no {name}", reply)


def expect_while_serving(target: AnyTarget, model: Model, attempt: Callable[[], T]) -> T:
    """Return the result of an attempt that must succeed while the model answers inference requests.

    A model may be loaded just now, so a failed attempt is repeated after pauses, each time behind an inference request.

    Raises:
        BlockedError: the model answers no plain request.
    """
    message = target.message(target.build_good_requests(model)[0])
    for pause_s in (*BUSY_PAUSES_S, None):
        if not (plain := target.send(message, fresh=True)).succeeded:
            raise BlockedError(f"{model.name} answers no plain request: {escape_text(plain.outcome())}")
        try:
            return attempt()
        except UnmetError:
            if pause_s is None:
                raise
            target.pause(pause_s)
    raise AssertionError  # the last attempt returns or raises


def expect_requested_name(
    target: AnyTarget,
    reply: Reply,
    found: Any,
    model: Model,
    must: str,
    ask: Callable[[Model], Any],
    *,
    may_differ: bool = False,
) -> None:
    """Expect a document to name the model of the request, or else a name that no other model has.

    A model may have several names, so another one is advised against, unless it `may_differ`; but one name for two
    models breaks `must`. `ask` returns the name in the same document of another model.
    """
    if found == model.name:
        return
    other = None if model.is_deployed else target.model(find_other_role(model))
    if other is not None and other.name != model.name and ask(other) == found:
        actual = f"name {format_value(found)}, also of {format_value(other.name)}"
        raise UnmetError(f"the name of the model, {format_value(model.name)}", actual, reply, requirement=must)
    if not may_differ:
        expected, actual = f"name {format_value(model.name)}", f"name {format_value(found)}"
        raise UnmetError(expected, actual, reply, requirement="OIP-MODEL-NAME-ASKED")


def find_other_role(model: Model) -> str:
    """Return a role with another signature, whose model is certainly another one."""
    return "identity_int32" if model.role.name != "identity_int32" else "multi"


def list_versions(target: AnyTarget, model: Model) -> list[str]:
    """Return the versions that a model's metadata list; an empty list if there are none."""
    listed = (target.describe(replace(model, version="")).answer.document or {}).get("versions")
    return [version for version in listed if isinstance(version, str)] if isinstance(listed, list) else []


def is_declared_shape(declared: tuple[int, ...], shape: list[Any]) -> bool:
    """Say whether a shape in metadata equals the declared shape; -1 in metadata matches any size."""
    return len(declared) == len(shape) and all(b in (a, -1) for a, b in zip(declared, shape, strict=True))


def expect_listed_once(reply: Reply, names: Sequence[str]) -> None:
    """Expect that model metadata list no two inputs, or outputs, with the same name."""
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UnmetError(f"{format_value(repeated)} once in model metadata", f"{names.count(repeated)} times", reply)
