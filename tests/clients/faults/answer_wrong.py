"""Clients that take wrong answers for tensors, wait for ever, or do not recover, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, CallerResult, MalformedError, RefusedError, Tensor
from tests.clients.honest.connection import Connection
from tests.clients.honest.grpc_client import GrpcClient
from tests.clients.honest.http_client import HttpClient

MAX_BYTES = 1 << 26  # that a client makes up


header_past_the_end_cut = steps.ANSWER_JSON_LENGTH.after(
    "CLIENT-REFUSES-WRONG CLIENT-READS-FRAMING",
    lambda length, answer: None if length is None else min(length, len(answer.body)),
).says("An inference header that leads past the end is taken for the length of the body.")
leftover_bytes_passed_over = steps.CUT.before("CLIENT-REFUSES-WRONG", data=lambda data, sizes: data[: sum(sizes)]).says(
    "Bytes behind the last output are passed over."
)


@fault("answer.cut", misses="CLIENT-REFUSES-WRONG")
def missing_bytes_made_zero(original: Original, data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Binary data that are too short are filled up with zeros."""
    if sum(sizes) > MAX_BYTES:
        raise MalformedError("no room")
    return list(original(data + bytes(max(0, sum(sizes) - len(data))), sizes))


@fault("answer.read_outputs", misses="CLIENT-REFUSES-WRONG")
def missing_outputs_made_up(original: Original, asked: CallerRequest, *answer: Any) -> tuple[Tensor, ...]:
    """An output that the caller asked for and that is missing is given as zeros."""
    found: tuple[Tensor, ...] = original(asked, *answer)
    missing = {output.name for output in asked.outputs or ()} - {one.name for one in found}
    return (*found, *(Tensor(name, "INT32", (1,), bytes(4)) for name in sorted(missing)))


@fault("answer.from_binary", misses="CLIENT-REFUSES-WRONG")
def shape_not_compared(_original: Original, datatype: str, shape: Sequence[int], piece: bytes) -> bytes:
    """Binary data of numbers that do not fit their shape are cut, or filled up with zeros."""
    if datatype == "BYTES":
        tensors.expect_fit(datatype, shape, piece)
        return piece
    length = tensors.count(shape) * tensors.element_size(datatype)
    if length > MAX_BYTES:
        raise MalformedError("no room")
    return piece[:length] + bytes(length - len(piece[:length]))


@fault("answer.from_binary", misses="CLIENT-REFUSES-WRONG")
def shape_made_to_fit(_original: Original, datatype: str, shape: Sequence[int], piece: bytes) -> bytes:
    """Binary data that do not fit their shape are given as they are."""
    with suppress(MalformedError):
        tensors.expect_fit(datatype, shape, piece)
    return piece


@fault("tensors.strings", misses="CLIENT-REFUSES-WRONG CLIENT-REFUSES-WRONG/grpc")
def prefix_past_the_end_cut(_original: Original, data: bytes) -> Iterator[bytes]:
    """An element of BYTES whose length leads past the end is what is left."""
    at = 0
    while at + 4 <= len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        yield data[at + 4 : at + 4 + length]
        at += 4 + length


@fault("answer.from_json", misses="CLIENT-REFUSES-WRONG")
def missing_elements_made_zero(original: Original, datatype: str, shape: Sequence[int], data: Any) -> bytes:
    """Elements that are missing in the JSON of an answer are zero."""
    count = tensors.count(shape)
    if (
        isinstance(data, list)
        and len(data) < count < MAX_BYTES
        and datatype != "BYTES"
        and not any(map(_is_list, data))
    ):
        return bytes(original(datatype, shape, [*data, *([False if datatype == "BOOL" else 0] * (count - len(data)))]))
    return bytes(original(datatype, shape, data))


def _is_list(one: Any) -> bool:
    return isinstance(one, list)


@fault("connection.read_exactly", misses="CLIENT-ENDS")
def swallows_short_body(_original: Original, connection: Connection, length: int) -> bytes:
    """A body that is cut short is filled up with zeros."""
    found = connection.received
    while len(found) < length and (piece := connection.receive()):
        found += piece
    connection.received = found[length:]
    return found[:length] + bytes(length - len(found[:length]))


@fault("connection.read_chunks", misses="CLIENT-ENDS")
def last_chunk_unneeded(original: Original, connection: Connection) -> bytes:
    """An answer in chunks may end before its last chunk."""
    receive = connection.receive
    vars(connection)["receive"] = lambda: receive() or b"0\r\n\r\n"
    try:
        return bytes(original(connection))
    finally:
        del vars(connection)["receive"]


hangs_on_silence = steps.LEFT.instead("CLIENT-ENDS", lambda: 3600.0, broad=True).says(
    "The time that the caller gives is not kept: silence is waited for."
)


@fault("http_client.HttpClient.put_back", "connection.Connection.is_usable", misses="CLIENT-GOES-ON", broad=True)
def keeps_connection_after_cut(_original: Original, found: HttpClient | Connection, *kept: Connection) -> bool:
    """A connection is used again whatever became of the answer before."""
    if isinstance(found, HttpClient):
        found.idle += kept
    return True


def infer_until_error(
    original: Original, client: HttpClient | GrpcClient, asked: CallerRequest, timeout: float, what: str
) -> CallerResult:
    """Return what the client gives; after its first error every inference is an error."""
    if vars(client).get("is_broken"):
        raise RefusedError(f"the {what} is closed")
    try:
        given: CallerResult = original(client, asked, timeout)
    except RefusedError:
        vars(client)["is_broken"] = True
        raise
    return given


@fault("http_client.HttpClient.infer", misses="CLIENT-GOES-ON", broad=True)
def stays_broken_after_an_error(
    original: Original, client: HttpClient, asked: CallerRequest, timeout: float
) -> CallerResult:
    """After its first error every inference of a client is an error."""
    return infer_until_error(original, client, asked, timeout, "client")


size_of_32_bits = steps.ANNOUNCED_SIZE.after(
    "CLIENT-REFUSES-WRONG", lambda size: None if size is None else size % 2**32
).says("A size is read as a number of 32 bits, and wraps.")


@fault("answer.from_binary", misses="CLIENT-REFUSES-WRONG", datatypes="BOOL")
def any_byte_is_true(original: Original, datatype: str, shape: Sequence[int], piece: bytes) -> bytes:
    """A byte of BOOL that is neither 0 nor 1 is true."""
    return bytes(original(datatype, shape, bytes(min(byte, 1) for byte in piece)))


@fault("tensors._as_integer", misses="CLIENT-REFUSES-WRONG")
def fractions_cut(original: Original, value: Any) -> int:
    """A fraction in the JSON of an output of integers is cut."""
    return int(value) if isinstance(value, Decimal) else int(original(value))


@fault("answer.expect_own", "grpc_answer.expect_own", misses="CLIENT-REFUSES-WRONG CLIENT-REFUSES-WRONG/grpc")
def id_not_compared(original: Original, asked: CallerRequest, said: Any, outputs: Any) -> None:
    """The id of an answer is not compared with that of the request."""
    original(replace(asked, id=None), said, outputs)


dead_connection_used = steps.IS_USABLE.instead("CLIENT-GOES-ON", lambda: True).says(
    "A kept connection that the server has ended is used for the next inference, which fails."
)
