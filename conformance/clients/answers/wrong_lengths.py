"""Wrong answers in which nothing but a length is wrong: each tensor could be read for itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from conformance.clients.answers.delivery import PLAIN
from conformance.clients.answers.encoding import encode_binary
from conformance.clients.answers.honest import AnswerParts, Style, make_framing_headers
from conformance.clients.answers.honest_calls import CallStyle
from conformance.clients.answers.script import CallAnswer, HttpAnswer, HttpScript, Tensors
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest
from conformance.wire.request import INFERENCE_HEADER, JSON


def bytes_left_over(parts: AnswerParts) -> AnswerParts:
    """Bytes stand behind the last output, which no output claims."""
    return replace(parts, blobs=(*parts.blobs, b"\x01\x02\x03\x04"))


def last_tensor_missing(parts: AnswerParts) -> AnswerParts:
    """The body ends where the last output begins."""
    return replace(parts, blobs=parts.blobs[:-1])


def last_tensor_short(parts: AnswerParts) -> AnswerParts:
    """The body ends inside the last output."""
    return replace(parts, blobs=(*parts.blobs[:-1], parts.blobs[-1][:-4]))


def make_parts_script(spoil: Callable[[AnswerParts], AnswerParts]) -> HttpScript:
    """Return a script of answers whose binary data are spoiled; Content-Length counts what comes."""

    def answer(received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
        parts = spoil(Style(form="binary").parts(received, inference, tensors))
        return PLAIN.answer(200, make_framing_headers(parts), parts.json + parts.binary, version=received.version)

    return answer


def header_past_the_json(received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
    """The inference header of an answer of JSON alone goes past its end."""
    parts = Style(form="json").parts(received, inference, tensors)
    headers = (("Content-Type", JSON), (INFERENCE_HEADER, str(len(parts.json) + 4)))
    return PLAIN.answer(200, headers, parts.json, version=received.version)


def entry_too_many(_received: ClientRequest, inference: Inference, tensors: Tensors) -> CallAnswer:
    """Raw contents have an entry more than there are outputs."""
    style = CallStyle()
    raw = [encode_binary(one) for one in tensors]
    return CallAnswer(style.message(inference, [style.entry(one) for one in tensors], [*raw, raw[0]]))


WRONG_LENGTHS: Final[Mapping[str, HttpScript]] = {
    "bytes-left-over": make_parts_script(bytes_left_over),
    "last-tensor-missing": make_parts_script(last_tensor_missing),
    "last-tensor-short": make_parts_script(last_tensor_short),
}
