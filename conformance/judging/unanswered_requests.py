"""Finds why a server refuses a request or never answers it, if a control shows another cause than the row's property.

A request that is not answered has controls with the same shapes, in JSON, and with one of its options each: none, its
id, its outputs, classes, binary data. The first of them that is not answered either is the cause. A refused request has
further controls that differ from it in one thing: where its binary data begin, or whether they look like JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from zlib import crc32

from conformance.expect.attribution import LENGTH, attribute_missing_answer
from conformance.expect.refusals import ERROR
from conformance.expect.unmet import UnmetError
from conformance.judging.control_request import (
    RequestContent,
    build_control_request,
    find_stand_in,
    read_request_content,
)
from conformance.judging.crashes import ALIVE
from conformance.judging.server_limits import RANKED_DATATYPE
from conformance.roles.model import Model
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.ledger import Concern, Level, get_requirement
from conformance.transport.broken_request import is_busy
from conformance.transport.exchange import FailureKind, Reply
from conformance.transport.send_options import PLAIN
from conformance.transport.target import Target
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import INFERENCE_HEADER, InferRequest, Message, RequestedOutput

BINARY_DATA = "BIN-BODY-I"
# Areas of requirements about what came before a request, or how it was sent: their rows have controls of their own, and
# so have those about wrong requests, after which a right one is sent.
_AREAS_ABOUT_STATE = ("state", "errors")
_JSON_MARKS = b'{}[]",:'
_WITHOUT_MARKS = bytes.maketrans(_JSON_MARKS, b"x" * len(_JSON_MARKS))
_LARGEST_ELEMENT = 8  # bytes
_ENDED = (FailureKind.CLOSED, FailureKind.BROKEN)
_UNANSWERED = (FailureKind.TIMEOUT, *_ENDED, FailureKind.STATUSLESS)
# Requirements about the length of an answer, whatever cuts it off.
_LENGTHS = (LENGTH, "BIN-CONTENT-LENGTH")
# Requirement -> that of the option whose simple request may be refused for the same reason: its path or method, its
# typed contents, its lack of a header.
_SHARED_PROPERTIES = {
    **dict.fromkeys(("OIP-ENDPOINTS", "OIP-ENDPOINTS/grpc", "GRPC-TYPED"), "OIP-ANSWER"),
    "BIN-HEADER-OPTIONAL": "BIN-ALL-TRUE",
}


def find_refusal_cause(target: Target, unmet: UnmetError, named: str) -> UnmetError | None:
    """Return the violation that explains the refusal of a legal request; None if `named` may do so."""
    reply = unmet.reply
    if reply is None or reply.is_over_grpc or not reply.is_refusal or is_busy(reply):
        return None
    exchange, message = reply.exchange, reply.exchange.message
    if is_about_state(named) or exchange.send_options != PLAIN or exchange.note:
        return None  # the controls are sent alone and in one piece
    if target.send(message, fresh=True).succeeded:
        return None  # refused once, for a reason that no control shows: a gateway may renew credentials
    length = message.header(INFERENCE_HEADER)
    if length != str(message.json_length) or not 0 < message.json_length < len(message.body):
        return None  # a wrong length would be right in the control
    for is_cause, control in _CONTROLS:
        if is_cause(target, message) and target.send_until_not_busy(message).is_refusal:
            unmet.requirement = BINARY_DATA
            unmet.actual += f"; {control}"
            return unmet
    return None


def find_missing_error(unmet: UnmetError, named: str) -> UnmetError | None:
    """Return the violation if a wrong request got no answer where a MUST wants it refused, else None.

    Such a server misreads nothing, so that it meets the requirement of the row: what lacks is the error.
    """
    entry, reply = get_requirement(named), unmet.reply
    if reply is None or reply.is_over_grpc or reply.status is not None or entry.level != Level.MUST:
        return None
    if entry.concern is not Concern.REFUSAL or named == ALIVE or not reply.has_failed(FailureKind.TIMEOUT, *_ENDED):
        return None
    unmet.requirement = ERROR
    return unmet


def find_option_cause(target: Target, model: Model, unmet: UnmetError, named: str) -> UnmetError | None:
    """Return the violation if a simple request with one option of the request is not answered either, else None."""
    reply = unmet.reply
    if reply is None or not _is_unanswered(reply) or _is_lack_of_answer_judged(reply, named):
        return None
    content = read_request_content(reply.exchange.message, model)
    simple = build_control_request(content, target, model) if content else None
    if content is None or simple is None:
        return None
    for option in _list_options(content, replace(simple, id=None), target, model, reply):
        if _is_answered(target, option.message):
            continue
        may_refuse = model.is_deployed and not option.words  # the elements, or the shape
        if reply.is_refusal and (may_refuse or option.requirement == _SHARED_PROPERTIES.get(named)):
            return None
        if is_about_state(named) and target.repeat_plain_request(model, GRPC if reply.is_over_grpc else HTTP):
            return None  # the request of the row may have left the model unable to answer
        shapes = ", ".join(f"{tensor.datatype} {list(tensor.shape)}" for tensor in content.tensors)
        unmet.requirement = _name_cause(option, reply)
        unmet.actual += f"; a simple request{option.words or f' with {shapes}'} is not answered either"
        return unmet
    return None


def _name_cause(option: _Option, reply: Reply) -> str:
    """Return the requirement of an option whose requests are refused, or whose connections end before any answer.

    A silence, an answer that is cut off, and the end of a connection for the tensors alone or for an option that the
    server may decline, have requirements of their own.
    """
    is_closed = reply.status is None and reply.has_failed(*_ENDED)
    if reply.is_refusal or (is_closed and option.words and not option.may_be_declined):
        return option.requirement
    return attribute_missing_answer(reply)


def _is_unanswered(reply: Reply) -> bool:
    is_cut_off = reply.status is not None and reply.exchange.failure is not None
    return is_cut_off or reply.has_failed(*_UNANSWERED) or (reply.is_refusal and not is_busy(reply))


def _is_answered(target: Target, message: Message) -> bool:
    """Say whether the server answers a control request, or is too busy to; it is sent once in a run."""
    name = f"simple request {crc32(message.body):08x} for {message.path}"  # over gRPC, only the body names the model
    return target.probe_once(name, lambda: not _is_unanswered(target.send_until_not_busy(message)))


def _is_lack_of_answer_judged(reply: Reply, requirement: str) -> bool:
    """Say whether the requirement may ask for the refusal, or be about the end of an answer that was cut off."""
    entry = get_requirement(requirement)
    if reply.is_refusal:
        return entry.area == "errors" or entry.concern is Concern.REFUSAL
    return reply.status is not None and requirement in _LENGTHS


def is_about_state(requirement: str) -> bool:
    """Say whether a requirement is about what came before a request, or about wrong requests."""
    entry = get_requirement(requirement)
    return entry.area in _AREAS_ABOUT_STATE or entry.concern is Concern.REFUSAL


def _is_place_the_cause(target: Target, message: Message) -> bool:
    """Say whether the request is answered if blanks in its JSON let its binary data begin at an aligned place."""
    head, blanks = message.body[: message.json_length], b" " * (-message.json_length % _LARGEST_ELEMENT)
    return bool(blanks) and target.send_until_not_busy(message.with_json(head[:-1] + blanks + head[-1:])).succeeded


def _are_marks_the_cause(target: Target, message: Message) -> bool:
    """Say whether bytes in binary data that are marks in JSON are the cause, here and as plain elements of one byte."""
    data = message.body[message.json_length :]
    if not set(data) & set(_JSON_MARKS):
        return False
    plain = message.with_body(message.body[: message.json_length] + data.translate(_WITHOUT_MARKS))
    return target.send_until_not_busy(plain).succeeded and not target.probe_once(
        "marks of JSON in binary data", lambda: _are_marks_read_as_elements(target)
    )


def _are_marks_read_as_elements(target: Target) -> bool:
    """Say whether the server answers marks of JSON as UINT8 elements, or refuses other elements as well."""
    model = target.model("identity_uint8")
    if model is None:
        return True

    def send(data: bytes) -> Reply:
        return target.send_until_not_busy(model.request([model.tensor(list(data))]).message())

    return send(_JSON_MARKS).succeeded or not send(_JSON_MARKS.translate(_WITHOUT_MARKS)).succeeded


_CONTROLS = (
    (_is_place_the_cause, f"it is answered where the binary data begin at a multiple of {_LARGEST_ELEMENT} bytes"),
    (_are_marks_the_cause, "it is answered without the bytes that are marks in JSON"),
)


# --- options ----------------------------------------------------------------------------------------------------------


class _Option(NamedTuple):
    """A property of a request that a simple request has alone.

    Attributes:
        words: the property, for the message; empty for the tensors alone.
        requirement: the requirement that a server violates if it refuses simple requests for this property.
        message: the simple request.
        may_be_declined: whether a server may decline the option for this model, by an error.
    """

    words: str
    requirement: str
    message: Message
    may_be_declined: bool = False


def _list_options(
    content: RequestContent, simple: InferRequest, target: Target, model: Model, reply: Reply
) -> Iterator[_Option]:
    """Yield the options of a request, the plainest first; binary data are those of a model that stands in."""
    encode = make_infer_message if reply.is_over_grpc else InferRequest.message
    other, outputs, classified = find_stand_in(target), content.outputs, tuple(content.class_counts)
    if other is not None and not model.is_json_capable:
        name = other.role.outputs[0].name
        outputs, classified = outputs and (name,), classified and (name,)
    yield _Option("", "OIP-ANSWER", encode(simple))
    if content.id:
        yield _Option(" with its id", "OIP-ID", encode(replace(simple, id=content.id)))
    if outputs:
        listed = tuple(map(RequestedOutput, outputs))
        yield _Option(" that lists outputs", "OIP-OUTPUTS-LISTED", encode(replace(simple, outputs=listed)))
    if classified:
        listed = tuple(RequestedOutput(name, classification=1) for name in classified)
        may_be_declined = any(spec.datatype != RANKED_DATATYPE for spec in model.role.outputs)
        yield _Option(" for one class", "CLS-PARAMETER", encode(replace(simple, outputs=listed)), may_be_declined)
    if other is None or reply.is_over_grpc:
        return
    message = reply.exchange.message
    if message.header(INFERENCE_HEADER) == "0":
        yield _Option(" that is raw", "RAW-HEADER-ZERO", other.raw(bytes(other.sample()[0].to_bytes())))
    elif content.is_binary:
        yield _Option(" with binary data", "BIN-DATATYPES-I", other.request().message())
    for (name, value), (requirement, arguments) in _FLAGS.items():
        if (name, value) in content.binary_flags:
            words = f" with {name} {str(value).lower()}"
            yield _Option(words, requirement, other.request(send="json", **arguments).message())


# A parameter and its value -> its requirement, and the arguments of a request that has it.
_FLAGS: Mapping[tuple[str, bool], tuple[str, Mapping[str, Any]]] = {
    ("binary_data", True): ("BIN-OUTPUT-TRUE", {"want": "binary"}),
    ("binary_data", False): ("BIN-OUTPUT-FALSE", {"want": "json"}),
    ("binary_data_output", True): ("BIN-ALL-TRUE", {"binary_data_output": True}),
    ("binary_data_output", False): ("BIN-ALL-FALSE", {"binary_data_output": False}),
}
