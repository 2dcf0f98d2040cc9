"""Attributes unreadable outputs to the base protocol, so that no other requirement is reported as unmet.

A check about binary data or classes also fails if the answer is not JSON, has other outputs than requested, or has an
output without a shape. The report then names the requirement of the base protocol that the answer violates.
"""

from __future__ import annotations

from typing import Any

from conformance.spec import ledger
from conformance.transport.broken_request import BrokenRequest
from conformance.transport.exchange import FailureKind, Reply
from conformance.wire import grpc_request
from conformance.wire.datatypes import DATATYPES
from conformance.wire.json_text import parse_json
from conformance.wire.outputs import Output
from conformance.wire.request import INFERENCE_HEADER, Message

# Codes of gRPC that say nothing about the request: no such method, an exception, a bug.
SERVER_FAULTS = ("UNIMPLEMENTED", "UNKNOWN", "INTERNAL")
# Findings of BYTES elements whose lengths lead beyond the tensor, or not to its end.
MISFRAMED = frozenset({"bytes-prefix-truncated", "bytes-past-end", "bytes-stray"})
# The requirement that an answer ends where its framing says.
LENGTH = "HTTP-LENGTH"


def to_grpc_requirement(requirement: str | None) -> str | None:
    """Return the id that a requirement has over gRPC, or the given id if there is no other; None stays None."""
    if requirement is None:
        return None
    return ledger.find_grpc_equivalent(requirement) or requirement


def attribute_missing_status(reply: Reply) -> str | None:
    """Return the requirement that a gRPC call without a final status violates; None for any other reply."""
    return "GRPC-STATUS" if reply.has_failed(FailureKind.STATUSLESS) else None


def attribute_missing_answer(reply: Reply) -> str:
    """Return the requirement that a live server violates if it does not answer a request, or not to the end.

    A server that ends the exchange without an answer fails to report an error. One that leaves it open stops answering.
    """
    if reply.exchange.failure is not None and reply.status is not None and not reply.is_over_grpc:
        return LENGTH
    if not reply.has_failed(FailureKind.CLOSED, FailureKind.BROKEN, FailureKind.STATUSLESS):
        return "OIP-ALIVE-LEGAL"
    return "GRPC-STATUS" if reply.is_over_grpc else "OIP-ERROR"


def attribute_broken_request(found: BrokenRequest) -> str:
    """Return the requirement that a server violates if it neither answers nor refuses an auxiliary request.

    The suite sends auxiliary requests outside of checks, during discovery for example.
    """
    return "OIP-ALIVE-LEGAL" if found.lost else attribute_missing_answer(found.reply)


def attribute_json_text(reply: Reply) -> str | None:
    """Return the requirement that an answer's JSON text violates, or None.

    Bytes after the JSON, in an answer without inference header and binary outputs, make the whole body invalid JSON. If
    the rest of the JSON comes after the end of the answer, Content-Length is wrong, and not the JSON.
    """
    answer = reply.answer
    json_alone = reply.header(INFERENCE_HEADER) is None and not any(output.binary for output in answer.outputs)
    kinds = ("json-invalid", "json-not-utf8", *(("trailing-bytes",) if json_alone else ()))
    if reply.exchange.surplus and answer.find_by_kind("json-invalid"):
        return LENGTH
    return "OIP-JSON" if answer.find_by_kind(*kinds) else None


def attribute_unreadable_output(reply: Reply, name: str) -> str | None:
    """Return the requirement whose violation makes an output unreadable; None if no such requirement is known."""
    answer = reply.answer
    output = answer.output(name)
    if reply.is_over_grpc:
        return _attribute_unreadable_grpc_output(reply, output)
    if (output is None or not output.binary) and (text := attribute_json_text(reply)):
        return text
    document = answer.document or {}
    if isinstance(document.get("error"), str) and "outputs" not in document:
        return "OIP-REFUSAL"  # the server reports an error, but not by the status
    if answer.find_by_kind("json-not-object", "outputs-missing", "outputs-invalid"):
        return "OIP-OUTPUT-MEMBERS"
    if output is None:
        return (
            "OIP-OUTPUT-MEMBERS"
            if answer.find_by_kind("output-invalid", "name-missing")
            else _attribute_missing_http_output(reply)
        )
    item: dict[str, Any] = (answer.document or {})["outputs"][output.index]
    if not isinstance(item.get("shape"), list) or output.datatype not in DATATYPES:
        return "OIP-OUTPUT-MEMBERS"
    if output.shape is None or any(finding.kind == "data-count" for finding in output.findings):
        return "OIP-SHAPE"
    return None


def _attribute_unreadable_grpc_output(reply: Reply, output: Output | None) -> str | None:
    """Return the requirement that an output violates over gRPC if it cannot be read; or None."""
    if output is None:
        return (
            "OIP-OUTPUT-MEMBERS"
            if reply.answer.document is None
            else attribute_missing_grpc_output(reply.exchange.message)
        )
    if output.datatype not in DATATYPES:
        return "OIP-OUTPUT-MEMBERS"
    kinds = {finding.kind for finding in output.findings}
    if kinds & MISFRAMED:
        return "GRPC-RAW-AS-TYPED"
    return "OIP-SHAPE" if output.shape is None or "data-count" in kinds else None


def attribute_missing_grpc_output(call: Message) -> str:
    """Return the requirement that a server violates if its answer to a gRPC call lacks an output.

    The requirement depends on whether the call lists the outputs that it requests.
    """
    request = grpc_request.parse_request(call)
    return "OIP-OUTPUTS-LISTED" if request is not None and request.outputs else "OIP-OUTPUTS-ALL"


def _attribute_missing_http_output(reply: Reply) -> str | None:
    """Return the requirement that a server violates if its answer over HTTP lacks an output.

    The requirement depends on whether the request is raw, lists outputs, or lists none. It is None if a request that is
    not raw has no JSON object.
    """
    message = reply.exchange.message
    if any(name.lower() == INFERENCE_HEADER.lower() and value == "0" for name, value in message.headers):
        return "RAW-OUTPUTS"
    request = parse_json(message.body[: message.json_length]).value
    if not isinstance(request, dict):
        return None
    return "OIP-OUTPUTS-LISTED" if request.get("outputs") else "OIP-OUTPUTS-ALL"
