"""Wrong answers in which nothing but a length is wrong: each tensor could be read for itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from conformance.clients.answers.delivery import PLAIN
from conformance.clients.answers.encoding import binary_of
from conformance.clients.answers.honest import Parts, Style, framing_headers
from conformance.clients.answers.honest_calls import CallStyle
from conformance.clients.answers.script import CallAnswer, HttpAnswer, HttpScript, Tensors
from conformance.clients.inference import Inference
from conformance.wire.received import Received
from conformance.wire.request import INFERENCE_HEADER, JSON


def bytes_left_over(parts: Parts) -> Parts:
    """Bytes stand behind the last output, which no output claims."""
    return replace(parts, blobs=(*parts.blobs, b"\x01\x02\x03\x04"))


def last_tensor_missing(parts: Parts) -> Parts:
    """The body ends where the last output begins."""
    return replace(parts, blobs=parts.blobs[:-1])


def last_tensor_short(parts: Parts) -> Parts:
    """The body ends inside the last output."""
    return replace(parts, blobs=(*parts.blobs[:-1], parts.blobs[-1][:-4]))


def of_parts(spoil: Callable[[Parts], Parts]) -> HttpScript:
    """Return a script of answers whose binary data are spoiled; Content-Length counts what comes."""

    def answer(received: Received, inference: Inference, tensors: Tensors) -> HttpAnswer:
        parts = spoil(Style(form="binary").parts(received, inference, tensors))
        return PLAIN.answer(200, framing_headers(parts), parts.json + parts.binary, version=received.version)

    return answer


def header_past_the_json(received: Received, inference: Inference, tensors: Tensors) -> HttpAnswer:
    """The inference header of an answer of JSON alone goes past its end."""
    parts = Style(form="json").parts(received, inference, tensors)
    headers = (("Content-Type", JSON), (INFERENCE_HEADER, str(len(parts.json) + 4)))
    return PLAIN.answer(200, headers, parts.json, version=received.version)


def entry_too_many(_received: Received, inference: Inference, tensors: Tensors) -> CallAnswer:
    """Raw contents have an entry more than there are outputs."""
    style = CallStyle()
    raw = [binary_of(one) for one in tensors]
    return CallAnswer(style.message(inference, [style.entry(one) for one in tensors], [*raw, raw[0]]))


WRONG_LENGTHS: Final[Mapping[str, HttpScript]] = {
    "bytes-left-over": of_parts(bytes_left_over),
    "last-tensor-missing": of_parts(last_tensor_missing),
    "last-tensor-short": of_parts(last_tensor_short),
}
