"""BYTES elements whose length prefixes do not add up: refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from conformance.checks.support.refusals import Refusal, refusal_rows
from conformance.expect.refusals import expect_refusal
from conformance.roles.model import Model
from conformance.terms.check import check, rows
from conformance.transport.target import Target
from conformance.wire.request import Message, frame
from conformance.wire.tensor import Tensor

# --- BYTES elements that do not add up --------------------------------------------------------------------------------

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


def misframed(shape: list[int], data: str) -> Callable[[Model], Message]:
    """Return what makes a request whose one BYTES input has this shape and these bytes, sizes and lengths being right."""

    def message(model: Model) -> Message:
        octets = bytes.fromhex(data)
        stand_in = Tensor.of("INPUT", "UINT8", list(octets))
        parameters = {"binary_data_size": len(octets)}
        given = {"name": "INPUT", "shape": shape, "datatype": "BYTES", "parameters": parameters}
        framed = frame(model.infer_path, {"inputs": [given]}, [stand_in], model.names)
        return replace(framed, spans=tuple((name, "BYTES", start, end) for name, _, start, end in framed.spans))

    return message


def reaching_into_the_next(multi: Model) -> Message:
    """Return a request whose BYTES element ends in the bytes of the tensor that follows."""
    sample = {tensor.name: tensor for tensor in multi.sample()}
    sample["IN_BYTES"] = Tensor.of("IN_BYTES", "BYTES", [b"ab"])
    order = ("IN_INT64", "IN_BYTES", "IN_FP32", "IN_BOOL")
    message = multi.request([sample[name] for name in order]).message()
    start = next(first for name, _, first, _ in message.spans if name == "IN_BYTES")
    return message.with_body(message.body[:start] + b"\x06" + message.body[start + 1 :])


REFUSALS: tuple[Refusal, ...] = (
    *[
        Refusal(fault, "BIN-BYTES-MISFRAMED", "identity_bytes", misframed(shape, data))
        for fault, shape, data in MISFRAMED
    ],
    Refusal("reaching-into-the-next-tensor", "BIN-BYTES-MISFRAMED", "multi", reaching_into_the_next),
    Refusal(
        "fewer-elements-than-rows",
        "BIN-BYTES-MISFRAMED",
        "rank2_bytes",
        misframed([2, 2], "01000000 61 01000000 62 01000000 63"),
    ),
)


@check("bytes.misframed-strings-are-refused", answers="BIN-BYTES-MISFRAMED")
@rows(*refusal_rows(REFUSALS))
def misframed_strings_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A BYTES input whose length prefixes do not add up is refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)
