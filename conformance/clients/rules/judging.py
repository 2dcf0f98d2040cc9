"""The rules for requests of clients: a table for each transport, and the function that applies them to a request.

The first docstring line of a function `judge_...` states a requirement. The function returns the faults by which a
request violates the requirement. `members` holds the HTTP rules for the JSON, `tensors` those for the tensor data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from conformance.clients.rules import members, tensors
from conformance.clients.rules.rule import Fault, Faults, Rule, RuleResults, apply_rules, report_findings
from conformance.clients.rules.tensors import has_decoded_elements
from conformance.roles.roles import BINARY_ONLY
from conformance.wire import parsed_call, parsed_request
from conformance.wire.client_request import ClientRequest, parse_path
from conformance.wire.codings import FAULTS
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import format_value
from conformance.wire.parsed_call import ParsedCall
from conformance.wire.parsed_request import ParsedRequest
from conformance.wire.request import JSON, OCTET_STREAM

# --- over HTTP --------------------------------------------------------------------------------------------------------

_PATHS: Final = "v2/models/NAME/infer or v2/models/NAME/versions/VERSION/infer"


def judge_method(request: ParsedRequest) -> Iterator[Fault]:
    """An inference request is a POST to the path of the model."""
    received = request.received
    if received.method != "POST":
        yield Fault("POST", format_value(received.method))
    if parse_path(received.path) is None:
        yield Fault(f"{_PATHS}, percent-encoded", format_value(received.path))


def judge_length(request: ParsedRequest) -> Iterator[Fault]:
    """Content-Length is the length of the whole body, and is absent from a request in chunks."""
    received = request.received
    if received.trouble:
        yield Fault("a complete HTTP request", format_value(received.trouble))
        return
    if received.is_chunked and received.values("Content-Length"):
        yield Fault("chunks without Content-Length", "chunks and Content-Length (RFC 9112, 6.2)")
    wanted = str(len(received.body))
    # A list of equal values counts as one value (RFC 9110, 8.6).
    stated = {part.strip() for value in received.values("Content-Length") for part in value.split(",")}
    wrong = sorted(
        value for value in stated if not re.fullmatch("[0-9]+", value) or value.lstrip("0") != wanted.lstrip("0")
    )
    if wrong:
        yield Fault(f"Content-Length {wanted}", format_value(wrong[0]))


def judge_content_type(request: ParsedRequest) -> Faults:
    """The Content-Type is the one in the documents' examples of requests of the same kind."""
    if not request.is_raw and request.document is None:
        return None
    given = request.received.header("Content-Type")
    wanted = _list_expected_types(request)
    if given is not None and given.partition(";")[0].strip().lower() in wanted:
        return ()
    return [Fault(" or ".join(wanted), "none" if given is None else format_value(given))]


def _list_expected_types(request: ParsedRequest) -> tuple[str, ...]:
    if request.is_raw or request.has_binary_data:
        return (OCTET_STREAM,)
    # With the inference header but no data, or with empty tensors: the examples allow both types.
    return (JSON, OCTET_STREAM) if request.header is not None or request.binary else (JSON,)


_Rule = Rule[ParsedRequest]


def _has_json(request: ParsedRequest) -> bool:
    return request.document is not None


def _has_binary_inputs(request: ParsedRequest) -> bool:
    return bool(request.binary)


RULES: Final[tuple[_Rule, ...]] = (
    _Rule("CLIENT-SENDS-POST", judge_method),
    _Rule("CLIENT-SENDS-WHOLE", judge_length),
    _Rule(
        "CLIENT-SENDS-CODING",
        report_findings(*FAULTS, applies_to=lambda request: request.is_coded and bool(request.body)),
    ),
    _Rule("CLIENT-SENDS-CONTENT-TYPE", judge_content_type),
    _Rule(
        "CLIENT-SENDS-JSON",
        report_findings("json-not-utf8", "json-invalid", "json-non-finite", "json-not-object", applies_to=_has_json),
    ),
    _Rule("CLIENT-SENDS-MEMBER-ONCE", report_findings("json-duplicate-member", applies_to=_has_json)),
    _Rule("CLIENT-SENDS-MEMBERS", members.judge_members),
    _Rule("CLIENT-SENDS-PARAMETERS", members.judge_parameters),
    _Rule("CLIENT-SENDS-PARAMETERS-PLACE", members.judge_parameter_places),
    _Rule("CLIENT-SENDS-CLASSIFICATION", members.judge_classification),
    _Rule("CLIENT-SENDS-CLASSIFICATION-PLACE", members.judge_classification_place),
    _Rule("CLIENT-SENDS-DATA", tensors.judge_data),
    _Rule("CLIENT-SENDS-ELEMENTS", tensors.judge_elements),
    _Rule("CLIENT-SENDS-FP16", tensors.judge_half_precision),
    _Rule("CLIENT-SENDS-HEADER", tensors.judge_header_once),
    _Rule("CLIENT-SENDS-HEADER-LENGTH", tensors.judge_header_length),
    _Rule("CLIENT-SENDS-HEADER-ON-JSON", tensors.judge_header_on_json),
    _Rule("CLIENT-SENDS-SIZE", report_findings("size-mismatch", "size-negative", applies_to=_has_binary_inputs)),
    _Rule(
        "CLIENT-SENDS-SIZES-FILL", report_findings("size-beyond-body", "trailing-bytes", applies_to=_has_binary_inputs)
    ),
    _Rule("CLIENT-SENDS-ORDER", report_findings("order", applies_to=tensors.has_visible_order)),
    _Rule(
        "CLIENT-SENDS-BYTES",
        report_findings(
            *("bytes-prefix-truncated", "bytes-past-end", "bytes-count", "bytes-stray"),
            applies_to=lambda request: tensors.has_decoded_elements("BYTES", request.binary),
        ),
    ),
    _Rule(
        "CLIENT-SENDS-BOOL-JSON",
        report_findings("bool-number", applies_to=lambda request: tensors.has_json_elements("BOOL", request)),
    ),
    _Rule(
        "CLIENT-SENDS-BOOL",
        report_findings("bool-byte", applies_to=lambda request: tensors.has_decoded_elements("BOOL", request.binary)),
    ),
    _Rule(
        "CLIENT-SENDS-DATA-OR-SIZE", report_findings("data-and-size", applies_to=lambda request: bool(request.inputs))
    ),
    _Rule("CLIENT-SENDS-RAW", tensors.judge_raw),
)


# --- over gRPC --------------------------------------------------------------------------------------------------------

_CLASSIFICATION: Final = "classification"
_OUTPUT: Final = "a requested output"


def _judge_model_name(call: ParsedCall) -> Faults:
    """The call names its model."""
    return () if call.message.model_name else [Fault("a model_name", "none")]


def _judge_members(call: ParsedCall) -> Iterator[Fault]:
    """Inputs have a name, a datatype of the protocol and non-negative dimensions; requested outputs have a name."""
    for index, entry in enumerate(call.message.inputs):
        if not entry.name:
            yield Fault("a name", f"inputs[{index}]: none")
        if entry.datatype not in DATATYPES:
            yield Fault("a datatype of the protocol", f"inputs[{index}].datatype: {format_value(entry.datatype)}")
        if any(size < 0 for size in entry.shape):
            yield Fault("dimensions of at least 0", f"inputs[{index}].shape: {format_value(list(entry.shape))}")
    for index, entry in enumerate(call.message.outputs):
        if not entry.name:
            yield Fault("a name", f"outputs[{index}]: none")


def _judge_classification(call: ParsedCall) -> Faults:
    """`classification`, in the parameters of a requested output, is a number of classes as int64_param."""
    asked = [
        (f"outputs[{index}]", entry.parameters[_CLASSIFICATION])
        for index, entry in enumerate(call.message.outputs)
        if _CLASSIFICATION in entry.parameters
    ]
    found = [
        Fault("an int64_param of at least 0", f"{field}: {_format_parameter(value)}")
        for field, value in asked
        if not _is_count(value)
    ]
    return found if asked else None


def _judge_classification_place(call: ParsedCall) -> Faults:
    """A number of classes is only in the parameters of a requested output, not of the request or an input."""
    message = call.message
    owners = [("request", message), *((f"inputs[{index}]", entry) for index, entry in enumerate(message.inputs))]
    found = [
        Fault(f"{_CLASSIFICATION} in the parameters of {_OUTPUT}", f"in the parameters of {field}")
        for field, owner in owners
        # A parameter of another type is a custom one of the server.
        if _CLASSIFICATION in owner.parameters and _is_count(owner.parameters[_CLASSIFICATION])
    ]
    return found if found or any(_CLASSIFICATION in entry.parameters for entry in message.outputs) else None


def _is_count(parameter: Any) -> bool:
    return parameter.WhichOneof("parameter_choice") == "int64_param" and int(parameter.int64_param) >= 0


def _format_parameter(parameter: Any) -> str:
    kind = parameter.WhichOneof("parameter_choice")
    return "no value" if kind is None else f"{kind} {format_value(getattr(parameter, kind))}"


def _has_typed_contents(call: ParsedCall) -> bool:
    return any(not one.binary and one.array is not None for one in call.inputs)


def _has_half_precision(call: ParsedCall) -> bool:
    return any(one.datatype in BINARY_ONLY and one.binary for one in call.inputs)


def _has_raw_numbers(call: ParsedCall) -> bool:
    return any(one.binary and one.native_size is not None for one in call.inputs)


_CallRule = Rule[ParsedCall]

CALL_RULES: Final[tuple[_CallRule, ...]] = (
    _CallRule("CLIENT-SENDS-POST/grpc", _judge_model_name),
    _CallRule("CLIENT-SENDS-MEMBERS/grpc", _judge_members),
    _CallRule("CLIENT-SENDS-CLASSIFICATION/grpc", _judge_classification),
    _CallRule("CLIENT-SENDS-CLASSIFICATION-PLACE/grpc", _judge_classification_place),
    _CallRule(
        "CLIENT-SENDS-DATA/grpc", report_findings("data-count", "field-of-another", applies_to=_has_typed_contents)
    ),
    _CallRule("CLIENT-SENDS-ELEMENTS/grpc", report_findings("data-value", applies_to=_has_typed_contents)),
    _CallRule("CLIENT-SENDS-FP16/grpc", report_findings("half-precision-typed", applies_to=_has_half_precision)),
    _CallRule("CLIENT-SENDS-SIZE/grpc", report_findings("size-mismatch", applies_to=_has_raw_numbers)),
    _CallRule(
        "CLIENT-SENDS-ORDER/grpc",
        report_findings("order", "entry-count", applies_to=lambda call: len(call.entries) > 1),
    ),
    _CallRule(
        "CLIENT-SENDS-BYTES/grpc",
        report_findings(
            *("bytes-prefix-truncated", "bytes-past-end", "bytes-count", "bytes-stray"),
            applies_to=lambda call: has_decoded_elements("BYTES", [one for one in call.inputs if one.binary]),
        ),
    ),
    _CallRule(
        "CLIENT-SENDS-BOOL/grpc",
        report_findings(
            "bool-byte",
            applies_to=lambda call: has_decoded_elements("BOOL", [one for one in call.inputs if one.binary]),
        ),
    ),
    _CallRule(
        "CLIENT-SENDS-ONE-FORM", report_findings("raw-and-typed", applies_to=lambda call: bool(call.message.inputs))
    ),
)


# --- a request --------------------------------------------------------------------------------------------------------

# Methods that browsers and proxies send on their own.
_NO_INFERENCE: Final = frozenset({"OPTIONS", "HEAD"})


@lru_cache(maxsize=256)  # clients send many requests again and again
def judge_request(received: ClientRequest) -> RuleResults:
    """Apply the rules to a request, and return the requirements that it meets and violates.

    No rule applies to a request that is not an inference request. Pure, never raises, linear in the request size.
    """
    if not received.is_inference or received.method in _NO_INFERENCE:
        return RuleResults()
    if received.is_over_grpc:
        call = parsed_call.parse(received)
        return RuleResults() if call is None else apply_rules(CALL_RULES, call)
    return apply_rules(RULES, parsed_request.parse(received))
