"""Documents that are deep, long or of many parts, over HTTP and over gRPC."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from conformance.checks.robustness.octets import make_plain_request
from conformance.checks.robustness.survival import expect_settled, expect_still_serving
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.transport.peer import Peer
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import Message

DEPTH = MANY = 100_000
MIB = 1024 * 1024


def _text(change: Callable[[bytes], bytes]) -> MessageBuilder:
    """Return what makes a plain request with another text."""
    return lambda model: Message(
        make_plain_request(model).path, make_plain_request(model).headers, change(make_plain_request(model).body)
    )


def _edited(edit: Callable[[dict[str, Any]], object]) -> MessageBuilder:
    """Return what makes a plain request with another document."""

    def change(body: bytes) -> bytes:
        document = json.loads(body)
        edit(document)
        return json.dumps(document).encode()

    return _text(change)


def _with_parameters(value: bytes) -> MessageBuilder:
    """Return what makes a plain request with a parameter of this text, whatever JSON says of it."""
    return _text(lambda body: b'{"parameters":{"x":' + value + b"}," + body[1:])


def _first(**members: Any) -> MessageBuilder:
    return _edited(lambda document: document["inputs"][0].update(members))


def _repeated(member: str) -> MessageBuilder:
    """Return what makes a request with its first input, or an output, so many times, each under a name of its own."""

    def edit(document: dict[str, Any]) -> None:
        entry = document["inputs"][0] if member == "inputs" else {}
        document[member] = [entry | {"name": f"N{k}"} for k in range(MANY)]

    return _edited(edit)


def _row(identity: str, make: MessageBuilder, *, dangerous: bool = False, thorough: bool = False) -> Row:
    return Row(identity, (identity.replace("-", " "), make), dangerous=dangerous, thorough=thorough)


ROWS = (
    _row("arrays-100000-deep", _with_parameters(b"[" * DEPTH + b"]" * DEPTH), dangerous=True),
    _row("objects-100000-deep", _with_parameters(b'{"x":' * DEPTH + b"1" + b"}" * DEPTH), dangerous=True),
    _row("arrays-100000-deep-without-an-end", _text(lambda _: b"[" * DEPTH), dangerous=True),
    _row(
        "data-100000-deep",
        _text(lambda body: body.replace(b'"data":[', b'"data":' + b"[" * DEPTH).replace(b"]}]", b"]" * DEPTH + b"}]")),
        dangerous=True,
    ),
    _row("id-of-1-MiB", _edited(lambda document: document.update(id="x" * MIB))),
    _row("input-name-of-1-MiB", _first(name="x" * MIB)),
    _row("input-name-in-no-utf-8", _text(lambda body: body.replace(b'"INPUT"', b'"\xff\xfe\xed\xa0\x80"'))),
    _row("input-name-of-half-a-surrogate-pair", _first(name="\ud800")),
    _row("datatype-of-1-MiB", _first(datatype="x" * MIB)),
    _row("integer-of-1-million-digits", _text(lambda body: body.replace(b'"data":[', b'"data":[' + b"7" * 1_000_000))),
    _row("shape-of-100000-dimensions", _first(shape=[1] * MANY, data=[1])),
    _row("100000-inputs", _repeated("inputs")),
    _row("100000-outputs", _repeated("outputs")),
    _row("1-MiB-of-empty-objects", _text(lambda _: b'{"inputs":[' + b"{}," * (MIB // 3) + b"{}]}"), dangerous=True),
    _row("100000-members-of-one-name", _text(lambda body: b"{" + b'"id":"a",' * MANY + body[1:])),
)


@check("robustness.large-document-is-answered-or-refused", answers="ROBUST-LARGE", role="identity_int32", infers=False)
@rows(*ROWS)
def large_document_is_answered_or_refused(target: Peer, model: Model, name: str, make: MessageBuilder) -> None:
    """A request that is deep, long or of many parts is answered or refused in time, or the connection is closed."""
    with expect_still_serving(target, model):
        expect_settled(target.send(make(model), fresh=True), name)


@check(
    "robustness.large-message-is-answered-or-refused",
    answers="ROBUST-LARGE/grpc",
    role="identity_int32",
    over=(GRPC,),
    infers=False,
)
@rows(
    _row("16-MiB-of-a-tensor", lambda model: make_infer_message(model.request(), _data(b"\0" * 16 * MIB))),
    _row("id-of-1-MiB", lambda model: make_infer_message(model.request(), lambda call: setattr(call, "id", "x" * MIB))),
    _row("100000-inputs", lambda model: make_infer_message(model.request(), _many("inputs"))),
    _row("100000-outputs", lambda model: make_infer_message(model.request(), _many("outputs"))),
    _row("100000-raw-entries", lambda model: make_infer_message(model.request(), _entries)),
    _row("shape-of-100000-dimensions", lambda model: make_infer_message(model.request(), _long_shape)),
    _row(
        "groups-100000-deep",
        lambda model: make_infer_message(model.request()).with_body(b"\x0b" * DEPTH),
        dangerous=True,
    ),
)
def large_message_is_answered_or_refused(target: Peer, model: Model, name: str, make: MessageBuilder) -> None:
    """A call that is deep, long or of many parts is answered or refused in time, or the connection is closed."""
    with expect_still_serving(target, model):
        expect_settled(target.send(make(model), fresh=True), name)


# --- over gRPC ---------------------------------------------------------------------------------------------------------

Pb = Any  # the generated classes have no types


def _data(octets: bytes) -> Callable[[Pb], None]:
    def edit(call: Pb) -> None:
        call.raw_input_contents[0] = octets
        call.inputs[0].shape[:] = [len(octets) // 4]

    return edit


def _many(field: str) -> Callable[[Pb], None]:
    def edit(call: Pb) -> None:
        for number in range(MANY):
            getattr(call, field).add(name=f"N{number}")

    return edit


def _entries(call: Pb) -> None:
    call.raw_input_contents.extend([b""] * MANY)


def _long_shape(call: Pb) -> None:
    call.inputs[0].shape[:] = [1] * MANY
