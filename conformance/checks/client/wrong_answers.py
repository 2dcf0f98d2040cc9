"""What a caller is given where an answer is wrong or never comes whole, and what comes after that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from conformance.checks.support.client_rows import answering, small, small_answer, tensor
from conformance.clients.answers import honest, honest_calls
from conformance.clients.answers.broken_off import IN_CHUNKS, PLACES, before_the_last_chunk, broken_off
from conformance.clients.answers.delivery import Delivery
from conformance.clients.answers.errors import ERRORS
from conformance.clients.answers.honest import Style
from conformance.clients.answers.script import CallScript, Ending, HttpScript, Script, Tensors
from conformance.clients.answers.wrong import FALSE_CODING, WRONG_BINARY, WRONG_JSON
from conformance.clients.answers.wrong_calls import UNENDED_CALLS, WRONG_CALLS
from conformance.clients.client import TIMEOUT, Client
from conformance.clients.expectations.reading import expect_outputs, laid_to
from conformance.clients.expectations.refusing import expect_absent, expect_error, expect_in_time
from conformance.clients.inference import AskedOutput, Inference
from conformance.expect.unmet import about
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import GRPC
from conformance.wire.request import Form

SHORT = 1.0  # seconds that a caller gives where the peer falls silent
REFUSES, ENDS, GOES_ON = "CLIENT-REFUSES-WRONG", "CLIENT-ENDS", "CLIENT-GOES-ON"


def outputs_of(row: str) -> Tensors:
    """Return what wrong answers are made of: numbers, and BYTES behind them."""
    return (tensor(row, "OUT0", "INT32", (4,)), tensor(row, "OUT1", "BYTES", (3,)))


def asked(row: str, form: Form, **options: object) -> Inference:
    """Return an inference that asks for both outputs in a form."""
    return small(row, form, outputs=(AskedOutput("OUT0", form), AskedOutput("OUT1", form)), **options)


def wrong_row(
    name: str, form: Form, http: HttpScript = honest.USUAL, grpc: CallScript = honest_calls.USUAL, **options: object
) -> Row:
    """Return a row of a wrong answer."""
    return Row(name, (asked(f"wrong-{name}", form, **options), answering(outputs_of(name), http, grpc)))


WRONG = (
    *[wrong_row(name, "binary", script) for name, script in WRONG_BINARY.items()],
    *[wrong_row(name, "json", script) for name, script in WRONG_JSON.items()],
    wrong_row("coding-not-applied", "binary", FALSE_CODING, accepts="gzip"),
)
WRONG_OVER_GRPC = tuple(wrong_row(name, "binary", grpc=script) for name, script in WRONG_CALLS.items())


@check("client.refuses-wrong-answers", answers=REFUSES)
@rows(*WRONG)
@check("client-grpc.refuses-wrong-answers", answers=f"{REFUSES}/grpc", over=(GRPC,))
@rows(*WRONG_OVER_GRPC)
def refuses_wrong_answers(client: Client, inference: Inference, script: Script) -> None:
    """An answer that contradicts itself reaches the caller as an error, in time."""
    seen = client.infer(inference, script)
    expect_error(seen, "the answer contradicts itself")
    with about(ENDS):
        expect_in_time(seen)


@check("client.makes-up-no-output", answers=REFUSES)
@rows("binary", "json")
@check("client-grpc.makes-up-no-output", answers=f"{REFUSES}/grpc", over=(GRPC,))
@rows("binary")
def makes_up_no_output(client: Client, form: Form) -> None:
    """An output that was asked for and does not come is not given to the caller."""
    seen = client.infer(asked(f"missing-{form}", form), answering(outputs_of(form)[:1]))
    expect_absent(seen, "OUT1")


# --- answers that never come whole --------------------------------------------------------------------------------------

SILENT = ("before-anything", "in-the-head", "in-the-last-tensor")
RESET = ("before-anything", "in-the-head", "in-the-json", "in-the-last-tensor")


def unended_rows() -> Iterator[Row]:
    """Yield rows of connections that are closed, reset or silent at each place of an answer."""
    for name, place in PLACES.items():
        yield unended(f"closed-{name}", broken_off(place, Ending.CLOSE), form=form_at(name))
    yield unended("closed-before-the-last-chunk", broken_off(before_the_last_chunk, Ending.CLOSE, delivery=IN_CHUNKS))
    for name in RESET:
        yield unended(f"reset-{name}", broken_off(PLACES[name], Ending.RESET), form=form_at(name))
    for name in SILENT:
        yield unended(f"silent-{name}", broken_off(PLACES[name], Ending.SILENT), form=form_at(name), timeout=SHORT)


def form_at(place: str) -> Form:
    """Return the form of outputs in an answer that breaks off at a place: JSON, where no binary data are needed."""
    return "binary" if place.endswith("tensor") else "json"


def unended(
    name: str,
    http: HttpScript = honest.USUAL,
    grpc: CallScript = honest_calls.USUAL,
    *,
    form: Form = "binary",
    timeout: float = TIMEOUT,
) -> Row:
    """Return a row of an answer that never comes whole."""
    script = answering(outputs_of(name), http, grpc)
    return Row(name, (asked(f"end-{name}", form), script, timeout), thorough=timeout == SHORT)


def unended_call(name: str) -> Row:
    """Return the same over gRPC."""
    return unended(name, grpc=UNENDED_CALLS[name], timeout=SHORT if name == "silent" else TIMEOUT)


@check("client.ends-with-an-error", answers=ENDS)
@rows(*unended_rows())
@check("client-grpc.ends-with-an-error", answers=f"{ENDS}/grpc", over=(GRPC,))
@rows(*map(unended_call, UNENDED_CALLS))
def ends_with_an_error(client: Client, inference: Inference, script: Script, timeout: float) -> None:
    """Where an answer never comes whole, the caller has an error within the time that it gave."""
    seen = client.infer(inference, script, timeout=timeout)
    expect_error(seen, "the answer never came whole")
    expect_in_time(seen)


# --- and afterwards -----------------------------------------------------------------------------------------------------

AFTER_BINARY: Mapping[str, HttpScript] = {
    **{name: WRONG_BINARY[name] for name in ("header-past-the-end", "size-too-large", "prefix-past-the-end")},
    "closed-in-the-last-tensor": broken_off(PLACES["in-the-last-tensor"], Ending.CLOSE),
}
AFTER_JSON: Mapping[str, HttpScript] = {
    **{name: WRONG_JSON[name] for name in ("error-with-200", "empty-with-200", "json-broken-off")},
    **{f"status-{name}": error.http for name, error in ERRORS.items()},
    "closed-behind-an-answer": Style(delivery=Delivery(more=(("Connection", "close"),), ending=Ending.CLOSE)),
    "closed-before-anything": broken_off(PLACES["before-anything"], Ending.CLOSE),
    "reset-in-the-head": broken_off(PLACES["in-the-head"], Ending.RESET),
}
SILENCE = broken_off(PLACES["in-the-json"], Ending.SILENT)
AFTER_GRPC: Mapping[str, CallScript] = {
    **{name: WRONG_CALLS[name] for name in ("entry-one-byte-short", "prefix-past-the-end", "garbage", "cut-off")},
    **{name: UNENDED_CALLS[name] for name in ("cancelled", "closed")},
    **{f"status-{name}": error.grpc for name, error in ERRORS.items()},
}


def after_silence(http: HttpScript, grpc: CallScript, ends: str) -> Row:
    """Return a row in which a client that does not come back fails for that."""
    row = unended("after-silence", http, grpc, form="json" if ends == ENDS else "binary", timeout=SHORT)
    return replace(row, answers=(ends.replace(ENDS, GOES_ON), ends))


@check("client.goes-on-after-errors", answers=GOES_ON)
@rows(
    *[unended(f"after-{name}", script) for name, script in AFTER_BINARY.items()],
    *[unended(f"after-{name}", script, form="json") for name, script in AFTER_JSON.items()],
    after_silence(SILENCE, honest_calls.USUAL, ENDS),
)
@check("client-grpc.goes-on-after-errors", answers=f"{GOES_ON}/grpc", over=(GRPC,))
@rows(
    *[unended(f"after-{name}", grpc=script) for name, script in AFTER_GRPC.items()],
    after_silence(honest.USUAL, UNENDED_CALLS["silent"], f"{ENDS}/grpc"),
)
def goes_on_after_errors(client: Client, inference: Inference, script: Script, timeout: float) -> None:
    """After an answer that is an error, wrong or cut off, the next inference gives its caller the right outputs."""
    with about(ENDS):  # where it never comes back there is nothing to go on with
        client.infer(inference, script, timeout=timeout)
    form = inference.form_of(0)
    following = small(f"following-{inference.model}", form, outputs=(AskedOutput("OUT0", form),))
    with laid_to(GOES_ON):
        expect_outputs(client.infer(following, small_answer(following), timeout=timeout))
