"""Requests with a wrong `binary_data_size`, each with one fault.

Where possible, a body has as many bytes as the wrong size states, so that only the shape contradicts the size. Some
sizes are right modulo 2^32 or 2^64: they reveal a server that truncates sizes to 32 or 64 bits.

Where possible, a request is made by changing a valid one, so that deployed models can receive it as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.checks.support.deployed_models import to_json
from conformance.checks.support.refusals import Refusal
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import MessageBuilder, Model
from conformance.roles.roles import TensorSpec
from conformance.spec.fit import ANY, Fit
from conformance.wire.datatypes import DATATYPES
from conformance.wire.request import INFERENCE_HEADER, OCTET_STREAM, Form, Message
from conformance.wire.tensor import Tensor

Entry = tuple[str, MessageBuilder, str]
SampleInputs = Callable[[Model], Sequence[Tensor]]

NUMERIC = ("IN_INT64", "IN_BOOL", "IN_FP32")

# Three INT32 elements; the elements "one" and "three" of BYTES.
NUMBERS = bytes(range(1, 13))
STRINGS = bytes.fromhex("03000000 6f6e65 05000000 7468726565")


@dataclass(frozen=True, slots=True)
class InputBytes:
    """The binary data of a valid input, of its first element and of its last element."""

    data: bytes
    first: bytes
    last: bytes

    @property
    def size(self) -> int:
        """The correct `binary_data_size`."""
        return len(self.data)


def slice_input_bytes(tensor: Tensor) -> InputBytes:
    """Return the bytes of a tensor, of its first and of its last element.

    Raises:
        NotApplicable: the tensor has no elements.
    """
    flat = tensor.array.reshape(-1)
    if not flat.size:
        raise NotApplicableError(f"{tensor.name} has no elements")
    ends = (bytes(Tensor.from_values(tensor.name, tensor.datatype, part).to_bytes()) for part in (flat[:1], flat[-1:]))
    return InputBytes(bytes(tensor.to_bytes()), *ends)


def make_sample_inputs(model: Model) -> list[Tensor]:
    """Return the valid inputs that `change_size_and_bytes` starts from.

    The first input has the elements of `STRINGS` or `NUMBERS`; a deployed model receives its own sample inputs.
    """
    strings = model.role.inputs[0].datatype == "BYTES"
    return model.fill([b"one", b"three"] if strings else np.frombuffer(NUMBERS, "<i4").tolist())


def change_size_and_bytes(
    size: Callable[[InputBytes], Any], data: Callable[[InputBytes], bytes] = lambda good: good.data
) -> MessageBuilder:
    """Return a builder of a request that is valid except for the size and the bytes of its first input."""

    def build_request(model: Model) -> Message:
        tensor, *others = make_sample_inputs(model)
        good = slice_input_bytes(tensor)
        return _build_request_with_size(model, tensor, tensor.shape, size(good), data(good), others)

    return build_request


def build_with_size(size: Any, data: bytes = NUMBERS, shape: Sequence[int] = (3,)) -> MessageBuilder:
    """Return a builder of a request with one input of this shape, `binary_data_size` and binary data."""
    return lambda model: _build_request_with_size(model, model.role.inputs[0], shape, size, data)


def _build_request_with_size(
    model: Model,
    first: TensorSpec | Tensor,
    shape: Sequence[int],
    size: Any,
    data: bytes,
    others: Sequence[Tensor] = (),
) -> Message:
    """Return a request whose first input has this shape, size and data; the other inputs are valid."""
    octets = Tensor.from_values(first.name, "UINT8", np.frombuffer(data, "u1"))

    def edit_json(document: dict[str, Any]) -> None:
        document["inputs"][0] |= {
            "datatype": first.datatype,
            "shape": list(shape),
            "parameters": {"binary_data_size": size},
        }

    return model.request([octets, *others], outputs=model.build_outputs_member()).encode_with(edit_json)


def drop_last_bytes(count: int | None) -> MessageBuilder:
    """Return a builder of a request that lacks its last `count` bytes, or, for None, all binary data."""

    def build_request(model: Model) -> Message:
        message = model.request(make_sample_inputs(model), outputs=model.build_outputs_member()).message()
        return message.with_body(message.body[: message.json_length if count is None else -count])

    return build_request


def change_declared_sizes(change: Mapping[str, int]) -> MessageBuilder:
    """Return a builder of a valid request whose declared sizes are changed: input name -> difference in bytes."""

    def build_request(model: Model) -> Message:
        def edit_json(document: dict[str, Any]) -> None:
            for item in document["inputs"]:
                item["parameters"]["binary_data_size"] += change.get(item["name"], 0)

        return model.request().encode_with(edit_json)

    return build_request


def make_wrong_size_entry(name: str, size: Any, role: str = "multi") -> Entry:
    """Return an entry (row id, builder, role) for a request that is valid except for the size of the input `name`."""

    def build_request(model: Model) -> Message:
        def edit_json(document: dict[str, Any]) -> None:
            item = next(item for item in document["inputs"] if item["name"] == name)
            item["parameters"] = {} if size is None else {"binary_data_size": size}

        return model.request().encode_with(edit_json)

    label = {None: "no-size", -1: "minus-one", 0: "size-zero"}.get(
        size, f"size-{size}" if isinstance(size, str) else "2-to-the-63"
    )
    return f"{label}-for-{name.lower().replace('_', '-')}-of-{role.replace('_', '-')}", build_request, role


def edit_first_input(change: Mapping[str, Any], *, keep: int | None = None) -> MessageBuilder:
    """Return a builder of a binary request with changed members in its first input; None removes a member.

    `keep` truncates the binary data to this number of bytes.
    """

    def build_request(model: Model) -> Message:
        def edit_json(document: dict[str, Any]) -> None:
            item = document["inputs"][0] | dict(change)
            document["inputs"][0] = {name: value for name, value in item.items() if value is not None}

        message = model.request(outputs=model.build_outputs_member()).encode_with(edit_json)
        return message if keep is None else message.with_body(message.body[: message.json_length + keep])

    return build_request


def drop_last_bytes_of_sample(count: int) -> MessageBuilder:
    """Return a builder of the sample request of a model without its last `count` bytes."""

    def build_request(model: Model) -> Message:
        message = model.request().message()
        return message.with_body(message.body[:-count])

    return build_request


def drop_last_tensor(model: Model) -> Message:
    """Return a request that lacks all bytes of its last tensor."""
    message = model.request().message()
    return message.with_body(message.body[: message.spans[-1][2]])


def add_json_data(values: Sequence[Any]) -> MessageBuilder:
    """Return a builder of a binary request whose first input also has `data`.

    The `data` are `values`, or the sample values of a deployed model.
    """

    def build_request(model: Model) -> Message:
        data = to_json(model, model.fill(values)[0])
        return model.request(outputs=model.build_outputs_member()).encode_with(
            lambda document: document["inputs"][0].update(data=data)
        )

    return build_request


def drop_binary_data_and_header(model: Model) -> Message:
    """Return a request whose JSON declares binary data, but that has no binary data and no inference header."""
    return drop_last_bytes(None)(model).with_header(INFERENCE_HEADER, None)


def _sample_ascii_inputs(model: Model) -> list[Tensor]:
    """Return sample inputs whose strings are ASCII, so that their JSON has as many characters as bytes.

    The checks of the inference header cover JSON with more bytes than characters.
    """
    names = [spec.name for spec in model.role.inputs if spec.datatype == "BYTES"]
    texts = (f"{model.salt}a", "", "bc")
    return model.fill(dict.fromkeys(names, texts))


def append_bytes(extra: bytes, send: Form | Collection[str] = "binary") -> Callable[[Model], tuple[Message, Message]]:
    """Return a builder of two requests: a valid one, and the same with extra bytes at the end.

    `send` is the form of all inputs (`json` or `binary`), or the names of the binary inputs.
    """

    def build_both_requests(model: Model) -> tuple[Message, Message]:
        message = model.request(_sample_ascii_inputs(model), send=send, outputs=model.build_outputs_member()).message()
        headed = message.with_header(INFERENCE_HEADER, str(message.json_length))
        return message, headed.with_header("Content-Type", OCTET_STREAM).with_body(message.body + extra)

    return build_both_requests


SHORT_BODIES: tuple[Entry, ...] = (
    ("last-byte-missing", drop_last_bytes(1), "identity_int32"),
    ("all-bytes-missing", drop_last_bytes(None), "identity_int32"),
    ("all-bytes-and-the-header-missing", drop_binary_data_and_header, "identity_int32"),
    ("last-byte-of-four-tensors-missing", drop_last_bytes_of_sample(1), "multi"),
    ("last-of-four-tensors-missing", drop_last_tensor, "multi"),
    ("last-byte-of-strings-missing", build_with_size(len(STRINGS), STRINGS[:-1], [2]), "identity_bytes"),
)
SIZES_BESIDE_SHAPE: tuple[Entry, ...] = (
    (
        "one-element-short",
        change_size_and_bytes(lambda good: good.size - len(good.last), lambda good: good.data[: -len(good.last)]),
        "identity_int32",
    ),
    (
        "one-element-over",
        change_size_and_bytes(lambda good: good.size + len(good.first), lambda good: good.data + good.first),
        "identity_int32",
    ),
    ("one-byte-short", build_with_size(11, NUMBERS[:-1]), "identity_int32"),
    ("one-byte-over", build_with_size(13, NUMBERS + b"\1"), "identity_int32"),
    ("size-zero", build_with_size(0, b""), "identity_int32"),
    ("elements-of-twice-the-width", build_with_size(24, NUMBERS * 2), "identity_int32"),
    ("half-floats-of-four-bytes", build_with_size(16, NUMBERS + b"\1\2\3\4", [4]), "identity_fp16"),
    ("booleans-packed-in-bits", build_with_size(1, b"\1", [8]), "identity_bool"),
    ("booleans-of-four-bytes", build_with_size(12, bytes.fromhex("01000000") * 3), "identity_bool"),
    ("one-item-of-a-batch-of-two", build_with_size(12, NUMBERS, [2, 3]), "batching"),
)
# The body of a good request with another size.
FALSE_SIZES: tuple[Entry, ...] = (
    ("size-moved-to-the-neighbour", change_declared_sizes({"A": -4, "B": 4}), "add_sub"),
    ("sizes-of-two-inputs-exchanged", change_declared_sizes({"IN_INT64": -21, "IN_BOOL": 21}), "multi"),
    ("sum-past-2-to-the-63", change_declared_sizes({"IN_BYTES": 2**63 - 32}), "multi"),
    ("negative-in-a-sum-that-fits", change_declared_sizes({"A": -24, "B": 24}), "add_sub"),
    *[
        make_wrong_size_entry(*place)
        for place in (("IN_INT64", -1), ("IN_BOOL", -1), ("IN_BYTES", -1), ("A", -1, "add_sub"))
    ],
    *[make_wrong_size_entry(*place) for place in (("IN_BOOL", 0), ("IN_FP32", 2**63), ("A", 0, "add_sub"))],
)
FALSE_SINGLE_SIZES: tuple[Entry, ...] = (
    ("fraction-of-a-byte", change_size_and_bytes(lambda good: good.size + 0.5), "identity_int32"),
    ("true-for-twelve-bytes", build_with_size(True), "identity_int32"),
    ("2-to-the-31", build_with_size(2**31), "identity_int32"),
    ("right-in-32-bits", change_size_and_bytes(lambda good: good.size + 2**32), "identity_int32"),
    ("2-to-the-63-less-1", build_with_size(2**63 - 1), "identity_int32"),
    ("2-to-the-63", build_with_size(2**63), "identity_int32"),
    ("right-in-64-bits", change_size_and_bytes(lambda good: good.size + 2**64), "identity_int32"),
    ("minus-one", change_size_and_bytes(lambda _: -1), "identity_int32"),
    ("minus-the-size", change_size_and_bytes(lambda good: -good.size), "identity_int32"),
    ("negative-and-right-in-32-bits", build_with_size(12 - 2**32), "identity_int32"),
    ("least-int64", build_with_size(-(2**63)), "identity_int32"),
    ("strings-of-minus-one", build_with_size(-1, STRINGS, [2]), "identity_bytes"),
    ("strings-of-2-to-the-31", build_with_size(2**31, STRINGS, [2]), "identity_bytes"),
    ("strings-right-in-32-bits", build_with_size(2**32 + len(STRINGS), STRINGS, [2]), "identity_bytes"),
    ("strings-of-2-to-the-63-less-1", build_with_size(2**63 - 1, STRINGS, [2]), "identity_bytes"),
    ("strings-right-in-64-bits", build_with_size(2**64 + len(STRINGS), STRINGS, [2]), "identity_bytes"),
)
SIZE_TYPES: tuple[Entry, ...] = (
    ("size-as-a-string", change_size_and_bytes(lambda good: str(good.size)), "identity_int32"),
    ("size-as-letters", change_size_and_bytes(lambda _: "twelve"), "identity_int32"),
    ("true-for-one-byte", build_with_size(True, b"\7", [1]), "identity_uint8"),
)
DATA_AND_SIZE: tuple[Entry, ...] = (
    ("data-beside-its-bytes", add_json_data([1, 2, 3]), "identity_int32"),
    (
        "data-beside-size-zero",
        edit_first_input({"data": [1, 2, 3], "parameters": {"binary_data_size": 0}}, keep=0),
        "identity_int32",
    ),
    ("strings-beside-their-bytes", edit_first_input({"data": ["a", "b", "c"]}), "identity_bytes"),
    ("data-in-the-first-of-four", edit_first_input({"data": [1, 2, 3]}), "multi"),
)
NO_DATA_NOR_SIZE: tuple[Entry, ...] = (
    ("bytes-without-a-size", edit_first_input({"parameters": None}), "identity_int32"),
    ("bytes-with-empty-parameters", edit_first_input({"parameters": {}}), "identity_int32"),
    ("size-null", edit_first_input({"parameters": {"binary_data_size": None}}), "identity_int32"),
    ("strings-without-a-size", edit_first_input({"parameters": None}), "identity_bytes"),
    ("first-of-four-without-a-size", edit_first_input({"parameters": None}), "multi"),
)
# Wrong sizes for inputs that are not the first, or not the only one.
WRONG_AMONG_OTHERS: Mapping[str, tuple[Entry, ...]] = {
    "BIN-SIZE-TYPE": (make_wrong_size_entry("IN_FP32", "12"), make_wrong_size_entry("A", "12", "add_sub")),
    "BIN-SIZE-MISSING": tuple(
        make_wrong_size_entry(*place) for place in (("IN_BOOL", None), ("IN_BYTES", None), ("A", None, "add_sub"))
    ),
}
# A good request, and the same with trailing bytes, which must not alter a tensor. Among several binary inputs, strings
# are JSON: their length prefixes would reveal a shift.
TRAILING_BYTES = (
    ("one-byte", append_bytes(b"\1"), "identity_uint8"),
    ("one-element", append_bytes(b"\1\2\3\4"), "identity_int32"),
    ("one-string", append_bytes(bytes.fromhex("01000000 61")), "identity_bytes"),
    ("behind-three-tensors", append_bytes(b"\1\2\3\4", NUMERIC), "multi"),
    ("behind-strings", append_bytes(b"\1"), "multi"),
    ("behind-json-inputs", append_bytes(b"\1\2\3\4", "json"), "identity_int32"),
)


def _select_bad_message(make: Callable[[Model], tuple[Message, Message]]) -> MessageBuilder:
    """Return a builder of the second message of a pair: the one with extra bytes."""
    return lambda model: make(model)[1]


# Faults that also go to deployed models: a few for each requirement. The shape of strings does not give their size.
_FIXED_SIZE = Fit(inputs=frozenset(DATATYPES) - {"BYTES"})
FITS: Mapping[str, Fit] = {
    **dict.fromkeys(("last-byte-missing", "all-bytes-missing", "all-bytes-and-the-header-missing"), ANY),
    **dict.fromkeys(("one-element-short", "one-element-over"), _FIXED_SIZE),
    **dict.fromkeys(("fraction-of-a-byte", "right-in-32-bits", "right-in-64-bits", "minus-one", "minus-the-size"), ANY),
    **dict.fromkeys(("size-as-a-string", "size-as-letters", "data-beside-its-bytes", "bytes-without-a-size"), ANY),
    **dict.fromkeys(("one-byte", "one-element"), ANY),
}


def _make_refusals(requirement: str, entries: Sequence[Entry], tensors: SampleInputs | None = None) -> list[Refusal]:
    return [
        Refusal(fault, requirement, role, make, tensors=tensors, fit=FITS.get(fault)) for fault, make, role in entries
    ]


def get_sample_inputs(model: Model) -> Sequence[Tensor]:
    """Return the sample inputs of a model: the inputs of the valid request whose sizes are changed."""
    return model.sample()


REFUSALS: tuple[Refusal, ...] = (
    *_make_refusals("BIN-BODY-SHORT", SHORT_BODIES),
    *_make_refusals("BIN-SIZE-WRONG", SIZES_BESIDE_SHAPE),
    *_make_refusals("BIN-SIZE-FALSE", FALSE_SIZES, get_sample_inputs),
    *_make_refusals("BIN-SIZE-FALSE", FALSE_SINGLE_SIZES, make_sample_inputs),
    *_make_refusals("BIN-SIZE-TYPE", SIZE_TYPES),
    *_make_refusals(
        "BIN-BODY-LONG", [(fault, _select_bad_message(make), role) for fault, make, role in TRAILING_BYTES]
    ),
    *_make_refusals("BIN-DATA-AND-SIZE", DATA_AND_SIZE),
    *_make_refusals("BIN-SIZE-MISSING", NO_DATA_NOR_SIZE),
    *[
        refusal
        for requirement, entries in WRONG_AMONG_OTHERS.items()
        for refusal in _make_refusals(requirement, entries)
    ],
)
