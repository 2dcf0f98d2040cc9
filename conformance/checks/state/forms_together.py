"""Requests of every form in flight together, to one model: JSON, binary data, raw, classes, compressed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from conformance.checks.state.salted_requests import make_salted_tensors
from conformance.checks.support.classes import read_classes
from conformance.checks.support.deployed_models import require_telling
from conformance.checks.support.refusals import DECLINED_STATUSES
from conformance.expect.class_texts import find_highest
from conformance.expect.content_coding import compress_gzip
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, attribute_to, is_met
from conformance.roles.model import Model
from conformance.roles.sample_values import make_sample_tensor
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES, RAW
from conformance.spec.fit import JSON
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import Message, RequestedOutput
from conformance.wire.tensor import Tensor

IN_FLIGHT = 32
Tensors = Sequence[Tensor]


@dataclass(frozen=True, slots=True)
class RequestForm:
    """A form of request.

    Attributes:
        message: makes it of inputs and a number of its own.
        expect: raises `UnmetError` where the answer is not that of the inputs.
        needs: extensions that it uses.
    """

    message: Callable[[Model, Tensors, int], Message]
    expect: Callable[[Reply, Model, Tensors], object]
    needs: tuple[str, ...] = ()


def _json(model: Model, tensors: Tensors, number: int) -> Message:
    return model.request(tensors, send="json", request_id=f"request-{number}").message()


def _gzipped(model: Model, tensors: Tensors, number: int) -> Message:
    message = _json(model, tensors, number)
    return message.with_body(compress_gzip(message.body)).with_header("Content-Encoding", "gzip")


def _binary(model: Model, tensors: Tensors, number: int) -> Message:
    return model.request(tensors, want="binary", request_id=f"request-{number}").message()


def _raw(model: Model, tensors: Tensors, number: int) -> Message:  # noqa: ARG001 - a raw request has no id
    return model.raw(bytes(tensors[0].to_bytes()))


def _classified(model: Model, tensors: Tensors, number: int) -> Message:
    wanted = [RequestedOutput(model.role.outputs[0].name, classification=1)]
    return model.request(tensors, send="json", outputs=wanted, request_id=f"request-{number}").message()


def _expect_tensors(reply: Reply, model: Model, tensors: Tensors) -> None:
    expect(reply).tensors(model.expected(tensors))


def _expect_top_class(reply: Reply, model: Model, tensors: Tensors) -> None:
    (tensor,) = tensors
    place = find_highest(tensor.array, 1)[0]
    found = read_classes(reply, model.role.outputs[0].name)[0]
    if (found.index, float(found.value)) != (place, float(tensor.array[place])):
        raise UnmetError(f"{tensor.array[place]}:{place}", f"{found.value}:{found.index}", reply)


KINDS: Mapping[str, RequestForm] = {
    "json": RequestForm(_json, _expect_tensors),
    "gzip": RequestForm(_gzipped, _expect_tensors),
    "binary": RequestForm(_binary, _expect_tensors, BINARY),
    "raw": RequestForm(_raw, _expect_tensors, RAW),
    "classes": RequestForm(_classified, _expect_top_class, CLASSES),
}
FORMS_WITHOUT_RAW = ("json", "gzip", "binary")
FORM_GROUPS = (
    ("raw",),
    ("classes",),
    ("gzip",),
    ("raw", "json"),
    ("raw", "binary"),
    ("classes", "json"),
    FORMS_WITHOUT_RAW,
    ("json", "binary", "raw", "classes"),
)


def _needs(kinds: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for kind in kinds for name in KINDS[kind].needs))


def _tensors(model: Model, number: int) -> Tensors:
    """Return the inputs of a request: as long as others, and of elements that no other has."""
    if model.is_own_oracle:
        return make_salted_tensors(model, 1 + number % 3, number)
    spec = model.role.inputs[0]
    return [make_sample_tensor(spec.name, spec.datatype, (3 + number % 3,), number * 7 % 256)]


@check("state.forms-in-flight-keep-apart", answers="OIP-ISOLATION", role="identity_int32")
@rows(
    *[
        Row("-".join(kinds), (kinds,), needs=_needs(kinds), fit=JSON if kinds == FORMS_WITHOUT_RAW else None)
        for kinds in FORM_GROUPS
    ]
)
def forms_in_flight_keep_apart(target: Target, model: Model, kinds: Sequence[str]) -> None:
    """Each of 32 requests of several forms, in flight together to one model, gets the answer to its own tensors."""
    require_telling(model, *(_tensors(model, k) for k in range(IN_FLIGHT)))
    for name in kinds:
        _expect_alone(target, model, name)
    sent = [(KINDS[kinds[k % len(kinds)]], _tensors(model, k)) for k in range(IN_FLIGHT)]
    messages = [kind.message(model, tensors, k) for k, (kind, tensors) in enumerate(sent)]
    for (kind, tensors), reply in zip(sent, target.send_together(messages), strict=True):
        _expect_own(target, model, kind, tensors, reply)


def _expect_alone(target: Target, model: Model, name: str) -> None:
    """Expect that a form is answered right where nothing is beside it.

    Raises:
        NotApplicable: it is one that no server has to take.
        Blocked: it is answered wrongly.
    """
    kind, tensors = KINDS[name], _tensors(model, IN_FLIGHT)
    reply = target.send(kind.message(model, tensors, IN_FLIGHT), fresh=True)
    if name == "gzip" and not reply.succeeded:
        raise NotApplicableError("compressed requests are not taken")
    try:
        kind.expect(reply, model, tensors)
    except UnmetError as unmet:
        raise BlockedError(f"{name} alone is answered wrongly, too", unmet) from None


def _expect_own(target: Target, model: Model, kind: RequestForm, tensors: Tensors, reply: Reply) -> None:
    """Expect the answer to a request's own tensors, unless the same request is answered as wrongly alone."""
    if reply.status in DECLINED_STATUSES:
        return
    try:
        with attribute_to("OIP-ISOLATION"):
            kind.expect(reply, model, tensors)
    except UnmetError as unmet:
        alone = target.send(reply.exchange.message, fresh=True)
        if not is_met(lambda: kind.expect(alone, model, tensors)):
            raise BlockedError("the same request alone is answered wrongly, too", unmet) from None
        raise
