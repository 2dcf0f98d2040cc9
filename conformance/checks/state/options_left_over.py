"""What one request asks for is for that request alone: it does not stay for the next one, were it refused or answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError, attribute_to, block_if
from conformance.roles.model import Model, RequestBuilder
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES
from conformance.spec.fit import JSON, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import InferRequest, Message, RequestedOutput

LEFT_OVER_ID = "left-over"

# What a request may ask for, with what it needs.
OPTIONS: Mapping[str, tuple[RequestBuilder, tuple[str, ...]]] = {
    "id": (lambda model: model.request(send="json", request_id=LEFT_OVER_ID), ()),
    "listed-output": (lambda model: model.request(send="json", outputs=[model.role.outputs[-1].name]), ()),
    "binary-data-output": (lambda model: model.request(send="json", binary_data_output=True), BINARY),
    "binary-data": (lambda model: model.request(send="json", want="binary"), BINARY),
    "binary-inputs": (lambda model: model.request(), BINARY),
    "classification": (
        lambda model: model.request(
            send="json", outputs=[RequestedOutput("SCORES", classification=2), RequestedOutput("RANKS")]
        ),
        CLASSES,
    ),
}


# --- what becomes of it -----------------------------------------------------------------------------------------------


def _as_it_is(request: InferRequest) -> Message:
    return request.message()


def _unknown_output(request: InferRequest) -> Message:
    def edit(document: dict[str, Any]) -> None:
        document.setdefault("outputs", []).append({"name": "NO_SUCH_OUTPUT"})

    return request.edited(edit)


def _unknown_input(request: InferRequest) -> Message:
    return request.edited(lambda document: document["inputs"][-1].update(name="NO_SUCH_INPUT"))


def _missing_input(request: InferRequest) -> Message:
    return replace(request, inputs=request.inputs[:1]).message()


def _cut_short(request: InferRequest) -> Message:
    message = request.message()
    return message.with_body(message.body[:-2])


OUTCOMES: Mapping[str, Callable[[InferRequest], Message]] = {
    "answered": _as_it_is,
    "refused-for-an-output": _unknown_output,
    "refused-for-an-input": _unknown_input,
    "refused-for-a-missing-input": _missing_input,
    "refused-for-its-end": _cut_short,
}
# Those that deployed models get.
FITS: Mapping[str, Fit] = {
    **dict.fromkeys(("id-answered", "id-refused-for-its-end", "binary-data-output-answered"), JSON),
    "binary-data-refused-for-an-output": JSON,
    "listed-output-answered": Fit(min_outputs=2, is_json=True),
}


@check("state.options-end-with-their-request", answers="OIP-ISOLATION", role="scores_two_outputs")
@rows(
    *[
        Row(f"{option}-{fate}", (ask, change), needs=needs, fit=FITS.get(f"{option}-{fate}"))
        for option, (ask, needs) in OPTIONS.items()
        for fate, change in OUTCOMES.items()
    ]
)
def options_end_with_their_request(
    target: Target, model: Model, ask: RequestBuilder, change: Callable[[InferRequest], Message]
) -> None:
    """A plain request is answered plainly after one that asked for something, on its connection and on another."""
    plain = model.request(send="json").message()
    with block_if(lambda: True, "a plain request is answered wrongly before any other"):
        _expect_plain(target.send(plain, fresh=True), model)
    before = change(ask(replace(model, salt=(model.salt + 101) % 256)))
    with attribute_to("OIP-ISOLATION"):
        for reply in target.send_on_one_connection([before, plain])[1:]:
            if reply.status is not None:  # a server may close the connection without a word
                _expect_plain(reply, model)
        target.send(before, fresh=True)
        _expect_plain(target.send(plain, fresh=True), model)


def _expect_plain(reply: Reply, model: Model) -> None:
    """Expect every output as JSON, with the right values, and not the id of the other request."""
    right = model.expected(model.sample())
    expect(reply).tensors(right).forms({tensor.name: "json" for tensor in right})
    if (reply.answer.document or {}).get("id") == LEFT_OVER_ID:
        raise UnmetError("no id, or one of its own", f"id {LEFT_OVER_ID}", reply)
