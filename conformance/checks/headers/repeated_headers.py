"""Two inference headers in one request. HTTP has them twice only where a field is a list, which this one is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.checks.headers.wrong_header_requests import VALUES
from conformance.checks.support.refusals import Refusal
from conformance.discovery.control_oracle import as_tensor
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_refusal, is_refused
from conformance.expect.unmet import is_met
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER, Message

ROLE = "identity_uint8"
Values = Callable[[Message], tuple[int, int]]

EQUAL: dict[str, Values] = {"equal": lambda message: (message.json_length, message.json_length)}
DIFFERENT: dict[str, Values] = {
    "right-then-0": lambda message: (message.json_length, 0),
    "0-then-right": lambda message: (0, message.json_length),
    "right-then-one-more": lambda message: (message.json_length, message.json_length + 1),
    "whole-body-then-right": lambda message: (len(message.body), message.json_length),
}
# Those that go to deployed models, too. None has a 0, under which JSON may become indices of a table.
FITS: Mapping[str, Fit] = dict.fromkeys(("equal", "right-then-one-more", "whole-body-then-right"), ANY)


def _good(model: Model) -> Message:
    return model.request(model.fill(VALUES), outputs=model.listed()).message()


def _saying(message: Message, *values: int) -> Message:
    """Return a message with so many inference headers."""
    plain = message.with_header(INFERENCE_HEADER, None)
    return replace(plain, headers=(*plain.headers, *[(INFERENCE_HEADER, str(value)) for value in values]))


def _twice(values: Values) -> MessageBuilder:
    return lambda model: _saying(_good(model), *values(_good(model)))


REFUSALS: tuple[Refusal, ...] = tuple(
    Refusal(f"header-twice-{name}", "BIN-HEADER-TWICE", ROLE, _twice(values), fit=FITS.get(name))
    for name, values in DIFFERENT.items()
)


@check("headers.different-inference-headers-are-refused", answers="BIN-HEADER-TWICE")
@rows(*[refusal.row() for refusal in REFUSALS])
def different_inference_headers_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A request with two inference headers that differ is refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("headers.two-inference-headers-are-no-third", answers="BIN-HEADER-TWICE-SAFE", role=ROLE)
@rows(*[Row(name, (values,), fit=FITS.get(name)) for name, values in {**EQUAL, **DIFFERENT}.items()])
def two_inference_headers_are_no_third(target: Target, model: Model, values: Values) -> str:
    """A request with two inference headers is refused, or read as it is with one of the two alone."""
    message = _good(model)
    both = values(message)
    reply = target.send(_saying(message, *both), fresh=True)
    if is_refused(target, model, reply):
        return "refused"
    expect(reply).answered()
    alone = {value: target.send(_saying(message, value), fresh=True) for value in dict.fromkeys(both)}
    steady = model.steady()
    taken = [value for value, other in alone.items() if _is_like(reply, other, steady)]
    if not taken:
        model.expected(model.fill(VALUES))  # a control request, which is sent again to see whether the model is steady
        one = f"the answer that the request gets with {both[0]} alone, or with {both[1]}"
        raise expect(reply).unmet(one, f"{reply.status_line} with {_shown(reply)}")
    return f"read as with {taken[0]} of {both[0]} and {both[1]}"


def _is_like(reply: Reply, other: Reply, steady: Sequence[str]) -> bool:
    """Say whether an answer has the outputs of another one, with the same elements where these are always the same."""
    tensors = [tensor for output in other.answer.outputs if (tensor := as_tensor(output)) and output.name in steady]
    near = [replace(tensor, is_near=True) for tensor in tensors]
    return _outline(reply) == _outline(other) and is_met(lambda: expect(reply).tensors(near))


def _outline(reply: Reply) -> Any:
    """Return what an answer has but the elements."""
    return reply.succeeded, [(o.name, o.datatype, o.shape, o.binary, o.array is None) for o in reply.answer.outputs]


def _shown(reply: Reply) -> str:
    return ", ".join(f"{output.name} {list(output.shape or ())}" for output in reply.answer.outputs) or "no outputs"
