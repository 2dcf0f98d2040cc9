"""The frame of any answer with binary data: what can be wrong with it, and which requirement that breaks."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.expect.expectation import expect
from conformance.transport.exchange import Reply

WRONG_LENGTH = (
    "inference-header-text",
    "inference-header-negative",
    "inference-header-zero",
    "inference-header-beyond-body",
    "inference-header-cuts-json",
    "inference-header-covers-binary",
)

# requirement -> the findings that show it unmet
FRAMING: Mapping[str, tuple[str, ...]] = {
    "BIN-SIZE-O": ("size-not-integer", "size-negative", "size-beyond-body", "size-mismatch"),
    "BIN-SIZE-WITHOUT-DATA": ("data-and-size",),
    "BIN-BODY-O": ("trailing-bytes",),
    "BIN-HEADER-O": ("inference-header-missing",),
    "BIN-HEADER-IN-BYTES": WRONG_LENGTH,
}


def expect_framed(reply: Reply) -> None:
    """Expect that nothing is wrong with the frame of an answer.

    A header of an answer without binary data, or a size of a JSON output, is a matter of BIN-HEADER-ON-JSON-O and BIN-DATA-WITHOUT-SIZE.
    """
    binary = [output for output in reply.answer.outputs if output.binary]
    both = any(finding.kind == "data-and-size" for output in binary for finding in output.findings)
    for requirement, kinds in FRAMING.items():
        if {"BIN-HEADER-IN-BYTES": bool(binary), "BIN-SIZE-WITHOUT-DATA": both}.get(requirement, True):
            expect(reply, requirement).free_of(*kinds)
