"""Contents that make no tensor: of a wrong size, in both forms at once, missing, beyond the datatype. Refused.

Every call is a good request with one fault in its message.
"""

from __future__ import annotations

from typing import Any

from conformance.checks.support.over_grpc import (
    NUMBERS,
    chain_edits,
    cut_raw,
    lengthen_raw,
    make_faulty_call,
    set_raw,
    set_shape,
    set_typed,
)
from conformance.checks.support.refusals import Refusal, make_refusal_rows
from conformance.expect.refusals import expect_refusal
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.spec.extensions import GRPC
from conformance.spec.fit import ANY, JSON, SEVERAL_INPUTS, Fit
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.grpc_request import CONTENTS_FIELDS, Edit, Pb, fill_contents
from conformance.wire.tensor import Tensor, decode


def _no_raw(request: Pb) -> None:
    del request.raw_input_contents[:]


def _one_raw_less(request: Pb) -> None:
    del request.raw_input_contents[-1]


def _one_raw_more(request: Pb) -> None:
    request.raw_input_contents.append(request.raw_input_contents[0])


def _both_forms(request: Pb) -> None:
    request.inputs[0].contents.int_contents.extend([1, 2, 3])


def _a_form_each(request: Pb) -> None:
    """The first input has typed contents, the second the only raw entry."""
    raw = request.raw_input_contents[1]
    _no_raw(request)
    request.raw_input_contents.append(raw)
    request.inputs[0].contents.int_contents.extend([1, 2, 3])


def _own_in_both_forms(request: Pb) -> None:
    entry = request.inputs[0]
    array = decode(entry.datatype, tuple(entry.shape), request.raw_input_contents[0])
    fill_contents(entry.contents, Tensor(entry.name, entry.datatype, tuple(entry.shape), array))


def _typed(request: Pb) -> Any:
    return getattr(request.inputs[0].contents, CONTENTS_FIELDS[request.inputs[0].datatype])


def _one_element_less(request: Pb) -> None:
    del _typed(request)[-1]


def _one_element_more(request: Pb) -> None:
    elements = _typed(request)
    elements.append(elements[-1])


def _strings(*data: str, count: int) -> Edit:
    return chain_edits(set_shape(count), set_raw(bytes.fromhex("".join(data))))


SIZES: tuple[Refusal, ...] = (
    make_faulty_call("raw-one-byte-short", "GRPC-SIZE-WRONG", "identity_int32", cut_raw, "binary", fit=NUMBERS),
    make_faulty_call("raw-one-byte-long", "GRPC-SIZE-WRONG", "identity_int32", lengthen_raw, "binary", fit=NUMBERS),
    make_faulty_call("raw-one-element-short", "GRPC-SIZE-WRONG", "identity_int32", set_shape(4), "binary"),
    make_faulty_call("raw-one-element-long", "GRPC-SIZE-WRONG", "identity_int32", set_shape(2), "binary"),
    make_faulty_call("raw-empty", "GRPC-SIZE-WRONG", "identity_fp32", set_raw(b""), "binary"),
    make_faulty_call("raw-in-8-bytes-an-element", "GRPC-SIZE-WRONG", "identity_fp32", set_raw(bytes(24)), "binary"),
    make_faulty_call("raw-in-2-bytes-an-element", "GRPC-SIZE-WRONG", "identity_uint64", set_raw(bytes(6)), "binary"),
    make_faulty_call("typed-one-element-short", "GRPC-SIZE-WRONG", "identity_int32", set_shape(4)),
    make_faulty_call("typed-one-element-long", "GRPC-SIZE-WRONG", "identity_int32", set_shape(2)),
    make_faulty_call("typed-strings-one-short", "GRPC-SIZE-WRONG", "identity_bytes", set_shape(4)),
    make_faulty_call("typed-booleans-one-long", "GRPC-SIZE-WRONG", "identity_bool", set_shape(2)),
    make_faulty_call(
        "length-past-the-end",
        "GRPC-RAW-BYTES-MISFRAMED",
        "identity_bytes",
        _strings("05000000 6162", count=1),
        "binary",
    ),
    make_faulty_call(
        "length-of-2-to-the-32-less-1",
        "GRPC-RAW-BYTES-MISFRAMED",
        "identity_bytes",
        _strings("ffffffff 61", count=1),
        "binary",
    ),
    make_faulty_call(
        "three-bytes-of-a-length", "GRPC-RAW-BYTES-MISFRAMED", "identity_bytes", _strings("010000", count=1), "binary"
    ),
    make_faulty_call(
        "byte-behind-the-last-string",
        "GRPC-RAW-BYTES-MISFRAMED",
        "identity_bytes",
        _strings("01000000 61 62", count=1),
        "binary",
    ),
    make_faulty_call(
        "string-too-few", "GRPC-RAW-BYTES-MISFRAMED", "identity_bytes", _strings("01000000 61", count=2), "binary"
    ),
    make_faulty_call(
        "string-too-many",
        "GRPC-RAW-BYTES-MISFRAMED",
        "identity_bytes",
        _strings("01000000 61 01000000 62", count=1),
        "binary",
    ),
)

FORMS: tuple[Refusal, ...] = (
    make_faulty_call("no-contents-at-all", "GRPC-CONTENTS-MISSING", "identity_int32", _no_raw, "binary", fit=ANY),
    make_faulty_call(
        "raw-entry-missing-for-the-last-input",
        "GRPC-CONTENTS-MISSING",
        "add_sub",
        _one_raw_less,
        "binary",
        fit=SEVERAL_INPUTS,
    ),
    make_faulty_call(
        "raw-entry-more-than-inputs", "GRPC-RAW-EXTRA", "identity_int32", _one_raw_more, "binary", fit=ANY
    ),
    make_faulty_call("raw-and-typed-contents", "GRPC-RAW-AND-TYPED", "identity_int32", _both_forms, "binary"),
    make_faulty_call(
        "raw-for-one-input-and-typed-for-another", "GRPC-RAW-AND-TYPED", "add_sub", _a_form_each, "binary"
    ),
    make_faulty_call("int8-of-300", "OIP-RANGE/grpc", "identity_int8", set_typed("int_contents", 1, 300, 3)),
    make_faulty_call("int8-of-minus-129", "OIP-RANGE/grpc", "identity_int8", set_typed("int_contents", 1, -129, 3)),
    make_faulty_call("int16-of-32768", "OIP-RANGE/grpc", "identity_int16", set_typed("int_contents", 1, 32768, 3)),
    make_faulty_call("uint8-of-256", "OIP-RANGE/grpc", "identity_uint8", set_typed("uint_contents", 1, 256, 3)),
    make_faulty_call("uint16-of-65536", "OIP-RANGE/grpc", "identity_uint16", set_typed("uint_contents", 1, 65536, 3)),
)


_STRINGS = Fit(inputs=frozenset({"BYTES"}))
# What goes to deployed models alone: elements and strings of their own, in the shape that they have.
SIZES_OF_MODELS: tuple[Refusal, ...] = (
    make_faulty_call("own-typed-element-missing", "GRPC-SIZE-WRONG", None, _one_element_less, fit=JSON),
    make_faulty_call("own-typed-element-repeated", "GRPC-SIZE-WRONG", None, _one_element_more, fit=JSON),
    make_faulty_call("own-last-string-cut", "GRPC-RAW-BYTES-MISFRAMED", None, cut_raw, "binary", fit=_STRINGS),
    make_faulty_call(
        "own-byte-behind-the-strings", "GRPC-RAW-BYTES-MISFRAMED", None, lengthen_raw, "binary", fit=_STRINGS
    ),
)
FORMS_OF_MODELS: tuple[Refusal, ...] = (
    make_faulty_call("own-raw-and-typed-contents", "GRPC-RAW-AND-TYPED", None, _own_in_both_forms, "binary", fit=JSON),
)


@check("grpc.contents-of-a-wrong-size-are-refused", answers="GRPC-SIZE-WRONG", over=(GRPC,))
@rows(*make_refusal_rows((*SIZES, *SIZES_OF_MODELS), "GRPC-SIZE-WRONG", "GRPC-RAW-BYTES-MISFRAMED"))
def contents_of_a_wrong_size_are_refused(target: GrpcTarget, model: Model, refusal: Refusal) -> None:
    """Contents that do not fill the shape, or hold more, are refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("grpc.contents-that-make-no-tensor-are-refused", answers="GRPC-CONTENTS-MISSING", over=(GRPC,))
@rows(
    *make_refusal_rows(
        (*FORMS, *FORMS_OF_MODELS), "GRPC-CONTENTS-MISSING", "GRPC-RAW-EXTRA", "GRPC-RAW-AND-TYPED", "OIP-RANGE/grpc"
    )
)
def contents_that_make_no_tensor_are_refused(target: GrpcTarget, model: Model, refusal: Refusal) -> None:
    """Contents that are missing, too many, in both forms at once, or beyond the datatype are refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


REFUSALS_OVER_GRPC: tuple[Refusal, ...] = (*SIZES, *FORMS)
