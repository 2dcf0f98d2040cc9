"""How an answer with binary data is put together: its frame, the form of each output, and the length of its body."""

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

# requirement -> the findings that show it unmet
FRAMING: Mapping[str, tuple[str, ...]] = {
    "BIN-SIZE-O": ("size-not-integer", "size-negative", "size-beyond-body", "size-mismatch"),
    "BIN-BODY-O": ("trailing-bytes",),
    "BIN-HEADER-O": ("inference-header-missing",),
    "BIN-HEADER-IN-BYTES": WRONG_LENGTH,
    "BIN-SIZE-WITHOUT-DATA": ("data-and-size",),  # advice, behind what fails
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


# --- the length of the whole body -------------------------------------------------------------------------------------


def is_cut(reply: Reply) -> bool:
    """Whether the head of a good answer came but not its whole body, which is a matter of its length alone."""
    return reply.exchange.failure is not None and reply.status is not None and 200 <= reply.status < 300


def expect_length_fits(reply: Reply, least: int) -> None:
    """Expect that Content-Length, where it measures an answer, is the length of the whole body, `least` bytes or more."""
    if _ends_without_length(reply):
        return
    if len(reply.body) < least:  # a length that is too small cuts the body, one that is too large breaks the reading
        raise expect(reply).unmet(f"Content-Length: {least}", escape_text(reply.header("Content-Length") or "", 60))
    expect(reply).answered()


def expect_length_given(reply: Reply) -> None:
    """Expect that an answer states its length: RFC 9112, 6.3 has two other ends for a body, and this is advice."""
    if how := _ends_without_length(reply):
        raise expect(reply).unmet(f"Content-Length: {len(reply.body)}", how)


def _ends_without_length(reply: Reply) -> str:
    """Return what ends the body of an answer, where that is no length; empty where it is one."""
    if "chunked" in (reply.header("Transfer-Encoding") or "").lower():
        return "Transfer-Encoding: chunked"
    return "" if reply.header("Content-Length") else "an answer that ends with its connection"


# --- forms of outputs -------------------------------------------------------------------------------------------------

UNLISTED = "unlisted"


# (binary_data_output, how the output is listed: unlisted, or the value of its binary_data)
# -> (the form in which it comes, the requirement that decides); the contested cell has no entry.
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
