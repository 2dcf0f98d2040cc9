"""The tensors that clients send: every datatype and form, with unchanged values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from conformance.checks.support.client_rows import (
    FORMS,
    list_strings,
    make_inference,
    make_sending_row,
    make_small_inference,
    make_small_script,
    make_tensor,
    to_grpc_row,
)
from conformance.clients.client import Client
from conformance.clients.expectations import expect_sent
from conformance.clients.inference import Inference
from conformance.roles.corner_values import INTEGER_CORNERS, get_all_corners, make_corner_tensor
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.wire.datatypes import FLOATS, OIP_DATATYPES
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

# Shapes of tensors: every rank from 0 to 4, and shapes without elements.
SHAPES = ((), (2, 3), (2, 1, 3), (2, 3, 1, 2))
EMPTY_SHAPES = ((0,), (2, 0, 3))
BYTES_SHAPES = ((2, 3), (0,))
CORNER_GROUPS = ("subnormal", "zeros", "infinities", "nan")


def list_forms(datatype: str) -> Sequence[Form]:
    """Return the forms in which tensors of a datatype are sent: FP16 has no JSON form."""
    return FORMS[:1] if datatype == "FP16" else FORMS


def make_tensor_row(name: str, one: Tensor, form: Form) -> Row:
    """Return a row that sends one tensor."""
    return make_sending_row(name, make_inference(name, [one], form))


def make_datatype_rows() -> Iterator[Row]:
    """Yield a row for each datatype in each form."""
    for datatype in OIP_DATATYPES:
        for form in list_forms(datatype):
            name = f"{datatype}-{form}"
            yield make_tensor_row(name, make_tensor(name, "IN0", datatype, (3,)), form)


def make_shape_rows() -> Iterator[Row]:
    """Yield a row with FP32 elements for each shape and form, and rows with BYTES for two of the shapes."""
    for shape in (*SHAPES, *EMPTY_SHAPES):
        for datatype in ("FP32", "BYTES") if shape in BYTES_SHAPES else ("FP32",):
            for form in FORMS:
                name = f"{datatype}-{'x'.join(map(str, shape)) or 'rank-0'}-{form}"
                yield make_tensor_row(name, make_tensor(name, "IN0", datatype, shape), form)


def make_corner_rows() -> Iterator[Row]:
    """Yield rows of corner values: integers, binary floats by group, and the floats that JSON preserves."""
    for datatype in INTEGER_CORNERS:
        for form in FORMS:
            made = Tensor.from_values("IN0", datatype, get_all_corners(datatype))
            yield make_tensor_row(f"{datatype}-{form}", made, form)
    for datatype in FLOATS:
        for group in CORNER_GROUPS:
            yield make_tensor_row(f"{datatype}-{group}-binary", make_corner_tensor("IN0", datatype, group), "binary")
    for datatype in ("FP32", "FP64"):
        yield make_tensor_row(
            f"{datatype}-json", Tensor.from_values("IN0", datatype, get_all_corners(datatype, json=True)), "json"
        )


def make_string_rows() -> Iterator[Row]:
    """Yield a row for each group of BYTES elements in each form that can carry it."""
    for group, form, one in list_strings():
        yield make_tensor_row(f"{group}-{form}", replace(one, name="IN0"), form)


def make_large_rows() -> Iterator[Row]:
    """Yield rows of about 1 MiB."""
    for datatype, count in (("UINT8", 2**20), ("FP32", 2**18), ("INT64", 2**17)):
        name = f"{datatype}-1-MiB"
        block = make_tensor(name, "IN0", datatype, (1024,)).array
        yield make_tensor_row(name, Tensor.from_values("IN0", datatype, np.tile(block, count // 1024)), "binary")
    long = [bytes([k % 256]) * (k % 700) for k in range(3000)]
    yield make_tensor_row("BYTES-1-MiB", Tensor.from_values("IN0", "BYTES", long), "binary")


@check("client.sends-every-datatype", answers="CLIENT-SENDS-VALUES")
@rows(*make_datatype_rows())
@check("client-grpc.sends-every-datatype", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(to_grpc_row, make_datatype_rows()))
def sends_every_datatype(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """A tensor of any datatype is sent as the caller gave it, in the form that the caller asks for."""
    expect_sent(client.infer(inference, make_small_script(inference)), own)


@check("client.sends-every-shape", answers="CLIENT-SENDS-VALUES")
@rows(*make_shape_rows())
@check("client-grpc.sends-every-shape", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(to_grpc_row, make_shape_rows()))
def sends_every_shape(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """A tensor of any rank, with or without elements, is sent with the shape that the caller gave it."""
    expect_sent(client.infer(inference, make_small_script(inference)), own)


@check("client.sends-corner-values", answers="CLIENT-SENDS-VALUES")
@rows(*make_corner_rows())
@check("client-grpc.sends-corner-values", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(to_grpc_row, make_corner_rows()))
def sends_corner_values(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """Limits, integers that a double cannot hold, subnormals, signed zeros and NaN are sent as they are."""
    expect_sent(client.infer(inference, make_small_script(inference)), own)


@check("client.sends-any-bytes", answers="CLIENT-SENDS-VALUES")
@rows(*make_string_rows())
@check("client-grpc.sends-any-bytes", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(to_grpc_row, make_string_rows()))
def sends_any_bytes(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """BYTES elements are sent as they are: empty ones, NUL, what is not UTF-8, and long ones."""
    expect_sent(client.infer(inference, make_small_script(inference)), own)


@check("client.sends-large-tensors", answers="CLIENT-SENDS-VALUES")
@rows(*make_large_rows())
@check("client-grpc.sends-large-tensors", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(to_grpc_row, make_large_rows()))
def sends_large_tensors(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """A tensor of 1 MiB is sent whole."""
    expect_sent(client.infer(inference, make_small_script(inference)), own)


# --- less common tensors ----------------------------------------------------------------------------------------------

TRUTHS = (True, False, False, True, True)


def make_truth_rows() -> Iterator[Row]:
    """Yield a row with both BOOL values for each form."""
    for form in FORMS:
        name = f"both-truths-{form}"
        yield make_sending_row(name, make_inference(name, [Tensor.from_values("IN0", "BOOL", list(TRUTHS))], form))


def make_empty_rows() -> Iterator[Row]:
    """Yield rows with an empty input before, between and after others."""
    for place in range(3):
        name = f"empty-input-{place}"
        made = [make_tensor(name, f"IN{k}", ("INT32", "BYTES", "FP64")[k], (0 if k == place else 2,)) for k in range(3)]
        yield make_sending_row(name, make_inference(name, made))


@check("client.sends-both-truths", answers="CLIENT-SENDS-VALUES")
@rows(*make_truth_rows())
@check("client-grpc.sends-both-truths", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(to_grpc_row, make_truth_rows()))
def sends_both_truths(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """BOOL elements that are true and such that are false are sent as they are."""
    expect_sent(client.infer(inference, make_small_script(inference)), own)


@check("client.sends-empty-inputs-among-others", answers="CLIENT-SENDS-VALUES")
@rows(*make_empty_rows())
@check("client-grpc.sends-empty-inputs-among-others", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*map(to_grpc_row, make_empty_rows()))
def sends_empty_inputs_among_others(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """An input without elements is sent beside others, and over gRPC has an entry as they do."""
    expect_sent(client.infer(inference, make_small_script(inference)), own)


# --- values that a form cannot carry ----------------------------------------------------------------------------------

HALVES = Tensor.from_values("IN0", "FP16", [0.5, -1.75, 3.0])
NON_FINITE = Tensor.from_values("IN0", "FP32", [float("nan"), float("inf"), float("-inf"), 1.5])
INVALID_UTF_8 = Tensor.from_values("IN0", "BYTES", [b"\xff\xfe\x80", b"\xc3\xa9"])


def make_unfit_row(name: str, one: Tensor, requirement: str) -> Row:
    """Return a row in which the caller requests JSON for a tensor that JSON cannot carry."""
    return make_sending_row(name, make_inference(f"unfit-{name}", [one], "json"), (requirement,))


HALF_ROW = make_unfit_row("FP16-json", HALVES, "CLIENT-SENDS-FP16")


@check("client.sends-nothing-else-instead", answers="CLIENT-SENDS-VALUES")
@rows(
    HALF_ROW,
    make_unfit_row("NaN-json", NON_FINITE, "CLIENT-SENDS-JSON"),
    make_unfit_row("not-UTF-8-json", INVALID_UTF_8, "CLIENT-SENDS-VALUES"),
)
@check("client-grpc.sends-nothing-else-instead", answers="CLIENT-SENDS-FP16/grpc", over=(GRPC,))
@rows(to_grpc_row(HALF_ROW))
def sends_nothing_else_instead(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """What the form that the caller asks for does not hold is refused, or sent in another form; never as something else."""
    seen = client.infer(inference, make_small_script(inference))
    if seen.heard:
        expect_sent(seen, own)


@check("client.announces-no-coding-of-the-answers", answers="CLIENT-SENDS-CODING")
@rows(*FORMS)
def announces_no_coding_of_the_answers(client: Client, form: Form) -> None:
    """A client that accepts compressed answers announces no coding of its own request."""
    inference = make_small_inference(f"accepts-{form}", form, accepts="gzip")
    expect_sent(client.infer(inference, make_small_script(inference)), ("CLIENT-SENDS-CODING",))
