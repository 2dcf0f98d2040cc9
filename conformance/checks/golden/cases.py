"""Replay the golden requests of `fixtures/` byte for byte, and compare each answer with the expectation of its case."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import partial
from math import prod
from typing import Any

from conformance.checks.support import golden_classes
from conformance.checks.support.controls import attribute_to_isolation, is_right_alone, is_written_right
from conformance.checks.support.documents import expect_only_listed_outputs
from conformance.checks.support.framing import TABLE, UNLISTED, expect_framed
from conformance.checks.support.golden_classes import expect_classes
from conformance.checks.support.refusals import Refusal
from conformance.expect import attribution
from conformance.expect.difference import are_outputs_reordered, find_difference
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import NotApplicableError, UnmetError, attribute_to, block_if
from conformance.roles.golden_requests import Case, ExpectedOutput, load_all
from conformance.roles.model import Model
from conformance.spec import ledger
from conformance.spec.check import Only, Row, check, rows
from conformance.spec.extensions import HTTP
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire import tensor
from conformance.wire.finding import format_value
from conformance.wire.request import ABSENT, INFERENCE_HEADER, SAME_NAMES, Message
from conformance.wire.tensor import Tensor

# --- expectations of cases --------------------------------------------------------------------------------------------
# A case lists its requirements, the most important first. But a fault in the answer may break another requirement:
# wrong values in a case about framing do not concern framing. So each kind of difference has its own rule.

WIDE_INTEGERS = ("INT64", "UINT64")
# Members of the inference request object (Open Inference Protocol, REST, "Inference Request JSON Object").
DEFINED_MEMBERS = {"id", "parameters", "inputs", "outputs"}
# The order in which members are usually written.
USUAL_ORDER = ("id", "name", "shape", "datatype", "parameters", "data", "inputs", "outputs")


def build_case_message(case: Case, model: Model) -> Message:
    """Return the request of a case, byte for byte, to the model that fills its role on the target.

    Raises NotApplicableError: the target uses other tensor names than those in the bytes.
    """
    if model.names != SAME_NAMES and case.json_length:
        raise NotApplicableError(f"the bytes of the request name tensors that have other names on {model.name}")
    path = model.infer_path if case.path == f"/v2/models/{case.role}/infer" else case.path
    headers = tuple((name, value) for name, value in case.headers.items() if name != "Content-Length")
    spans = tuple((part.name, part.datatype, part.offset, part.offset + part.size) for part in case.parts)
    return Message(
        path, headers, case.body, json_length=case.json_length, spans=spans, names=model.names.reversed_outputs
    )


def list_undefined_members(case: Case) -> set[str]:
    """Return the members of a case's request that the protocol does not define."""
    return _parse_document(case).keys() - DEFINED_MEMBERS


def build_message_without_undefined_members(case: Case, model: Model) -> Message:
    """Return the request of a case without members that the protocol does not define."""
    return build_case_message(case, model).with_json(
        _format_json(sort_members(_parse_document(case), kept_members=DEFINED_MEMBERS))
    )


def build_message_in_usual_spelling(case: Case, model: Model) -> Message | None:
    """Return the request of a case with the members of its JSON in the usual order and without blanks.

    Returns None if the JSON of the case is already written like this.
    """
    document = _parse_document(case)
    text = _format_json(sort_members(document))
    return (
        build_case_message(case, model).with_json(text) if document and text != case.body[: case.json_length] else None
    )


def sort_members(value: Any, kept_members: Collection[str] = ()) -> Any:
    """Sort the members of every object of a document in `USUAL_ORDER`.

    If `kept_members` is not empty, the outermost object keeps only these members.
    """
    if isinstance(value, list):
        return [sort_members(item) for item in value]
    if not isinstance(value, dict):
        return value
    names = sorted(value, key=lambda name: USUAL_ORDER.index(name) if name in USUAL_ORDER else -1)
    return {name: sort_members(value[name]) for name in names if not kept_members or name in kept_members}


def _format_json(document: Any) -> bytes:
    """Return a document as JSON without blanks."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def list_extensions(case: Case) -> tuple[str, ...]:
    """Return the extensions that a case needs."""
    needed = {ledger.get_requirement(identity).extension for identity in case.requirements}
    if case.parts and case.json_length:
        needed.add("binary_tensor_data")
    return tuple(sorted(needed - {"protocol"}))


def expect_case_answer(case: Case, model: Model, reply: Reply) -> None:
    """Expect the outputs that a case prescribes, as JSON or binary data, with its values, framing and id."""
    about = "CLS-PARAMETER" if any(output.classes for output in case.outputs) else "OIP-ANSWER"
    expect(reply, about if case.level == "MUST" else None).answered()
    if text := attribution.attribute_json_text(reply):
        reason = "; ".join(finding.described for finding in reply.answer.findings)
        raise UnmetError("JSON in UTF-8, and nothing behind it", reason, reply, requirement=text)
    _expect_all_outputs(case, reply)
    for output in case.outputs:
        _expect_output_encoding(case, reply, output)
        expect_output(case, model, reply, output)
    expect_framed(reply)
    header = reply.header(INFERENCE_HEADER)
    if case.inference_header == "absent_or_body_length" and header not in (None, str(len(reply.body))):
        raise UnmetError(
            f"no inference header, or {len(reply.body)}",
            escape_text(str(header), 60),
            reply,
            requirement="BIN-HEADER-ON-JSON-O",
        )
    found = (reply.answer.document or {}).get("id")
    if case.id is not None and found != case.id:
        raise UnmetError(f"id {format_value(case.id)}", f"id {format_value(found)}", reply, requirement="OIP-ID")
    if "outputs" in _parse_document(case):
        expect_only_listed_outputs(reply, [output.name for output in case.outputs])


def describe_answer(reply: Reply) -> str:
    """Describe an answer that is not judged: a refusal, or its JSON and binary outputs and the inference header."""
    if not reply.succeeded:
        return f"refused: {escape_text(reply.outcome(), 120)}"
    forms = sorted({"binary data" if output.binary else "JSON" for output in reply.answer.outputs})
    header = "no inference header" if reply.header(INFERENCE_HEADER) is None else "an inference header"
    return f"{' and '.join(forms)}, {header}"


def expect_output(case: Case, model: Model, reply: Reply, output: ExpectedOutput) -> None:
    """Expect an output of the answer to be the expected tensor, or to have the expected classes."""
    if output.classes is not None:
        expect_classes(model, reply, output)
        return
    right = _decode_output(model, output)
    found = find_difference(
        right, reply.answer.output(output.name), reply.body, through_json=_has_json_inputs(case) or None
    )
    if found:
        about = "OIP-ANSWER" if case.json_length else _attribute_raw_output(case, model, right, reply)
        tensors = [_decode_output(model, one) for one in case.outputs if one.classes is None]
        about = "BIN-ORDER-O" if are_outputs_reordered(tensors, reply) else about
        about = attribution.attribute_unreadable_output(reply, output.name) or about
        raise UnmetError(found.expected, found.actual, reply, requirement=about, offset=found.offset, tensor=right)


def _attribute_raw_output(case: Case, model: Model, right: Tensor, reply: Reply) -> str:
    """Return the requirement that a wrong output violates, if it is the answer to a raw request."""
    if "RAW-BYTES-BODY" in case.requirements:
        return "RAW-BYTES-BODY"  # advice: another interpretation of such a body gives another element
    output = reply.answer.output(right.name)
    if output is None or tuple(output.shape or ()) == right.shape:
        return "OIP-ANSWER"
    return "RAW-BATCH-OF-ONE" if model.role.batching else "RAW-ONE-VARIABLE"


def _decode_output(model: Model, output: ExpectedOutput) -> Tensor:
    array = tensor.decode(output.datatype, output.shape, output.binary or b"")
    return model.allow_rounding(Tensor(output.name, output.datatype, output.shape, array))


# --- outputs and their encodings --------------------------------------------------------------------------------------


def _parse_document(case: Case) -> dict[str, Any]:
    """Return the JSON document of a request; empty if there is none, or if it is not an object."""
    try:
        document = json.loads(case.body[: case.json_length])
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _expect_all_outputs(case: Case, reply: Reply) -> None:
    """Expect an answer to have every output that a case prescribes."""
    names, found = sorted(output.name for output in case.outputs), list(reply.answer.names())
    if missing := [name for name in names if name not in found]:
        requirement = attribution.attribute_unreadable_output(reply, missing[0])
        raise UnmetError(
            f"outputs {format_value(names)}", f"outputs {format_value(found)}", reply, requirement=requirement
        )


def _expect_output_encoding(case: Case, reply: Reply, output: ExpectedOutput) -> None:
    """Expect an output as JSON or as binary data, whichever the case prescribes."""
    if output.form == "either":
        return
    listed = {item["name"]: item.get("parameters", {}) for item in _parse_document(case).get("outputs", [])}
    default = _parse_document(case).get("parameters", {}).get("binary_data_output", ABSENT)
    own = listed[output.name].get("binary_data", ABSENT) if output.name in listed else UNLISTED
    found = reply.answer.output(output.name)
    if output.form == "json" and found and any(finding.kind == "data-and-size" for finding in found.findings):
        raise UnmetError(
            f"{output.name} with data and without binary_data_size",
            "data and binary_data_size",
            reply,
            requirement="BIN-DATA-WITHOUT-SIZE",
        )
    requirement = "RAW-OUTPUTS" if not case.json_length else TABLE[default, own][1]
    if output.classes is not None and output.form == "binary":
        requirement = "CLS-BINARY"
    expect(reply, requirement).forms({output.name: output.form})


def _has_json_inputs(case: Case) -> bool:
    """Say whether an input of a case is JSON."""
    return any("data" in item for item in _parse_document(case).get("inputs", []))


# --- the cases --------------------------------------------------------------------------------------------------------
# These requests are literal bytes, not generated by the suite. A row judges the requirements of its case; the functions
# above decide which one is unmet.

# Shapes whose product overflows can crash servers.
DANGEROUS = frozenset({"shape-product-2-to-the-64"})


def _list_rows(*, valid: bool) -> list[Row]:
    """Return a row for each valid or invalid case; the quick profile omits cases that no document shows."""
    return [
        Row(
            case.name,
            (case,),
            role=case.role,
            requirements=_list_requirements(case),
            needs=list_extensions(case),
            dangerous=case.name in DANGEROUS,
        )
        for case in load_all()
        if case.valid == valid
    ]


def _list_requirements(case: Case) -> tuple[str, ...]:
    """Return the requirements that a case judges."""
    more = ("OIP-ANSWER", "OIP-ISOLATION") if case.valid else ()
    return (
        *case.requirements,
        *more,
        *(("OIP-WRITTEN", "OIP-VALUE") if case.valid and case.json_length else ()),
        *(("OIP-MEMBERS",) if case.valid and list_undefined_members(case) else ()),
    )


@check("golden.valid-case-is-answered", only=Only(HTTP, "`grpc.golden-call-is-answered` has the golden bytes of calls"))
@rows(*_list_rows(valid=True))
def valid_case_is_answered(target: Target, model: Model, case: Case) -> str | None:
    """The server answers a golden request with the golden outputs."""
    reply = target.send(build_case_message(case, model))
    _expect_refused_in_usual_spelling(target, case, model, reply)
    if (reply.status or 0) >= 400 and list_undefined_members(case):
        without = target.send(build_message_without_undefined_members(case, model), fresh=True)
        _expect_answer_or_attribute_failure(target, case, model, without)
        raise UnmetError(
            "the answer to the same request without the members that the protocol does not define",
            escape_text(reply.outcome()),
            reply,
            requirement="OIP-MEMBERS",
        )
    if case.may_refuse and not reply.succeeded:
        expect(reply).refused()
    else:
        with block_if(
            lambda: _are_strings_written_wrong(target, case), "the server also writes a single BYTES output wrong"
        ):
            _expect_answer_or_attribute_failure(target, case, model, reply)
    return describe_answer(reply) if case.level == "OBSERVE" else None


def _expect_refused_in_usual_spelling(target: Target, case: Case, model: Model, reply: Reply) -> None:
    """Expect the server to refuse the same request in the usual spelling as well; otherwise report OIP-WRITTEN."""
    usual = build_message_in_usual_spelling(case, model) if (reply.status or 0) >= 400 and not case.may_refuse else None
    if usual and target.send(usual, fresh=True).succeeded:
        expected = "the answer to the same request with its JSON in the usual order and without blanks"
        raise UnmetError(expected, escape_text(reply.outcome()), reply, requirement="OIP-WRITTEN")


def _expect_answer_or_attribute_failure(target: Target, case: Case, model: Model, reply: Reply) -> None:
    """Expect the answer that a case prescribes; attribute a failure to the requirement that explains it."""
    try:
        expect_case_answer(case, model, reply)
    except UnmetError as unmet:
        golden_classes.attribute_unmet(target, case, model, unmet)
        if unmet.requirement == "OIP-ANSWER" and any(
            _is_misread_as_json(target, item) for item in _list_json_inputs(case)
        ):
            unmet.requirement = "OIP-VALUE"
        if unmet.requirement == "OIP-ANSWER" and reply.is_refusal:
            unmet.requirement = _find_refused_property(target, case, model) or unmet.requirement
        if unmet.requirement == "OIP-ANSWER":
            attribute_to_isolation(target, unmet, lambda found: expect_case_answer(case, model, found))
        raise


def _find_refused_property(target: Target, case: Case, model: Model) -> str | None:
    """Return the requirement on the property of a refused case without which the server answers; None if unknown."""
    document, message = _parse_document(case), build_case_message(case, model)
    spelling = next((name for name, _ in message.headers if name.lower() == INFERENCE_HEADER.lower()), INFERENCE_HEADER)
    if spelling != INFERENCE_HEADER:
        usual = message.with_header(INFERENCE_HEADER, message.header(spelling))
        return "BIN-HEADER-CASE" if target.send(usual, fresh=True).succeeded else None
    if wide := _list_wide_integers_in_json(case, model):
        small = _build_message_with_small_integers(case, model)
        is_cause = target.send(small, fresh=True).succeeded and any(_is_misread_as_json(target, one) for one in wide)
        return "OIP-NUMBER-EXACT" if is_cause else None
    flat = {**document, "inputs": list(map(_flatten_data, document.get("inputs", [])))}
    if document and flat != document:
        return "OIP-DATA" if target.send(message.with_json(_format_json(flat)), fresh=True).succeeded else None
    fixed, is_variable = target.model("raw_fixed"), min(model.role.inputs[0].shape, default=0) < 0
    if case.json_length or fixed is None or not is_variable or len(model.role.outputs) > 1:
        return None
    others = model.raw(bytes(len(case.body))), fixed.raw(bytes(fixed.sample(batch=1)[0].to_bytes()))
    answered = [target.send(message, fresh=True).succeeded for message in others]
    return "RAW-ONE-VARIABLE" if answered == [False, True] else None


def _list_wide_integers_in_json(case: Case, model: Model) -> list[Tensor]:
    """Return the integers that a double does not hold, and that are JSON in a request or in the answer to it."""
    outputs = [output for output in case.outputs if output.form == "json" and output.classes is None]
    tensors = [*_list_json_inputs(case), *(_decode_output(model, output) for output in outputs)]
    return [one for one in tensors if one.datatype in WIDE_INTEGERS and (abs(one.array.astype(object)) > 2**53).any()]


def _build_message_with_small_integers(case: Case, model: Model) -> Message:
    """Return the request of a case with zeros for all its 64-bit integers."""
    body = bytearray(case.body)
    for part in case.parts:
        if part.datatype in WIDE_INTEGERS:
            body[part.offset : part.offset + part.size] = bytes(part.size)
    document = _parse_document(case)
    inputs = [
        {**item, "data": [0] * prod(item["shape"])} if item["datatype"] in WIDE_INTEGERS and "data" in item else item
        for item in document["inputs"]
    ]
    message = build_case_message(case, model).with_body(bytes(body))
    return message.with_json(_format_json({**document, "inputs": inputs}))


def _flatten_data(item: dict[str, Any]) -> dict[str, Any]:
    """Return an input without nested arrays in its `data`."""
    data = item.get("data")
    while isinstance(data, list) and any(isinstance(part, list) for part in data):
        data = [element for part in data for element in (part if isinstance(part, list) else [part])]
    return {**item, "data": data} if "data" in item else item


def _list_json_inputs(case: Case) -> list[Tensor]:
    """Return the inputs of a case that are JSON."""
    binary = {part.name for part in case.parts}
    return [tensor for tensor in golden_classes.list_inputs(case) if tensor.name not in binary]


def _is_misread_as_json(target: Target, tensor: Tensor) -> bool:
    """Say whether the server returns a tensor wrong if the request contains no other tensor and no binary data."""
    return not is_right_alone(target, tensor, "neither")


def _are_strings_written_wrong(target: Target, case: Case) -> bool:
    """Say whether a raw BYTES case fails because the server writes BYTES outputs incorrectly."""
    return "RAW-BYTES-BODY" in case.requirements and not is_written_right(
        target, Tensor.from_values("INPUT", "BYTES", [case.body])
    )


# The tables of the area `raw` do not repeat these cases. Tables of requests with JSON do: they also reach models whose
# tensors have other names, in other roles and forms.
REFUSALS: tuple[Refusal, ...] = tuple(
    Refusal(case.name, case.requirements[0], case.role, partial(build_case_message, case), list_extensions(case))
    for case in load_all()
    if not case.valid and case.name not in DANGEROUS
)


@check("golden.invalid-case-is-refused", only=Only(HTTP, "`grpc.golden-call-is-refused` has the golden bytes of calls"))
@rows(*_list_rows(valid=False))
def invalid_case_is_refused(target: Target, model: Model, case: Case) -> None:
    """The server refuses a golden request with one fault, or answers with the correct values."""
    reply = target.send(build_case_message(case, model), fresh=True)
    if reply.succeeded:
        _expect_correct_values_despite_fault(case, model, reply)
    expect(reply).refused(case.name.replace("-", " "))
    expect_alive(target, model)


def _expect_correct_values_despite_fault(case: Case, model: Model, reply: Reply) -> None:
    """Expect correct tensors if the server answers a request that it should refuse."""
    for output in case.outputs:
        with attribute_to("OIP-REFUSAL" if "OIP-REFUSAL" in case.requirements else "OIP-ANSWER"):
            expect_output(case, model, reply, output)
