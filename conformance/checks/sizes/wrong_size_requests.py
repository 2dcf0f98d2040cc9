"""Requests with a wrong `binary_data_size`, each with one fault.

Where possible, a body has as many bytes as the wrong size states, so that only the shape contradicts the size. Some
sizes are right modulo 2^32 or 2^64: they reveal a server that truncates sizes to 32 or 64 bits.

Where possible, a request is made by changing a valid one, so that deployed models can receive it as well.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from conformance.checks.support.deployed_models import to_json
from conformance.checks.support.inputs import require_several_inputs, sample_inputs
from conformance.checks.support.refusals import Refusal
from conformance.checks.support.wrong_requests import Fault, Start, make_refusals, send_binary
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.fit import ANY, SEVERAL_INPUTS, Fit
from conformance.wire.datatypes import DATATYPES
from conformance.wire.edits import Drop, Set, chain, cut, plus, times, update
from conformance.wire.message_edits import Body, Data, Edit, Header, measure_json, set_length
from conformance.wire.request import OCTET_STREAM, Form, InferRequest, Message
from conformance.wire.tensor import Tensor

# Three INT32 elements; the elements "one" and "three" of BYTES.
NUMBERS = bytes(range(1, 13))
STRINGS = bytes.fromhex("03000000 6f6e65 05000000 7468726565")

_FIXED_SIZE = Fit(inputs=frozenset(DATATYPES) - {"BYTES"})  # the shape of strings does not give their size
_ONE_BYTE_DATATYPES = frozenset({"BOOL", "INT8", "UINT8"})
FIRST_OF_ONE_BYTE = f"@{'|'.join(sorted(_ONE_BYTE_DATATYPES))}"
PACKED_COUNT = 9  # elements: more than a byte has bits

# --- valid requests to start from -------------------------------------------------------------------------------------


def make_numbers(model: Model) -> list[Tensor]:
    """Return the inputs of `send_numbers`.

    The first input has the elements of `STRINGS` or `NUMBERS`; a deployed model receives its own sample inputs.
    """
    strings = model.role.inputs[0].datatype == "BYTES"
    return model.fill([b"one", b"three"] if strings else np.frombuffer(NUMBERS, "<i4").tolist())


def send_numbers(model: Model) -> InferRequest:
    """Return a request with known bytes."""
    return model.request(make_numbers(model), outputs=model.build_outputs_member())


def send_several(model: Model) -> InferRequest:
    """Return a request with several binary inputs."""
    return model.request(require_several_inputs(model), outputs=model.build_outputs_member())


def _send_elements(datatypes: Collection[str], count: int) -> Start:
    """Return a builder of a request in which the first input of these datatypes has `count` elements."""

    def build_request(model: Model) -> InferRequest:
        tensors = model.build_salted_inputs(count, model.salt)
        tensor = next((tensor for tensor in tensors if tensor.datatype in datatypes), None)
        if tensor is None or tensor.elements != count:
            accepted = f"{' or '.join(sorted(datatypes))} input of {count} elements"
            raise NotApplicableError(f"{model.name} accepts no {accepted}")
        return model.request(tensors, outputs=model.build_outputs_member())

    return build_request


def _send_ascii(send: Form | Collection[str] = "binary") -> Start:
    """Return a builder of a request whose strings are ASCII, so that its JSON has as many characters as bytes.

    The checks of the inference header cover JSON with more bytes than characters. `send` is the form of all inputs
    (`json` or `binary`), or the names of the binary inputs.
    """

    def build_request(model: Model) -> InferRequest:
        names = [spec.name for spec in model.role.inputs if spec.datatype == "BYTES"]
        tensors = model.fill(dict.fromkeys(names, (f"{model.salt}a", "", "bc")))
        return model.request(tensors, send=send, outputs=model.build_outputs_member())

    return build_request


# --- requests whose fault depends on the elements ---------------------------------------------------------------------


def _send_other_count(change: int) -> Start:
    """Return a builder of a request whose first input lacks its last element (-1), or has its first again (1).

    `binary_data_size` matches the data; only the shape contradicts them.

    Raises NotApplicableError: the input has no elements.
    """

    def build_request(model: Model) -> Message:
        tensor, *others = make_numbers(model)
        flat = tensor.array.reshape(-1)
        if not flat.size:
            raise NotApplicableError(f"{tensor.name} has no elements")
        elements = flat[:-1] if change < 0 else np.append(flat, flat[:1])
        first = Tensor.from_values(tensor.name, tensor.datatype, elements)
        request = model.request([first, *others], outputs=model.build_outputs_member())
        return request.encode_with(Set("inputs.0.shape", list(tensor.shape)))

    return build_request


def _move_last_element(model: Model) -> Message:
    """Return a request whose sizes make the last element of the first input part of the second input.

    Raises NotApplicableError: the first input has no elements.
    """
    first, request = require_several_inputs(model)[0], send_several(model)
    if not first.elements:
        raise NotApplicableError(f"{first.name} has no elements")
    last = Tensor.from_values(first.name, first.datatype, first.array.reshape(-1)[-1:])
    return request.encode_with(chain(resize(0, plus(-last.size)), resize(1, plus(last.size))))


def _add_json_data(model: Model) -> Message:
    """Return a binary request whose first input also has `data`: 1, 2, 3, or the sample values of a deployed model."""
    data = to_json(model, model.fill([1, 2, 3])[0])
    return send_binary(model).encode_with(update("inputs.0", data=data))


# --- the tables -------------------------------------------------------------------------------------------------------


def resize(entry: str | int, size: Any) -> Set:
    """Return an edit that sets `binary_data_size` of the input at an index or with a name."""
    return Set(f"inputs.{entry}.parameters.binary_data_size", size)


def drop_size(entry: str | int) -> Drop:
    """Return an edit that removes `binary_data_size` of the input at an index or with a name."""
    return Drop(f"inputs.{entry}.parameters.binary_data_size")


def write_first_input(data: bytes, *shape: int, size: Any = None) -> tuple[Edit, ...]:
    """Return edits that set the binary data of the first input, its shape and `binary_data_size`."""
    return Set("inputs.0.shape", list(shape)), resize(0, len(data) if size is None else size), Data(data)


def _append(extra: bytes) -> tuple[Edit, ...]:
    """Return edits that append bytes to the body, and give a request without binary data the headers of binary data."""
    return set_length(measure_json()), Header("Content-Type", OCTET_STREAM), Body(plus(extra))


def _pack_booleans(data: bytes) -> bytes:
    """Return BOOL elements packed into bits."""
    return np.packbits(np.frombuffer(data, "u1"), bitorder="little").tobytes()


_ALL_BYTES_MISSING = Data(b"", of=None)
SHORT_BODIES = (
    Fault("last-byte-missing", "identity_int32", Body(cut(1)), ANY),
    Fault("all-bytes-missing", "identity_int32", _ALL_BYTES_MISSING, ANY),
    Fault("all-bytes-and-the-header-missing", "identity_int32", (_ALL_BYTES_MISSING, set_length()), ANY),
    Fault("last-byte-of-four-tensors-missing", "multi", Body(cut(1)), start=send_binary),
    Fault("last-of-four-tensors-missing", "multi", Data(b"", "-1"), start=send_binary),
    Fault("last-byte-of-strings-missing", "identity_bytes", Body(cut(1))),
)
SIZES_BESIDE_SHAPE = (
    Fault("one-element-short", "identity_int32", (), _FIXED_SIZE, start=_send_other_count(-1)),
    Fault("one-element-over", "identity_int32", (), _FIXED_SIZE, start=_send_other_count(1)),
    Fault("one-byte-short", "identity_int32", write_first_input(NUMBERS[:-1], 3)),
    Fault("one-byte-over", "identity_int32", write_first_input(NUMBERS + b"\1", 3)),
    Fault("size-zero", "identity_int32", write_first_input(b"", 3)),
    Fault("elements-of-twice-the-width", "identity_int32", write_first_input(NUMBERS * 2, 3)),
    Fault("half-floats-of-four-bytes", "identity_fp16", write_first_input(NUMBERS + b"\1\2\3\4", 4)),
    Fault("booleans-packed-in-bits", "identity_bool", write_first_input(b"\1", 8)),
    Fault("booleans-of-four-bytes", "identity_bool", write_first_input(bytes.fromhex("01000000") * 3, 3)),
    Fault("one-item-of-a-batch-of-two", "batching", write_first_input(NUMBERS, 2, 3)),
    Fault(
        "booleans-of-any-model-in-bits",
        None,
        (resize("@BOOL", -(-PACKED_COUNT // 8)), Data(_pack_booleans, "@BOOL")),
        Fit(some_input=frozenset({"BOOL"})),
        start=_send_elements(("BOOL",), PACKED_COUNT),
    ),
)
# The body of a good request with another size.
FALSE_SIZES = (
    Fault("size-moved-to-the-neighbour", "add_sub", (resize("A", plus(-4)), resize("B", plus(4)))),
    Fault("sizes-of-two-inputs-exchanged", "multi", (resize("IN_INT64", plus(-21)), resize("IN_BOOL", plus(21)))),
    Fault("sum-past-2-to-the-63", "multi", resize("IN_BYTES", plus(2**63 - 32))),
    Fault("negative-in-a-sum-that-fits", "add_sub", (resize("A", plus(-24)), resize("B", plus(24)))),
    Fault("minus-one-for-in-int64-of-multi", "multi", resize("IN_INT64", -1)),
    Fault("minus-one-for-in-bool-of-multi", "multi", resize("IN_BOOL", -1)),
    Fault("minus-one-for-in-bytes-of-multi", "multi", resize("IN_BYTES", -1)),
    Fault("minus-one-for-a-of-add-sub", "add_sub", resize("A", -1)),
    Fault("size-zero-for-in-bool-of-multi", "multi", resize("IN_BOOL", 0)),
    Fault("2-to-the-63-for-in-fp32-of-multi", "multi", resize("IN_FP32", 2**63)),
    Fault("size-zero-for-a-of-add-sub", "add_sub", resize("A", 0)),
)
FALSE_SINGLE_SIZES = (
    Fault("fraction-of-a-byte", "identity_int32", resize(0, plus(0.5)), ANY),
    Fault("true-for-twelve-bytes", "identity_int32", resize(0, True)),
    Fault("2-to-the-31", "identity_int32", resize(0, 2**31)),
    Fault("right-in-32-bits", "identity_int32", resize(0, plus(2**32)), ANY),
    Fault("2-to-the-63-less-1", "identity_int32", resize(0, 2**63 - 1)),
    Fault("2-to-the-63", "identity_int32", resize(0, 2**63)),
    Fault("right-in-64-bits", "identity_int32", resize(0, plus(2**64)), ANY),
    Fault("minus-one", "identity_int32", resize(0, -1), ANY),
    Fault("minus-the-size", "identity_int32", resize(0, times(-1)), ANY),
    Fault("negative-and-right-in-32-bits", "identity_int32", resize(0, plus(-(2**32)))),
    Fault("least-int64", "identity_int32", resize(0, -(2**63))),
    Fault("strings-of-minus-one", "identity_bytes", resize(0, -1)),
    Fault("strings-of-2-to-the-31", "identity_bytes", resize(0, 2**31)),
    Fault("strings-right-in-32-bits", "identity_bytes", resize(0, plus(2**32))),
    Fault("strings-of-2-to-the-63-less-1", "identity_bytes", resize(0, 2**63 - 1)),
    Fault("strings-right-in-64-bits", "identity_bytes", resize(0, plus(2**64))),
)
FALSE_SIZES_AMONG_SEVERAL = (
    Fault("size-moved-to-the-next-input", None, (), SEVERAL_INPUTS, start=_move_last_element),
    Fault("second-input-of-minus-one", None, resize(1, -1), SEVERAL_INPUTS),
    Fault("last-input-beyond-the-body", None, resize(-1, plus(2**32)), SEVERAL_INPUTS),
)
SIZE_TYPES = (
    Fault("size-as-a-string", "identity_int32", resize(0, str), ANY),
    Fault("size-as-letters", "identity_int32", resize(0, "twelve"), ANY),
    Fault("true-for-one-byte", "identity_uint8", write_first_input(b"\7", 1, size=True), start=send_binary),
    Fault("size-12-for-in-fp32-of-multi", "multi", resize("IN_FP32", "12"), start=send_binary),
    Fault("size-12-for-a-of-add-sub", "add_sub", resize("A", "12"), start=send_binary),
    Fault("last-input-of-a-size-in-a-string", None, resize(-1, str), SEVERAL_INPUTS, start=send_several),
    Fault(
        "true-for-one-byte-of-any-model",
        None,
        resize(FIRST_OF_ONE_BYTE, True),
        Fit(some_input=_ONE_BYTE_DATATYPES),
        start=_send_elements(_ONE_BYTE_DATATYPES, 1),
    ),
)
DATA_AND_SIZE = (
    Fault("data-beside-its-bytes", "identity_int32", (), ANY, start=_add_json_data),
    Fault(
        "data-beside-size-zero", "identity_int32", (Set("inputs.0.data", [1, 2, 3]), resize(0, 0), _ALL_BYTES_MISSING)
    ),
    Fault("strings-beside-their-bytes", "identity_bytes", Set("inputs.0.data", ["a", "b", "c"])),
    Fault("data-in-the-first-of-four", "multi", Set("inputs.0.data", [1, 2, 3])),
)
NO_DATA_NOR_SIZE = (
    Fault("bytes-without-a-size", "identity_int32", Drop("inputs.0.parameters"), ANY),
    Fault("bytes-with-empty-parameters", "identity_int32", drop_size(0)),
    Fault("size-null", "identity_int32", resize(0, None)),
    Fault("strings-without-a-size", "identity_bytes", Drop("inputs.0.parameters")),
    Fault("first-of-four-without-a-size", "multi", Drop("inputs.0.parameters")),
    Fault("no-size-for-in-bool-of-multi", "multi", drop_size("IN_BOOL")),
    Fault("no-size-for-in-bytes-of-multi", "multi", drop_size("IN_BYTES")),
    Fault("no-size-for-a-of-add-sub", "add_sub", drop_size("A")),
    Fault("last-input-without-a-size", None, drop_size(-1), SEVERAL_INPUTS, start=send_several),
)
# Trailing bytes must not alter a tensor. Among several binary inputs, strings are JSON: their length prefixes would
# reveal a shift.
TRAILING_BYTES = (
    Fault("one-byte", "identity_uint8", _append(b"\1"), ANY),
    Fault("one-element", "identity_int32", _append(b"\1\2\3\4"), ANY),
    Fault("one-string", "identity_bytes", _append(bytes.fromhex("01000000 61"))),
    Fault("behind-three-tensors", "multi", _append(b"\1\2\3\4"), start=_send_ascii(("IN_INT64", "IN_BOOL", "IN_FP32"))),
    Fault("behind-strings", "multi", _append(b"\1")),
    Fault("behind-json-inputs", "identity_int32", _append(b"\1\2\3\4"), start=_send_ascii("json")),
)

BYTES_LEFT_OVER = make_refusals("BIN-BODY-LONG", _send_ascii(), TRAILING_BYTES)
REFUSALS: tuple[Refusal, ...] = (
    *make_refusals("BIN-BODY-SHORT", send_numbers, SHORT_BODIES),
    *make_refusals("BIN-SIZE-WRONG", send_binary, SIZES_BESIDE_SHAPE),
    *make_refusals("BIN-SIZE-FALSE", send_binary, FALSE_SIZES, sample_inputs),
    *make_refusals("BIN-SIZE-FALSE", send_numbers, FALSE_SINGLE_SIZES, make_numbers),
    *make_refusals("BIN-SIZE-FALSE", send_several, FALSE_SIZES_AMONG_SEVERAL, sample_inputs),
    *make_refusals("BIN-SIZE-TYPE", send_numbers, SIZE_TYPES),
    *BYTES_LEFT_OVER,
    *make_refusals("BIN-DATA-AND-SIZE", send_binary, DATA_AND_SIZE),
    *make_refusals("BIN-SIZE-MISSING", send_binary, NO_DATA_NOR_SIZE),
)
