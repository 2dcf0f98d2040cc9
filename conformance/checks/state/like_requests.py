"""The server notices the difference between two requests that differ only in one element, option or model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from conformance.checks.state.output_lists import list_output_lists, make_output_list_rows
from conformance.checks.state.request_forms import NEEDS, AnyForm, require_raw_answered
from conformance.checks.support.classes import find_scored_output, list_output_names
from conformance.checks.support.datatypes import KIB
from conformance.checks.support.inputs import make_large_inputs, require_distinct_answers
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, attribute_to, block_if
from conformance.roles.model import Model, RequestBuilder
from conformance.spec.check import Only, Row, claim, rows
from conformance.spec.extensions import BINARY, CLASSES, HTTP, RAW
from conformance.spec.fit import JSON, RAW_FLOATS, SCORED, VARIABLE_FLOATS, Fit
from conformance.spec.text import escape_text, format_shape
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.request import ABSENT, InferRequest, Message, RequestedOutput
from conformance.wire.tensor import Tensor

Judge = Callable[[Reply], object]
JudgedRequest = tuple[InferRequest | Message, Judge]


def _make_outputs_judge(*tensors: Tensor) -> Judge:
    """Return a function that expects these outputs in a reply."""
    return lambda reply: expect(reply).tensors(tensors)


# --- one element ------------------------------------------------------------------------------------------------------


def _expect_large_inputs_told_apart(target: AnyTarget, model: Model, form: AnyForm) -> None:
    """Send a deployed model two large requests that differ only in the last element of the first input.

    Expect the correct answer to each.
    """
    tensors = make_large_inputs(model)
    flat = tensors[0].array.copy()
    flat[-1] = flat[-1] + 1
    others = [replace(tensors[0], array=flat), *tensors[1:]]
    require_distinct_answers(model, tensors, others)
    if form == "raw":
        require_raw_answered(target, model, model.raw(bytes(tensors[0].to_bytes())))
    _expect_requests_told_apart(target, [_build_judged_message(model, form, each) for each in (tensors, others)])


def _build_judged_message(model: Model, form: AnyForm, tensors: Sequence[Tensor]) -> JudgedRequest:
    if form == "raw":
        return model.raw(bytes(tensors[0].to_bytes())), _make_outputs_judge(*model.expected(tensors))
    request = model.request(tensors, send="json") if form == "json" else model.request(tensors, want="binary")
    return request, _make_outputs_judge(*model.expected(tensors))


def _build_pair_with_other_element(model: Model, form: AnyForm, count: int, position: int) -> list[JudgedRequest]:
    """Return two requests of equal length that differ in one element."""
    return [
        _build_message_with_elements(model, form, _make_elements(model, count, position, is_changed=is_changed))
        for is_changed in (False, True)
    ]


def _make_elements(model: Model, count: int, position: int, *, is_changed: bool) -> list[object]:
    is_text = model.role.inputs[0].datatype == "BYTES"
    elements: list[object] = [f"text{100 + k % 800}" if is_text else 100 + k % 100 for k in range(count)]
    elements[position] = ("text999" if is_changed else "text998") if is_text else (203 if is_changed else 202)
    return elements


def _build_message_with_elements(model: Model, form: AnyForm, elements: Sequence[object]) -> JudgedRequest:
    return _build_judged_message(model, form, [model.tensor(elements)])


# Datatype, form, and numbers of elements.
_ELEMENT_COUNTS: tuple[tuple[str, AnyForm, tuple[int, ...]], ...] = (
    ("uint8", "json", (2 * KIB,)),
    ("uint8", "binary", (5 * KIB, 100 * KIB)),
    ("uint8", "raw", (5 * KIB, 100 * KIB)),
    ("int32", "json", (25 * KIB,)),
    ("bytes", "json", (1000,)),
    ("bytes", "binary", (1000,)),
)


@claim("state.one-other-element-is-seen", requirements="OIP-ISOLATION")
@rows(
    *[
        Row(f"{role}-{form}-{count}-{name}", (form, count, position), role=f"identity_{role}", needs=NEEDS[form])
        for role, form, counts in _ELEMENT_COUNTS
        for count in counts
        for name, position in (("first", 0), ("middle", count // 2), ("last", -1))
    ],
    Row("deployed-json-last", ("json", None, -1), fit=replace(VARIABLE_FLOATS, is_json=True)),
    Row("deployed-binary-last", ("binary", None, -1), needs=BINARY, fit=VARIABLE_FLOATS),
    Row("deployed-raw-last", ("raw", None, -1), needs=RAW, fit=RAW_FLOATS),
)
def one_other_element_is_seen(target: AnyTarget, model: Model, form: AnyForm, count: int | None, position: int) -> None:
    """The server gives the correct answer if only one element differs from the previous request."""
    if count is None:
        _expect_large_inputs_told_apart(target, model, form)
        return
    _expect_requests_told_apart(target, _build_pair_with_other_element(model, form, count, position))


def _expect_requests_told_apart(target: AnyTarget, requests: Sequence[JudgedRequest]) -> None:
    """Send requests one after the other and expect the correct answer to each.

    Raises:
        UnmetError: an answer repeats an earlier one (OIP-ISOLATION).
        BlockedError: the first answer is wrong, or a later one is wrong without repeating an earlier one.
    """
    before: list[tuple[int | None, bytes]] = []
    for request, judge in requests:
        reply = target.infer(request)
        try:
            judge(reply)
        except UnmetError as unmet:
            if not before:
                raise BlockedError("the answer to the first of the requests is wrong", unmet) from None
            if (reply.status, reply.body) not in before:
                reason = "the answer to a later request is wrong, but differs from earlier answers"
                raise BlockedError(reason, unmet) from None
            unmet.requirement = "OIP-ISOLATION"
            raise
        before.append((reply.status, reply.body))


# Inputs that a careless key of a cache does not tell apart: role, and pairs of elements and shape.
_ALIKE: Mapping[str, tuple[str, Sequence[tuple[Sequence[object], Sequence[int]]]]] = {
    "borders-of-strings": ("identity_bytes", ((["ab", "c"], [2]), (["a", "bc"], [2]))),
    "sign-of-zero": ("identity_fp32", (([0.0, -0.0, 1.0], [3]), ([-0.0, 0.0, 1.0], [3]))),
    "shape": ("rank2", (([1, 2, 3, 4, 5, 6], [2, 3]), ([1, 2, 3, 4, 5, 6], [3, 2]))),
}


@claim("state.inputs-that-look-alike-are-told-apart", requirements="OIP-ISOLATION")
@rows(
    *[
        Row(f"{name}-{form}", (form, pair), role=role, needs=NEEDS[form])
        for name, (role, pair) in _ALIKE.items()
        for form in ("json", "binary")
        if (name, form) != ("sign-of-zero", "json")  # JSON readers may drop the sign
    ]
)
def inputs_that_look_alike_are_told_apart(
    target: AnyTarget, model: Model, form: AnyForm, pair: Sequence[tuple[Sequence[object], Sequence[int]]]
) -> None:
    """The server gives the correct answer if only borders of strings, signs of zeros or the shape differ."""
    _expect_requests_told_apart(
        target, [_build_judged_message(model, form, [model.tensor(elements, shape)]) for elements, shape in pair]
    )


# --- the same tensors --------------------------------------------------------------------------------------------------


LONG_COUNT = 2 * KIB
_FORM = Only(HTTP, "calls cannot ask for the form of an output")


def _build_binary_and_raw_pair(model: Model) -> list[JudgedRequest]:
    """Return two requests with one body and different inference headers: JSON with binary data, and a raw request."""
    tensors = [model.tensor([200, 201, 202])]
    binary_message = model.request(tensors, want="binary").message()
    raw = model.raw(binary_message.body)
    everything = [model.tensor(list(binary_message.body))]
    return [
        (binary_message, _make_outputs_judge(*model.expected(tensors))),
        (raw, _make_outputs_judge(*model.expected(everything))),
    ]


@claim("state.other-requested-outputs-are-seen", requirements="OIP-ISOLATION")
@rows(
    *make_output_list_rows(),
    Row("identity_uint8-forms", ("forms",), role="identity_uint8", needs=BINARY),
    Row("identity_int32-classified", ("classified",), role="identity_int32", needs=CLASSES),
    Row("forms", ("forms",), needs=BINARY, fit=JSON, only=_FORM),
)
def other_requested_outputs_are_seen(target: AnyTarget, model: Model, kind: str) -> None:
    """The server gives each of several requests with the same inputs the outputs that this request asks for."""
    tensors, lists = replace(model, salt=(model.salt + 37) % 256).sample(), list_output_lists(model, kind)
    requests = [model.request(tensors, send=model.plain_input_form, outputs=outputs) for outputs in lists]
    _expect_requests_told_apart(target, [(request, _make_list_judge(model, request)) for request in requests])


def _make_list_judge(model: Model, request: InferRequest) -> Judge:
    """Return a function that expects the requested outputs in their forms, as tensors or as classes."""
    outputs = [model.build_plain_output(spec.name) for spec in model.role.outputs]
    datatypes = {spec.name: spec.datatype for spec in model.role.outputs}

    def judge_reply(reply: Reply) -> None:
        for output in request.outputs or outputs:
            found, count = expect(reply).output(output.name), output.classification
            if count is ABSENT and found.datatype != datatypes[output.name]:
                actual = f"datatype {escape_text(found.datatype, 20)}"
                raise UnmetError(f"{output.name} {datatypes[output.name]}", actual, reply)
            if count is not ABSENT and (found.shape is None or found.shape[-1:] != (count,)):
                raise UnmetError(f"{output.name} with {count} as the last dimension", format_shape(found.shape), reply)
            if not reply.is_over_grpc:  # there, servers choose the form
                expect(reply).forms({output.name: "binary" if output.binary_data is True else "json"})

    return judge_reply


@claim("state.same-body-as-raw-input-is-seen", requirements="OIP-ISOLATION", role="identity_uint8")
@rows(Row("framed-then-raw", needs=(*BINARY, *RAW)))
def same_body_as_raw_input_is_seen(target: AnyTarget, model: Model) -> None:
    """The server takes a body as JSON and binary data or as a raw input, whichever the inference header says."""
    _expect_requests_told_apart(target, _build_binary_and_raw_pair(model))


@claim("state.same-body-for-another-model-is-seen", requirements="OIP-ISOLATION", role="identity_int32")
@rows(Row("json", ("json",)), Row("binary", ("binary",), needs=BINARY), Row("raw", ("raw",), needs=RAW))
def same_body_for_another_model_is_seen(target: AnyTarget, model: Model, form: AnyForm) -> None:
    """The server passes a body to the model in the path, even if another model received the same body before."""
    other = target.model("cast_int32_fp32", model.salt)
    if other is None:
        raise NotApplicableError("no model for the role cast_int32_fp32")
    elements = [1000 + k for k in range(LONG_COUNT)]
    _expect_requests_told_apart(target, [_build_message_with_elements(one, form, elements) for one in (model, other)])


# --- options of the request before ------------------------------------------------------------------------------------

LEFT_OVER_ID = "left-over"


def _request_classes(model: Model) -> InferRequest:
    """Return a request for classes of one output, and for the other outputs without classes."""
    chosen, *others = list_output_names(model, find_scored_output(model), is_first=True)
    count = 1 if model.is_deployed else 2
    wanted = [RequestedOutput(chosen, classification=count), *map(model.build_plain_output, others)]
    return model.request(send="json", outputs=wanted)


# Options of a request, the extensions that they need, and why calls do not have them.
OPTION_REQUESTS: Mapping[str, tuple[RequestBuilder, tuple[str, ...], Only | None]] = {
    "id": (lambda model: model.request(send="json", request_id=LEFT_OVER_ID), (), None),
    "listed-output": (lambda model: model.request(send="json", outputs=[model.role.outputs[-1].name]), (), None),
    "binary-data-output": (lambda model: model.request(send="json", binary_data_output=True), BINARY, _FORM),
    "binary-data": (lambda model: model.request(send="json", want="binary"), BINARY, _FORM),
    "binary-inputs": (lambda model: model.request(), BINARY, None),
    "classification": (_request_classes, CLASSES, None),
}


# --- valid and invalid requests ---------------------------------------------------------------------------------------


def _keep(request: InferRequest) -> InferRequest:
    return request


def _add_unknown_output(request: InferRequest) -> InferRequest:
    return replace(request, outputs=(*(request.outputs or ()), RequestedOutput("NO_SUCH_OUTPUT")))


def _rename_last_input(request: InferRequest) -> InferRequest:
    *others, last = request.inputs
    return replace(request, inputs=(*others, replace(last, tensor=replace(last.tensor, name="NO_SUCH_INPUT"))))


# outcome of a request -> how it is changed, and how many bytes are cut off its end
CHANGES: Mapping[str, tuple[Callable[[InferRequest], InferRequest], int]] = {
    "answered": (_keep, 0),
    "refused-for-an-output": (_add_unknown_output, 0),
    "refused-for-an-input": (_rename_last_input, 0),
    "refused-for-a-missing-input": (lambda request: replace(request, inputs=request.inputs[:1]), 0),
    "refused-for-its-end": (_keep, 2),
}
# Rows that also run on deployed models.
DEPLOYED_FITS: Mapping[str, Fit] = {
    **dict.fromkeys(("id-answered", "id-refused-for-its-end", "binary-data-output-answered"), JSON),
    "binary-data-refused-for-an-output": JSON,
    "listed-output-answered": Fit(min_outputs=2, is_json=True),
    **dict.fromkeys(("classification-answered", "classification-refused-for-an-output"), replace(SCORED, is_json=True)),
}


def _make_option_rows() -> Iterator[Row]:
    """Yield three rows for each option: one with a valid request, and two with requests that are refused."""
    answered, *refused = CHANGES
    for number, (option, (build_request, needs, only)) in enumerate(OPTION_REQUESTS.items()):
        for outcome in (answered, *[refused[(3 - number + position) % len(refused)] for position in range(2)]):
            yield Row(
                f"{option}-{outcome}",
                (build_request, *CHANGES[outcome]),
                needs=needs,
                fit=DEPLOYED_FITS.get(f"{option}-{outcome}"),
                only=only,
            )


@claim("state.options-end-with-their-request", requirements="OIP-ISOLATION", role="scores_two_outputs")
@rows(*_make_option_rows())
def options_end_with_their_request(
    target: AnyTarget,
    model: Model,
    build_request: RequestBuilder,
    change: Callable[[InferRequest], InferRequest],
    cut: int,
) -> None:
    """The server does not apply the options of one request to the next, on the same or another connection."""
    plain = target.message(model.request(send="json"))
    with block_if(lambda: True, "the answer to a request without options is wrong even before any other request"):
        _expect_default_answer(target.send(plain, fresh=True), model)
    before = target.message(change(build_request(replace(model, salt=(model.salt + 101) % 256))))
    before = before.with_body(before.body[:-cut]) if cut else before
    # A refused call whose options stay, or that leaves no right answer, is told as OIP-ALIVE over gRPC.
    is_refused_call = isinstance(target, GrpcTarget) and (cut > 0 or change is not _keep)
    with attribute_to("OIP-ALIVE" if is_refused_call else "OIP-ISOLATION"):
        for reply in target.send_on_one_connection([before, plain])[1:]:
            if reply.status is not None:  # a server may close the connection without an answer
                _expect_default_answer(reply, model)
        target.send(before, fresh=True)
        _expect_default_answer(target.send(plain, fresh=True), model)


def _expect_default_answer(reply: Reply, model: Model) -> None:
    """Expect the answer to a request without options: every output as JSON, without the id of the earlier request."""
    right = model.expected(model.sample())
    expect(reply).tensors(right)
    if not reply.is_over_grpc:  # there, servers choose the form
        expect(reply).forms({tensor.name: "json" for tensor in right})
    if (reply.answer.document or {}).get("id") == LEFT_OVER_ID:
        raise UnmetError("no id, or an id that the server chose", f"id {LEFT_OVER_ID}", reply)
