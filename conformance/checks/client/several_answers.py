"""Several outputs in one answer, many answers for one client, and answers with wrong lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from conformance.checks.support.client_rows import (
    CALLS,
    FORMS,
    block_if_unread,
    client_claim,
    derive_model_name,
    get_unread_requirement,
    has_json_output,
    make_script,
    make_small_inference,
    make_tensor,
    to_grpc_row,
    to_raw_grpc_row,
)
from conformance.clients.answers import honest, honest_calls
from conformance.clients.answers.answer_barrier import AnswerBarrier
from conformance.clients.answers.honest import Style
from conformance.clients.answers.honest_calls import CallStyle
from conformance.clients.answers.script import HttpScript, Script, Tensors
from conformance.clients.answers.wrong import HEADER_PAST_JSON, WRONG_LENGTHS
from conformance.clients.answers.wrong_calls import EXTRA_ENTRY
from conformance.clients.client import Client, Observation
from conformance.clients.error_expectations import expect_error
from conformance.clients.expectations import expect_outputs, expect_request
from conformance.clients.inference import Inference, RequestedOutput
from conformance.expect.unmet import NotApplicableError
from conformance.spec.check import Row, rows
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

VALUES, OWN, REFUSES = "CLIENT-READS-VALUES", "CLIENT-READS-OWN", "CLIENT-REFUSES-WRONG"
SEVERAL_OUTPUTS = (("OUT0", "INT32", (3,)), ("OUT1", "BYTES", (2,)), ("OUT2", "FP32", (2, 2)))


def make_three_outputs(row: str) -> Tensors:
    """Return three outputs that differ in name, datatype, shape and values."""
    return tuple(make_tensor(row, *one) for one in SEVERAL_OUTPUTS)


def make_three_output_inference(row: str, form: Form) -> Inference:
    """Return an inference that requests the three outputs in order."""
    outputs = tuple(RequestedOutput(name, form) for name, _, _ in SEVERAL_OUTPUTS)
    return make_small_inference(f"rare-{row}", form, outputs=outputs)


# --- several outputs --------------------------------------------------------------------------------------------------


def reverse_outputs(outputs: Tensors) -> Tensors:
    """Return the outputs in reverse order."""
    return outputs[::-1]


SEVERAL_ROWS = (
    Row("binary", (make_three_output_inference("binary", "binary"), make_script(make_three_outputs("binary")))),
    Row(
        "json",
        (
            make_three_output_inference("json", "json"),
            make_script(make_three_outputs("json"), grpc=CallStyle(form="typed")),
        ),
    ),
    Row(
        "json-backwards",
        (
            make_three_output_inference("json-backwards", "json"),
            make_script(
                make_three_outputs("json-backwards"),
                Style(order=reverse_outputs),
                CallStyle(form="typed", order=reverse_outputs),
            ),
        ),
    ),
)


@client_claim("reads-several-outputs", VALUES, to_raw_grpc_row)
@rows(*SEVERAL_ROWS)
def reads_several_outputs(client: Client, inference: Inference, script: Script) -> None:
    """The client gives its caller each of several outputs by name, in any order."""
    observation = client.infer(inference, script)
    expect_outputs(
        observation, through_json=has_json_output(inference), unread=get_unread_requirement(client, inference)
    )


def make_bool_rows() -> Iterator[Row]:
    """Yield a row with both BOOL values for each encoding, and a row with a million BOOL elements."""
    for form in FORMS:
        name = f"truths-{form}"
        inference = make_small_inference(name, form, outputs=(RequestedOutput("OUT0", form),))
        one = Tensor.from_values("OUT0", "BOOL", [True, False, False, True, True])
        yield Row(form, (inference, make_script((one,), grpc=CALLS[form])))
    many = Tensor.from_values("OUT0", "BOOL", np.arange(2**20) % 3 == 0)
    inference = make_small_inference("truths-1-MiB", outputs=(RequestedOutput("OUT0", "binary"),))
    yield Row("binary-1-MiB", (inference, make_script((many,))))


@client_claim("reads-both-truths", VALUES, to_raw_grpc_row)
@rows(*make_bool_rows())
def reads_both_truths(client: Client, inference: Inference, script: Script) -> None:
    """The client gives its caller true and false BOOL elements unchanged."""
    observation = client.infer(inference, script)
    expect_outputs(observation, unread=get_unread_requirement(client, inference))


# --- equal ids --------------------------------------------------------------------------------------------------------


@client_claim("tells-answers-of-one-id-apart", OWN, (("8", 8, "binary"),))
@rows(("8-binary", 8, "binary"), ("8-json", 8, "json"))
def tells_answers_of_one_id_apart(client: Client, count: int, form: Form) -> None:
    """The client gives each of several inferences with the same id its own answer."""
    outputs = (RequestedOutput("OUT0", form),)
    inferences = [
        make_small_inference(f"one-id-{form}-{k}", form, outputs=outputs, id=f"one-id-{form}") for k in range(count)
    ]
    script = Script(lambda one: (make_tensor(one.model, "OUT0", "INT32", (3,)),), honest.USUAL, honest_calls.USUAL)
    expect_own_outputs(client, client.infer_all(inferences, script))


def expect_own_outputs(client: Client, observations: Sequence[Observation]) -> None:
    """Expect each inference to return its own outputs to its caller.

    Raises BlockedError: no inference was sent, or the client misreads the same outputs in a simple answer as well.
    """
    is_any_sent = any(observation.requests for observation in observations)
    for observation in observations:
        if is_any_sent:
            expect_request(observation, OWN)
        with block_if_unread(client, observation.inference, observation.outputs):
            expect_outputs(observation)


# --- wrong lengths ----------------------------------------------------------------------------------------------------


def make_wrong_length_row(name: str, script: HttpScript, form: Form = "binary") -> Row:
    """Return a row whose answer contains a wrong length."""
    return Row(
        name, (make_three_output_inference(f"length-{name}", form), make_script(make_three_outputs(name), script))
    )


GRPC_ROW = Row(
    "entry-too-many",
    (make_three_output_inference("length-calls", "binary"), make_script(make_three_outputs("calls"), grpc=EXTRA_ENTRY)),
)


@client_claim("refuses-wrong-lengths", REFUSES, (to_grpc_row(GRPC_ROW),))
@rows(
    *[make_wrong_length_row(name, script) for name, script in WRONG_LENGTHS.items()],
    make_wrong_length_row("header-past-the-json", HEADER_PAST_JSON, "json"),
)
def refuses_wrong_lengths(client: Client, inference: Inference, script: Script) -> None:
    """The client reports an error for an answer with more or less data than the answer itself states."""
    expect_error(client.infer(inference, script), "the answer has more or less data than it states")


# --- many inferences --------------------------------------------------------------------------------------------------


def make_inferences(row: str, count: int, form: Form) -> list[Inference]:
    """Return inferences, each with its own model and id."""
    requested = (RequestedOutput("OUT0", form),)
    options: dict[str, object] = {"outputs": requested, "unneeded": "id"}
    return [make_small_inference(f"{row}-{k}", form, id=f"{row}-{k}", **options) for k in range(count)]


def make_outputs(inference: Inference) -> Tensors:
    """Return the outputs that answer an inference; their length and values depend on the name of its model."""
    return (
        make_tensor(inference.model, "OUT0", "INT32", (1 + int(derive_model_name(inference.model)[-2:], 16) % 60,)),
    )


@client_claim("gives-each-caller-its-own-answer", OWN, (("32", 32, "binary"),))
@rows(("32-binary", 32, "binary"), ("32-json", 32, "json"))
def gives_each_caller_its_own_answer(client: Client, count: int, form: Form) -> None:
    """The client gives each of many concurrent callers its own answer."""
    barrier = AnswerBarrier(count)
    script = Script(make_outputs, honest.USUAL, honest_calls.USUAL, barrier)
    expect_own_outputs(client, client.infer_all(make_inferences(f"at-once-{form}", count, form), script, at_once=True))
    if not barrier.is_met:
        raise NotApplicableError(f"the client or its adapter never had {count} concurrent inferences")


@client_claim("keeps-answers-apart-on-one-connection", OWN, (("200", 200, "binary"),))
@rows(("200-binary", 200, "binary"), ("200-json", 200, "json"))
def keeps_answers_apart_on_one_connection(client: Client, count: int, form: Form) -> None:
    """The client gives each of many sequential callers its own answer."""
    script = Script(make_outputs, honest.USUAL, honest_calls.USUAL)
    expect_own_outputs(client, client.infer_all(make_inferences(f"in-a-row-{form}", count, form), script))
