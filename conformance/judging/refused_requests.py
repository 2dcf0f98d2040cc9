"""Finds why a server refuses a legal request, where a control shows another cause than the property of the row.

Each control differs from the refused request in one thing: where its binary data begin, or whether they look like JSON.
"""

from __future__ import annotations

from conformance.expect.unmet import UnmetError
from conformance.spec.ledger import Concern, get_requirement
from conformance.transport.broken_request import is_busy
from conformance.transport.exchange import Reply
from conformance.transport.send_options import PLAIN
from conformance.transport.target import Target
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
    reply, entry = unmet.reply, get_requirement(named)
    if reply is None or reply.is_over_grpc or not reply.is_refusal or is_busy(reply):
        return None
    exchange, message = reply.exchange, reply.exchange.message
    is_about_state = entry.area in _AREAS_ABOUT_STATE or entry.concern is Concern.REFUSAL
    if is_about_state or exchange.send_options != PLAIN or exchange.note:
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
