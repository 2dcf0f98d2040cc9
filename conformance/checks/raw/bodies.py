"""The body of a raw request is the input, whatever it looks like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.checks.raw.deployed_models import FLOATS, NUMBERS, expect_own_plain_values, expect_own_values
from conformance.checks.raw.raw_answers import expect_agreement, make_sample, send_raw
from conformance.checks.support.changed_tensors import fill_fractions, fill_lookalike
from conformance.checks.support.control_sides import Change, make_large_inputs
from conformance.expect.expectation import expect
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ONE_INPUT
from conformance.transport.target import Target
from conformance.wire.datatypes import DATATYPES

# --- the body is the input ------------------------------------------------------------------------------------------

# Bodies that mean something to a server that looks into them.
OPAQUE = (
    ("all-bytes", bytes(range(256))),
    ("an-inference-request", b'{"inputs":[{"name":"INPUT","shape":[1],"datatype":"UINT8","data":[7]}]}'),
    ("an-open-brace", b"{"),
    ("an-empty-object", b"{}"),
    ("an-empty-line", b"\r\n\r\n"),
    ("a-last-chunk", b"0\r\n\r\n"),
    ("blanks", b" \t\r\n "),
    ("gzip-magic", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"),
    ("byte-order-mark", b"\xef\xbb\xbf{}"),
    ("zeros", bytes(9)),
    ("one-byte", b"\xff"),
)


@check("raw.header-0-makes-the-body-data", answers="RAW-HEADER-ZERO")
@rows(
    *[Row(name, (body,), role="identity_uint8") for name, body in OPAQUE],
    Row("own", ("plain",), fit=ONE_INPUT),
    *[Row(f"own-{name}", (name,), fit=FLOATS) for name in ("open-brace", "blanks")],
)
def header_0_makes_the_body_data(target: Target, model: Model, body: bytes | str) -> None:
    """With an inference header of 0 the whole body is tensor data, whatever it looks like."""
    if body == "plain":
        expect_own_plain_values(target, model)
        return
    if isinstance(body, str):
        expect_own_values(target, model, lambda tensors: fill_lookalike(tensors, body))
        return
    reply = target.infer(model.raw(body))
    expect(reply).answered()
    expect_agreement(target, model, reply, model.tensor(list(body)))


# Every datatype but BYTES, and casts, which show the body read and the answer written apart.
ENCODED = (
    *(f"identity_{name.lower()}" for name in DATATYPES if name != "BYTES"),
    *("cast_int32_fp32", "cast_fp16_fp32", "cast_fp32_fp16", "cast_bf16_fp32", "fixed", "raw_middle"),
)


@check("raw.body-is-binary-tensor-data", answers="RAW-ENCODING")
@rows(
    *[Row(role.replace("_", "-"), (None,), role=role) for role in ENCODED],
    Row("64-kib", ((16384,),), role="cast_int32_fp32"),
    Row("1-mib", ((131072,),), role="identity_int64", thorough=True),
    Row("own", (None, list), fit=NUMBERS),
    Row("own-fractions", (None, fill_fractions), fit=FLOATS),
    Row("own-64-kib", (None, "large"), fit=replace(FLOATS, is_variable=True)),
)
def body_is_binary_tensor_data(
    target: Target, model: Model, shape: Sequence[int] | None, own: Change | str | None = None
) -> None:
    """A raw body is little-endian, row by row, each element in its native size."""
    if own is not None:
        expect_own_values(target, model, (lambda _: make_large_inputs(model)) if isinstance(own, str) else own)
        return
    tensor = make_sample(model, shape)
    expect_agreement(target, model, send_raw(target, model, tensor), tensor)
