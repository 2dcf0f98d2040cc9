"""The rules for requests over HTTP, as one table. What a rule looks at is in the modules of their subjects."""

from __future__ import annotations

from typing import Final

from conformance.clients.rules import addressed, members, tensors
from conformance.clients.rules.rule import Rule, of_kinds
from conformance.wire.codings import FAULTS
from conformance.wire.taken_apart_request import TakenApart

_Rule = Rule[TakenApart]


def _has_json(request: TakenApart) -> bool:
    return request.document is not None


def _has_sizes(request: TakenApart) -> bool:
    return bool(request.binary)


RULES: Final[tuple[_Rule, ...]] = (
    _Rule("CLIENT-SENDS-POST", addressed.post),
    _Rule("CLIENT-SENDS-WHOLE", addressed.whole),
    _Rule(
        "CLIENT-SENDS-CODING",
        of_kinds(*FAULTS, where=lambda request: request.is_coded and bool(request.body)),
    ),
    _Rule("CLIENT-SENDS-CONTENT-TYPE", addressed.content_type),
    _Rule(
        "CLIENT-SENDS-JSON",
        of_kinds("json-not-utf8", "json-invalid", "json-non-finite", "json-not-object", where=_has_json),
    ),
    _Rule("CLIENT-SENDS-MEMBER-ONCE", of_kinds("json-duplicate-member", where=_has_json)),
    _Rule("CLIENT-SENDS-MEMBERS", members.members),
    _Rule("CLIENT-SENDS-PARAMETERS", members.parameters),
    _Rule("CLIENT-SENDS-PARAMETERS-PLACE", members.places),
    _Rule("CLIENT-SENDS-CLASSIFICATION", members.classification),
    _Rule("CLIENT-SENDS-CLASSIFICATION-PLACE", members.place_of_classification),
    _Rule("CLIENT-SENDS-DATA", tensors.data),
    _Rule("CLIENT-SENDS-ELEMENTS", tensors.elements),
    _Rule("CLIENT-SENDS-FP16", tensors.half_precision),
    _Rule("CLIENT-SENDS-HEADER", tensors.header_once),
    _Rule("CLIENT-SENDS-HEADER-LENGTH", tensors.header_length),
    _Rule("CLIENT-SENDS-HEADER-ON-JSON", tensors.header_on_json),
    _Rule("CLIENT-SENDS-SIZE", of_kinds("size-mismatch", "size-negative", where=_has_sizes)),
    _Rule("CLIENT-SENDS-SIZES-FILL", of_kinds("size-beyond-body", "trailing-bytes", where=_has_sizes)),
    _Rule("CLIENT-SENDS-ORDER", of_kinds("order", where=tensors.order_is_told)),
    _Rule(
        "CLIENT-SENDS-BYTES",
        of_kinds(
            *("bytes-prefix-truncated", "bytes-past-end", "bytes-count", "bytes-stray"),
            where=lambda request: tensors.has_content("BYTES", request.binary),
        ),
    ),
    _Rule(
        "CLIENT-SENDS-BOOL-JSON",
        of_kinds("bool-number", where=lambda request: tensors.has_json("BOOL", request)),
    ),
    _Rule(
        "CLIENT-SENDS-BOOL",
        of_kinds("bool-byte", where=lambda request: tensors.has_content("BOOL", request.binary)),
    ),
    _Rule(
        "CLIENT-SENDS-DATA-OR-SIZE",
        of_kinds("data-and-size", where=lambda request: bool(request.inputs)),
    ),
    _Rule("CLIENT-SENDS-RAW", tensors.raw),
)
