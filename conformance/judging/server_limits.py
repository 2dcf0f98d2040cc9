"""Finds the limits of a server. A server that refuses a request for such a limit violates no requirement.

The documents set no minimum for the number of elements, the batch size or the length of an id, and do not say which
characters an id may contain. JSON lets a parser limit the characters of strings, and the precision of numbers
(RFC 8259, 9). If a server refuses a request larger than every example in the documents, control requests decide: the
server has a size limit if it also refuses a control request of the same size and a slightly larger one, as JSON, and
those of a body of 64 KiB or more as binary data as well. The same applies to tensors without elements, which no example
contains. A server that refuses only one encoding or one size has no such limit, and is judged. The documents name no
datatype whose outputs must support classification: a server may classify some datatypes and decline others. They
describe only classes of vectors and of batches of vectors: a server may decline other outputs.

A limit of sizes is a limit whatever the status of its refusals: frameworks answer an exception of a model with 500. So
is that for tensors without elements. The status is advised against by its own requirement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from zlib import crc32

from conformance.expect.class_texts import CLASS_DATATYPES
from conformance.expect.refusals import expect_refusal_status, is_error_object
from conformance.expect.unmet import UnmetError
from conformance.judging.control_request import (
    MAX_JSON_ELEMENTS,
    STAND_IN_BYTES,
    RequestContent,
    build_control_request,
    build_stand_in_request,
    enlarge_content,
    find_stand_in,
    pad_message,
    read_request_content,
    shrink_content,
)
from conformance.judging.row_judge import RowOutcome
from conformance.judging.row_models import conclude_not_applicable
from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec
from conformance.spec.check import Case
from conformance.spec.outcome import ReasonKind
from conformance.spec.text import escape_text
from conformance.transport.broken_request import NOT_IMPLEMENTED
from conformance.transport.exchange import Reply
from conformance.transport.replay import NotRecordedError
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.datatypes import DATATYPES, MAX_EXACT_INTEGER
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import Form, InferRequest, Message, RequestedOutput
from conformance.wire.tensor import Tensor

# The requirement that a server violates if it refuses characters that it accepts as Unicode escapes: a parser may limit
# the characters of strings (RFC 8259, 9), but must accept each in any spelling.
_SPELLING = "OIP-WRITTEN"
# Requirements about bodies of a size that is refused in one form alone, without a status for that. A parser may limit
# its texts (RFC 8259, 9); no standard lets a server limit binary data apart.
_BODY_SIZE = "OIP-BODY-SIZE"
_BINARY_SIZE, _RAW_SIZE = "BIN-DATATYPES-I", "GRPC-RAW"
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
OTHER_SPELLING = re.compile(r'\\["\\/bfnrt]|[^\x00-\x7f]')  # in JSON; each can be a Unicode escape instead
LONG_INTEGER = re.compile(r"(?<![0-9.eE+\"-])-?[1-9][0-9]{15,}(?![0-9.eE\"])")  # in JSON; a double may not hold it
ORDINARY_CLASSES = 2
MANY_CLASSES = 64  # without a vector to test, a refusal of more classes is a limit if it also refuses one class more
RANKED_DATATYPE = (
    "FP32"  # the datatype of scores in the documents; without other models to test, a refusal of any other is allowed
)


class ServerLimits:
    """Finds the limits of one target. Each control request is sent only once."""

    def __init__(self, target: Target) -> None:
        self._cause: str | None = None
        self._target = target
        self._answers: dict[str, Reply] = {}

    def find_exemption(self, _case: Case, unmet: UnmetError, model: Model | None) -> RowOutcome | UnmetError | None:
        """Return `not_applicable` if the server refused a request for a limit; None if the failure is judged.

        A limit that the target reports as its own error, or a limit of JSON without the status for it, is allowed and
        advised against: return the advice.
        """
        reply = unmet.reply
        if reply is None:
            return None
        if excess := self._find_declared_excess(reply, model):
            return conclude_not_applicable(ReasonKind.DECLARED_LIMIT, excess, "max_batch")
        self._cause = None
        limit = self._find_limit(reply, model)
        if not limit:
            unmet.requirement = self._cause or unmet.requirement
            if self._cause in (_BODY_SIZE, _BINARY_SIZE, _RAW_SIZE):
                size = f"{len(reply.exchange.message.body):,} bytes"
                unmet.actual += f"; the body has {size}, and the server answers as many in the other form"
            unmet.actual += self._suggest_batch_limit(reply, model)
            return unmet if self._cause == _BODY_SIZE else None
        try:
            expect_refusal_status(reply)
        except UnmetError as advised:
            return advised
        return conclude_not_applicable(ReasonKind.TOO_LARGE, limit)

    def _find_limit(self, reply: Reply, model: Model | None) -> str:
        """Return a message about the limit for which the server refused a request; empty if there is none."""
        if is_too_large(reply):
            return f"too large for the target: {escape_text(reply.outcome())}"
        if model is None or not _is_well_formed_refusal(reply):
            return ""
        found = read_request_content(reply.exchange.message, model)
        if found is None:
            return ""
        try:
            size = self._find_size_limit(found, reply, model) or self._find_empty_tensor_limit(found, reply, model)
            if size or not self._is_declined(reply):
                return size
            return (
                self._find_id_limit(found, reply, model)
                or self._find_character_limit(found, reply, model)
                or self._find_precision_limit(reply)
                or self._find_datatype_limit(found, reply, model)
                or self._find_rank_limit(found, reply, model)
                or self._find_class_count_limit(found, reply, model)
            )
        except (TargetLostError, NotRecordedError):
            return ""  # no answer: the failure stands

    def _find_declared_excess(self, reply: Reply, model: Model | None) -> str:
        """Return a message if the server refused a larger batch than the target file declares; else empty."""
        most = self._target.limits.get("max_batch")
        if most is None or model is None or not reply.is_refusal:
            return ""
        found = read_request_content(reply.exchange.message, model)
        takes_batches = model.role.batching or any(spec.shape[:1] == (-1,) for spec in model.role.inputs)
        if found is None or not takes_batches or found.max_batch_size <= most:
            return ""
        return f"a batch of {found.max_batch_size}, beyond limits.max_batch of the target file"

    def _suggest_batch_limit(self, reply: Reply, model: Model | None) -> str:
        """Return a hint at `max_batch` if the server refused a batch of a role and answers one item; else empty."""
        if model is None or model.is_deployed or not model.role.batching or not reply.is_refusal:
            return ""
        found = read_request_content(reply.exchange.message, model)
        if found is None or found.max_batch_size <= 1:
            return ""
        one = model.request(model.sample(batch=1), send=model.plain_input_form, want=model.plain_output_form)
        try:
            is_answered = self._send_control_request(_encode_request(one, reply)).succeeded
        except (TargetLostError, NotRecordedError):
            return ""
        return "; it answers one item: declare limits.max_batch if it takes no larger batch" if is_answered else ""

    # --- size ---

    def _find_size_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        if not _exceeds_ordinary_sizes(found) and not _exceeds_ordinary_batch(found, model):
            return ""
        for plain in self._build_equally_large_requests(found, reply, model):
            if all(_is_well_formed_refusal(self._send_control_request(message)) for message in plain):
                if self._is_size_accepted_as_binary(found, reply, model):
                    self._cause = _BODY_SIZE
                    return ""
                outcome = escape_text(self._send_control_request(plain[0]).outcome())
                return f"too large for the target, which also refuses a simple request of the same size: {outcome}"
        if found.is_binary and self._is_size_refused_as_binary(found, reply):
            self._cause = _RAW_SIZE if reply.is_over_grpc else _BINARY_SIZE
        return ""

    def _is_size_accepted_as_binary(self, found: RequestContent, reply: Reply, model: Model) -> bool:
        """Return whether the server accepts as many elements and bytes in the other form, and few of them as JSON."""
        plain = None if found.is_binary else build_control_request(found, self._target, model)
        other = build_stand_in_request(found.size // STAND_IN_BYTES, self._target, "binary")
        if plain is None or other is None or model.is_deployed or found.size < MIN_LARGE_BYTES:
            return False
        controls = (_use_raw_contents(plain), other, model.request(send="json"))
        return all(self._send_control_request(_encode_request(one, reply)).succeeded for one in controls)

    def _is_size_refused_as_binary(self, found: RequestContent, reply: Reply) -> bool:
        """Return whether the server refuses as many bytes of any binary data and some more, and accepts few of them.

        It also has to accept many elements in the other form: a limit for these is none for binary data.
        """
        if found.size < MIN_LARGE_BYTES or (reply.is_over_grpc and self._build_typed_request(found, reply) is None):
            return False  # no control had as many bytes
        count = found.size // STAND_IN_BYTES
        requests = [build_stand_in_request(one, self._target, "binary") for one in (count, count + 1, 1)]
        requests.append(build_stand_in_request(min(count, MAX_JSON_ELEMENTS), self._target))
        replies = [self._send_control_request(_encode_request(one, reply)) for one in requests if one is not None]
        return [one.succeeded for one in replies] == [False, False, True, True]

    def _build_equally_large_requests(
        self, found: RequestContent, reply: Reply, model: Model
    ) -> Iterator[list[Message]]:
        """Yield lists of control requests: with the same and a larger number of elements; then with the same length.

        Over gRPC, a limit for batches concerns both forms of contents. Limits for other sizes may concern one form,
        because the same elements have different lengths in both.

        Requests with many elements are slow to write as JSON. Therefore requests with fewer elements come first: a
        server that refuses the small requests would refuse the large ones as well.
        """
        quick = shrink_content(found, model)
        for one in (found,) if quick is found else (quick, found):
            controls = [
                build_control_request(asked, self._target, model) for asked in (one, enlarge_content(one, model))
            ]
            if controls[0] is not None:
                requests = [request for request in controls if request is not None]
                if reply.is_over_grpc and not _exceeds_ordinary_sizes(found):
                    requests += [_use_raw_contents(request) for request in requests]
                yield [_encode_request(request, reply) for request in requests]
        if found.size >= MIN_LARGE_BYTES and not reply.is_over_grpc and model.role.is_json_capable:
            yield [pad_message(model.request(send="json").message(), found.size)]
        typed = self._build_typed_request(found, reply) if reply.is_over_grpc else None
        if found.size >= MIN_LARGE_BYTES and typed:
            yield [typed]

    def _build_typed_request(self, found: RequestContent, reply: Reply) -> Message | None:
        """Return a call with typed contents that has at least the same length, or None."""
        request = build_stand_in_request(found.size // STAND_IN_BYTES + 1, self._target)
        typed = _encode_request(request, reply) if request else None
        return typed if typed and len(typed.body) >= found.size else None

    def _send_control_request(self, message: Message) -> Reply:
        """Send a control request once and return its reply.

        The exchange has a scope of its own in the recording, because other processes of the run send the same request.
        """
        name = f"plain twin {crc32(message.path.encode() + message.body):08x}"
        if name not in self._answers:
            with self._target.scope(name):
                self._answers[name] = self._target.send_until_not_busy(message)
        return self._answers[name]

    def _is_declined(self, reply: Reply) -> bool:
        """Return whether the server refused a request with 4xx, or with another status that it refuses wrong ones with.

        Those are 501, for what it does not offer (UNIMPLEMENTED over gRPC), and the status of its refusal of an unknown
        output: some servers answer 500 to every wrong request.
        """
        status = reply.status or 0
        if not _is_well_formed_refusal(reply) or status < 500 or status == NOT_IMPLEMENTED:
            return _is_well_formed_refusal(reply)
        if (model := find_stand_in(self._target)) is None:
            return False
        wrong = model.request(send="json", outputs=[RequestedOutput("no-such-output")])
        refusal = self._send_control_request(_encode_request(wrong, reply))
        codes = {one.exchange.code or one.status for one in (reply, refusal)}
        return _is_well_formed_refusal(refusal) and len(codes) == 1

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
        """Return whether the server refuses `unusual` for its characters, even if they are Unicode escapes in JSON."""
        if not (self._is_declined(self._send_control_request(unusual)) and self._send_control_request(usual).succeeded):
            return False
        escaped = _write_unicode_escapes(unusual)
        is_spelling_refused = escaped is not None and self._send_control_request(escaped).succeeded
        self._cause = _SPELLING if is_spelling_refused else None
        return not is_spelling_refused

    # --- strings ---

    def _find_character_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        """Return a message if the server refuses the unusual characters of the row in a control request, but no others.

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

    def _find_precision_limit(self, reply: Reply) -> str:
        """Return a message if the server refuses the integers of the row only because a double cannot hold them.

        It has to refuse the first such integer in their place as well: a smaller range than that of the datatype is no
        limit of precision.
        """
        message = reply.exchange.message
        text = message.body[: message.json_length].decode("utf-8", "replace")
        inexact, exact = (LONG_INTEGER.sub(str(one), text) for one in (MAX_EXACT_INTEGER + 2, MAX_EXACT_INTEGER >> 1))
        if reply.is_over_grpc or inexact == exact:
            return ""
        first, second = (self._send_control_request(message.with_json(one.encode())) for one in (inexact, exact))
        is_limit = self._is_declined(first) and second.succeeded
        return f"the target refuses integers beyond 2^53 in JSON: {escape_text(reply.outcome())}" if is_limit else ""

    def _find_empty_tensor_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        """Return a message if the server refuses control requests with empty tensors, and accepts other requests.

        It has to refuse empty tensors in both forms: inability to read one form is not a limit.
        """
        plain = build_control_request(found, self._target, model) if found.is_empty else None
        if plain is None or not _is_well_formed_refusal(self._send_control_request(_encode_request(plain, reply))):
            return ""
        binary = replace(
            plain, inputs=tuple(replace(one, binary=True) for one in plain.inputs), binary_data_output=True
        )
        if self._send_control_request(_encode_request(binary, reply)).succeeded:
            return ""
        takes_others = any(
            self._send_control_request(self._target.message(request)).succeeded
            for request in self._target.build_good_requests(model)
        )
        return f"the target refuses tensors without elements: {escape_text(reply.outcome())}" if takes_others else ""

    # --- classes ---

    def _find_class_count_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        """Return a message if the server returns one class, but refuses the requested number and a neighbouring one.

        That is one class more; or one less, of a vector that may have as many elements as the server takes.
        """
        count = max(found.class_counts.values(), default=0)
        is_more = ORDINARY_CLASSES < count <= MAX_JSON_ELEMENTS
        is_refused = is_more and any(
            self._are_classes_refused(found, reply, model, count, near)
            for near in ((count - 1,) if model.is_deployed else (count + 1, count - 1))
        )
        return f"{count} classes are too many for the target: {escape_text(reply.outcome())}" if is_refused else ""

    def _are_classes_refused(self, found: RequestContent, reply: Reply, model: Model, count: int, near: int) -> bool:
        """Return whether the server returns one class, but refuses both numbers of classes, of the same vector."""
        plain = self._build_class_request(found, model, count, max(count, near + 1))
        if plain is None:
            return False
        one, as_many, neighbour = (
            self._send_control_request(
                _encode_request(
                    replace(plain, outputs=tuple(replace(each, classification=k) for each in plain.outputs or ())),
                    reply,
                )
            )
            for k in (1, count, near)
        )
        return one.succeeded and self._is_declined(as_many) and self._is_declined(neighbour)

    def _build_class_request(
        self, found: RequestContent, model: Model, count: int, elements: int
    ) -> InferRequest | None:
        """Return a control request for classes of a vector of so many elements.

        A server may refuse more classes than the output of the row has. Without a model of such vectors, return the
        control request of the row if it asks for many classes, else None.
        """
        for spec in _list_classified_outputs(found, model):
            vectors = self._find_vector_model(spec.datatype)
            if vectors is not None:
                return _request_classes(vectors, vectors.role.outputs[0].name, [vectors.tensor([1] * elements)])
        is_asked = count > MANY_CLASSES or (model.is_deployed and count > ORDINARY_CLASSES + 1)
        plain = build_control_request(found, self._target, model) if is_asked else None
        return plain and replace(plain, outputs=tuple(map(RequestedOutput, found.class_counts)))

    def _find_datatype_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        """Return a message if the server classifies outputs of other datatypes, but not of the requested datatype."""
        datatypes = {spec.datatype for spec in _list_classified_outputs(found, model)}
        for datatype in sorted(datatypes & DATATYPES.keys()):
            probe = self._find_vector_model(datatype) or model
            if self._test_classification(probe, reply) is not False:
                continue
            others = list(self._list_models_of_other_datatypes(datatype))
            if any(self._test_classification(other, reply) for other in others) or (
                not others and datatype != RANKED_DATATYPE
            ):
                return f"classification of {datatype} is not offered: {escape_text(reply.outcome())}"
        return ""

    def _find_rank_limit(self, found: RequestContent, reply: Reply, model: Model) -> str:
        """Return a message if the server classifies vectors, but not the requested output of more dimensions."""
        for spec in _list_classified_outputs(found, model):
            if not _has_items_of_several_dimensions(spec, model):
                continue
            vectors = self._find_vector_model(spec.datatype)
            if self._test_classification(model, reply, spec.name) is False and (
                vectors is None or self._test_classification(vectors, reply)
            ):
                return f"classification of several dimensions is not offered: {escape_text(reply.outcome())}"
        return ""

    def _find_vector_model(self, datatype: str) -> Model | None:
        """Return the model that returns a vector of a datatype unchanged; None if the target has no such model."""
        return self._target.model(f"identity_{datatype.lower()}")

    def _list_models_of_other_datatypes(self, datatype: str) -> Iterator[Model]:
        for name in DATATYPES:
            model = self._find_vector_model(name)
            if name not in (datatype, "BYTES") and model is not None and model.role.is_json_capable:
                yield model

    def _test_classification(self, model: Model, reply: Reply, name: str = "") -> bool | None:
        """Return True if the server classifies an output of a model, False if it refuses, and None otherwise.

        By default, this is the first output.
        """
        name = name or model.role.outputs[0].name
        answer = self._send_control_request(_encode_request(_request_classes(model, name), reply))
        if self._is_declined(answer):
            return False
        output = answer.answer.output(name) if answer.succeeded else None
        return True if output is not None and output.datatype in CLASS_DATATYPES else None


def _list_classified_outputs(found: RequestContent, model: Model) -> list[TensorSpec]:
    names = model.names.outputs
    return [spec for spec in model.role.outputs if names.get(spec.name, spec.name) in found.class_counts]


def _has_items_of_several_dimensions(spec: TensorSpec, model: Model) -> bool:
    """Return whether an output has more dimensions than a vector or a batch of vectors."""
    is_batch = model.is_deployed and spec.shape[:1] == (-1,)  # perhaps; a role declares the shape of one item
    return len(spec.shape) > (2 if is_batch else 1)


def _request_classes(model: Model, output: str, tensors: Sequence[Tensor] | None = None) -> InferRequest:
    """Build a request for one class of an output."""
    send: Form = "json" if model.role.is_json_capable else "binary"
    return model.request(tensors, send=send, outputs=[RequestedOutput(output, classification=1)])


def _encode_request(request: InferRequest, reply: Reply) -> Message:
    """Encode a request for the transport of a reply."""
    return make_infer_message(request) if reply.is_over_grpc else request.message()


def _exceeds_ordinary_sizes(found: RequestContent) -> bool:
    return any(measure(found) > most for most, measure in ORDINARY_SIZES.values())


def _exceeds_ordinary_batch(found: RequestContent, model: Model) -> bool:
    return model.role.batching and found.max_batch_size > ORDINARY_BATCH


def _use_raw_contents(request: InferRequest) -> InferRequest:
    return replace(request, inputs=tuple(replace(one, binary=True) for one in request.inputs))


def _keep_unusual_characters(tensor: Tensor) -> Tensor:
    """Return a BYTES tensor with a letter in place of each usual character, such as a quote or a backslash."""
    values = [USUAL_CHARACTER.sub(b"x", value) for value in tensor.array.flat]
    return Tensor.from_values(tensor.name, tensor.datatype, values, tensor.shape)


def _write_unicode_escapes(message: Message) -> Message | None:
    r"""Return a request with \uXXXX in its JSON for non-ASCII characters and short escapes; None if it has neither."""
    try:
        text = message.body[: message.json_length].decode()
    except UnicodeDecodeError:
        return None
    escaped = OTHER_SPELLING.sub(lambda found: _write_unicode_escape(json.loads(f'"{found[0]}"')), text)
    return None if escaped == text else message.with_json(escaped.encode())


def _write_unicode_escape(character: str) -> str:
    octets = character.encode("utf-16-be").hex()
    return "".join(f"\\u{octets[start : start + 4]}" for start in range(0, len(octets), 4))


def _is_well_formed_refusal(reply: Reply) -> bool:
    """Whether the server refused a request, with a well-formed error if the status is 5xx."""
    status = reply.status or 0
    return reply.is_refusal and (status < 500 or reply.is_over_grpc or is_error_object(reply))


def is_too_large(reply: Reply) -> bool:
    """Whether the server refused a body as too large."""
    # "The server is refusing to process a request because the request content is larger than the server is willing or
    # able to process" (RFC 9110, 15.5.14). No document of the extensions sets a minimum, so the row does not apply.
    # An example could have a body below `MIN_LARGE_BYTES`, so the refusal of such a body is judged.
    code = reply.exchange.code
    least = SIZE_CODES.get(code) if code else MIN_LARGE_BYTES if reply.status == TOO_LARGE else None
    return least is not None and len(reply.exchange.message.body) >= least
