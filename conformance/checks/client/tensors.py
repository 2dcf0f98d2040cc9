"""What clients send: tensors of every datatype, in every form, as their callers gave them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from conformance.checks.support.client_rows import asking, over_grpc, sending_row, small_answer, strings, tensor
from conformance.clients.client import Client
from conformance.clients.expectations.sending import expect_sent
from conformance.clients.inference import Inference
from conformance.roles.corner_values import INTEGER_CORNERS, all_corners, corner_tensor
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import GRPC
from conformance.wire.datatypes import FLOATS, OIP_DATATYPES
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

FORMS: Sequence[Form] = ("binary", "json")
# Tensors of these shapes and datatypes: every rank from 0 to 4, and such without elements.
SHAPES = ((), (2, 3), (2, 1, 3), (2, 3, 1, 2))
EMPTY = ((0,), (2, 0, 3))
OF_BYTES = ((2, 3), (0,))
CORNER_GROUPS = ("subnormal", "zeros", "infinities", "nan")
LIKE_OTHERS = ("UINT16", "UINT32", "INT16", "INT32")  # each of their limits shows in those of others


def forms_of(datatype: str) -> Sequence[Form]:
    """Return the forms in which tensors of a datatype are asked for: FP16 has none in JSON."""
    return FORMS[:1] if datatype == "FP16" else FORMS


def of_one(name: str, one: Tensor, form: Form, *, thorough: bool = False) -> Row:
    """Return a row that sends one tensor."""
    return sending_row(name, asking(name, [one], form), thorough=thorough)


def datatype_rows() -> Iterator[Row]:
    """Yield a row for each datatype in each form."""
    for datatype in OIP_DATATYPES:
        for form in forms_of(datatype):
            name = f"{datatype}-{form}"
            yield of_one(name, tensor(name, "IN0", datatype, (3,)), form)


def shape_rows() -> Iterator[Row]:
    """Yield a row for each shape in each form, of numbers, and of BYTES for one with elements and one without."""
    for shape in (*SHAPES, *EMPTY):
        for datatype in ("FP32", "BYTES") if shape in OF_BYTES else ("FP32",):
            for form in FORMS:
                name = f"{datatype}-{'x'.join(map(str, shape)) or 'rank-0'}-{form}"
                yield of_one(name, tensor(name, "IN0", datatype, shape), form, thorough=len(shape) > 2)


def corner_rows() -> Iterator[Row]:
    """Yield rows of corner values: in JSON those that JSON keeps, of floating-point numbers group by group."""
    for datatype in INTEGER_CORNERS:
        for form in FORMS:
            made = Tensor.of("IN0", datatype, all_corners(datatype))
            yield of_one(f"{datatype}-{form}", made, form, thorough=datatype in LIKE_OTHERS)
    for datatype in FLOATS:
        for group in CORNER_GROUPS:
            yield of_one(f"{datatype}-{group}-binary", corner_tensor("IN0", datatype, group), "binary")
    for datatype in ("FP32", "FP64"):
        yield of_one(f"{datatype}-json", Tensor.of("IN0", datatype, all_corners(datatype, json=True)), "json")


def string_rows() -> Iterator[Row]:
    """Yield a row for each group of BYTES elements in each form that carries it."""
    for group, form, one in strings():
        yield of_one(f"{group}-{form}", replace(one, name="IN0"), form)


def large_rows() -> Iterator[Row]:
    """Yield rows of about 1 MiB."""
    for datatype, count in (("UINT8", 2**20), ("FP32", 2**18), ("INT64", 2**17)):
        name = f"{datatype}-1-MiB"
        block = tensor(name, "IN0", datatype, (1024,)).array
        yield of_one(name, Tensor.of("IN0", datatype, np.tile(block, count // 1024)), "binary", thorough=True)
    long = [bytes([k % 256]) * (k % 700) for k in range(3000)]
    yield of_one("BYTES-1-MiB", Tensor.of("IN0", "BYTES", long), "binary", thorough=True)


@check("client.sends-every-datatype", answers="CLIENT-SENDS-VALUES")
@rows(*datatype_rows())
@check("client-grpc.sends-every-datatype", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(over_grpc, datatype_rows()))
def sends_every_datatype(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """A tensor of any datatype is sent as the caller gave it, in the form that the caller asks for."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


@check("client.sends-every-shape", answers="CLIENT-SENDS-VALUES")
@rows(*shape_rows())
@check("client-grpc.sends-every-shape", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(over_grpc, shape_rows()))
def sends_every_shape(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """A tensor of any rank, with or without elements, is sent with the shape that the caller gave it."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


@check("client.sends-corner-values", answers="CLIENT-SENDS-VALUES")
@rows(*corner_rows())
@check("client-grpc.sends-corner-values", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(over_grpc, corner_rows()))
def sends_corner_values(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """Limits, integers that a double cannot hold, subnormals, signed zeros and NaN are sent as they are."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


@check("client.sends-any-bytes", answers="CLIENT-SENDS-VALUES")
@rows(*string_rows())
@check("client-grpc.sends-any-bytes", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(over_grpc, string_rows()))
def sends_any_bytes(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """BYTES elements are sent as they are: empty ones, NUL, what is not UTF-8, and long ones."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


@check("client.sends-large-tensors", answers="CLIENT-SENDS-VALUES")
@rows(*large_rows())
@check("client-grpc.sends-large-tensors", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(over_grpc, large_rows()))
def sends_large_tensors(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """A tensor of 1 MiB is sent whole."""
    expect_sent(client.infer(inference, small_answer(inference)), own)
