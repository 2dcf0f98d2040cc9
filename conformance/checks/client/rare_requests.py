"""What clients send where few programs ask for it: both truths, empty tensors among others, what a form cannot hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.checks.support.client_rows import (
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
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

FORMS: Sequence[Form] = ("binary", "json")
TRUTHS = (True, False, False, True, True)


def make_truth_rows() -> Iterator[Row]:
    """Yield a row of BOOL elements of both truths in each form."""
    for form in FORMS:
        name = f"both-truths-{form}"
        yield make_sending_row(name, make_inference(name, [Tensor.of("IN0", "BOOL", list(TRUTHS))], form))


def make_empty_rows() -> Iterator[Row]:
    """Yield rows in which an input without elements stands before, between and behind others."""
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


# --- what a form cannot hold ------------------------------------------------------------------------------------------

HALVES = Tensor.of("IN0", "FP16", [0.5, -1.75, 3.0])
NON_FINITE = Tensor.of("IN0", "FP32", [float("nan"), float("inf"), float("-inf"), 1.5])
INVALID_UTF_8 = Tensor.of("IN0", "BYTES", [b"\xff\xfe\x80", b"\xc3\xa9"])


def make_unfit_row(name: str, one: Tensor, requirement: str) -> Row:
    """Return a row in which a tensor is asked for in JSON, which does not hold it."""
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
