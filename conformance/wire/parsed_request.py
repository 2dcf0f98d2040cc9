"""Parses an HTTP inference request: the JSON, and each input as an array, with a finding for each fault.

As in `response`, `parse` never raises, reads everything readable, and reports each fault only once if possible. Memory
is allocated only for actual data, not for declared sizes. `null` for an optional member counts as absent.

Sources: Triton and KServe, Binary Tensor Data Extension; Triton, "Raw Binary Request"; Open Inference Protocol, REST,
"Inference Request JSON Object".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from conformance.wire.client_request import ClientRequest
from conformance.wire.codings import FAULTS as CODINGS
from conformance.wire.codings import DecodedBody, decode_body
from conformance.wire.finding import Finding, format_value
from conformance.wire.json_part import BLANKS, do_sizes_fill_body, find_tensor_objects, locate_json, parse_number
from conformance.wire.json_text import ParsedJson, parse_json, parse_json_prefix
from conformance.wire.orders import find_matching_order
from conformance.wire.outputs import Output, read_tensors
from conformance.wire.request import INFERENCE_HEADER, OCTET_STREAM

_SIZES: Final = frozenset({"size-mismatch", "size-beyond-body", "trailing-bytes", "size-negative", "size-missing"})
# Findings about elements, which are reliable only if the sizes are correct.
_ELEMENTS: Final = frozenset(
    {"bool-byte", "bytes-prefix-truncated", "bytes-past-end", "bytes-count", "bytes-stray", "order"}
)
_HEADERS: Final = frozenset(
    {
        *("inference-header-text", "inference-header-negative", "inference-header-zero"),
        *("inference-header-beyond-body", "inference-header-cuts-json", "inference-header-covers-binary"),
    }
)
# Faults that make the tensor sizes unknown.
_HIDE_SIZES: Final = frozenset(
    {"inputs-missing", "inputs-invalid", "inputs-too-many", "input-invalid", "parameters-invalid"}
)
# Beginnings of JSON, also after a byte order mark.
_JSON_BEGINS: Final = (b"{", b"[", b"\xef\xbb\xbf{", b"\xff\xfe{\x00", b"\xfe\xff\x00{")
# An input with one of these parameters has its tensor outside of the request.
_ELSEWHERE: Final = frozenset({"shared_memory_region"})


@dataclass(frozen=True, slots=True, eq=False)
class ParsedRequest:
    """A parsed request.

    Attributes:
        body: the body with content codings decoded; b"" if it cannot be decoded. Offsets of findings are offsets in
            this body.
        header: the first inference header, without surrounding blanks; None if absent.
        is_raw: whether this is a raw binary request, whose body is one tensor; `inputs` is then empty.
        is_coded: whether the request names a content coding in Content-Encoding.
        document: the JSON object; None if absent or invalid.
        json_end: the offset at which the JSON ends and the first tensor begins.
        inputs: the inputs in the order of the JSON, without elements of `inputs` that are not objects.
        findings: all findings, including the findings of the inputs.
    """

    received: ClientRequest
    body: bytes
    header: str | None = None
    is_raw: bool = False
    is_coded: bool = False
    document: dict[str, Any] | None = None
    json_end: int = 0
    inputs: tuple[Output, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def binary(self) -> tuple[Output, ...]:
        """The inputs that are binary data, not JSON."""
        return tuple(one for one in self.inputs if one.binary)

    @property
    def has_binary_data(self) -> bool:
        """Whether tensor bytes follow the JSON."""
        return bool(self.binary) and self.json_end < len(self.body)

    @property
    def has_coding_fault(self) -> bool:
        """Whether the body does not match the content codings in Content-Encoding."""
        return any(finding.kind in CODINGS for finding in self.findings)

    def items(self) -> dict[int, dict[str, Any]]:
        """Return the JSON objects of the inputs by index."""
        inputs = (self.document or {}).get("inputs")
        pairs = enumerate(inputs if isinstance(inputs, list) else ())
        return {index: item for index, item in pairs if isinstance(item, dict)}


@lru_cache(maxsize=4)  # the rules parse a request, and so does the comparison with what the caller wanted
def parse(received: ClientRequest) -> ParsedRequest:
    """Parse an inference request. Never raises."""
    values = received.values(INFERENCE_HEADER)
    header = values[0].strip(" \t") if values else None
    announced = received.header("Content-Encoding")
    if received.trouble:
        return ParsedRequest(received, b"", header, is_coded=announced is not None)
    is_zero = header is not None and header.strip("0") == "" and header != ""
    coded = decode_body(received.body, announced, is_text=not is_zero)
    if coded.body is None:
        return ParsedRequest(received, b"", header, is_coded=coded.is_announced, findings=coded.findings)
    body = coded.body
    if is_zero and not _is_request_in_json(body):
        return _build_raw_request(received, body, header, coded)
    if header in (None, str(len(body))) and _is_binary_only(received, body):
        actual = "no such header" if header is None else format_value(header)
        fault = Finding("raw-without-header", INFERENCE_HEADER, None, "0 before a raw binary body", actual)
        return _build_raw_request(received, body, header, coded, fault)
    return _parse_json_request(
        ParsedRequest(received, body, header, is_coded=coded.is_announced, findings=coded.findings)
    )


def _build_raw_request(
    received: ClientRequest, body: bytes, header: str | None, coded: DecodedBody, *faults: Finding
) -> ParsedRequest:
    findings = (*coded.findings, *faults)
    return ParsedRequest(received, body, header, is_raw=True, is_coded=coded.is_announced, findings=findings)


def _is_request_in_json(body: bytes) -> bool:
    """Return whether a body with an inference header of 0 is a JSON request instead of a raw tensor.

    The bytes of a raw tensor may happen to be JSON. So in a JSON request each input must have a name, a datatype and a
    shape, and the declared sizes must fill the rest of the body.
    """
    end = parse_json_prefix(body)
    if end is None:
        return False
    document, items, _ = find_tensor_objects(parse_json(body[:end]), "inputs")
    if document is None or not items or not all({"name", "datatype", "shape"} <= set(item) for item in items.values()):
        return False
    return not body[end:].strip(BLANKS) or do_sizes_fill_body(body, end, end, "inputs")


def _is_binary_only(received: ClientRequest, body: bytes) -> bool:
    """Return whether a body has the content type of binary data, and does not begin like JSON in any encoding."""
    content_type = (received.header("Content-Type") or "").partition(";")[0].strip().lower()
    return content_type == OCTET_STREAM and bool(body) and not body.lstrip(BLANKS).startswith(_JSON_BEGINS)


def _parse_json_request(request: ParsedRequest) -> ParsedRequest:
    """Return the request with its JSON and its inputs parsed; the request is not a raw binary request."""
    body, header = request.body, request.header
    end, parsed, faults = _locate_json(body, header)
    document, items, member_findings = find_tensor_objects(parsed, "inputs")
    found = [*request.findings, *parsed.findings, *member_findings]
    if document is None:
        return replace(request, json_end=end, findings=tuple(found))
    inputs, surplus_start = _parse_tensors(items, body, end)
    one = replace(request, document=document, json_end=end, inputs=tuple(inputs))
    if header is None and one.has_binary_data:
        expected = f"{end}, where the JSON ends"
        faults = [Finding("inference-header-missing", INFERENCE_HEADER, None, expected, "no such header")]
    found = [*request.findings, *faults, *found[len(request.findings) :]]
    found += [finding for tensor in inputs for finding in tensor.findings]
    if surplus_start is not None:
        found += _report_surplus_bytes(one, surplus_start, {finding.kind for finding in found})
    return replace(one, findings=_drop_consequences(_drop_shared_memory_findings(found, one, items)))


def _locate_json(body: bytes, header: str | None) -> tuple[int, ParsedJson, list[Finding]]:
    """Return the end of the JSON, the parsed JSON, and the findings about the inference header.

    The header may include bytes after the JSON. If the declared sizes fill the body after the header's offset, the
    header is correct, and the JSON has the fault.
    """
    end, parsed, faults = locate_json(body, header, "inputs")
    if header is None or [fault.kind for fault in faults] != ["inference-header-covers-binary"]:
        return end, parsed, faults
    length = parse_number(header)
    if do_sizes_fill_body(body, end, length, "inputs") and not parse_json(body[:length]).is_json:
        return length, parse_json(body[:length]), []
    return end, parsed, faults


def _parse_tensors(items: Mapping[int, dict[str, Any]], body: bytes, end: int) -> tuple[list[Output], int | None]:
    """Return the parsed inputs, and the offset of the bytes after the last input; None if there are no such bytes.

    An input with both `data` and `binary_data_size` is JSON if only the sizes of the other inputs fill the body;
    otherwise it is binary.
    """
    inputs, surplus_start = read_tensors(items, body, end, "inputs")
    both = {one.index: finding for one in inputs for finding in one.findings if finding.kind == "data-and-size"}
    if both and _has_unplaced_data(inputs, surplus_start):
        as_json = {index: _remove_size(item) if index in both else item for index, item in items.items()}
        without, rest = read_tensors(as_json, body, end, "inputs")
        if not _has_unplaced_data(without, rest):
            return [one.with_findings(both[one.index]) if one.index in both else one for one in without], None
    swapped = find_matching_order(inputs, body, end) if surplus_start is None else None
    return (inputs if swapped is None else swapped), surplus_start


def _has_unplaced_data(inputs: list[Output], surplus_start: int | None) -> bool:
    return surplus_start is not None or any(finding.kind in _SIZES for one in inputs for finding in one.findings)


def _remove_size(item: dict[str, Any]) -> dict[str, Any]:
    parameters = item.get("parameters") or {}
    return {**item, "parameters": {name: value for name, value in parameters.items() if name != "binary_data_size"}}


def _report_surplus_bytes(request: ParsedRequest, surplus_start: int, kinds: set[str]) -> list[Finding]:
    """Return a finding about the bytes after the last tensor, or none if another fault explains the bytes."""
    actual = f"{len(request.body)} bytes"
    if _HIDE_SIZES & kinds:
        return []
    if "data-missing" in kinds:
        return [Finding("size-missing", "inputs", surplus_start, "binary_data_size or data", actual)]
    if request.header is None and not request.binary:
        return [Finding("json-invalid", "json", surplus_start, "the end of the JSON", actual)]
    return [
        Finding("trailing-bytes", "body", surplus_start, f"{surplus_start} bytes, where JSON and tensors end", actual)
    ]


def _drop_shared_memory_findings(
    findings: list[Finding], request: ParsedRequest, items: Mapping[int, dict[str, Any]]
) -> list[Finding]:
    """Return the findings without those about missing data of inputs in shared memory."""
    elsewhere = {
        f"inputs[{one.index}]"
        for one in request.inputs
        if isinstance(parameters := items[one.index].get("parameters"), dict) and _ELSEWHERE & set(parameters)
    }
    return [finding for finding in findings if finding.kind != "data-missing" or finding.field not in elsewhere]


def _drop_consequences(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return the findings without those that only follow from other findings."""
    kinds = {finding.kind for finding in findings}
    hidden: set[str] = set()
    if kinds & _HEADERS:
        hidden |= _SIZES | _ELEMENTS
    if kinds & _SIZES:
        hidden |= _ELEMENTS
    if "size-mismatch" in kinds:
        hidden |= {"size-beyond-body", "trailing-bytes"}
    if "size-missing" in kinds:
        hidden |= {"data-missing"}
    if "size-negative" in kinds or "size-not-integer" in kinds:
        hidden |= {"size-beyond-body", "trailing-bytes"}
    return tuple(finding for finding in findings if finding.kind not in hidden)
