"""Invalid contents: wrong size, typed and raw at once, missing, out of range, or in the field of another datatype.

Every call is a valid request with one fault in its message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conformance.checks.support.controls import expect_outputs
from conformance.checks.support.inputs import choose_revealing_inputs
from conformance.checks.support.refusals import Refusal, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, make_call_refusals, send_raw_contents, send_typed_contents
from conformance.expect.refusals import expect_refusal, is_refused
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.spec.fit import ANY, JSON, SEVERAL_INPUTS, Fit
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.datatypes import DATATYPES
from conformance.wire.edits import Drop, Repeat, Set, chain, cut, plus
from conformance.wire.grpc_request import CONTENTS_FIELDS, Pb, fill_contents, make_infer_message
from conformance.wire.message_edits import Edit
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor, decode

# --- values that follow from the inputs -------------------------------------------------------------------------------


def _repeat_raw_as_typed(call: Pb) -> None:
    """Repeat the raw contents of the first input as typed contents."""
    entry = call.inputs[0]
    array = decode(entry.datatype, tuple(entry.shape), call.raw_input_contents[0])
    fill_contents(entry.contents, Tensor(entry.name, entry.datatype, tuple(entry.shape), array))


def _find_typed_field(call: Pb) -> Any:
    """Return the field with the typed contents of the first input."""
    return getattr(call.inputs[0].contents, CONTENTS_FIELDS[call.inputs[0].datatype])


def _remove_last_element(call: Pb) -> None:
    del _find_typed_field(call)[-1]


def _repeat_last_element(call: Pb) -> None:
    elements = _find_typed_field(call)
    elements.append(elements[-1])


# --- the tables -------------------------------------------------------------------------------------------------------

# Deployed models whose first input is BYTES, and others.
_STRINGS = Fit(inputs=frozenset({"BYTES"}))
_NUMBERS = Fit(inputs=frozenset(DATATYPES) - {"BYTES"})
_FIRST_RAW = "raw_input_contents.0"


def _set_shape(*shape: int) -> Set:
    return Set("inputs.0.shape", shape)


def _set_typed(field: str, *values: float) -> Set:
    """Return an edit that replaces the typed contents of the first input by these values in a field."""
    return Set("inputs.0.contents", {field: values})


def _set_strings(*data: str, count: int) -> tuple[Edit, ...]:
    """Return edits that set raw BYTES data, given in hex, and the number of elements."""
    return _set_shape(count), Set(_FIRST_RAW, bytes.fromhex("".join(data)))


RAW_SIZES = (
    Fault("raw-one-byte-short", "identity_int32", Set(_FIRST_RAW, cut(1)), _NUMBERS),
    Fault("raw-one-byte-long", "identity_int32", Set(_FIRST_RAW, plus(b"\0")), _NUMBERS),
    Fault("raw-one-element-short", "identity_int32", _set_shape(4)),
    Fault("raw-one-element-long", "identity_int32", _set_shape(2)),
    Fault("raw-empty", "identity_fp32", Set(_FIRST_RAW, b"")),
    Fault("raw-in-8-bytes-an-element", "identity_fp32", Set(_FIRST_RAW, bytes(24))),
    Fault("raw-in-2-bytes-an-element", "identity_uint64", Set(_FIRST_RAW, bytes(6))),
)
TYPED_SIZES = (
    Fault("typed-one-element-short", "identity_int32", _set_shape(4)),
    Fault("typed-one-element-long", "identity_int32", _set_shape(2)),
    Fault("typed-strings-one-short", "identity_bytes", _set_shape(4)),
    Fault("typed-booleans-one-long", "identity_bool", _set_shape(2)),
)
MISFRAMED_STRINGS = (
    Fault("length-past-the-end", "identity_bytes", _set_strings("05000000 6162", count=1)),
    Fault("length-of-2-to-the-32-less-1", "identity_bytes", _set_strings("ffffffff 61", count=1)),
    Fault("three-bytes-of-a-length", "identity_bytes", _set_strings("010000", count=1)),
    Fault("byte-behind-the-last-string", "identity_bytes", _set_strings("01000000 61 62", count=1)),
    Fault("string-too-few", "identity_bytes", _set_strings("01000000 61", count=2)),
    Fault("string-too-many", "identity_bytes", _set_strings("01000000 61 01000000 62", count=1)),
)
MISSING_CONTENTS = (
    Fault("no-contents-at-all", "identity_int32", Drop("raw_input_contents"), ANY),
    Fault("raw-entry-missing-for-the-last-input", "add_sub", Drop("raw_input_contents.-1"), SEVERAL_INPUTS),
    Fault("typed-contents-of-no-elements", "identity_int32", _set_typed("int_contents"), start=send_typed_contents),
    Fault("last-input-without-typed-contents", "add_sub", Drop("inputs.-1.contents"), start=send_typed_contents),
)
EXTRA_CONTENTS = (Fault("raw-entry-more-than-inputs", "identity_int32", Repeat(_FIRST_RAW), ANY),)
RAW_AND_TYPED = (
    Fault("raw-and-typed-contents", "identity_int32", _set_typed("int_contents", 1, 2, 3)),
    Fault(
        "raw-for-one-input-and-typed-for-another", "add_sub", (Drop(_FIRST_RAW), _set_typed("int_contents", 1, 2, 3))
    ),
)
ELEMENTS_OUT_OF_RANGE = (
    Fault("int8-of-300", "identity_int8", _set_typed("int_contents", 1, 300, 3)),
    Fault("int8-of-minus-129", "identity_int8", _set_typed("int_contents", 1, -129, 3)),
    Fault("int16-of-32768", "identity_int16", _set_typed("int_contents", 1, 32768, 3)),
    Fault("uint8-of-256", "identity_uint8", _set_typed("uint_contents", 1, 256, 3)),
    Fault("uint16-of-65536", "identity_uint16", _set_typed("uint_contents", 1, 65536, 3)),
)
REFUSALS_OVER_GRPC: tuple[Refusal, ...] = (
    *make_call_refusals("GRPC-SIZE-WRONG", send_raw_contents, RAW_SIZES),
    *make_call_refusals("GRPC-SIZE-WRONG", send_typed_contents, TYPED_SIZES),
    *make_call_refusals("GRPC-RAW-BYTES-MISFRAMED", send_raw_contents, MISFRAMED_STRINGS),
    *make_call_refusals("GRPC-CONTENTS-MISSING", send_raw_contents, MISSING_CONTENTS),
    *make_call_refusals("GRPC-RAW-EXTRA", send_raw_contents, EXTRA_CONTENTS),
    *make_call_refusals("GRPC-RAW-AND-TYPED", send_raw_contents, RAW_AND_TYPED),
    *make_call_refusals("OIP-RANGE/grpc", send_typed_contents, ELEMENTS_OUT_OF_RANGE),
)

# Calls only for deployed models, made from their sample inputs.
TYPED_SIZES_OF_MODELS = (
    Fault("deployed-typed-element-missing", None, _remove_last_element, JSON),
    Fault("deployed-typed-element-repeated", None, _repeat_last_element, JSON),
)
STRINGS_OF_MODELS = (
    Fault("deployed-last-string-cut", None, Set(_FIRST_RAW, cut(1)), _STRINGS),
    Fault("deployed-byte-behind-the-strings", None, Set(_FIRST_RAW, plus(b"\0")), _STRINGS),
)
RAW_AND_TYPED_OF_MODELS = (Fault("deployed-raw-and-typed-contents", None, _repeat_raw_as_typed, JSON),)
REFUSALS_OF_MODELS: tuple[Refusal, ...] = (
    *make_call_refusals("GRPC-SIZE-WRONG", send_typed_contents, TYPED_SIZES_OF_MODELS),
    *make_call_refusals("GRPC-RAW-BYTES-MISFRAMED", send_raw_contents, STRINGS_OF_MODELS),
    *make_call_refusals("GRPC-RAW-AND-TYPED", send_raw_contents, RAW_AND_TYPED_OF_MODELS),
)
_ROWS = (*REFUSALS_OVER_GRPC, *REFUSALS_OF_MODELS)


# --- refusals ---------------------------------------------------------------------------------------------------------


@check("grpc.contents-of-a-wrong-size-are-refused", requirements="GRPC-SIZE-WRONG", over=(GRPC,))
@rows(*make_refusal_rows(_ROWS, "GRPC-SIZE-WRONG", "GRPC-RAW-BYTES-MISFRAMED"))
def contents_of_a_wrong_size_are_refused(target: GrpcTarget, model: Model, refusal: Refusal) -> None:
    """The server refuses contents that do not fill the shape exactly."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("grpc.contents-that-make-no-tensor-are-refused", requirements="GRPC-CONTENTS-MISSING", over=(GRPC,))
@rows(*make_refusal_rows(_ROWS, "GRPC-CONTENTS-MISSING", "GRPC-RAW-EXTRA", "GRPC-RAW-AND-TYPED", "OIP-RANGE/grpc"))
def contents_that_make_no_tensor_are_refused(target: GrpcTarget, model: Model, refusal: Refusal) -> None:
    """The server refuses contents that are missing, given twice, both raw and typed, or out of the datatype's range."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


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


@check("grpc.another-field-is-refused-or-read", requirements="GRPC-OTHER-FIELD", over=(GRPC,))
@rows(
    *[Row(identity, (field, values), role=role) for identity, role, field, values in OTHER_FIELDS],
    Row("deployed", (None, ()), fit=Fit(inputs=frozenset(_OWN_OTHER_FIELDS), is_json=True)),
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
    message = make_infer_message(model.request([right]), chain(Drop("raw_input_contents"), _set_typed(field, *values)))
    return _expect_refused_or_read(target, model, message, [right])


def _move_to_another_field(tensor: Tensor) -> Set:
    """Return an edit that moves the contents of the first input into the field of another datatype.

    Raises NotApplicableError: no other field can hold these elements.
    """
    if tensor.datatype not in _OWN_OTHER_FIELDS:
        raise NotApplicableError(f"no other field can hold {tensor.datatype} elements")
    field, dtype = _OWN_OTHER_FIELDS[tensor.datatype]
    elements = tensor.array.reshape(-1)
    if not np.array_equal(elements.astype(dtype), elements):
        raise NotApplicableError(f"{field} cannot hold the elements of {tensor.name}")
    return _set_typed(field, *elements.tolist())


def _expect_refused_or_read(target: GrpcTarget, model: Model, message: Message, tensors: Sequence[Tensor]) -> str:
    """Expect a refusal, or the correct answer for these inputs; return which of the two the server gave."""
    reply = target.send(message, fresh=True)
    if is_refused(target, model, reply):
        return f"refused: {reply.outcome()}"
    expect_outputs(reply, model, tensors)
    return "read"
