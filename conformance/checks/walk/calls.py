"""Send one step of the walk over gRPC: its earlier call, the call itself, and its concurrent calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from conformance.checks.support.covering import Step
from conformance.checks.walk import concurrent_requests
from conformance.checks.walk.axes import CANCELLED
from conformance.checks.walk.expected import (
    EARLIER_IDS,
    add_answer,
    expect_right_answer,
    expect_right_answers,
)
from conformance.checks.walk.requests import StepRequest, make_call
from conformance.checks.walk.single_factor import Walker
from conformance.roles.model import Model
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import InferRequest, Message, RequestedOutput


class CallSender(Walker):
    """Sends the calls of steps to one model over gRPC."""

    __slots__ = ()
    target: GrpcTarget

    def send_requests(self, step: Step, model: Model, salt: int, *, on_new_connection: bool) -> None:
        """Send the calls of a step once, and judge the answers."""
        main = make_call(step, model, salt)
        if step["before"] == CANCELLED:
            self.target.cancel(_name_earlier(concurrent_requests.make_good_request(main)), fresh=on_new_connection)
            on_new_connection = False
        elif earlier := _make_earlier_call(step, main):
            add_answer(self.answers, self.target.send(earlier, fresh=on_new_connection), earlier.body)
            on_new_connection = False
        all_requests = [main, *concurrent_requests.make_concurrent_requests(step, model, self.other, salt, make_call)]
        messages = [request.message for request in all_requests]
        alone = len(messages) == 1
        replies = (
            [self.target.send(messages[0], fresh=on_new_connection)] if alone else self.target.send_together(messages)
        )
        expect_right_answers(replies, all_requests, partial(expect_right_answer, answers=self.answers))


# --- earlier calls --------------------------------------------------------------------------------------------------


def _make_earlier_call(step: Step, main: StepRequest) -> Message | None:
    """Return the call to send before the call of a step; None if the step has no earlier call."""
    kind = step["before"]
    if kind in ("near", "larger", "smaller"):
        return concurrent_requests.make_similar_request(step, main, kind, make_call)
    build = _EARLIER_CALLS.get(kind)
    return build(concurrent_requests.make_good_request(main)) if build else None


def _set_fields(**fields: str) -> Callable[[InferRequest], Message]:
    """Return a function that makes the call of a request and sets these fields of its message."""

    def set_fields(message: Any) -> None:
        for name, value in fields.items():
            setattr(message, name, value)

    return lambda request: make_infer_message(request, set_fields)


def _use_raw_contents(request: InferRequest) -> Message:
    return make_infer_message(replace(request, inputs=tuple(replace(item, binary=True) for item in request.inputs)))


def _request_only_output(**output: Any) -> Callable[[InferRequest], Message]:
    return lambda request: make_infer_message(replace(request, outputs=(RequestedOutput(**output),), id=EARLIER_IDS[1]))


def _request_classes(request: InferRequest) -> Message:
    wanted = tuple(replace(output, classification=1) for output in (request.outputs or ())[:1])
    return make_infer_message(replace(request, outputs=wanted))


def _drop_contents(request: InferRequest) -> Message:
    def clear_contents(message: Any) -> None:
        message.inputs[0].ClearField("contents")
        del message.raw_input_contents[:]

    return make_infer_message(replace(request, id=EARLIER_IDS[1]), clear_contents)


def _lengthen_raw_contents(request: InferRequest) -> Message:
    def append_bytes(message: Any) -> None:
        message.raw_input_contents[0] += b"\x00\x00\x00"

    inputs = tuple(replace(item, binary=True) for item in request.inputs)
    return make_infer_message(replace(request, inputs=inputs, id=EARLIER_IDS[1]), append_bytes)


_name_earlier = _set_fields(id=EARLIER_IDS[0])

_EARLIER_CALLS: Mapping[str, Callable[[InferRequest], Message]] = {
    "other-form": _use_raw_contents,
    "with-id": _name_earlier,
    "classes-asked": _request_classes,
    "unknown-model": _set_fields(model_name="no-such-model", id=EARLIER_IDS[1]),
    "unknown-output": _request_only_output(name="NO_SUCH_OUTPUT"),
    "wrong-size": _lengthen_raw_contents,
    "no-contents": _drop_contents,
}
