"""Clients that are wrong only where two properties of an inference or of its answer meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.honest.answer import Answer, announced_size
from tests.clients.honest.caller import CallerRequest, CallerResult, MalformedError
from tests.clients.honest.connection import Connection
from tests.clients.honest.grpc_answer import Output
from tests.clients.honest.protobuf import fields, signed, unpacked
from tests.clients.honest.request import Request
from tests.clients.honest.tensors import strings


def _is_chunked(found: Answer) -> bool:
    return found.header("transfer-encoding") is not None


@fault("answer.given", misses="CLIENT-READS-FRAMING")
def deflate_in_chunks_unread(original: Original, asked: CallerRequest, found: Answer) -> CallerResult:
    """An answer in the coding deflate that comes in chunks is an error to the caller."""
    if found.header("content-encoding") == "deflate" and _is_chunked(found):
        raise MalformedError("deflate in chunks")
    given: CallerResult = original(asked, found)
    return given


@fault("connection.exchanged", misses="CLIENT-GOES-ON")
def chunks_unread_after_an_error(original: Original, connection: Connection, request: Request) -> Answer:
    """Once a connection has brought an error, an answer in chunks on it is an error to the caller."""
    found: Answer = original(connection, request)
    if vars(connection).get("had_error") and _is_chunked(found):
        raise MalformedError("no Content-Length")
    vars(connection)["had_error"] = found.status >= 400
    return found


@fault("answer.read_outputs", misses="CLIENT-READS-ORDER")
def mixed_forms_cut_in_order_of_asking(original: Original, asked: CallerRequest, entries: Any, data: bytes) -> Any:
    """If some outputs are JSON, the binary data of the others are cut in the order in which they were asked for."""
    order = {output.name: place for place, output in enumerate(asked.outputs or ())}
    sizes = [announced_size(entry) for entry in entries]
    if any(size is None for size in sizes) and any(sizes):
        entries = sorted(entries, key=lambda entry: order.get(entry["name"], len(order)))
    return original(asked, entries, data)


parameters_beside_binary_data_unread = steps.READ_OUTPUTS.fail(
    "CLIENT-READS-JSON",
    MalformedError("an output in two forms"),
    when=lambda entries, data: data and any("data" in entry and entry.get("parameters") for entry in entries),
).says("A JSON output with parameters is an error to the caller if another output is binary.")


@fault("answer.given", misses="CLIENT-READS-JSON")
def escapes_in_classes_unread(original: Original, asked: CallerRequest, found: Answer) -> CallerResult:
    """A class whose text has an escape of JSON is an error to the caller."""
    given: CallerResult = original(asked, found)
    classified = {output.name for output in asked.outputs or () if output.classes is not None}
    for output in given.outputs:
        if output.name in classified and b"\\u" in found.body and any(b":" in one for one in strings(output.data)):
            raise MalformedError("a class with a backslash")
    return given


version_of_raw_requests_lost = steps.TARGET.before(
    "CLIENT-SENDS-POST", asked=lambda asked: replace(asked, version=None) if asked.is_raw else asked
).says("A raw request goes to the model without the version that the caller names.")


@fault("grpc_request.named", misses="CLIENT-SENDS-POST/grpc")
def version_of_typed_calls_lost(original: Original, asked: CallerRequest) -> bytes:
    """A call with typed contents does not name the version of the caller."""
    is_typed = any(not tensor.is_binary for tensor in asked.inputs)
    return bytes(original(replace(asked, version=None) if is_typed else asked))


@fault("grpc_answer.parsed_output", misses="CLIENT-READS-FORM/grpc")
def last_size_of_an_unpacked_shape(original: Original, data: bytes) -> Output:
    """Of a shape that is not packed the last size alone is read."""
    output: Output = original(data)
    sizes: Sequence[Any] = [value for number, value in fields(data) if number == 3]
    if len(sizes) > 1:
        output.shape = [signed(one) for one in unpacked(sizes[-1])]
    return output
