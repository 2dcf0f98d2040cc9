"""Finds why a server refuses a request or never answers it, if a control shows another cause than the row's property.

A refused legal request has controls that differ from it in one thing: where its binary data begin, or whether they look
like JSON. The control of a request that is never answered has the same shapes, but neither its form nor its options.
"""

from __future__ import annotations

from zlib import crc32

from conformance.expect.attribution import attribute_missing_answer
from conformance.expect.unmet import UnmetError
from conformance.judging.control_request import build_control_request, read_request_content
from conformance.roles.model import Model
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.ledger import Concern, get_requirement
from conformance.transport.broken_request import is_busy
from conformance.transport.exchange import Reply
from conformance.transport.send_options import PLAIN
from conformance.transport.target import Target
from conformance.transport.wait_budget import is_silence
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import INFERENCE_HEADER, Message

BINARY_DATA = "BIN-BODY-I"
# Areas of requirements about what came before a request, or how it was sent: their rows have controls of their own, and
# so have those about wrong requests, after which a right one is sent.
_AREAS_ABOUT_STATE = ("state", "errors")
_JSON_MARKS = b'{}[]",:'
_WITHOUT_MARKS = bytes.maketrans(_JSON_MARKS, b"x" * len(_JSON_MARKS))
_LARGEST_ELEMENT = 8  # bytes


def find_refusal_cause(target: Target, unmet: UnmetError, named: str) -> UnmetError | None:
    """Return the violation that explains the refusal of a legal request; None if `named` may do so."""
    reply = unmet.reply
    if reply is None or reply.is_over_grpc or not reply.is_refusal or is_busy(reply):
        return None
    exchange, message = reply.exchange, reply.exchange.message
    if _is_about_state(named) or exchange.send_options != PLAIN or exchange.note:
        return None  # the controls are sent alone and in one piece
    if target.send(message, fresh=True).succeeded:
        return None  # refused once, for a reason that no control shows: a gateway may renew credentials
    length = message.header(INFERENCE_HEADER)
    if length != str(message.json_length) or not 0 < message.json_length < len(message.body):
        return None  # a wrong length would be right in the control
    for is_cause, control in _CONTROLS:
        if is_cause(target, message) and target.send(message, fresh=True).is_refusal:
            unmet.requirement = BINARY_DATA
            unmet.actual += f"; {control}"
            return unmet
    return None


def find_silence_cause(target: Target, model: Model, unmet: UnmetError, named: str) -> UnmetError | None:
    """Return the violation if a simple request stays without an answer as well; None if `named` may be the cause."""
    reply = unmet.reply
    if reply is None or not is_silence(reply.exchange):
        return None
    content = read_request_content(reply.exchange.message, model)
    request = build_control_request(content, target, model) if content else None
    if content is None or request is None:
        return None
    message = make_infer_message(request) if reply.is_over_grpc else request.message()
    name = f"simple request {crc32(message.body):08x} for {message.path}"  # over gRPC, only the body names the model
    if target.probe_once(name, lambda: not is_silence(target.send(message, fresh=True).exchange)):
        return None
    if _is_about_state(named) and target.repeat_plain_request(model, GRPC if reply.is_over_grpc else HTTP):
        return None  # the request of the row may have left the model unable to answer
    shapes = ", ".join(f"{tensor.datatype} {list(tensor.shape)}" for tensor in content.tensors)
    unmet.requirement = attribute_missing_answer(reply)
    unmet.actual += f"; a simple request with {shapes} gets none either"
    return unmet


def _is_about_state(requirement: str) -> bool:
    entry = get_requirement(requirement)
    return entry.area in _AREAS_ABOUT_STATE or entry.concern is Concern.REFUSAL


def _is_place_the_cause(target: Target, message: Message) -> bool:
    """Say whether the request is answered if blanks in its JSON let its binary data begin at an aligned place."""
    head, blanks = message.body[: message.json_length], b" " * (-message.json_length % _LARGEST_ELEMENT)
    return bool(blanks) and target.send(message.with_json(head[:-1] + blanks + head[-1:]), fresh=True).succeeded


def _are_marks_the_cause(target: Target, message: Message) -> bool:
    """Say whether bytes in binary data that are marks in JSON are the cause, here and as plain elements of one byte."""
    data = message.body[message.json_length :]
    if not set(data) & set(_JSON_MARKS):
        return False
    plain = message.with_body(message.body[: message.json_length] + data.translate(_WITHOUT_MARKS))
    return target.send(plain, fresh=True).succeeded and not target.probe_once(
        "marks of JSON in binary data", lambda: _are_marks_read_as_elements(target)
    )


def _are_marks_read_as_elements(target: Target) -> bool:
    """Say whether the server answers marks of JSON as UINT8 elements, or refuses other elements as well."""
    model = target.model("identity_uint8")
    if model is None:
        return True

    def send(data: bytes) -> Reply:
        return target.send(model.request([model.tensor(list(data))]).message(), fresh=True)

    return send(_JSON_MARKS).succeeded or not send(_JSON_MARKS.translate(_WITHOUT_MARKS)).succeeded


_CONTROLS = (
    (_is_place_the_cause, f"it is answered where the binary data begin at a multiple of {_LARGEST_ELEMENT} bytes"),
    (_are_marks_the_cause, "it is answered without the bytes that are marks in JSON"),
)
