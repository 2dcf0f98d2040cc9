"""Bodies that are deeply nested, long or of many parts, compression bombs, and wrong content codings."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conformance.checks.robustness.hostile_requests import (
    MIB,
    expect_settled,
    expect_still_serving,
    is_refused_or_closed,
    make_plain_request,
    make_row,
)
from conformance.checks.support.wrong_requests import WrongRequest, send_raw_contents
from conformance.expect.content_coding import compress_zlib
from conformance.expect.expectation import expect
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Only, Row, check, rows
from conformance.spec.extensions import GRPC, HTTP, RAW
from conformance.transport.any_target import AnyTarget
from conformance.transport.target import Target
from conformance.wire.edits import Set, plus
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.message_edits import Body, Edit
from conformance.wire.request import Message

# --- documents --------------------------------------------------------------------------------------------------------

DEPTH = MANY = 100_000


def _change_text(change: Callable[[bytes], bytes]) -> MessageBuilder:
    """Return a builder of a plain request with changed JSON text."""
    return lambda model: Message(
        make_plain_request(model).path, make_plain_request(model).headers, change(make_plain_request(model).body)
    )


def _edit_document(edit: Callable[[dict[str, Any]], object]) -> MessageBuilder:
    """Return a builder of a plain request whose JSON document is changed by `edit`."""

    def change(body: bytes) -> bytes:
        document = json.loads(body)
        edit(document)
        return json.dumps(document).encode()

    return _change_text(change)


def _set_parameter(value: bytes) -> MessageBuilder:
    """Return a builder of a plain request with this text as a parameter's value, which may be invalid JSON."""
    return _change_text(lambda body: b'{"parameters":{"x":' + value + b"}," + body[1:])


def _update_first_input(**members: Any) -> MessageBuilder:
    return _edit_document(lambda document: document["inputs"][0].update(members))


def _repeat_entries(member: str) -> MessageBuilder:
    """Return a builder of a request that repeats its first input, or an output, many times under different names."""

    def repeat_entry(document: dict[str, Any]) -> None:
        entry = document["inputs"][0] if member == "inputs" else {}
        document[member] = [entry | {"name": f"N{k}"} for k in range(MANY)]

    return _edit_document(repeat_entry)


ROWS = (
    make_row("arrays-100000-deep", _set_parameter(b"[" * DEPTH + b"]" * DEPTH), dangerous=True),
    make_row("objects-100000-deep", _set_parameter(b'{"x":' * DEPTH + b"1" + b"}" * DEPTH), dangerous=True),
    make_row("arrays-100000-deep-without-an-end", _change_text(lambda _: b"[" * DEPTH), dangerous=True),
    make_row(
        "data-100000-deep",
        _change_text(
            lambda body: body.replace(b'"data":[', b'"data":' + b"[" * DEPTH).replace(b"]}]", b"]" * DEPTH + b"}]")
        ),
        dangerous=True,
    ),
    make_row("id-of-1-MiB", _edit_document(lambda document: document.update(id="x" * MIB))),
    make_row("input-name-of-1-MiB", _update_first_input(name="x" * MIB)),
    make_row("input-name-in-no-utf-8", _change_text(lambda body: body.replace(b'"INPUT"', b'"\xff\xfe\xed\xa0\x80"'))),
    make_row("input-name-of-half-a-surrogate-pair", _update_first_input(name="\ud800")),
    make_row("datatype-of-1-MiB", _update_first_input(datatype="x" * MIB)),
    make_row(
        "integer-of-1-million-digits",
        _change_text(lambda body: body.replace(b'"data":[', b'"data":[' + b"7" * 1_000_000)),
    ),
    make_row("shape-of-100000-dimensions", _update_first_input(shape=[1] * MANY, data=[1])),
    make_row("100000-inputs", _repeat_entries("inputs")),
    make_row("100000-outputs", _repeat_entries("outputs")),
    make_row(
        "1-MiB-of-empty-objects", _change_text(lambda _: b'{"inputs":[' + b"{}," * (MIB // 3) + b"{}]}"), dangerous=True
    ),
    make_row("100000-members-of-one-name", _change_text(lambda body: b"{" + b'"id":"a",' * MANY + body[1:])),
)


@check(
    "robustness.large-document-is-answered-or-refused",
    requirements="ROBUST-LARGE",
    role="identity_int32",
    infers=False,
    only=Only(HTTP, "`large-message-is-answered-or-refused` has the limits of protobuf"),
)
@rows(*ROWS)
def large_document_is_answered_or_refused(
    target: AnyTarget, model: Model, name: str, build_message: MessageBuilder
) -> None:
    """The server answers or refuses a request with very deep or long JSON in time, or closes the connection."""
    with expect_still_serving(target, model):
        expect_settled(target.send(build_message(model), fresh=True), name)


# --- over gRPC ---------------------------------------------------------------------------------------------------------


def _edit_call(*edits: Edit) -> WrongRequest:
    """Return a plain call that these edits change."""
    return WrongRequest(send_raw_contents, edits, make_infer_message)


def _append_many_names(entries: list[Any]) -> list[Any]:
    """Return entries and many others, which have only a name."""
    return [*entries, *({"name": f"N{number}"} for number in range(MANY))]


@check(
    "robustness.large-message-is-answered-or-refused",
    requirements="ROBUST-LARGE/grpc",
    role="identity_int32",
    over=(GRPC,),
    infers=False,
    only=Only(GRPC, "`large-document-is-answered-or-refused` has the limits of JSON"),
)
@rows(
    make_row(
        "16-MiB-of-a-tensor", _edit_call(Set("raw_input_contents.0", bytes(16 * MIB)), Set("inputs.0.shape", [4 * MIB]))
    ),
    make_row("id-of-1-MiB", _edit_call(Set("id", "x" * MIB))),
    make_row("100000-inputs", _edit_call(Set("inputs", _append_many_names))),
    make_row("100000-outputs", _edit_call(Set("outputs", _append_many_names))),
    make_row("100000-raw-entries", _edit_call(Set("raw_input_contents", plus([b""] * MANY)))),
    make_row("shape-of-100000-dimensions", _edit_call(Set("inputs.0.shape", [1] * MANY))),
    make_row("groups-100000-deep", _edit_call(Body(b"\x0b" * DEPTH)), dangerous=True),
)
def large_message_is_answered_or_refused(
    target: AnyTarget, model: Model, name: str, build_message: MessageBuilder
) -> None:
    """The server answers or refuses a very deep or long message in time, or closes the connection."""
    with expect_still_serving(target, model):
        expect_settled(target.send(build_message(model), fresh=True), name)


# --- small bodies that decompress to large ones -----------------------------------------------------------------------

GZIP = 16 + zlib.MAX_WBITS
BLANKS, ARRAYS = b" " * MIB, b"[]," * (MIB // 3)


def _compress_repeated(start: bytes, filling: bytes, times: int, end: bytes = b"") -> bytes:
    """Return `start`, `filling` repeated `times`, and `end` as gzip data, without holding the content in memory."""
    packer = zlib.compressobj(1, zlib.DEFLATED, GZIP)

    def compress_parts() -> Iterator[bytes]:
        yield packer.compress(start)
        for _ in range(times):
            yield packer.compress(filling)
        yield packer.compress(end) + packer.flush()

    return b"".join(compress_parts())


@check("robustness.bomb-is-answered-or-refused", requirements="ROBUST-BOMB", role="identity_int32", infers=False)
@rows(
    make_row("10-MiB-of-blanks", BLANKS, 10),
    make_row("10-MiB-of-blanks-packed-twice", BLANKS, 10, 2),
    make_row("3-MiB-of-empty-arrays", ARRAYS, 3),
    make_row("1-GiB-of-blanks", BLANKS, 1024, dangerous=True),
    make_row("1-GiB-of-blanks-packed-twice", BLANKS, 1024, 2, dangerous=True),
    make_row("60-MiB-of-empty-arrays", ARRAYS, 60, dangerous=True),
)
def bomb_is_answered_or_refused(
    target: Target, model: Model, name: str, filling: bytes, size: int, codings: int = 1
) -> None:
    """The server answers or refuses a small body that decompresses to a huge one in time, or closes the connection."""
    message = make_plain_request(model)
    ends = (b"[", b"[]]") if filling == ARRAYS else (message.body, b"")
    packed = _compress_repeated(ends[0], filling, size, ends[1])
    for _ in range(codings - 1):
        packed = _compress_repeated(packed, b"", 0)
    coding = ", ".join(["gzip"] * codings)
    bomb = Message(message.path, (*message.headers, ("Content-Encoding", coding)), packed)
    with expect_still_serving(target, model):
        expect_settled(target.send(bomb, fresh=True), f"{len(packed)} bytes that decompress to {name}")


# --- bodies that are not in their stated coding -----------------------------------------------------------------------

ELEMENT_COUNT = 200  # elements


def _compress_raw_deflate(body: bytes) -> bytes:
    """Return the body as raw deflate data, without the zlib format, as some clients send it."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


# name -> the stated content coding, and the actual encoder of the body
FALSE_CODINGS: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "plain-as-gzip": ("gzip", bytes),
    "plain-as-deflate": ("deflate", bytes),
    "zlib-as-gzip": ("gzip", compress_zlib),
    "deflate-without-zlib": ("deflate", _compress_raw_deflate),
}


def _make_rows(name: str) -> tuple[Row, Row]:
    """Return rows with a wrongly coded body: of JSON, and of a raw request."""
    return (
        Row(f"{name}-json", (name, False), role="identity_int32"),
        Row(f"{name}-raw", (name, True), role="identity_uint8", needs=RAW),
    )


@check("robustness.false-coding-alters-no-tensor", requirements="ROBUST-CODING", infers=False)
@rows(*[row for name in FALSE_CODINGS for row in _make_rows(name)])
def false_coding_alters_no_tensor(target: Target, model: Model, name: str, is_raw: bool) -> None:
    """The server refuses a body that is not in its stated coding, or reads the tensors that the client encoded."""
    coding, encode = FALSE_CODINGS[name]
    tensors = model.build_salted_inputs(ELEMENT_COUNT, 2)
    message = model.raw(bytes(tensors[0].to_bytes())) if is_raw else model.request(tensors, send="json").message()
    with expect_still_serving(target, model):
        reply = target.send(message.with_body(encode(message.body)).with_header("Content-Encoding", coding), fresh=True)
        if not is_refused_or_closed(reply):
            expect(reply).tensors(model.expected(tensors))
