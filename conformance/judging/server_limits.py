"""Finds the limits of a server. A server that refuses a request for such a limit violates no requirement.

The documents set no minimum for the number of elements, the batch size or the length of an id, and do not say which
characters an id may contain. JSON lets a parser limit the characters of strings (RFC 8259, 9). If a server refuses a
request larger than every example in the documents, control requests decide: the server has a size limit if it also
refuses a control request of the same size and a slightly larger one. The same applies to tensors without elements,
which no example contains. A server that refuses only one encoding or one size has no such limit, and is judged. The
documents name no datatype whose outputs must support classification: a server may classify some datatypes and decline
others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from zlib import crc32

from conformance.judging.control_request import (
    RequestContent,
    build_control_request,
    enlarge_content,
    pad_message,
    read_request_content,
    shrink_content,
)
from conformance.roles.model import Model
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.replay import NotRecordedError
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.datatypes import DATATYPES
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import Form, InferRequest, Message, RequestedOutput
from conformance.wire.tensor import Tensor

TOO_LARGE = 413
MIN_LARGE_BYTES = 64 * 1024  # every server must accept a smaller body
# gRPC status codes for a message that is too large, with the size from which they can have this meaning. The default
# limit of most libraries is 4 MiB. Tonic returns OUT_OF_RANGE, which is an ordinary error for smaller messages.
SIZE_CODES = {"RESOURCE_EXHAUSTED": MIN_LARGE_BYTES, "OUT_OF_RANGE": 4 * 1024 * 1024}

# Sizes that every server must accept: no example in the documents is larger. A server may have a limit above them.
ORDINARY_SIZES: Mapping[str, tuple[int, Callable[[RequestContent], int]]] = {
    "elements": (64, lambda found: found.max_elements),
    "dimension": (64, lambda found: found.max_dimension),
    "string": (64, lambda found: found.max_string_bytes),
    "id": (36, lambda found: len(found.id)),  # a UUID
    "body": (MIN_LARGE_BYTES - 1, lambda found: found.size),
}
ORDINARY_BATCH = 2
USUAL_ID = re.compile("[A-Za-z0-9._:-]*")
USUAL_CHARACTER = re.compile(b"[ -~]")
USUAL_TEXT = re.compile(b"[ -~]*")
ORDINARY_CLASSES = 64
RANKED_DATATYPE = (
    "FP32"  # the datatype of scores in the documents; without other models to test, a refusal of any other is allowed
)


class ServerLimits:
    """Finds the limits of one target. Each control request is sent only once.

    Attributes:
        is_spelling_refused: whether the last request was refused for characters that the server accepts if escaped.
            A parser may limit the characters of strings (RFC 8259, 9), but must accept them escaped and unescaped.
    """

    def __init__(self, target: Target) -> None:
        self.is_spelling_refused = False
        self._target = target
        self._answers: dict[str, Reply] = {}

    def find_limit(self, reply: Reply, model: Model | None) -> str:
        """Return a message about the limit for which the server refused a request; empty if there is none."""
        self.is_spelling_refused = False
        if is_too_large(reply):
            return f"too large for the target: {escape_text(reply.outcome())}"
        if model is None or not _is_declined(reply):
            return ""
        found = read_request_content(reply.exchange.message, model)
        if found is None:
            return ""
        try:
            return (
                self._find_size_limit(found, reply, model)
                or self._find_id_limit(found, reply, model)
                or self._find_character_limit(found, reply, model)
                or self._find_empty_tensor_limit(found, reply, model)
                or self._find_datatype_limit(found, reply, model)
                or self._find_class_count_limit(found, reply, model)
            )
        except (TargetLostError, NotRecordedError):
            return ""  # no answer: the failure stands

    # --- size ---

    def _find_size_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        if not _exceeds_ordinary_sizes(found, model):
            return ""
        for plain in self._build_equally_large_requests(found, reply, model):
            if all(_is_declined(self._send_control_request(message)) for message in plain):
                outcome = escape_text(self._send_control_request(plain[0]).outcome())
                return f"too large for the target, which also refuses a simple request of the same size: {outcome}"
        return ""

    def _build_equally_large_requests(
        self, found: RequestContent, reply: Reply, model: Model
    ) -> Iterator[list[Message]]:
        """Yield lists of control requests: with the same and a larger number of elements; then with the same length.

        Requests with many elements are slow to write as JSON. Therefore requests with fewer elements come first: a
        server that refuses the small requests would refuse the large ones as well.
        """
        quick = shrink_content(found, model)
        for one in (found,) if quick is found else (quick, found):
            controls = [
                build_control_request(asked, self._target, model) for asked in (one, enlarge_content(one, model))
            ]
            if controls[0] is not None:
                yield [_encode_request(request, reply) for request in controls if request is not None]
        if found.size >= MIN_LARGE_BYTES and not reply.is_over_grpc and model.role.is_json_capable:
            yield [pad_message(model.request(send="json").message(), found.size)]

    def _send_control_request(self, message: Message) -> Reply:
        """Send a control request once and return its reply.

        The exchange has a scope of its own in the recording, because other processes of the run send the same request.
        """
        name = f"plain twin {crc32(message.path.encode() + message.body):08x}"
        if name not in self._answers:
            with self._target.scope(name):
                self._answers[name] = self._target.send_until_not_busy(message)
        return self._answers[name]

    # --- ids ---

    def _find_id_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        """Return a message if the server refuses a control request with the row's id, and accepts one without id."""
        plain = None if USUAL_ID.fullmatch(found.id) else build_control_request(found, self._target, model)
        if plain is None:
            return ""
        named, unnamed = (_encode_request(replace(plain, id=identity), reply) for identity in (found.id, None))
        is_limit = self._is_character_limit(named, unnamed)
        return f"the target refuses ids with such characters: {escape_text(reply.outcome())}" if is_limit else ""

    def _is_character_limit(self, unusual: Message, usual: Message) -> bool:
        """Return whether the server refuses `unusual` for its characters, even if they are escaped in JSON."""
        if not (_is_declined(self._send_control_request(unusual)) and self._send_control_request(usual).succeeded):
            return False
        escaped = _escape_non_ascii(unusual)
        self.is_spelling_refused = escaped is not None and self._send_control_request(escaped).succeeded
        return not self.is_spelling_refused

    # --- strings ---

    def _find_character_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        """Return a message if the server refuses the row's unusual characters in a control request, but no harmless ones.

        The strings have no other characters that need escapes in JSON, and as few escapes as possible: inability to
        parse escapes is not a limit.
        """
        unusual = {
            one.name: _keep_unusual_characters(one)
            for one in found.json_strings
            if not all(map(USUAL_TEXT.fullmatch, one.array.flat))
        }
        plain = build_control_request(found, self._target, model) if unusual else None
        if plain is None:
            return ""
        inputs = tuple(replace(one, tensor=unusual.get(one.tensor.name, one.tensor)) for one in plain.inputs)
        is_limit = self._is_character_limit(
            *(_encode_request(one, reply) for one in (replace(plain, inputs=inputs), plain))
        )
        return f"the target refuses strings with such characters: {escape_text(reply.outcome())}" if is_limit else ""

    def _find_empty_tensor_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        """Return a message if the server refuses a control request with empty tensors, and accepts other requests."""
        plain = build_control_request(found, self._target, model) if found.is_empty else None
        if plain is None or not _is_declined(self._send_control_request(_encode_request(plain, reply))):
            return ""
        takes_others = any(
            self._send_control_request(self._target.message(request)).succeeded
            for request in self._target.build_good_requests(model)
        )
        return f"the target refuses tensors without elements: {escape_text(reply.outcome())}" if takes_others else ""

    # --- classes ---

    def _find_class_count_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        """Return a message if the server returns one class, but refuses the requested number and one class more."""
        count = max(found.class_counts.values(), default=0)
        plain = build_control_request(found, self._target, model) if count > ORDINARY_CLASSES else None
        if plain is None:
            return ""
        one, as_many, more = (
            self._send_control_request(
                _encode_request(
                    replace(plain, outputs=tuple(RequestedOutput(n, classification=k) for n in found.class_counts)),
                    reply,
                )
            )
            for k in (1, count, count + 1)
        )
        is_limit = one.succeeded and _is_declined(as_many) and _is_declined(more)
        return f"{count} classes are too many for the target: {escape_text(reply.outcome())}" if is_limit else ""

    def _find_datatype_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        """Return a message if the server classifies outputs of other datatypes, but not of the requested datatype."""
        ours = {model.names.outputs.get(spec.name, spec.name): spec.datatype for spec in model.role.outputs}
        datatypes = {ours[name] for name in found.class_counts if name in ours}
        for datatype in sorted(datatypes & DATATYPES.keys()):
            probe = self._target.model(f"identity_{datatype.lower()}") or model
            if self._test_classification(probe, reply) is not False:
                continue
            others = list(self._list_models_of_other_datatypes(datatype))
            if any(self._test_classification(other, reply) for other in others) or (
                not others and datatype != RANKED_DATATYPE
            ):
                return f"classification of {datatype} is not offered: {escape_text(reply.outcome())}"
        return ""

    def _list_models_of_other_datatypes(self, datatype: str) -> Iterator[Model]:
        for name in DATATYPES:
            model = self._target.model(f"identity_{name.lower()}")
            if name not in (datatype, "BYTES") and model is not None and model.role.is_json_capable:
                yield model

    def _test_classification(self, model: Model, reply: Reply) -> bool | None:
        """Return True if the server classifies a model's first output, False if it refuses, and None otherwise."""
        name = model.role.outputs[0].name
        send: Form = "json" if model.role.is_json_capable else "binary"
        plain = model.request(send=send, outputs=[RequestedOutput(name, classification=1)])
        answer = self._send_control_request(_encode_request(plain, reply))
        if _is_declined(answer):
            return False
        output = answer.answer.output(name) if answer.succeeded else None
        return True if output is not None and output.datatype == "BYTES" else None


def _encode_request(request: InferRequest, reply: Reply) -> Message:
    """Encode a request for the transport of a reply."""
    return make_infer_message(request) if reply.is_over_grpc else request.message()


def _exceeds_ordinary_sizes(found: RequestContent, model: Model) -> bool:
    sizes = any(measure(found) > most for most, measure in ORDINARY_SIZES.values())
    return sizes or (model.role.batching and found.max_batch_size > ORDINARY_BATCH)


def _keep_unusual_characters(tensor: Tensor) -> Tensor:
    """Return a BYTES tensor with a letter in place of each usual character, such as a quote or a backslash."""
    values = [USUAL_CHARACTER.sub(b"x", value) for value in tensor.array.flat]
    return Tensor.from_values(tensor.name, tensor.datatype, values, tensor.shape)


def _escape_non_ascii(message: Message) -> Message | None:
    """Return a request with the non-ASCII characters of its JSON escaped; None if none can be escaped."""
    head = message.body[: message.json_length]
    if head.isascii():
        return None
    try:
        text = head.decode()
    except UnicodeDecodeError:
        return None
    return message.with_json("".join(one if one.isascii() else json.dumps(one)[1:-1] for one in text).encode())


def _is_declined(reply: Reply) -> bool:
    """Whether the server refused a request with a status other than 5xx."""
    return reply.is_refusal and reply.status is not None and reply.status < 500


def is_too_large(reply: Reply) -> bool:
    """Whether the server refused a body as too large."""
    # "The server is refusing to process a request because the request content is larger than the server is willing or
    # able to process" (RFC 9110, 15.5.14). No document of the extensions sets a minimum, so the row does not apply.
    # An example could have a body below `MIN_LARGE_BYTES`, so the refusal of such a body is judged.
    code = reply.exchange.code
    least = SIZE_CODES.get(code) if code else MIN_LARGE_BYTES if reply.status == TOO_LARGE else None
    return least is not None and len(reply.exchange.message.body) >= least
