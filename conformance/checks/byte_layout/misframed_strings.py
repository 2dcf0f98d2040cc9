"""Servers refuse BYTES inputs whose length prefixes do not match the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from conformance.checks.support.refusals import Refusal, make_refusal_rows
from conformance.expect.refusals import expect_refusal
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.spec.fit import TEXTS
from conformance.transport.target import Target
from conformance.wire import strings
from conformance.wire.request import Message, frame
from conformance.wire.tensor import Tensor

# --- BYTES elements with a wrong length prefix ------------------------------------------------------------------------

# fault, shape, binary data
MISFRAMED: tuple[tuple[str, list[int], str], ...] = (
    ("no-prefix", [1], ""),
    ("prefix-of-one-byte", [1], "01"),
    ("prefix-of-three-bytes", [1], "010000"),
    ("second-prefix-cut-short", [2], "02000000 6162 0200"),
    ("past-the-end-by-one", [1], "03000000 6162"),
    ("past-the-end-in-the-second", [2], "02000000 6162 05000000 6364"),
    ("length-2-to-the-31-less-one", [1], "ffffff7f 6162"),
    ("length-2-to-the-31", [1], "00000080 6162"),
    ("length-2-to-the-32-less-one", [1], "ffffffff 6162"),
    ("length-that-wraps-to-zero", [1], "fcffffff 6162"),
    ("length-of-two-bytes", [1], "0200 6162"),
    ("length-of-eight-bytes", [1], "0200000000000000 6162"),
    ("no-length", [1], "68656c6c6f0a"),
    ("fewer-elements-than-the-shape", [3], "02000000 6162 01000000 63"),
    ("more-elements-than-the-shape", [1], "02000000 6162 01000000 63"),
    ("more-empty-elements-than-the-shape", [1], "02000000 6162 00000000"),
    ("elements-for-an-empty-shape", [0], "01000000 61"),
    ("one-stray-byte", [1], "02000000 6162 7a"),
    ("four-stray-bytes", [1], "02000000 6162 7a7a7a7a"),
    ("padded-to-a-word", [2], "01000000 61 000000 01000000 62 000000"),
)


def make_misframed_request(shape: list[int], data: str) -> Callable[[Model], Message]:
    """Return a builder of a request with one BYTES input of this shape and this hexadecimal data.

    `binary_data_size` matches the data.
    """

    def build(model: Model) -> Message:
        octets = bytes.fromhex(data)
        stand_in = Tensor.from_values("INPUT", "UINT8", list(octets))
        parameters = {"binary_data_size": len(octets)}
        entry = {"name": "INPUT", "shape": shape, "datatype": "BYTES", "parameters": parameters}
        return _annotate_as_bytes(frame(model.infer_path, {"inputs": [entry]}, [stand_in], model.names), "INPUT")

    return build


def _annotate_as_bytes(framed: Message, input_name: str) -> Message:
    """Return the message with the input, which was built as UINT8, labelled BYTES for the byte display in reports."""
    spans = framed.spans
    annotated = [(name, "BYTES" if name == input_name else kind, start, end) for name, kind, start, end in spans]
    return replace(framed, spans=tuple(annotated))


def make_overreaching_request(multi: Model) -> Message:
    """Return a request with a BYTES element whose length prefix reaches into the next tensor."""
    sample = {tensor.name: tensor for tensor in multi.sample()}
    sample["IN_BYTES"] = Tensor.from_values("IN_BYTES", "BYTES", [b"ab"])
    order = ("IN_INT64", "IN_BYTES", "IN_FP32", "IN_BOOL")
    message = multi.request([sample[name] for name in order]).message()
    start = next(first for name, _, first, _ in message.spans if name == "IN_BYTES")
    return message.with_body(message.body[:start] + b"\x06" + message.body[start + 1 :])


REFUSALS: tuple[Refusal, ...] = (
    *[
        Refusal(fault, "BIN-BYTES-MISFRAMED", "identity_bytes", make_misframed_request(shape, data))
        for fault, shape, data in MISFRAMED
    ],
    Refusal("reaching-into-the-next-tensor", "BIN-BYTES-MISFRAMED", "multi", make_overreaching_request),
    Refusal(
        "fewer-elements-than-rows",
        "BIN-BYTES-MISFRAMED",
        "rank2_bytes",
        make_misframed_request([2, 2], "01000000 61 01000000 62 01000000 63"),
    ),
)


# --- for every model with BYTES inputs -------------------------------------------------------------------------------

PREFIX_BYTES = strings.PREFIX.size  # bytes of a length prefix


def _replace_last_length(data: bytes, offset: int, length: int) -> bytes:
    """Return the binary data with another length prefix for its last element, which starts at `offset`."""
    return data[:offset] + length.to_bytes(PREFIX_BYTES, "little") + data[offset + PREFIX_BYTES :]


# fault -> a change of the binary data of a BYTES input; it receives the offset of the last element
OWN_FAULTS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "own-length-past-the-end-by-one": lambda data, last: _replace_last_length(
        data, last, len(data) - last - PREFIX_BYTES + 1
    ),
    "own-length-that-wraps-to-zero": lambda data, last: _replace_last_length(data, last, 2**32 - last - PREFIX_BYTES),
    "own-fewer-elements-than-the-shape": lambda data, last: data[:last],
    "own-one-stray-byte": lambda data, _: data + b"z",
}


def make_misframed_deployed_request(change: Callable[[bytes, int], bytes]) -> Callable[[Model], Message]:
    """Return a builder of a request to a deployed model, valid except for length prefixes in its first BYTES input.

    `change` receives the binary data and the offset of the last element; `binary_data_size` matches
    the data that `change` returns.
    """

    def build(model: Model) -> Message:
        tensors = list(model.sample())
        place = next((k for k, tensor in enumerate(tensors) if tensor.datatype == "BYTES" and tensor.elements), None)
        if place is None:
            raise NotApplicableError(f"no request to {model.name} has a BYTES input with elements")
        elements = tensors[place].array.reshape(-1).tolist()
        octets = change(strings.encode(elements), len(strings.encode(elements[:-1])))
        document = model.request(tensors, outputs=model.build_outputs_member()).document()
        document["inputs"][place]["parameters"]["binary_data_size"] = len(octets)
        tensors[place] = Tensor.from_values(tensors[place].name, "UINT8", list(octets))
        return _annotate_as_bytes(frame(model.infer_path, document, tensors, model.names), tensors[place].name)

    return build


OWN_REFUSALS: tuple[Refusal, ...] = tuple(
    Refusal(fault, "BIN-BYTES-MISFRAMED", "", make_misframed_deployed_request(change), fit=TEXTS)
    for fault, change in OWN_FAULTS.items()
)


@check("bytes.misframed-strings-are-refused", answers="BIN-BYTES-MISFRAMED")
@rows(*make_refusal_rows((*REFUSALS, *OWN_REFUSALS)))
def misframed_strings_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a BYTES input whose length prefixes do not match its data."""
    expect_refusal(target, model, refusal.message(model), refusal.described)
