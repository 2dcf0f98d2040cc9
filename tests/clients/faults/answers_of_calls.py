"""Clients that do not read the answers to their calls over gRPC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.faults.answer_wrong import infer_until_error
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, CallerResult, MalformedError, RefusedError, Tensor
from tests.clients.honest.grpc_answer import Output, Response
from tests.clients.honest.grpc_client import GrpcClient
from tests.clients.honest.grpc_request import CONTENTS
from tests.clients.honest.protobuf import fields

Tensors = tuple[Tensor, ...]


@fault(
    *("grpc_answer.read_outputs", "grpc_answer.expect_own"),
    misses="CLIENT-READS-VALUES/grpc CLIENT-READS-ORDER/grpc CLIENT-REFUSES-WRONG/grpc",
)
def outputs_of_calls_by_position(original: Original, asked: CallerRequest, said: Response, *outputs: Any) -> Any:
    """The outputs of a call have the names that the caller asked for, in that order."""
    if outputs:
        return None
    for output, wanted in zip(said.outputs, asked.outputs or (), strict=False):
        output.name = wanted.name
    return original(asked, said)


@fault("grpc_answer.typed_elements", misses="CLIENT-READS-VALUES/grpc CLIENT-READS-FORM/grpc")
def int64_of_calls_through_a_double(original: Original, datatype: str, numbers: list[int]) -> list[int]:
    """A 64-bit integer in typed contents of an answer goes through a double."""
    found = original(datatype, numbers)
    if datatype not in ("INT64", "UINT64"):
        return list(found)
    top = (1 << 63) - 1 if datatype == "INT64" else (1 << 64) - 1
    return [min(int(float(one)), top) for one in found]


one_element_as_a_scalar = steps.READ_RAW_OUTPUT.after(
    "CLIENT-READS-VALUES/grpc", lambda found: replace(found, shape=()) if found.shape == (1,) else found
).says("An output of one element in an answer to a call is given to the caller as a scalar, without its dimension.")
raw_outputs_in_reverse = steps.RAW_IN_ORDER.instead(
    "CLIENT-READS-ORDER/grpc", lambda entries: entries[::-1], broad=True
).says("The entries of raw_output_contents are read in reverse order.")


@fault("grpc_answer.read_outputs", misses="CLIENT-READS-ORDER/grpc")
def raw_outputs_in_order_of_asking(original: Original, asked: CallerRequest, said: Response) -> Tensors:
    """The entries of raw_output_contents are read in the order in which the outputs were asked for."""
    order = {output.name: place for place, output in enumerate(asked.outputs or ())}
    said.outputs.sort(key=lambda one: order.get(one.name, len(order)))
    return tuple(original(asked, said))


raw_contents_only = steps.READ_CALL_OUTPUTS.fail(
    "CLIENT-READS-FORM/grpc",
    MalformedError("no raw_output_contents"),
    when=lambda said: any(output.contents for output in said.outputs),
).says("An answer in typed contents is an error to the caller.")
typed_contents_only = steps.READ_CALL_OUTPUTS.fail(
    "CLIENT-READS-VALUES/grpc", MalformedError("no contents"), when=lambda said: any(said.raw), broad=True
).says("An answer in raw contents is an error to the caller.")


@fault("grpc_answer.read_outputs", misses="CLIENT-READS-CLASSES/grpc CLIENT-READS-FORM/grpc")
def classes_of_calls_unread(original: Original, asked: CallerRequest, said: Response) -> Tensors:
    """An output of classes in the answer to a call is an error to the caller."""
    classified = {output.name for output in asked.outputs or () if output.classes is not None}
    if any(output.name in classified for output in said.outputs):
        raise MalformedError("datatype BYTES of an output of numbers")
    return tuple(original(asked, said))


status_unread = steps.CALL_REFUSED.instead("CLIENT-READS-ERROR/grpc CLIENT-READS-ERROR-TEXT/grpc", lambda: b"").says(
    "A call that ends with another status than OK gives the caller no outputs, and no error."
)


@fault("grpc_answer.given", "grpc_client.refused", misses="CLIENT-READS-ERROR/grpc CLIENT-READS-ERROR-TEXT/grpc")
def some_statuses_unread(original: Original, *arguments: Any) -> Any:
    """A call that ends with INVALID_ARGUMENT or NOT_FOUND gives the caller no outputs, and no error."""
    if len(arguments) == 1:
        unread = arguments[0].code().name in ("INVALID_ARGUMENT", "NOT_FOUND")
        return b"" if unread else original(*arguments)
    return CallerResult(()) if not arguments[1] else original(*arguments)


@fault("grpc_client.refused", misses="CLIENT-READS-ERROR-TEXT/grpc")
def details_lost(_original: Original, error: Any) -> bytes:
    """The caller is told that a call failed, and neither with which text nor with which status."""
    raise RefusedError("call failed") from error


@fault("grpc_client.GrpcClient.infer", misses="CLIENT-READS-OWN/grpc", broad=True)
def reuses_last_answer_of_calls(
    original: Original, client: GrpcClient, asked: CallerRequest, timeout: float
) -> CallerResult:
    """From the second call on, the caller is given the answer before."""
    given: CallerResult = original(client, asked, timeout)
    earlier: CallerResult = vars(client).get("earlier", given)
    vars(client)["earlier"] = given
    return earlier


@fault("grpc_answer.expect_fit", misses="CLIENT-REFUSES-WRONG/grpc")
def shape_of_calls_not_compared(_original: Original, _datatype: str, _shape: Sequence[int], _data: bytes) -> None:
    """Contents that do not fit their shape are given as they are."""


@fault("grpc_answer.read_outputs", misses="CLIENT-REFUSES-WRONG/grpc")
def raw_outputs_missing_made_zero(original: Original, asked: CallerRequest, said: Response) -> Tensors:
    """Outputs without an entry in raw_output_contents are zero."""
    if said.raw and len(said.raw) < len(said.outputs):
        for output in said.outputs[len(said.raw) :]:
            size = 4 if output.datatype == "BYTES" else tensors.element_size(output.datatype)
            said.raw.append(bytes(size * tensors.count(output.shape)))
    return tuple(original(asked, said))


@fault("grpc_answer.read_outputs", misses="CLIENT-REFUSES-WRONG/grpc")
def raw_outputs_too_many_passed_over(original: Original, asked: CallerRequest, said: Response) -> Tensors:
    """Entries of raw_output_contents that are too many are passed over."""
    del said.raw[len(said.outputs) :]
    return tuple(original(asked, said))


@fault("grpc_answer.from_typed", misses="CLIENT-REFUSES-WRONG/grpc")
def contents_of_another_datatype_read(original: Original, output: Output) -> bytes:
    """Typed contents in the field of FP32 are taken for the memory of whatever datatype the output has."""
    found = list(fields(output.contents))
    if [number for number, _ in found] == [CONTENTS["FP32"]]:
        return b"".join(value for _, value in found if isinstance(value, bytes))
    return bytes(original(output))


calls_without_deadline = steps.DEADLINE.instead("CLIENT-ENDS/grpc", lambda: None, broad=True).says(
    "A call has no deadline."
)


@fault("grpc_client.GrpcClient.infer", misses="CLIENT-GOES-ON/grpc", broad=True)
def channel_closed_after_an_error(
    original: Original, client: GrpcClient, asked: CallerRequest, timeout: float
) -> CallerResult:
    """After its first error every call of a client is an error."""
    return infer_until_error(original, client, asked, timeout, "channel")


@fault("grpc_answer.read_outputs", misses="CLIENT-REFUSES-WRONG/grpc")
def missing_outputs_of_calls_made_up(original: Original, asked: CallerRequest, said: Response) -> Tensors:
    """An output that a call asks for and that is missing is given as zeros."""
    found: Tensors = original(asked, said)
    missing = {output.name for output in asked.outputs or ()} - {one.name for one in found}
    return (*found, *(Tensor(name, "INT32", (1,), bytes(4)) for name in sorted(missing)))


outputs_called_error_taken_for_one = steps.READ_CALL_OUTPUTS.fail(
    "CLIENT-READS-ERROR/grpc",
    RefusedError("the server answered with an error"),
    when=lambda said: any(output.name == "error" for output in said.outputs),
).says("An output whose name is error is taken for one.")
