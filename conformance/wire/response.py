"""Parses a response: the JSON, and each output as an array, with a finding for each fault.

`parse` never raises, and does not stop at a fault: it reads everything that is still readable, so that unrelated checks
do not fail. It reports each fault only once if possible. Memory is allocated only for actual data, not for declared
sizes. `null` for an optional member counts as absent; unknown members and parameters are ignored.

Sources: Triton, Binary Tensor Data Extension, "Binary Tensor Request"; KServe, Binary Tensor Data Extension; Open
Inference Protocol, REST, "Inference Response JSON Object".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from conformance.wire.finding import Finding
from conformance.wire.json_part import find_tensor_objects, locate_json
from conformance.wire.outputs import Output, read_tensors
from conformance.wire.request import INFERENCE_HEADER

__all__ = ["Answer", "Output", "parse"]

# Faults that make the tensor sizes unknown: with an inference header, surplus bytes are then no second fault.
_HIDE_SIZES: Final = frozenset(
    {
        *("json-not-object", "json-too-large", "outputs-missing", "outputs-invalid", "outputs-too-many"),
        *("output-invalid", "parameters-invalid"),
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A parsed response body.

    Attributes:
        document: the JSON object; None if absent or invalid.
        json_end: the offset at which the JSON ends and the first tensor begins.
        outputs: the outputs in the order of the JSON, without elements of `outputs` that are not objects.
        findings: all findings, including the findings of the outputs.
    """

    body: bytes
    document: dict[str, Any] | None
    json_end: int
    outputs: tuple[Output, ...]
    findings: tuple[Finding, ...]

    def output(self, name: str) -> Output | None:
        """Return the first output with this name, or None."""
        return next((output for output in self.outputs if output.name == name), None)

    def names(self) -> tuple[str, ...]:
        """Return the names of the outputs, in their order."""
        return tuple(output.name for output in self.outputs)

    def rename_outputs(self, names: Mapping[str, str]) -> Answer:
        """Return the answer with renamed outputs; `names` maps the server's names to the suite's names."""
        if not names:
            return self
        outputs = tuple(replace(output, name=names.get(output.name, output.name)) for output in self.outputs)
        return replace(self, outputs=outputs)

    def find_by_kind(self, *kinds: str) -> tuple[Finding, ...]:
        """Return the findings of these kinds."""
        return tuple(finding for finding in self.findings if finding.kind in kinds)


def parse(body: bytes, inference_header: str | None) -> Answer:
    """Parse a response body. Never raises.

    `inference_header` is the unchanged value of the header, None if absent.
    """
    end, parsed, header_findings = locate_json(body, inference_header)
    document, items, member_findings = find_tensor_objects(parsed)
    outputs, surplus_start = read_tensors(items, body, end)
    if document is not None and not any(output.binary for output in outputs):
        header_findings = [_limit_to_json(finding) for finding in header_findings]
    findings = [*header_findings, *parsed.findings, *member_findings]
    if inference_header is None and end < len(body) and any(output.binary for output in outputs):
        findings.append(
            Finding("inference-header-missing", INFERENCE_HEADER, None, f"{end}, where the JSON ends", "no such header")
        )
    for output in outputs:
        findings += output.findings
    hidden = inference_header is not None and _HIDE_SIZES.intersection(finding.kind for finding in findings)
    if surplus_start is not None and parsed.is_json and not hidden:
        findings.append(
            Finding(
                "trailing-bytes",
                "body",
                surplus_start,
                f"{surplus_start} bytes, where JSON and tensors end",
                f"{len(body)} bytes",
            )
        )
    return Answer(body, document, end, tuple(outputs), tuple(findings))


def _limit_to_json(finding: Finding) -> Finding:
    """Return a finding about an inference header of 0 as the milder kind for an answer without binary data."""
    return replace(finding, kind="inference-header-on-json") if finding.kind == "inference-header-zero" else finding
