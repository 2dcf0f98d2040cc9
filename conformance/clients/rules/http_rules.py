"""The rules for requests over HTTP, as one table. What a rule looks at is in the modules of their subjects."""

from __future__ import annotations

from typing import Final

from conformance.clients.rules import http_framing, members, tensors
from conformance.clients.rules.rule import Rule, judge_kinds
from conformance.wire.codings import FAULTS
from conformance.wire.parsed_request import ParsedRequest

_Rule = Rule[ParsedRequest]


def _has_json(request: ParsedRequest) -> bool:
    return request.document is not None


def _has_sizes(request: ParsedRequest) -> bool:
    return bool(request.binary)


RULES: Final[tuple[_Rule, ...]] = (
    _Rule("CLIENT-SENDS-POST", http_framing.judge_method),
    _Rule("CLIENT-SENDS-WHOLE", http_framing.judge_length),
    _Rule(
        "CLIENT-SENDS-CODING",
        judge_kinds(*FAULTS, where=lambda request: request.is_coded and bool(request.body)),
    ),
    _Rule("CLIENT-SENDS-CONTENT-TYPE", http_framing.judge_content_type),
    _Rule(
        "CLIENT-SENDS-JSON",
        judge_kinds("json-not-utf8", "json-invalid", "json-non-finite", "json-not-object", where=_has_json),
    ),
    _Rule("CLIENT-SENDS-MEMBER-ONCE", judge_kinds("json-duplicate-member", where=_has_json)),
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
    _Rule("CLIENT-SENDS-SIZE", judge_kinds("size-mismatch", "size-negative", where=_has_sizes)),
    _Rule("CLIENT-SENDS-SIZES-FILL", judge_kinds("size-beyond-body", "trailing-bytes", where=_has_sizes)),
    _Rule("CLIENT-SENDS-ORDER", judge_kinds("order", where=tensors.is_order_visible)),
    _Rule(
        "CLIENT-SENDS-BYTES",
        judge_kinds(
            *("bytes-prefix-truncated", "bytes-past-end", "bytes-count", "bytes-stray"),
            where=lambda request: tensors.has_content("BYTES", request.binary),
        ),
    ),
    _Rule(
        "CLIENT-SENDS-BOOL-JSON",
        judge_kinds("bool-number", where=lambda request: tensors.has_json("BOOL", request)),
    ),
    _Rule(
        "CLIENT-SENDS-BOOL",
        judge_kinds("bool-byte", where=lambda request: tensors.has_content("BOOL", request.binary)),
    ),
    _Rule(
        "CLIENT-SENDS-DATA-OR-SIZE",
        judge_kinds("data-and-size", where=lambda request: bool(request.inputs)),
    ),
    _Rule("CLIENT-SENDS-RAW", tensors.judge_raw),
)
