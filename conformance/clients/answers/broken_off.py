"""Answers over HTTP that never come whole: cut off and closed, reset, or silent from some byte on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from conformance.clients.answers.delivery import Delivery
from conformance.clients.answers.honest import Style
from conformance.clients.answers.script import Ending, HttpAnswer, HttpScript, Tensors
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest
from conformance.wire.request import Form

_HEAD_ENDS: Final = b"\r\n\r\n"


def before_anything(_octets: bytes) -> int:
    """Not a byte comes."""
    return 0


def in_the_status_line(_octets: bytes) -> int:
    """The status is cut off."""
    return 11


def in_the_head(octets: bytes) -> int:
    """Some headers come."""
    return octets.index(_HEAD_ENDS) - 8


def in_the_json(octets: bytes) -> int:
    """The JSON begins."""
    return octets.index(_HEAD_ENDS) + len(_HEAD_ENDS) + 40


def in_the_last_tensor(octets: bytes) -> int:
    """All but three bytes come."""
    return len(octets) - 3


def before_the_last_chunk(octets: bytes) -> int:
    """All chunks come but the one that says that it was the last."""
    return len(octets) - len(b"0\r\n\r\n")


PLACES: Final[Mapping[str, Callable[[bytes], int]]] = {
    "before-anything": before_anything,
    "in-the-status-line": in_the_status_line,
    "in-the-head": in_the_head,
    "in-the-json": in_the_json,
    "in-the-last-tensor": in_the_last_tensor,
}


def make_broken_off_script(
    place: Callable[[bytes], int], ending: Ending, form: Form | None = None, delivery: Delivery | None = None
) -> HttpScript:
    """Return a script of honest answers that end at a place."""
    style = Style(form=form, delivery=delivery or Delivery())

    def answer(received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
        whole = style(received, inference, tensors)
        octets = b"".join(whole.pieces)
        end = place(octets)
        head = octets.index(_HEAD_ENDS) + len(_HEAD_ENDS)
        sent = octets[:end]
        if end < head:
            return HttpAnswer((sent,) if sent else (), ending=ending)
        return replace(whole, pieces=(sent,), body=sent[head:], ending=ending)

    return answer


IN_CHUNKS: Final = Delivery(chunk=64)
