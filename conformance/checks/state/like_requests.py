"""The server answers each of two similar requests, which differ in one element or option, by its own content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.checks.state.request_forms import NEEDS, AnyForm, require_raw
from conformance.checks.support.control_sides import make_large_inputs
from conformance.checks.support.datatypes import KIB
from conformance.checks.support.deployed_models import require_distinct_answers
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, attribute_to, block_if
from conformance.roles.model import Model, RequestBuilder
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES, RAW
from conformance.spec.fit import JSON, RAW_FLOATS, VARIABLE_FLOATS, Fit
from conformance.spec.text import format_shape
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import ABSENT, InferRequest, Message, RequestedOutput
from conformance.wire.tensor import Tensor

Judge = Callable[[Reply], object]
JudgedMessage = tuple[Message, Judge]


def _expect_outputs(*tensors: Tensor, form: str = "") -> Judge:
    """Return a judge that expects these outputs, in `form` if it is not empty."""

    def judge(reply: Reply) -> None:
        expectation = expect(reply).tensors(tensors)
        if form:
            expectation.forms({tensor.name: form for tensor in tensors})

    return judge


# --- one element ------------------------------------------------------------------------------------------------------


def _expect_own_answers_apart(target: Target, model: Model, form: AnyForm) -> None:
    """Expect different answers to two large requests that differ only in their last element."""
    tensors = make_large_inputs(model)
    flat = tensors[0].array.copy()
    flat[-1] = flat[-1] + 1
    others = [replace(tensors[0], array=flat), *tensors[1:]]
    require_distinct_answers(model, tensors, others)
    pair = [_make_tensors_message(model, form, each) for each in (tensors, others)]
    if form == "raw":
        require_raw(target, model, pair[0][0])
    _expect_answers_apart(target, pair)


def _make_tensors_message(model: Model, form: AnyForm, tensors: Sequence[Tensor]) -> JudgedMessage:
    if form == "raw":
        message = model.raw(bytes(tensors[0].to_bytes()))
    elif form == "json":
        message = model.request(tensors, send="json").message()
    else:
        message = model.request(tensors, want="binary").message()
    return message, _expect_outputs(*model.expected(tensors))


def _make_element_pair(model: Model, form: AnyForm, count: int, place: int) -> list[JudgedMessage]:
    """Return two requests of equal length that differ in one element."""
    return [_make_message(model, form, _make_elements(model, count, place, other=other)) for other in (False, True)]


def _make_elements(model: Model, count: int, place: int, *, other: bool) -> list[object]:
    is_text = model.role.inputs[0].datatype == "BYTES"
    elements: list[object] = [f"text{100 + k % 800}" if is_text else 100 + k % 100 for k in range(count)]
    elements[place] = ("text999" if other else "text998") if is_text else (203 if other else 202)
    return elements


def _make_message(model: Model, form: AnyForm, elements: Sequence[object]) -> JudgedMessage:
    return _make_tensors_message(model, form, [model.tensor(elements)])


# Datatype, form, and numbers of elements.
_ELEMENT_COUNTS: tuple[tuple[str, AnyForm, tuple[int, ...]], ...] = (
    ("uint8", "json", (2 * KIB,)),
    ("uint8", "binary", (5 * KIB, 100 * KIB)),
    ("uint8", "raw", (5 * KIB, 100 * KIB)),
    ("int32", "json", (25 * KIB,)),
    ("bytes", "json", (1000,)),
    ("bytes", "binary", (1000,)),
)


@check("state.one-other-element-is-seen", answers="OIP-ISOLATION")
@rows(
    *[
        Row(f"{role}-{form}-{count}-{name}", (form, count, place), role=f"identity_{role}", needs=NEEDS[form])
        for role, form, counts in _ELEMENT_COUNTS
        for count in counts
        for name, place in (("first", 0), ("middle", count // 2), ("last", -1))
    ],
    Row("own-json-last", ("json", None, -1), fit=replace(VARIABLE_FLOATS, is_json=True)),
    Row("own-binary-last", ("binary", None, -1), needs=BINARY, fit=VARIABLE_FLOATS),
    Row("own-raw-last", ("raw", None, -1), needs=RAW, fit=RAW_FLOATS),
)
def one_other_element_is_seen(target: Target, model: Model, form: AnyForm, count: int | None, place: int) -> None:
    """The server notices a single changed element, wherever it is."""
    if count is None:
        _expect_own_answers_apart(target, model, form)
        return
    _expect_answers_apart(target, _make_element_pair(model, form, count, place))


def _expect_answers_apart(target: Target, pair: Sequence[JudgedMessage]) -> None:
    """Expect a correct second answer; report OIP-ISOLATION if it repeats the first, otherwise block the row."""
    (first, is_first), (second, is_second) = pair
    before = target.send(first)
    try:
        is_first(before)
    except UnmetError as unmet:
        raise BlockedError("the first of the two requests is answered wrongly", unmet) from None
    reply = target.send(second)
    try:
        is_second(reply)
    except UnmetError as unmet:
        unmet.requirement = "OIP-ISOLATION"
        if (reply.status, reply.body) == (before.status, before.body):
            raise
        raise BlockedError("the second request is answered wrongly, and unlike the first", unmet) from None


# --- the same tensors --------------------------------------------------------------------------------------------------


LONG_COUNT = 2 * KIB


def _make_long_inputs(model: Model) -> Sequence[Tensor]:
    """Return inputs of `LONG_COUNT` elements; sample inputs for a deployed model."""
    return model.sample() if model.is_own_oracle else [model.tensor([100 + k % 100 for k in range(LONG_COUNT)])]


def _make_form_pair(model: Model, first: bool, second: bool) -> list[JudgedMessage]:
    """Return two requests with the same long inputs, each for an output as binary data if its flag is set, else as JSON."""
    name = model.role.outputs[0].name
    right = [tensor for tensor in model.expected(_make_long_inputs(model)) if tensor.name == name]
    return [
        (
            model.request(
                _make_long_inputs(model), send="json", outputs=[RequestedOutput(name, binary or ABSENT)]
            ).message(),
            _expect_outputs(*right, form="binary" if binary else "json"),
        )
        for binary in (first, second)
    ]


def _make_count_pair(model: Model) -> list[JudgedMessage]:
    """Return two requests with the same long inputs, for one class and for two."""
    name = model.role.outputs[0].name
    return [
        (
            model.request(
                _make_long_inputs(model), send="json", outputs=[RequestedOutput(name, classification=count)]
            ).message(),
            _expect_class_count(name, count),
        )
        for count in (1, 2)
    ]


def _expect_class_count(name: str, count: int) -> Judge:
    def judge(reply: Reply) -> None:
        found = expect(reply).output(name).shape
        if found is None or found[-1:] != (count,):
            raise UnmetError(f"{name} of {count} classes", format_shape(found), reply)

    return judge


def _make_framed_and_raw_pair(model: Model) -> list[JudgedMessage]:
    """Return two requests with one body and different inference headers: JSON with binary data, and a raw request."""
    tensors = [model.tensor([200, 201, 202])]
    framed = model.request(tensors, want="binary").message()
    raw = model.raw(framed.body)
    everything = [model.tensor(list(framed.body))]
    return [(framed, _expect_outputs(*model.expected(tensors))), (raw, _expect_outputs(*model.expected(everything)))]


@check("state.another-wish-for-the-same-tensors-is-seen", answers="OIP-ISOLATION")
@rows(
    Row(
        "json-then-binary", (lambda m: _make_form_pair(m, False, True),), role="identity_uint8", needs=BINARY, fit=JSON
    ),
    Row("binary-then-json", (lambda m: _make_form_pair(m, True, False),), role="identity_uint8", needs=BINARY),
    Row("one-class-then-two", (_make_count_pair,), role="identity_int32", needs=CLASSES),
    Row("framed-then-raw", (_make_framed_and_raw_pair,), role="identity_uint8", needs=(*BINARY, *RAW)),
)
def another_wish_for_the_same_tensors_is_seen(
    target: Target, model: Model, pair: Callable[[Model], Sequence[JudgedMessage]]
) -> None:
    """The server notices that a request asks for other outputs of the same tensors."""
    _expect_answers_apart(target, pair(model))


@check("state.same-body-for-another-model-is-seen", answers="OIP-ISOLATION", role="identity_int32")
@rows(Row("json", ("json",)), Row("binary", ("binary",), needs=BINARY), Row("raw", ("raw",), needs=RAW))
def same_body_for_another_model_is_seen(target: Target, model: Model, form: AnyForm) -> None:
    """The server answers the same body with the model that each path names."""
    other = target.model("cast_int32_fp32", model.salt)
    if other is None:
        raise NotApplicableError("no model for the role cast_int32_fp32")
    elements = [1000 + k for k in range(LONG_COUNT)]
    _expect_answers_apart(target, [_make_message(one, form, elements) for one in (model, other)])


# --- options of the request before ------------------------------------------------------------------------------------

LEFT_OVER_ID = "left-over"

# Options of a request, and the extensions that they need.
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


def _keep_request(request: InferRequest) -> Message:
    return request.message()


def _add_unknown_output(request: InferRequest) -> Message:
    def edit(document: dict[str, Any]) -> None:
        document.setdefault("outputs", []).append({"name": "NO_SUCH_OUTPUT"})

    return request.encode_with(edit)


def _rename_last_input(request: InferRequest) -> Message:
    return request.encode_with(lambda document: document["inputs"][-1].update(name="NO_SUCH_INPUT"))


def _keep_first_input(request: InferRequest) -> Message:
    return replace(request, inputs=request.inputs[:1]).message()


def _cut_last_bytes(request: InferRequest) -> Message:
    message = request.message()
    return message.with_body(message.body[:-2])


OUTCOMES: Mapping[str, Callable[[InferRequest], Message]] = {
    "answered": _keep_request,
    "refused-for-an-output": _add_unknown_output,
    "refused-for-an-input": _rename_last_input,
    "refused-for-a-missing-input": _keep_first_input,
    "refused-for-its-end": _cut_last_bytes,
}
# Rows that also run on deployed models.
FITS: Mapping[str, Fit] = {
    **dict.fromkeys(("id-answered", "id-refused-for-its-end", "binary-data-output-answered"), JSON),
    "binary-data-refused-for-an-output": JSON,
    "listed-output-answered": Fit(min_outputs=2, is_json=True),
}


def _make_option_rows() -> Iterator[Row]:
    """Yield rows for each option: a request that is answered, and two that are refused, each for another reason."""
    answered, *refused = OUTCOMES
    for turn, (option, (ask, needs)) in enumerate(OPTIONS.items()):
        for fate in (answered, *[refused[(3 - turn + place) % len(refused)] for place in range(2)]):
            yield Row(f"{option}-{fate}", (ask, OUTCOMES[fate]), needs=needs, fit=FITS.get(f"{option}-{fate}"))


@check("state.options-end-with-their-request", answers="OIP-ISOLATION", role="scores_two_outputs")
@rows(*_make_option_rows())
def options_end_with_their_request(
    target: Target, model: Model, ask: RequestBuilder, change: Callable[[InferRequest], Message]
) -> None:
    """The server answers a plain request plainly after one with options, on any connection."""
    plain = model.request(send="json").message()
    with block_if(lambda: True, "a plain request is answered wrongly before any other"):
        _expect_plain(target.send(plain, fresh=True), model)
    before = change(ask(replace(model, salt=(model.salt + 101) % 256)))
    with attribute_to("OIP-ISOLATION"):
        for reply in target.send_on_one_connection([before, plain])[1:]:
            if reply.status is not None:  # a server may close the connection without an answer
                _expect_plain(reply, model)
        target.send(before, fresh=True)
        _expect_plain(target.send(plain, fresh=True), model)


def _expect_plain(reply: Reply, model: Model) -> None:
    """Expect every output as JSON with the correct values, and not the id of the other request."""
    right = model.expected(model.sample())
    expect(reply).tensors(right).forms({tensor.name: "json" for tensor in right})
    if (reply.answer.document or {}).get("id") == LEFT_OVER_ID:
        raise UnmetError("no id, or one of its own", f"id {LEFT_OVER_ID}", reply)
