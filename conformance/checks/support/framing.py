"""Expectations on an answer with binary data: sizes, inference header, Content-Length and forms of outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.expect.expectation import expect
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.wire.request import ABSENT

WRONG_LENGTH = (
    "inference-header-text",
    "inference-header-negative",
    "inference-header-zero",
    "inference-header-beyond-body",
    "inference-header-cuts-json",
    "inference-header-covers-binary",
)

# requirement -> kinds of findings that break it
FRAMING: Mapping[str, tuple[str, ...]] = {
    "BIN-SIZE-O": ("size-not-integer", "size-negative", "size-beyond-body", "size-mismatch"),
    "BIN-BODY-O": ("trailing-bytes",),
    "BIN-HEADER-O": ("inference-header-missing",),
    "BIN-HEADER-IN-BYTES": WRONG_LENGTH,
    "BIN-SIZE-WITHOUT-DATA": ("data-and-size",),  # advice, so checked last
}


def expect_framed(reply: Reply, *, is_advised: bool = True) -> None:
    """Expect the sizes in the JSON, the binary data and the inference header of an answer to agree.

    With `is_advised`, also expect a binary output to have no `data`; this is advice. Other checks judge two related faults: an inference header on an answer without binary data (BIN-HEADER-ON-JSON-O),
    and a size on a JSON output (BIN-DATA-WITHOUT-SIZE).
    """
    binary = [output for output in reply.answer.outputs if output.binary]
    both = is_advised and any(finding.kind == "data-and-size" for output in binary for finding in output.findings)
    for requirement, kinds in FRAMING.items():
        if {"BIN-HEADER-IN-BYTES": bool(binary), "BIN-SIZE-WITHOUT-DATA": both}.get(requirement, True):
            expect(reply, requirement).free_of(*kinds)


# --- the length of the whole body -------------------------------------------------------------------------------------


def is_body_incomplete(reply: Reply) -> bool:
    """Say whether a success status was received, but reading the body failed; only checks of lengths judge this."""
    return reply.exchange.failure is not None and reply.status is not None and 200 <= reply.status < 300


def expect_length_fits(reply: Reply, min_bytes: int) -> None:
    """Expect Content-Length, if present, to equal the length of the body, and the body to have `min_bytes` or more."""
    if _describe_end_without_length(reply):
        return
    if len(reply.body) < min_bytes:  # too small a length truncates the body; too large a one fails the read
        raise expect(reply).unmet(f"Content-Length: {min_bytes}", escape_text(reply.header("Content-Length") or "", 60))
    expect(reply).answered()


def expect_length_given(reply: Reply) -> None:
    """Expect an answer to have Content-Length. This is advice: RFC 9112, 6.3 allows two other ways to end a body."""
    if ending := _describe_end_without_length(reply):
        raise expect(reply).unmet(f"Content-Length: {len(reply.body)}", ending)


def _describe_end_without_length(reply: Reply) -> str:
    """Describe how a body without Content-Length ends; return an empty string if the answer has that header."""
    if "chunked" in (reply.header("Transfer-Encoding") or "").lower():
        return "Transfer-Encoding: chunked"
    return "" if reply.header("Content-Length") else "an answer that ends when the connection closes"


# --- forms of outputs -------------------------------------------------------------------------------------------------

UNLISTED = "unlisted"


# (binary_data_output, how the output is listed: unlisted, or the value of its binary_data)
# -> (the form of the output, the requirement that specifies it); the contested cell has no entry.
TABLE: dict[tuple[Any, Any], tuple[str, str]] = {
    (ABSENT, UNLISTED): ("json", "BIN-ALL-UNSET"),
    (ABSENT, ABSENT): ("json", "BIN-OUTPUT-UNSET"),
    (ABSENT, False): ("json", "BIN-OUTPUT-FALSE"),
    (ABSENT, True): ("binary", "BIN-OUTPUT-TRUE"),
    (False, UNLISTED): ("json", "BIN-ALL-FALSE"),
    (False, ABSENT): ("json", "BIN-OUTPUT-UNSET"),
    (False, False): ("json", "BIN-OUTPUT-FALSE"),
    (False, True): ("binary", "BIN-TRUE-OVERRIDES"),
    (True, UNLISTED): ("binary", "BIN-ALL-TRUE"),
    (True, False): ("json", "BIN-FALSE-OVERRIDES"),
    (True, True): ("binary", "BIN-OUTPUT-TRUE"),
}
