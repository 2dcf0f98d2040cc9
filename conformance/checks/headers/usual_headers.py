"""Requests with the headers that common clients and proxies add."""

from __future__ import annotations

from functools import partial
from typing import Any

from conformance.checks.support.deployed_models import require_json
from conformance.checks.support.usual_headers import USUAL_HEADERS
from conformance.expect.content_coding import decode_reply
from conformance.expect.expectation import expect
from conformance.expect.unmet import attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY
from conformance.spec.fit import ANY
from conformance.spec.fit import JSON as JSON_ALONE
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import Form

FOR_ANY_MODEL = ("weights", "trace", "proxies")
CODINGS = ("gzip", "deflate")
_ALSO_WRONG = "the answer to the request without these headers is also wrong"


@check("headers.usual-headers-alter-nothing", requirements="OIP-REQUEST-HEADERS", role="identity_int32")
@rows(
    *[Row(name, (name, "json"), fit=JSON_ALONE if name in FOR_ANY_MODEL else None) for name in USUAL_HEADERS],
    *[
        Row(f"{name}-binary", (name, "binary"), needs=BINARY, fit=ANY if name in FOR_ANY_MODEL else None)
        for name in dict.fromkeys((*FOR_ANY_MODEL, "axios", "long"))  # the walk sends all of them with binary data
    ],
)
def usual_headers_alter_nothing(target: Target, model: Model, name: str, form: Form) -> str:
    """The headers of a common client or proxy do not change the answer to a request."""
    if form == "json":
        require_json(model)
    tensors, usual = model.sample(), USUAL_HEADERS[name]
    options: dict[str, Any] = (
        {"outputs": model.build_outputs_member()}
        if model.is_deployed
        else {"want": "binary" if form == "binary" else None}
    )
    message = model.request(tensors, send=form, **options).message()

    def expect_answer(reply: Reply) -> None:
        """Expect the correct outputs; an answer in an unknown content coding is not judged."""
        plain = decode_reply(reply) if reply.status is not None and reply.header("Content-Encoding") else reply
        if plain is None:  # a coding that the suite does not know
            return
        expect(plain).tensors(model.expected(tensors))
        if not model.is_deployed:
            expect(plain).forms({spec.name: form for spec in model.role.outputs})

    reply = target.send(usual.add_to(message, target.settings), fresh=True)
    if usual.is_justified_refusal(reply):
        return f"refused with {reply.status}"
    controls = [message, *[message.with_header("Accept-Encoding", coding) for coding in CODINGS if usual.has_codings]]

    def is_wrong_without_headers() -> bool:
        replies = (target.send(control, fresh=True) for control in controls)
        return not all(is_met(partial(expect_answer, found)) for found in replies)

    with block_if(is_wrong_without_headers, _ALSO_WRONG), attribute_to("OIP-REQUEST-HEADERS"):
        expect_answer(reply)
    return "answered"
