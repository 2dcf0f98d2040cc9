"""A response taken apart: the JSON, and each output as an array, with everything that is wrong named.

`take_apart` never raises and never gives up early: what a fault leaves readable is read, because a check that is about
something else must not fail for it, and one fault gives one finding wherever that is known. No memory is taken for
what an answer claims, only for what it holds.

Sources: Triton, Binary Tensor Data Extension, "Binary Tensor Request"; KServe, Binary Tensor Data Extension; Open
Inference Protocol, REST, "Inference Response JSON Object". `null` for an optional member reads as absent; unknown
members and parameters are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from conformance.wire import json_structure
from conformance.wire.finding import Finding, shown
from conformance.wire.json_text import Parsed, parse
from conformance.wire.outputs import Output, cut, decoded, described, shown_member
from conformance.wire.request import INFERENCE_HEADER

__all__ = ["Answer", "Output", "take_apart"]

BLANKS: Final = b" \t\r\n"
MOST_OUTPUTS: Final = 1000
Reader = Callable[[int], Parsed]  # the JSON of the body up to a place
# Faults that hide how many bytes belong to tensors: with a header, bytes left over are then no second fault.
_HIDE_SIZES: Final = frozenset(
    {
        "json-not-object",
        "json-too-large",
        "outputs-missing",
        "outputs-too-many",
        "outputs-invalid",
        "output-invalid",
        "parameters-invalid",
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A response body taken apart.

    Attributes:
        body: as it came.
        document: the JSON object, None where there is none.
        json_end: where the JSON ends and the first tensor begins.
        outputs: in the order of the JSON; an element of `outputs` that is no object is left out.
        findings: all of them, those of the outputs included.
    """

    body: bytes
    document: dict[str, Any] | None
    json_end: int
    outputs: tuple[Output, ...]
    findings: tuple[Finding, ...]

    def output(self, name: str) -> Output | None:
        """Return the first output of that name, or None."""
        return next((output for output in self.outputs if output.name == name), None)

    def names(self) -> tuple[str, ...]:
        """Return the names of the outputs in their order."""
        return tuple(output.name for output in self.outputs)

    def renamed(self, names: Mapping[str, str]) -> Answer:
        """Return the answer with other names for its outputs: the server's name -> the one that is expected."""
        if not names:
            return self
        outputs = tuple(replace(output, name=names.get(output.name, output.name)) for output in self.outputs)
        return replace(self, outputs=outputs)

    def of_kind(self, *kinds: str) -> tuple[Finding, ...]:
        """Return the findings of these kinds."""
        return tuple(finding for finding in self.findings if finding.kind in kinds)


def take_apart(body: bytes, inference_header: str | None) -> Answer:
    """Take a response body apart; `inference_header` is the header's value as it came, None if there was none.

    Never raises.
    """
    end, parsed, header_findings = _find_json(body, inference_header)
    document, items, member_findings = _find_outputs(parsed)
    names: dict[str, int] = {}
    outputs = [described(index, item, names) for index, item in items.items()]
    outputs, leftover = cut(outputs, body, end)
    outputs = [decoded(output, items[output.index], body) for output in outputs]
    if document is not None and not any(output.binary for output in outputs):
        header_findings = [_of_json_alone(finding) for finding in header_findings]
    findings = [*header_findings, *parsed.findings, *member_findings]
    if inference_header is None and end < len(body) and any(output.binary for output in outputs):
        findings.append(
            Finding("inference-header-missing", INFERENCE_HEADER, None, f"{end}, where the JSON ends", "no such header")
        )
    for output in outputs:
        findings += output.findings
    hidden = inference_header is not None and _HIDE_SIZES.intersection(finding.kind for finding in findings)
    if leftover is not None and parsed.is_json and not hidden:
        findings.append(
            Finding(
                "trailing-bytes",
                "body",
                leftover,
                f"{leftover} bytes, where JSON and tensors end",
                f"{len(body)} bytes",
            )
        )
    return Answer(body, document, end, tuple(outputs), tuple(findings))


def _find_outputs(parsed: Parsed) -> tuple[dict[str, Any] | None, dict[int, dict[str, Any]], list[Finding]]:
    """Return the document, the objects among its outputs by their places, and what is wrong on the way to them."""
    document = parsed.value
    if not parsed.is_json:
        return None, {}, []
    if not isinstance(document, dict):
        return None, {}, [Finding("json-not-object", "json", 0, "an object", shown(document))]
    items = document.get("outputs")
    if not isinstance(items, list):
        kind = "outputs-missing" if items is None else "outputs-invalid"
        return document, {}, [Finding(kind, "outputs", None, "an array", shown_member(items))]
    wrong = []
    if len(items) > MOST_OUTPUTS:
        wrong.append(Finding("outputs-too-many", "outputs", None, f"at most {MOST_OUTPUTS}", str(len(items))))
    read = list(enumerate(items[:MOST_OUTPUTS]))
    wrong += [
        Finding("output-invalid", f"outputs[{index}]", None, "an object", shown(item))
        for index, item in read
        if not isinstance(item, dict)
    ]
    return document, {index: item for index, item in read if isinstance(item, dict)}, wrong


def _find_json(body: bytes, header: str | None) -> tuple[int, Parsed, list[Finding]]:
    """Return where the JSON ends, the JSON, and what is wrong with the header that there is."""
    read = cache(lambda end: parse(body[:end]))  # a text is parsed once, however often it is asked about
    own_end = json_structure.end_of_value(body)
    if own_end is not None and not read(own_end).is_json:
        own_end = None
    if header is None:
        return (*_by_itself(body, own_end, read), [])
    fault = _header_fault(header, len(body))
    if fault is not None:
        return (*_by_itself(body, own_end, read), [fault])
    length = int(header)
    if own_end is None or _is_as_covered(body, length, own_end, read):
        return length, read(length), []
    kind = "inference-header-cuts-json" if length < own_end else "inference-header-covers-binary"
    expected = f"{own_end}, where the JSON ends"
    return own_end, read(own_end), [Finding(kind, INFERENCE_HEADER, length, expected, str(length))]


def _is_as_covered(body: bytes, length: int, own_end: int, read: Reader) -> bool:
    """Whether what the header covers is JSON, and what follows its own end no binary data that the JSON speaks of."""
    if not read(length).is_json:
        return False
    return length == own_end or not _states_sizes_from(body, own_end, read)


def _header_fault(header: str, size: int) -> Finding | None:
    """Return what keeps the header from being a place in the body."""
    expected = f"a number from 1 to {size}"
    if re.fullmatch("-[0-9]+", header):
        return Finding("inference-header-negative", INFERENCE_HEADER, None, expected, shown(header))
    if not re.fullmatch("[0-9]+", header):
        return Finding("inference-header-text", INFERENCE_HEADER, None, "decimal digits", shown(header))
    digits = header.lstrip("0")
    if not digits:
        return Finding("inference-header-zero", INFERENCE_HEADER, None, expected, shown(header))
    if len(digits) > 18 or int(digits) > size:
        return Finding("inference-header-beyond-body", INFERENCE_HEADER, size, expected, shown(header))
    return None


def _of_json_alone(finding: Finding) -> Finding:
    """Return a finding about the header of an answer in JSON alone: 0 then says that there is nothing to divide."""
    return replace(finding, kind="inference-header-on-json") if finding.kind == "inference-header-zero" else finding


def _by_itself(body: bytes, own_end: int | None, read: Reader) -> tuple[int, Parsed]:
    """Return where the JSON ends by its own account, and the JSON.

    Blanks up to the body's end are part of it, unless its sizes say that they are binary data.
    """
    end = own_end
    if end is None or (not body[end:].strip(BLANKS) and not _states_sizes_from(body, end, read)):
        end = len(body)
    return end, read(end)


def _states_sizes_from(body: bytes, end: int, read: Reader) -> bool:
    """Whether the JSON that ends at `end` states sizes, and these fill what is left of the body."""
    if end == len(body):
        return False
    _, items, _ = _find_outputs(read(end))
    sizes = [described(index, item, {}).declared_size or 0 for index, item in items.items()]
    return 0 < sum(sizes) == len(body) - end
