"""Wrong answers over gRPC: honest ones, and the edits of fields that put one fault into each.

See `wrong` for wrong answers over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from conformance.clients.answers.honest import encode_binary
from conformance.clients.answers.honest_calls import FIXED, CallStyle, encode_delimited
from conformance.clients.answers.script import CallAnswer, CallScript, Tensors
from conformance.clients.answers.wrong import (
    OTHER_ID,
    SHAPE_TOO_LARGE,
    SHAPE_TOO_SMALL,
    WrongAnswer,
    make_wrong_answers,
    point_prefix_past_end,
    set_huge_prefix,
    shorten_prefix,
)
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest
from conformance.wire.edits import Drop, Repeat, Set, cut
from conformance.wire.message_edits import Body, Edit

RAW: Final = CallStyle()
TYPED: Final = CallStyle(form="typed")
FIRST_ENTRY: Final = "raw_output_contents.0"
SECOND_ENTRY: Final = "raw_output_contents.1"  # of a BYTES output


def repeat_first_element(octets: bytes) -> bytes:
    """Return data followed by their first element, of 4 bytes."""
    return octets + octets[:4]


WRONG_RAW: Final[Mapping[str, Edit]] = {
    "entry-one-byte-short": Set(FIRST_ENTRY, cut(1)),
    "entry-too-long": Set(FIRST_ENTRY, repeat_first_element),
    "entry-missing": Drop("raw_output_contents.-1"),
    "entry-empty": Set(FIRST_ENTRY, b""),
    "prefix-past-the-end": Set(SECOND_ENTRY, point_prefix_past_end),
    "prefix-short": Set(SECOND_ENTRY, shorten_prefix),
    "prefix-huge": Set(SECOND_ENTRY, set_huge_prefix),
    "shape-too-large": SHAPE_TOO_LARGE,
    "shape-too-small": SHAPE_TOO_SMALL,
    "garbage": Body(b"\xff\xff\xff\xffgarbage"),  # no message
    "cut-off": Body(cut(3)),
}
WRONG_TYPED: Final[Mapping[str, Edit]] = {
    "typed-shape-too-large": SHAPE_TOO_LARGE,
    "typed-shape-too-small": SHAPE_TOO_SMALL,
}


def send_other_field(received: ClientRequest, inference: Inference, tensors: Tensors) -> CallAnswer:
    """Answer with the typed contents of an INT32 output in the field of FP32."""
    contents = encode_delimited(FIXED["FP32"], encode_binary(tensors[0]))
    return WrongAnswer(TYPED, (Set("outputs.0.contents", contents),))(received, inference, tensors)


WRONG_CALLS: Final[Mapping[str, CallScript]] = {
    **make_wrong_answers(RAW, WRONG_RAW),
    **make_wrong_answers(TYPED, WRONG_TYPED),
    "typed-field-of-another-datatype": send_other_field,
}
ANOTHER_ID: Final = WrongAnswer(RAW, (OTHER_ID,))
# One raw entry more than outputs.
EXTRA_ENTRY: Final = WrongAnswer(RAW, (Repeat(FIRST_ENTRY),))


def _send(answer: CallAnswer) -> CallScript:
    return lambda *_: answer


UNENDED_CALLS: Final[Mapping[str, CallScript]] = {
    "silent": _send(CallAnswer(is_silent=True)),
    "cancelled": _send(CallAnswer(is_cancelled=True)),
    "closed": _send(CallAnswer(is_closed=True)),
}
