"""Concurrent requests to several models, for classes and for other outputs are answered as each request alone."""

from __future__ import annotations

from dataclasses import replace

from conformance.checks.state.output_lists import list_output_lists, make_output_list_rows
from conformance.checks.state.request_forms import is_closed_under_load
from conformance.checks.support.class_expectations import are_classes_near
from conformance.checks.support.ranked_inputs import Case as InputsAndOutput
from conformance.checks.support.ranked_inputs import choose_inputs
from conformance.checks.support.refusals import LIMIT_STATUSES
from conformance.discovery.control_answers import find_differing_outputs
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Row, claim, rows
from conformance.spec.extensions import BINARY, CLASSES
from conformance.spec.fit import SCORED
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.wire.finding import format_value
from conformance.wire.request import Form, InferRequest, RequestedOutput
from conformance.wire.response import Output

KINDS = ("classes", "several-models")  # `state.answers-in-flight-are-their-own` sends tensors to one model
LARGE_COUNT = 20_000  # elements, in some requests beside others of few
LARGE_ROLES = ("add_sub", "raw_two_outputs")
MODELS = ("identity_int32", "identity_bytes", "multi", "add_sub", "identity_fp64", "string_length")


@claim("state.requests-in-flight-are-answered-as-alone", requirements="OIP-ISOLATION")
@rows(
    *[
        Row(
            f"{count}-{kind}",
            (kind, count),
            role="scores" if kind == "classes" else "identity_int32",
            needs=(*CLASSES, *BINARY) if kind == "classes" else BINARY,
            fit=SCORED if kind == "classes" and count > 2 else None,
        )
        for kind in KINDS
        for count in (2, 32)
    ],
    *make_output_list_rows(8),
)
def requests_in_flight_are_answered_as_alone(target: AnyTarget, model: Model, kind: str, count: int) -> None:
    """The server answers concurrent requests for classes, other outputs or other models as each of them alone."""
    messages = [target.message(_build_request(target, model, kind, number)) for number in range(count)]
    alone = [target.send(message) for message in messages]
    if not any(reply.succeeded for reply in alone):
        outcome = escape_text(alone[0].outcome())
        unmet = expect(alone[0]).unmet("an answer", outcome)
        raise BlockedError(f"a single request is not answered either: {outcome}", unmet)
    for number, (usual, found) in enumerate(zip(alone, target.send_together(messages), strict=True)):
        if not usual.succeeded or found.status in LIMIT_STATUSES or is_closed_under_load(target, found):
            continue
        if not _has_same_content(model, found, usual, kind, number):
            expected = f"{_describe_answer(usual)}, as in the answer to the request alone"
            raise UnmetError(expected, _describe_answer(found), found)


def _build_request(target: AnyTarget, model: Model, kind: str, number: int) -> InferRequest:
    """Return request `number` of a kind."""
    if kind not in KINDS:
        return _build_list_request(model, kind, number)
    return (_build_own_request if model.is_deployed else _build_role_request)(target, model, kind, number)


def _build_list_request(model: Model, kind: str, number: int) -> InferRequest:
    """Return a request for a list of outputs; the requests before and after it have other lists and the same inputs.

    Every fifth request has many elements if the role allows that, so that it takes longer than the others.
    """
    lists = list_output_lists(model, kind)
    is_large = number % 5 == 0 and not model.is_deployed and model.role.name in LARGE_ROLES
    small = replace(model, salt=number // len(lists)).sample()
    tensors = model.build_salted_inputs(LARGE_COUNT, number) if is_large else small
    send, outputs = model.plain_input_form, lists[number % len(lists)]
    return model.request(tensors, send=send, outputs=outputs, request_id=f"request-{number}")


def _build_role_request(target: AnyTarget, model: Model, kind: str, number: int) -> InferRequest:
    """Return request `number` to the model of a role; the id and values are unique to this request."""
    identity = f"request-{number}"
    if kind == "classes":
        scores = model.tensor([float((number * 7 + k * 13) % 97) for k in range(4)])
        wanted = [RequestedOutput(model.role.outputs[0].name, classification=1 + number % 4)]
        return model.request([scores], send=_choose_encoding(number), outputs=wanted, request_id=identity)
    model = target.model(MODELS[number % len(MODELS)]) or model
    tensors = model.build_salted_inputs(3, number)
    return model.request(tensors, send=_choose_encoding(number), request_id=identity)


def _build_own_request(_: AnyTarget, model: Model, kind: str, number: int) -> InferRequest:
    """Return request `number` for classes of a deployed model; the id and values depend on the number."""
    del kind
    if model.noise:
        raise NotApplicableError(f"the outputs of {model.name} differ a little each time, and so do its classes")
    tensors, right = _choose_own_inputs(model, number)
    wanted = [RequestedOutput(right.name, classification=model.limit_classes(right, 1 + number % 4))]
    return model.request(tensors, send="json", outputs=wanted, request_id=f"request-{number}")


def _choose_own_inputs(model: Model, number: int) -> InputsAndOutput:
    return choose_inputs(replace(model, salt=number), model.find_classifiable_outputs()[0])


def _choose_encoding(number: int) -> Form:
    """Return whether request `number` has typed or raw contents, which alternate between rounds of `MODELS`."""
    return "json" if number // len(MODELS) % 2 else "binary"


def _has_same_content(model: Model, found: Reply, usual: Reply, kind: str, number: int) -> bool:
    """Say whether two answers agree; for a deployed model, in its deterministic outputs and within tolerance."""
    if not model.is_deployed or not found.succeeded:
        return _summarize_content(found) == _summarize_content(usual)
    frames = [
        (_read_sent_id(reply), sorted((output.name, _is_binary(output, reply)) for output in reply.answer.outputs))
        for reply in (found, usual)
    ]
    differing = find_differing_outputs(usual, found, model.list_comparable_outputs(), model.noise)
    texts = [[_list_texts(reply.answer.output(name)) for reply in (found, usual)] for name in differing]
    if frames[0] != frames[1] or any(not text for pair in texts for text in pair):
        return False
    scores = _choose_own_inputs(model, number)[1] if texts and kind == "classes" else None
    return all(are_classes_near(one, other, scores) for one, other in texts)


def _list_texts(output: Output | None) -> list[str]:
    """Return the elements of a BYTES output as text; empty for other outputs."""
    if output is None or output.array is None or output.datatype != "BYTES":
        return []
    return [element.decode("utf-8", "replace") for element in output.array.reshape(-1)]


def _summarize_content(reply: Reply) -> object:
    """Return the content of an answer, the same for typed and raw contents, without an id that the server invented."""
    if not reply.succeeded:
        return reply.status_line if reply.status else reply.outcome()
    document = reply.answer.document or {}
    outputs = sorted(
        (output.name, output.datatype, str(output.shape), _format_values(output.array), _is_binary(output, reply))
        for output in reply.answer.outputs
    )
    return _read_sent_id(reply), document.get("model_name"), outputs


def _is_binary(output: Output, reply: Reply) -> bool:
    """Say whether an output is binary data; False over gRPC, where servers choose the form."""
    return output.binary and not reply.is_over_grpc


def _read_sent_id(reply: Reply) -> str:
    """Return the id of an answer if a request had this id; empty if the server invented the id."""
    found = str((reply.answer.document or {}).get("id", ""))
    return found if found.startswith("request-") else ""


def _format_values(array: object) -> str:
    """Return the elements of an array as text."""
    elements = getattr(array, "tolist", lambda: array)()
    return repr(elements)


def _describe_answer(reply: Reply) -> str:
    """Describe the id and outputs of an answer, or its error."""
    if not reply.succeeded:
        return reply.outcome()
    identity = (reply.answer.document or {}).get("id")
    texts = [
        f"{format_value(output.name)} {_format_values(output.array)[:80]}"
        f"{' as binary data' if _is_binary(output, reply) else ''}"
        for output in reply.answer.outputs
    ]
    return f"{f'id {format_value(identity)}: ' if identity else ''}{', '.join(texts)}"
