"""Wrong gRPC answers. Each function makes one part of a correct answer wrong; its docstring states the fault.

An entry is one item of `raw_output_contents`. See `wrong` for wrong HTTP answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from conformance.clients.answers.honest import encode_binary
from conformance.clients.answers.honest_calls import CONTENTS, CallStyle, encode_delimited
from conformance.clients.answers.script import CallAnswer, CallScript, Tensors
from conformance.clients.answers.wrong import point_prefix_past_end, set_huge_prefix, shorten_prefix
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest

RAW: Final = CallStyle()
TYPED: Final = CallStyle(form="typed")
Raw = list[bytes]


def cut_first_entry(raw: Raw) -> Raw:
    """The first entry lacks its last byte."""
    return [raw[0][:-1], *raw[1:]]


def lengthen_first_entry(raw: Raw) -> Raw:
    """The first entry has an extra element of 4 bytes."""
    return [raw[0] + raw[0][:4], *raw[1:]]


def drop_last_entry(raw: Raw) -> Raw:
    """The last output has no entry."""
    return raw[:-1]


def empty_first_entry(raw: Raw) -> Raw:
    """The first entry is empty, although the shape has elements."""
    return [b"", *raw[1:]]


def _corrupt_bytes_entry(corrupt: Callable[[bytes], bytes]) -> Callable[[Raw], Raw]:
    """Return a function that corrupts the entry of the second output, which is BYTES."""
    return lambda raw: [raw[0], corrupt(raw[1]), *raw[2:]]


RAW_ENTRIES: Final[Mapping[str, Callable[[Raw], Raw]]] = {
    "entry-one-byte-short": cut_first_entry,
    "entry-too-long": lengthen_first_entry,
    "entry-missing": drop_last_entry,
    "entry-empty": empty_first_entry,
    "prefix-past-the-end": _corrupt_bytes_entry(point_prefix_past_end),
    "prefix-short": _corrupt_bytes_entry(shorten_prefix),
    "prefix-huge": _corrupt_bytes_entry(set_huge_prefix),
}


def make_raw_script(corrupt: Callable[[Raw], Raw]) -> CallScript:
    """Return a script of answers whose raw contents `corrupt` changes."""

    def answer(_received: ClientRequest, inference: Inference, tensors: Tensors) -> CallAnswer:
        entries = [RAW.encode_entry(one) for one in tensors]
        return CallAnswer(RAW.encode_message(inference, entries, corrupt([encode_binary(one) for one in tensors])))

    return answer


def make_shape_script(change: int, style: CallStyle) -> CallScript:
    """Return a script of answers that add `change` to the last dimension of the first shape."""

    def answer(_received: ClientRequest, inference: Inference, tensors: Tensors) -> CallAnswer:
        is_raw = style.is_raw(tensors)
        shapes = [(*tensors[0].shape[:-1], tensors[0].shape[-1] + change), *(one.shape for one in tensors[1:])]
        pairs = zip(tensors, shapes, strict=True)
        entries = [
            style.encode_entry(one, b"" if is_raw else style.encode_contents(one), shape) for one, shape in pairs
        ]
        return CallAnswer(
            style.encode_message(inference, entries, [encode_binary(one) for one in tensors] if is_raw else [])
        )

    return answer


def send_other_field(_received: ClientRequest, inference: Inference, tensors: Tensors) -> CallAnswer:
    """The typed contents of an INT32 output are in the FP32 field."""
    wrong = encode_delimited(CONTENTS, encode_delimited(6, encode_binary(tensors[0])))
    entries = [
        TYPED.encode_entry(tensors[0], wrong),
        *(TYPED.encode_entry(one, TYPED.encode_contents(one)) for one in tensors[1:]),
    ]
    return CallAnswer(TYPED.encode_message(inference, entries, []))


def send_garbage(_received: ClientRequest, _inference: Inference, _tensors: Tensors) -> CallAnswer:
    """The bytes are not a valid message."""
    return CallAnswer(b"\xff\xff\xff\xffgarbage")


def cut_message(received: ClientRequest, inference: Inference, tensors: Tensors) -> CallAnswer:
    """The message is truncated inside the last entry."""
    return CallAnswer(RAW(received, inference, tensors).message[:-3])


def set_other_id(received: ClientRequest, inference: Inference, tensors: Tensors) -> CallAnswer:
    """The answer has the id of another request."""
    return RAW(received, replace(inference, id="another-id"), tensors)


WRONG_CALLS: Final[Mapping[str, CallScript]] = {
    **{name: make_raw_script(corrupt) for name, corrupt in RAW_ENTRIES.items()},
    "shape-too-large": make_shape_script(1, RAW),
    "shape-too-small": make_shape_script(-1, RAW),
    "typed-shape-too-large": make_shape_script(1, TYPED),
    "typed-shape-too-small": make_shape_script(-1, TYPED),
    "typed-field-of-another-datatype": send_other_field,
    "garbage": send_garbage,
    "cut-off": cut_message,
}


def send_nothing(_received: ClientRequest, _inference: Inference, _tensors: Tensors) -> CallAnswer:
    """The peer sends nothing."""
    return CallAnswer(is_silent=True)


def cancel_call(_received: ClientRequest, _inference: Inference, _tensors: Tensors) -> CallAnswer:
    """The peer cancels the call."""
    return CallAnswer(is_cancelled=True)


def close_connection(_received: ClientRequest, _inference: Inference, _tensors: Tensors) -> CallAnswer:
    """The peer closes the connection."""
    return CallAnswer(is_closed=True)


UNENDED_CALLS: Final[Mapping[str, CallScript]] = {
    "silent": send_nothing,
    "cancelled": cancel_call,
    "closed": close_connection,
}
