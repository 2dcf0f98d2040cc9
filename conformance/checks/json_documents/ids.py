"""The id of a request comes back."""

from __future__ import annotations

import json

from conformance.checks.json_documents.answer_members import expect_json
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY
from conformance.spec.fit import ANY, JSON
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.request import Form

# --- the id ------------------------------------------------------------------------------------------------------------

_IDS = {
    "letters": "first-Request_7",
    "digits": "0042",
    "blanks": " a  b ",
    "escapes": 'a"b\\c/d\n\te',
    "accents": "größe-é",
    "beyond-16-bits": "猫😀",
    "long": "id-" + "0123456789" * 30,
}

_FOR_ANY_MODEL = ("digits", "blanks", "escapes", "accents", "long")


@check("json.id-comes-back", answers="OIP-ID", role="identity_int32")
@rows(
    *[
        Row(name, (identity, "json", None), fit=JSON if name in _FOR_ANY_MODEL else None)
        for name, identity in _IDS.items()
    ],
    *[
        Row(
            *(f"{name}-{send}-in-{want}-out", (_IDS[name], send, want)),
            needs=BINARY,
            fit=ANY if (name, send, want) == ("accents", "binary", "binary") else None,
        )
        for name in ("letters", "accents")
        for send, want in (("binary", "json"), ("json", "binary"), ("binary", "binary"))
    ],
)
def id_comes_back(target: Target, model: Model, identity: str, send: Form, want: Form | None) -> None:
    """The id of a request comes back unchanged."""
    reply = target.infer(model.request(send=send, want=want, request_id=identity))
    if not reply.succeeded and target.infer(model.request(send="json", request_id=identity)).succeeded:
        raise BlockedError("only with binary data is a request with this id not answered")
    _expect_id(reply, identity)


@check("json.escaped-id-comes-back", answers="OIP-ID", role="identity_int32")
@rows(
    *[
        Row(name, (_IDS[name],), fit=JSON if name == "accents" else None)
        for name in ("escapes", "accents", "beyond-16-bits")
    ]
)
def escaped_id_comes_back(target: Target, model: Model, identity: str) -> None:
    r"""An id written with \u escapes comes back as the text that it stands for."""
    request = model.request(send="json", request_id=identity)
    escaped = "".join(f"\\u{unit:04x}" for unit in _utf_16(identity))
    text = json.dumps({**request.written(), "id": "@"}, separators=(",", ":")).replace('"@"', f'"{escaped}"')
    _expect_id(target.infer(request.message().with_body(text.encode())), identity)


def _utf_16(text: str) -> list[int]:
    octets = text.encode("utf-16-be")
    return [int.from_bytes(octets[at : at + 2], "big") for at in range(0, len(octets), 2)]


def _expect_id(reply: Reply, identity: str) -> None:
    expect(reply).answered()
    found = (reply.answer.document or {}).get("id")
    if found != identity:
        expect_json(reply)
        raise UnmetError(
            f"id {format_value(identity)}", "no id" if found is None else f"id {format_value(found)}", reply
        )
