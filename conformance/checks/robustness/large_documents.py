"""Documents that are deep, long or of many parts, over HTTP and over gRPC."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from conformance.checks.robustness.octets import plain
from conformance.checks.robustness.withstanding import expect_settled, withstanding
from conformance.roles.model import Make, Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import GRPC
from conformance.transport.peer import Peer
from conformance.wire.grpc_request import infer_message
from conformance.wire.request import Message

DEEP = MANY = 100_000
MIB = 1024 * 1024


def _text(change: Callable[[bytes], bytes]) -> Make:
    """Return what makes a plain request with another text."""
    return lambda model: Message(plain(model).path, plain(model).headers, change(plain(model).body))


def _edited(edit: Callable[[dict[str, Any]], object]) -> Make:
    """Return what makes a plain request with another document."""

    def change(body: bytes) -> bytes:
        document = json.loads(body)
        edit(document)
        return json.dumps(document).encode()

    return _text(change)


def _with_parameters(value: bytes) -> Make:
    """Return what makes a plain request with a parameter of this text, whatever JSON says of it."""
    return _text(lambda body: b'{"parameters":{"x":' + value + b"}," + body[1:])


def _first(**members: Any) -> Make:
    return _edited(lambda document: document["inputs"][0].update(members))


def _repeated(member: str) -> Make:
    """Return what makes a request with its first input, or an output, so many times, each under a name of its own."""

    def edit(document: dict[str, Any]) -> None:
        entry = document["inputs"][0] if member == "inputs" else {}
        document[member] = [entry | {"name": f"N{k}"} for k in range(MANY)]

    return _edited(edit)


def _row(identity: str, make: Make, *, dangerous: bool = False, thorough: bool = False) -> Row:
    return Row(identity, (identity.replace("-", " "), make), dangerous=dangerous, thorough=thorough)


ROWS = (
    _row("arrays-100000-deep", _with_parameters(b"[" * DEEP + b"]" * DEEP), dangerous=True),
    _row("objects-100000-deep", _with_parameters(b'{"x":' * DEEP + b"1" + b"}" * DEEP), dangerous=True),
    _row("arrays-100000-deep-without-an-end", _text(lambda _: b"[" * DEEP), dangerous=True),
    _row(
        "data-100000-deep",
        _text(lambda body: body.replace(b'"data":[', b'"data":' + b"[" * DEEP).replace(b"]}]", b"]" * DEEP + b"}]")),
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
def large_document_is_answered_or_refused(target: Peer, model: Model, name: str, make: Make) -> None:
    """A request that is deep, long or of many parts is answered or refused in time, or the connection is closed."""
    with withstanding(target, model):
        expect_settled(target.send(make(model), fresh=True), name)


@check(
    "robustness.large-message-is-answered-or-refused",
    answers="ROBUST-LARGE/grpc",
    role="identity_int32",
    over=(GRPC,),
    infers=False,
)
@rows(
    _row("16-MiB-of-a-tensor", lambda model: infer_message(model.request(), _data(b"\0" * 16 * MIB))),
    _row("id-of-1-MiB", lambda model: infer_message(model.request(), lambda call: setattr(call, "id", "x" * MIB))),
    _row("100000-inputs", lambda model: infer_message(model.request(), _many("inputs"))),
    _row("100000-outputs", lambda model: infer_message(model.request(), _many("outputs"))),
    _row("100000-raw-entries", lambda model: infer_message(model.request(), _entries)),
    _row("shape-of-100000-dimensions", lambda model: infer_message(model.request(), _long_shape)),
    _row("groups-100000-deep", lambda model: infer_message(model.request()).with_body(b"\x0b" * DEEP), dangerous=True),
)
def large_message_is_answered_or_refused(target: Peer, model: Model, name: str, make: Make) -> None:
    """A call that is deep, long or of many parts is answered or refused in time, or the connection is closed."""
    with withstanding(target, model):
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
