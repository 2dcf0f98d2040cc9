"""Invalid contents: wrong size, typed and raw at once, missing, out of range, or in the field of another datatype.

Every call is a valid request with one fault in its message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conformance.checks.support.over_grpc import (
    NUMBERS,
    chain_edits,
    choose_revealing_inputs,
    cut_raw_contents,
    expect_correct_outputs,
    lengthen_raw_contents,
    make_faulty_call,
    set_raw_contents,
    set_shape,
    set_typed_contents,
)
from conformance.checks.support.refusals import Refusal, make_refusal_rows
from conformance.expect.refusals import expect_refusal, is_refused
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.spec.fit import ANY, JSON, SEVERAL_INPUTS, Fit
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.grpc_request import CONTENTS_FIELDS, Edit, Pb, fill_contents, make_infer_message
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor, decode


def _clear_raw(request: Pb) -> None:
    """Remove all raw contents."""
    del request.raw_input_contents[:]


def _remove_raw_entry(request: Pb) -> None:
    del request.raw_input_contents[-1]


def _repeat_raw_entry(request: Pb) -> None:
    request.raw_input_contents.append(request.raw_input_contents[0])


def _add_typed_contents(request: Pb) -> None:
    request.inputs[0].contents.int_contents.extend([1, 2, 3])


def _mix_typed_and_raw_inputs(request: Pb) -> None:
    """Give the first input typed contents, and keep a raw entry only for the second input."""
    raw = request.raw_input_contents[1]
    _clear_raw(request)
    request.raw_input_contents.append(raw)
    request.inputs[0].contents.int_contents.extend([1, 2, 3])


def _repeat_raw_as_typed(request: Pb) -> None:
    """Repeat the raw contents of the first input as typed contents."""
    entry = request.inputs[0]
    array = decode(entry.datatype, tuple(entry.shape), request.raw_input_contents[0])
    fill_contents(entry.contents, Tensor(entry.name, entry.datatype, tuple(entry.shape), array))


def _find_typed_field(request: Pb) -> Any:
    """Return the field with the typed contents of the first input."""
    return getattr(request.inputs[0].contents, CONTENTS_FIELDS[request.inputs[0].datatype])


def _remove_last_element(request: Pb) -> None:
    del _find_typed_field(request)[-1]


def _repeat_last_element(request: Pb) -> None:
    elements = _find_typed_field(request)
    elements.append(elements[-1])


def _set_strings(*data: str, count: int) -> Edit:
    """Return an edit that sets raw BYTES data, given in hex, and the number of elements."""
    return chain_edits(set_shape(count), set_raw_contents(bytes.fromhex("".join(data))))


SIZES: tuple[Refusal, ...] = (
    make_faulty_call(
        "raw-one-byte-short", "GRPC-SIZE-WRONG", "identity_int32", cut_raw_contents, "binary", fit=NUMBERS
    ),
    make_faulty_call(
        "raw-one-byte-long", "GRPC-SIZE-WRONG", "identity_int32", lengthen_raw_contents, "binary", fit=NUMBERS
    ),
    make_faulty_call("raw-one-element-short", "GRPC-SIZE-WRONG", "identity_int32", set_shape(4), "binary"),
    make_faulty_call("raw-one-element-long", "GRPC-SIZE-WRONG", "identity_int32", set_shape(2), "binary"),
    make_faulty_call("raw-empty", "GRPC-SIZE-WRONG", "identity_fp32", set_raw_contents(b""), "binary"),
    make_faulty_call(
        "raw-in-8-bytes-an-element", "GRPC-SIZE-WRONG", "identity_fp32", set_raw_contents(bytes(24)), "binary"
    ),
    make_faulty_call(
        "raw-in-2-bytes-an-element", "GRPC-SIZE-WRONG", "identity_uint64", set_raw_contents(bytes(6)), "binary"
    ),
    make_faulty_call("typed-one-element-short", "GRPC-SIZE-WRONG", "identity_int32", set_shape(4)),
    make_faulty_call("typed-one-element-long", "GRPC-SIZE-WRONG", "identity_int32", set_shape(2)),
    make_faulty_call("typed-strings-one-short", "GRPC-SIZE-WRONG", "identity_bytes", set_shape(4)),
    make_faulty_call("typed-booleans-one-long", "GRPC-SIZE-WRONG", "identity_bool", set_shape(2)),
    make_faulty_call(
        "length-past-the-end",
        "GRPC-RAW-BYTES-MISFRAMED",
        "identity_bytes",
        _set_strings("05000000 6162", count=1),
        "binary",
    ),
    make_faulty_call(
        "length-of-2-to-the-32-less-1",
        "GRPC-RAW-BYTES-MISFRAMED",
        "identity_bytes",
        _set_strings("ffffffff 61", count=1),
        "binary",
    ),
    make_faulty_call(
        "three-bytes-of-a-length",
        "GRPC-RAW-BYTES-MISFRAMED",
        "identity_bytes",
        _set_strings("010000", count=1),
        "binary",
    ),
    make_faulty_call(
        "byte-behind-the-last-string",
        "GRPC-RAW-BYTES-MISFRAMED",
        "identity_bytes",
        _set_strings("01000000 61 62", count=1),
        "binary",
    ),
    make_faulty_call(
        "string-too-few", "GRPC-RAW-BYTES-MISFRAMED", "identity_bytes", _set_strings("01000000 61", count=2), "binary"
    ),
    make_faulty_call(
        "string-too-many",
        "GRPC-RAW-BYTES-MISFRAMED",
        "identity_bytes",
        _set_strings("01000000 61 01000000 62", count=1),
        "binary",
    ),
)

FORMS: tuple[Refusal, ...] = (
    make_faulty_call("no-contents-at-all", "GRPC-CONTENTS-MISSING", "identity_int32", _clear_raw, "binary", fit=ANY),
    make_faulty_call(
        "raw-entry-missing-for-the-last-input",
        "GRPC-CONTENTS-MISSING",
        "add_sub",
        _remove_raw_entry,
        "binary",
        fit=SEVERAL_INPUTS,
    ),
    make_faulty_call(
        "raw-entry-more-than-inputs", "GRPC-RAW-EXTRA", "identity_int32", _repeat_raw_entry, "binary", fit=ANY
    ),
    make_faulty_call("raw-and-typed-contents", "GRPC-RAW-AND-TYPED", "identity_int32", _add_typed_contents, "binary"),
    make_faulty_call(
        "raw-for-one-input-and-typed-for-another", "GRPC-RAW-AND-TYPED", "add_sub", _mix_typed_and_raw_inputs, "binary"
    ),
    make_faulty_call("int8-of-300", "OIP-RANGE/grpc", "identity_int8", set_typed_contents("int_contents", 1, 300, 3)),
    make_faulty_call(
        "int8-of-minus-129", "OIP-RANGE/grpc", "identity_int8", set_typed_contents("int_contents", 1, -129, 3)
    ),
    make_faulty_call(
        "int16-of-32768", "OIP-RANGE/grpc", "identity_int16", set_typed_contents("int_contents", 1, 32768, 3)
    ),
    make_faulty_call(
        "uint8-of-256", "OIP-RANGE/grpc", "identity_uint8", set_typed_contents("uint_contents", 1, 256, 3)
    ),
    make_faulty_call(
        "uint16-of-65536", "OIP-RANGE/grpc", "identity_uint16", set_typed_contents("uint_contents", 1, 65536, 3)
    ),
)


_STRINGS = Fit(inputs=frozenset({"BYTES"}))
# Calls only for deployed models, made from their sample inputs.
SIZES_OF_MODELS: tuple[Refusal, ...] = (
    make_faulty_call("own-typed-element-missing", "GRPC-SIZE-WRONG", None, _remove_last_element, fit=JSON),
    make_faulty_call("own-typed-element-repeated", "GRPC-SIZE-WRONG", None, _repeat_last_element, fit=JSON),
    make_faulty_call("own-last-string-cut", "GRPC-RAW-BYTES-MISFRAMED", None, cut_raw_contents, "binary", fit=_STRINGS),
    make_faulty_call(
        "own-byte-behind-the-strings", "GRPC-RAW-BYTES-MISFRAMED", None, lengthen_raw_contents, "binary", fit=_STRINGS
    ),
)
FORMS_OF_MODELS: tuple[Refusal, ...] = (
    make_faulty_call(
        "own-raw-and-typed-contents", "GRPC-RAW-AND-TYPED", None, _repeat_raw_as_typed, "binary", fit=JSON
    ),
)


@check("grpc.contents-of-a-wrong-size-are-refused", answers="GRPC-SIZE-WRONG", over=(GRPC,))
@rows(*make_refusal_rows((*SIZES, *SIZES_OF_MODELS), "GRPC-SIZE-WRONG", "GRPC-RAW-BYTES-MISFRAMED"))
def contents_of_a_wrong_size_are_refused(target: GrpcTarget, model: Model, refusal: Refusal) -> None:
    """The server refuses contents that do not fill the shape exactly."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("grpc.contents-that-make-no-tensor-are-refused", answers="GRPC-CONTENTS-MISSING", over=(GRPC,))
@rows(
    *make_refusal_rows(
        (*FORMS, *FORMS_OF_MODELS), "GRPC-CONTENTS-MISSING", "GRPC-RAW-EXTRA", "GRPC-RAW-AND-TYPED", "OIP-RANGE/grpc"
    )
)
def contents_that_make_no_tensor_are_refused(target: GrpcTarget, model: Model, refusal: Refusal) -> None:
    """The server refuses contents that are missing, given twice, both raw and typed, or out of the datatype's range."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


REFUSALS_OVER_GRPC: tuple[Refusal, ...] = (*SIZES, *FORMS)


# --- contents in the field of another datatype ------------------------------------------------------------------------

# Datatype -> field of another datatype, its values, and the elements that these represent.
OTHER_FIELDS: tuple[tuple[str, str, str, tuple[int | float, ...]], ...] = (
    ("uint32-as-in-the-documents", "documented_scores", "int_contents", (4, 1, 3, 2)),
    ("uint32-in-int", "identity_uint32", "int_contents", (3, 1, 2)),
    ("int32-in-uint", "identity_int32", "uint_contents", (3, 1, 2)),
    ("int64-in-int", "identity_int64", "int_contents", (3, 1, 2)),
    ("uint64-in-uint", "identity_uint64", "uint_contents", (3, 1, 2)),
    ("fp32-in-int", "identity_fp32", "int_contents", (3, 1, 2)),
    ("fp32-in-fp64", "identity_fp32", "fp64_contents", (1.5, -2.25, 3.0)),
    ("fp64-in-fp32", "identity_fp64", "fp32_contents", (1.5, -2.25, 3.0)),
    ("fp16-in-fp32", "identity_fp16", "fp32_contents", (1.5, -2.25, 3.0)),
    ("bool-in-int", "identity_bool", "int_contents", (1, 0, 1)),
)
# Datatype of the first input of a deployed model -> field of another datatype, and the type of its values.
_OWN_OTHER_FIELDS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("UINT8", "UINT16", "UINT32", "INT64"), ("int_contents", "<i4")),
    **dict.fromkeys(("INT8", "INT16", "INT32"), ("int64_contents", "<i8")),
    "UINT64": ("uint_contents", "<u4"),
    "FP32": ("fp64_contents", "<f8"),
    "FP64": ("fp32_contents", "<f4"),
}


@check("grpc.another-field-is-refused-or-read", answers="GRPC-OTHER-FIELD", over=(GRPC,))
@rows(
    *[Row(identity, (field, values), role=role) for identity, role, field, values in OTHER_FIELDS],
    Row("own", (None, ()), fit=Fit(inputs=frozenset(_OWN_OTHER_FIELDS), is_json=True)),
)
def another_field_is_refused_or_read(
    target: GrpcTarget, model: Model, field: str | None, values: tuple[int | float, ...]
) -> str:
    """The server refuses contents in the field of another datatype, or reads their values."""
    if field is None:
        tensors = choose_revealing_inputs(model)
        message = make_infer_message(model.request(tensors, send="json"), _move_to_another_field(tensors[0]))
        return _expect_refused_or_read(target, model, message, tensors)
    (spec,) = model.role.inputs
    shape = (2, 2) if model.role.compute == "table" else (3,)
    right = Tensor.from_values(
        spec.name, spec.datatype, list(map(bool, values)) if spec.datatype == "BOOL" else values, shape
    )
    message = make_infer_message(model.request([right]), chain_edits(_clear_raw, set_typed_contents(field, *values)))
    return _expect_refused_or_read(target, model, message, [right])


def _move_to_another_field(tensor: Tensor) -> Edit:
    """Return an edit that moves the contents of the first input into the field of another datatype.

    Raises:
        NotApplicable: no other field can hold these elements.
    """
    if tensor.datatype not in _OWN_OTHER_FIELDS:
        raise NotApplicableError(f"no other field can hold {tensor.datatype} elements")
    field, dtype = _OWN_OTHER_FIELDS[tensor.datatype]
    elements = tensor.array.reshape(-1)
    if not np.array_equal(elements.astype(dtype), elements):
        raise NotApplicableError(f"{field} cannot hold the elements of {tensor.name}")
    return set_typed_contents(field, *elements.tolist())


def _expect_refused_or_read(target: GrpcTarget, model: Model, message: Message, tensors: Sequence[Tensor]) -> str:
    """Expect a refusal, or the correct answer for these inputs; return which of the two the server gave."""
    reply = target.send(message, fresh=True)
    if is_refused(target, model, reply):
        return f"refused: {reply.outcome()}"
    expect_correct_outputs(reply, model, tensors)
    return "read"
