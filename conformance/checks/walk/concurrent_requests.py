"""Make the requests that accompany the request of a step: an earlier request, and concurrent requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from conformance.checks.support.covering import Step
from conformance.checks.walk.axes import ABANDONED
from conformance.checks.walk.expected import EARLIER_IDS
from conformance.checks.walk.requests import StepRequest, make_request
from conformance.checks.walk.tensors import change_last_element
from conformance.roles.model import Model
from conformance.transport.send_options import PLAIN, SendOptions
from conformance.wire.request import InferRequest, Message, RequestedOutput

OutgoingMessage = tuple[SendOptions, Message]
# Builds a request from a step, a model, a salt, and optional tensors that replace those of the step.
MakeRequest = Callable[..., StepRequest]
_EARLIER_ID, _REFUSED_ID = EARLIER_IDS

# The number of other requests in flight at the same time as the request of a step. Rows of `state` and `grpc_calls`
# send 32 requests of every form at once.
CONCURRENT_COUNTS: Mapping[str, int] = {"nothing": 0, "one": 1, "other-model": 1, "many": 7}
# Values of the axis `before` whose request a server has to refuse.
REFUSED = ("unknown-model", "unknown-output", "broken-json", "wrong-size", "refused-option", "no-contents")


def make_earlier_request(step: Step, main: StepRequest) -> OutgoingMessage | None:
    """Return the message to send before the request of a step, and how to send it; None for no earlier message."""
    kind = step["before"]
    if kind == "nothing":
        return None
    if kind == "chunked":
        return SendOptions(chunked=(1,)), make_good_request(main).message()
    if kind in ("near", "larger", "smaller"):
        return PLAIN, make_similar_request(step, main, kind)
    return PLAIN, _EARLIER_REQUESTS[kind](main)


def make_abandoned_request(step: Step, main: StepRequest) -> Message | None:
    """Return the earlier request whose client disconnects before the answer; None if a step has no such request."""
    if step["before"] not in ABANDONED:
        return None
    if main.is_raw:
        return main.model.raw(bytes(change_last_element(main.tensors)[0].to_bytes()))
    return replace(make_good_request(main), id=_EARLIER_ID).message()


def make_similar_request(step: Step, main: StepRequest, kind: str, build: MakeRequest = make_request) -> Message:
    """Return the request of a step with other tensors.

    For the kind `near`, the tensors differ only in the last element, and the id is the same. For `larger` and
    `smaller`, the tensors have more or fewer elements, where the step allows it.
    """
    if kind == "near":
        return build(step, main.model, main.salt, change_last_element(main.tensors)).message
    count = {"larger": "300", "smaller": "1"}[kind] if step["count"] != "own" else "own"
    if main.model.role.batching and count != "own":
        count = {"larger": "4", "smaller": "1"}[kind]
    return build({**step, "count": count, "place": "every", "values": "ramp"}, main.model, 91).message


def make_good_request(main: StepRequest) -> InferRequest:
    """Return a plain request to the same model, with other tensors."""
    model = replace(main.model, salt=(main.model.salt + 59) % 256)
    return model.request(send=model.plain_input_form, want=model.plain_output_form)


def _make_binary_request(main: StepRequest) -> Message:
    model = replace(main.model, salt=(main.model.salt + 61) % 256)
    return model.request(send="binary", want="binary").message()


def _request_classes(main: StepRequest) -> Message:
    return replace(
        make_good_request(main), outputs=(RequestedOutput(main.model.role.outputs[0].name, classification=1),)
    ).message()


def _request_unknown_model(main: StepRequest) -> Message:
    message = make_good_request(main).message()
    return replace(message, path="/v2/models/no-such-model/infer")


def _request_unknown_output(main: StepRequest) -> Message:
    return replace(make_good_request(main), outputs=(RequestedOutput("NO_SUCH_OUTPUT"),), id=_REFUSED_ID).message()


def _make_broken_json_request(main: StepRequest) -> Message:
    message = make_good_request(main).message()
    return message.with_body(message.body[: message.json_length - 1])


def _make_wrong_size_request(main: StepRequest) -> Message:
    message = main.model.request(send="binary", binary_data_output=True, request_id=_REFUSED_ID).message()
    return message.with_body(message.body + b"\x00\x00\x00")


def _make_request_with_refused_options(main: StepRequest) -> Message:
    """Return a request with an id, `binary_data_output` and an unknown input, which is the only reason to refuse it."""
    request = replace(make_good_request(main), binary_data_output=True, id=_REFUSED_ID)
    return request.encode_with(lambda document: document["inputs"][0].update(name="NO_SUCH_INPUT"))


_EARLIER_REQUESTS: Mapping[str, Callable[[StepRequest], Message]] = {
    "other-form": _make_binary_request,
    "with-id": lambda main: replace(make_good_request(main), id=_EARLIER_ID).message(),
    "all-binary-asked": lambda main: replace(make_good_request(main), outputs=None, binary_data_output=True).message(),
    "classes-asked": _request_classes,
    "unknown-model": _request_unknown_model,
    "unknown-output": _request_unknown_output,
    "broken-json": _make_broken_json_request,
    "wrong-size": _make_wrong_size_request,
    "refused-option": _make_request_with_refused_options,
}


def make_concurrent_requests(
    step: Step, model: Model, other: Model | None, salt: int, build: MakeRequest = make_request
) -> list[StepRequest]:
    """Return the requests to send at the same time as the request of a step, with other tensors and ids.

    Requests to the same model have all other properties of the step's request. A request to another model is plain.
    """
    number = CONCURRENT_COUNTS[step["beside"]]
    if step["beside"] == "other-model" and other is not None:
        plain = {**step, "count": "own", "place": "every", "values": "ramp", "order": "declared", "outputs": "unlisted"}
        return [build({**plain, **_PLAIN_FORMS, "id": "none"}, other, salt + 1)]
    return [build({**step, "values": "ramp"}, model, salt + 1 + k) for k in range(number)]


_PLAIN_FORMS = {"send": "json", "want": "nothing", "classes": "none", "numbers": "usual", "nesting": "flat"}
