"""Servers refuse BYTES inputs whose length prefixes do not match the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.checks.support.refusals import Refusal, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, Start, WrongRequest, make_refusals, send_binary
from conformance.expect.refusals import expect_refusal
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.spec.fit import TEXTS
from conformance.transport.target import Target
from conformance.wire import strings
from conformance.wire.edits import Set, update
from conformance.wire.message_edits import Data, Edit
from conformance.wire.request import InferRequest, Message
from conformance.wire.tensor import Tensor

# --- BYTES elements with a wrong length prefix ------------------------------------------------------------------------


def _write_bytes(shape: list[int], data: str) -> tuple[Edit, ...]:
    """Return edits that set the shape and the hexadecimal data of the first input; `binary_data_size` matches."""
    octets = bytes.fromhex(data)
    return update("inputs.0", shape=shape, parameters={"binary_data_size": len(octets)}), Data(octets)


def _send_strings_second(multi: Model) -> InferRequest:
    """Return a request in which a numeric tensor follows the BYTES element "ab"."""
    sample = {tensor.name: tensor for tensor in multi.sample()}
    sample["IN_BYTES"] = Tensor.from_values("IN_BYTES", "BYTES", [b"ab"])
    return multi.request([sample[name] for name in ("IN_INT64", "IN_BYTES", "IN_FP32", "IN_BOOL")])


MISFRAMED = (
    *[
        Fault(name, "identity_bytes", _write_bytes(shape, data))
        for name, shape, data in (
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
    ],
    Fault("reaching-into-the-next-tensor", "multi", Data(b"\6\0\0\0ab", "IN_BYTES"), start=_send_strings_second),
    Fault("fewer-elements-than-rows", "rank2_bytes", _write_bytes([2, 2], "01000000 61 01000000 62 01000000 63")),
)


# --- for every model with BYTES inputs -------------------------------------------------------------------------------

PREFIX_BYTES = strings.PREFIX.size  # bytes of a length prefix


def _replace_last_length(data: bytes, offset: int, length: int) -> bytes:
    """Return the binary data with another length prefix for its last element, which starts at `offset`."""
    return data[:offset] + length.to_bytes(PREFIX_BYTES, "little") + data[offset + PREFIX_BYTES :]


# fault -> a change of the binary data of a BYTES input; it receives the offset of the last element
DEPLOYED_FAULTS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "deployed-length-past-the-end-by-one": lambda data, last: _replace_last_length(
        data, last, len(data) - last - PREFIX_BYTES + 1
    ),
    "deployed-length-that-wraps-to-zero": lambda data, last: _replace_last_length(
        data, last, 2**32 - last - PREFIX_BYTES
    ),
    "deployed-fewer-elements-than-the-shape": lambda data, last: data[:last],
    "deployed-one-stray-byte": lambda data, _: data + b"z",
}


def _send_misframed(change: Callable[[bytes, int], bytes]) -> Start:
    """Return a builder of a request to a deployed model, valid except for length prefixes in its first BYTES input.

    `change` receives the binary data and the offset of the last element; `binary_data_size` matches
    the data that `change` returns.
    """

    def build(model: Model) -> Message:
        for place, tensor in enumerate(model.sample()):
            if tensor.datatype == "BYTES" and tensor.elements:
                last = strings.encode(tensor.array.reshape(-1).tolist()[:-1])
                octets = change(bytes(tensor.to_bytes()), len(last))
                size = Set(f"inputs.{place}.parameters.binary_data_size", len(octets))
                return WrongRequest(send_binary, (size, Data(octets, str(place))))(model)
        raise NotApplicableError(f"no request to {model.name} has a BYTES input with elements")

    return build


REFUSALS: tuple[Refusal, ...] = make_refusals(
    "BIN-BYTES-MISFRAMED",
    send_binary,
    [
        *MISFRAMED,
        *[Fault(name, None, (), TEXTS, start=_send_misframed(change)) for name, change in DEPLOYED_FAULTS.items()],
    ],
)


@check("bytes.misframed-strings-are-refused", requirements="BIN-BYTES-MISFRAMED")
@rows(*make_refusal_rows(REFUSALS))
def misframed_strings_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a BYTES input whose length prefixes do not match its data."""
    expect_refusal(target, model, refusal.message(model), refusal.described)
