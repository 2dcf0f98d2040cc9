"""How clients handle errors, wrong answers and incomplete answers, and how they make the next inference."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from conformance.checks.support.client_rows import (
    FORMS,
    block_if_unread,
    choose_plain_form,
    client_claim,
    make_script,
    make_small_inference,
    make_small_script,
    make_tensor,
)
from conformance.clients.answers import honest, honest_calls
from conformance.clients.answers.errors import (
    ERRORS,
    IN_CHUNKS,
    PLACES,
    ErrorAnswer,
    cut_before_last_chunk,
    make_truncated_script,
)
from conformance.clients.answers.honest import Style
from conformance.clients.answers.script import CallScript, Delivery, Ending, HttpAnswer, HttpScript, Script, Tensors
from conformance.clients.answers.wrong import (
    FALSE_CODING,
    OTHER_ID,
    WRONG_BINARY,
    WRONG_ELEMENTS,
    WRONG_JSON,
    WRONG_PLACES,
    WrongAnswer,
    make_wrong_bool,
    make_wrong_element,
)
from conformance.clients.answers.wrong_calls import ANOTHER_ID, UNENDED_CALLS, WRONG_CALLS
from conformance.clients.client import TIMEOUT, Client, Observation
from conformance.clients.error_expectations import (
    expect_error,
    expect_error_text,
    expect_no_output,
    expect_timely_return,
)
from conformance.clients.expectations import (
    attribute_failures_to,
    expect_answerable_request,
    expect_outputs,
    expect_request,
)
from conformance.clients.inference import Inference, RequestedOutput
from conformance.expect.unmet import attribute_to
from conformance.spec.check import Row, check, rows
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

# --- errors -----------------------------------------------------------------------------------------------------------


@client_claim("gives-errors-to-its-caller", "CLIENT-READS-ERROR")
@rows(*ERRORS.items())
def gives_errors_to_its_caller(client: Client, error: ErrorAnswer) -> None:
    """The client reports an answer with an error status as an error."""
    observation = client.infer(
        make_small_inference(f"error-{error.status}", choose_plain_form(client), unneeded="form"), error.build_script()
    )
    expect_error(observation, f"the status is {error.code if client.is_over_grpc else error.status}")


@client_claim("says-what-the-server-said", "CLIENT-READS-ERROR-TEXT")
@rows(*ERRORS.items())
def says_what_the_server_said(client: Client, error: ErrorAnswer) -> None:
    """The client's error contains the server's message, or the status if the answer has no message."""
    observation = client.infer(
        make_small_inference(f"text-{error.status}", choose_plain_form(client), unneeded="form"), error.build_script()
    )
    expect_error(observation, f"the status is {error.code if client.is_over_grpc else error.status}")
    expect_error_text(observation, *error.list_expected_texts(over_grpc=client.is_over_grpc))


@client_claim("takes-no-success-for-an-error", "CLIENT-READS-ERROR")
@rows("error", "status", "message")
def takes_no_success_for_an_error(client: Client, name: str) -> None:
    """The client reads a successful answer whose output resembles an error."""
    output = Tensor.from_values(name, "BYTES", [f'{{"error":"no {name}"}}', "error"])
    requested = (RequestedOutput(name, "json"),)
    inference = make_small_inference(f"no-{name}", choose_plain_form(client), outputs=requested, unneeded="form")
    plain = replace(inference, outputs=(RequestedOutput("OUT0", "json"),))
    with block_if_unread(client, plain, (Tensor.from_values("OUT0", "BYTES", ["one", "two"]),)):
        expect_outputs(client.infer(inference, make_script((output,))))


# --- wrong answers ----------------------------------------------------------------------------------------------------

SHORT_TIMEOUT_S = 1.0  # the caller's timeout if the peer stops sending
REFUSES, ENDS, GOES_ON = "CLIENT-REFUSES-WRONG", "CLIENT-ENDS", "CLIENT-GOES-ON"


def make_outputs(row: str) -> Tensors:
    """Return the outputs in wrong answers: an INT32 output, followed by a BYTES output."""
    return (make_tensor(row, "OUT0", "INT32", (4,)), make_tensor(row, "OUT1", "BYTES", (3,)))


def make_two_output_inference(row: str, form: Form, **options: object) -> Inference:
    """Return an inference that requests both outputs in the same encoding."""
    return make_small_inference(
        row, form, outputs=(RequestedOutput("OUT0", form), RequestedOutput("OUT1", form)), **options
    )


def make_wrong_answer_row(
    name: str, form: Form, http: HttpScript = honest.USUAL, grpc: CallScript = honest_calls.USUAL, **options: object
) -> Row:
    """Return a row with a wrong answer."""
    return Row(
        name, (make_two_output_inference(f"wrong-{name}", form, **options), make_script(make_outputs(name), http, grpc))
    )


WRONG_ROWS = (
    *[make_wrong_answer_row(name, "binary", script) for name, script in WRONG_BINARY.items()],
    *[make_wrong_answer_row(name, "json", script) for name, script in WRONG_JSON.items()],
    make_wrong_answer_row("coding-not-applied", "binary", FALSE_CODING, accepts="gzip"),
)
WRONG_GRPC_ROWS = tuple(make_wrong_answer_row(name, "binary", grpc=script) for name, script in WRONG_CALLS.items())


@client_claim("refuses-wrong-answers", REFUSES, WRONG_GRPC_ROWS)
@rows(*WRONG_ROWS)
def refuses_wrong_answers(client: Client, inference: Inference, script: Script) -> None:
    """The client reports an error, within its caller's time limit, for an answer that contradicts itself."""
    observation = client.infer(inference, script)
    expect_error(observation, "the answer contradicts itself")
    with attribute_to(ENDS):
        expect_timely_return(observation)


def make_wrong_element_rows() -> Iterator[Row]:
    """Yield rows with an element that its datatype does not allow, first or last in one of two outputs."""
    for place, (output, element) in WRONG_PLACES.items():
        for datatype, fault, value in WRONG_ELEMENTS:
            name = f"{datatype}-{fault}-{place}"
            yield make_wrong_element_row(name, datatype, "json", make_wrong_element(output, element, value))
        yield make_wrong_element_row(f"BOOL-2-{place}", "BOOL", "binary", make_wrong_bool(output, element))


def make_wrong_element_row(name: str, datatype: str, form: Form, script: HttpScript) -> Row:
    """Return a row with a wrong element in one of two outputs of a datatype."""
    outputs = tuple(make_tensor(name, f"OUT{k}", datatype, (3,)) for k in range(2))
    values = (make_two_output_inference(f"element-{name}", form), make_script(outputs, script), outputs)
    return Row(name, values)


@check("client.refuses-elements-of-no-datatype", requirements=REFUSES)
@rows(*make_wrong_element_rows())
def refuses_elements_of_no_datatype(client: Client, inference: Inference, script: Script, outputs: Tensors) -> None:
    """The client reports an error for an element that is not a value of its datatype."""
    with block_if_unread(client, inference, outputs):
        expect_error(client.infer(inference, script), "an element is not a value of its datatype")


ID_ROWS = tuple(
    make_wrong_answer_row(f"another-id-{form}", form, WrongAnswer(Style(form=form), (OTHER_ID,)), id="own-id")
    for form in FORMS
)


@client_claim(
    "refuses-answers-to-another-id",
    REFUSES,
    (make_wrong_answer_row("another-id-raw", "binary", grpc=ANOTHER_ID, id="own-id"),),
)
@rows(*ID_ROWS)
def refuses_answers_to_another_id(client: Client, inference: Inference, script: Script) -> None:
    """The client reports an error for an answer whose id is not that of the request."""
    expect_error(client.infer(inference, script), "the answer has another id")


@client_claim("makes-up-no-output", REFUSES, ("binary",))
@rows("binary", "json")
def makes_up_no_output(client: Client, form: Form) -> None:
    """The client does not invent an output that the answer lacks."""
    observation = client.infer(make_two_output_inference(f"missing-{form}", form), make_script(make_outputs(form)[:1]))
    expect_no_output(observation, "OUT1")


# --- incomplete answers -----------------------------------------------------------------------------------------------

SILENT_PLACES = ("before-anything", "in-the-head", "in-the-last-tensor")
RESET_PLACES = ("before-anything", "in-the-head", "in-the-json", "in-the-last-tensor")


def make_incomplete_rows() -> Iterator[Row]:
    """Yield rows in which the peer closes or resets the connection, or stops sending, before the answer is complete."""
    for name, place in PLACES.items():
        yield make_incomplete_row(
            f"closed-{name}", make_truncated_script(place, Ending.CLOSE), form=choose_encoding_for_early_end(name)
        )
    yield make_incomplete_row(
        "closed-before-the-last-chunk", make_truncated_script(cut_before_last_chunk, Ending.CLOSE, delivery=IN_CHUNKS)
    )
    for name in RESET_PLACES:
        yield make_incomplete_row(
            f"reset-{name}", make_truncated_script(PLACES[name], Ending.RESET), form=choose_encoding_for_early_end(name)
        )
    for name in SILENT_PLACES:
        yield make_incomplete_row(
            f"silent-{name}",
            make_truncated_script(PLACES[name], Ending.SILENT),
            form=choose_encoding_for_early_end(name),
            timeout=SHORT_TIMEOUT_S,
        )


def choose_encoding_for_early_end(end: str) -> Form:
    """Return the encoding of an answer that ends early: binary data if it ends within a tensor, else JSON."""
    return "binary" if end.endswith("tensor") else "json"


def make_incomplete_row(
    name: str,
    http: HttpScript = honest.USUAL,
    grpc: CallScript = honest_calls.USUAL,
    *,
    form: Form = "binary",
    timeout: float = TIMEOUT,
) -> Row:
    """Return a row with an incomplete answer."""
    script = make_script(make_outputs(name), http, grpc)
    inference = make_two_output_inference(f"end-{name}", form, unneeded="form" if form == "json" else None)
    return Row(name, (inference, script, timeout))


def make_incomplete_grpc_row(name: str) -> Row:
    """Return a row with an incomplete answer over gRPC."""
    return make_incomplete_row(name, grpc=UNENDED_CALLS[name], timeout=SHORT_TIMEOUT_S if name == "silent" else TIMEOUT)


@client_claim("ends-with-an-error", ENDS, map(make_incomplete_grpc_row, UNENDED_CALLS))
@rows(*make_incomplete_rows())
def ends_with_an_error(client: Client, inference: Inference, script: Script, timeout: float) -> None:
    """The client reports an error within its caller's time limit when an answer never completes."""
    observation = client.infer(inference, script, timeout=timeout)
    expect_error(observation, "the answer never arrived completely")
    expect_timely_return(observation)


# --- inferences after errors ------------------------------------------------------------------------------------------

AFTER_BINARY: Mapping[str, HttpScript] = {
    **{name: WRONG_BINARY[name] for name in ("header-past-the-end", "size-too-large", "prefix-past-the-end")},
    "closed-in-the-last-tensor": make_truncated_script(PLACES["in-the-last-tensor"], Ending.CLOSE),
}
AFTER_JSON: Mapping[str, HttpScript] = {
    **{name: WRONG_JSON[name] for name in ("error-with-200", "empty-with-200", "json-broken-off")},
    **{f"status-{name}": error.answer_http for name, error in ERRORS.items()},
    "closed-behind-an-answer": Style(delivery=Delivery(extra_headers=(("Connection", "close"),), ending=Ending.CLOSE)),
    "closed-unannounced": Style(delivery=Delivery(ending=Ending.CLOSE)),
    "closed-while-idle": Style(delivery=Delivery(ending=Ending.CLOSE_LATER)),
    "closed-in-the-head": make_truncated_script(PLACES["in-the-head"], Ending.CLOSE),
    "closed-before-anything": make_truncated_script(PLACES["before-anything"], Ending.CLOSE),
    "reset-in-the-head": make_truncated_script(PLACES["in-the-head"], Ending.RESET),
}
MAX_CLOSING_S = 2.0  # longer than the peer waits for the client to notice the end of a connection
EXTRA_CLOSING_WAIT_S = 0.1
# Seconds between the end of a connection and the next inference, which is tried again after a pause if no request came:
# on a busy machine a client may notice the end later than the peer waits for that.
CLOSING_PAUSES_S = (0.0, 1.5)
SILENT_SCRIPT = make_truncated_script(PLACES["in-the-json"], Ending.SILENT)
AFTER_GRPC: Mapping[str, CallScript] = {
    **{name: WRONG_CALLS[name] for name in ("entry-one-byte-short", "prefix-past-the-end", "garbage", "cut-off")},
    **{name: UNENDED_CALLS[name] for name in ("cancelled", "closed")},
    **{f"status-{name}": error.answer_call for name, error in ERRORS.items()},
}


def make_after_silence_row(http: HttpScript, grpc: CallScript, end_requirement: str) -> Row:
    """Return a row with a peer that stops sending; if the client does not return, the row reports `end_requirement`."""
    row = make_incomplete_row(
        "after-silence", http, grpc, form="json" if end_requirement == ENDS else "binary", timeout=SHORT_TIMEOUT_S
    )
    return replace(row, requirements=(end_requirement.replace(ENDS, GOES_ON), end_requirement))


def infer_and_wait_for_close(client: Client, inference: Inference, script: Script, timeout: float) -> Observation:
    """Make an inference that gets a wrong or incomplete answer; then wait until the connection is closed."""
    with attribute_to(ENDS):  # a client that never returns cannot make the next inference
        failed = client.infer(inference, script, timeout=timeout)
    wait_until_closed(failed)
    return failed


def has_closed_unannounced(observation: Observation) -> bool:
    """Say whether the peer closed an HTTP connection without `Connection: close` in the answer."""
    return any(
        isinstance(one.answer, HttpAnswer)
        and one.answer.ending in (Ending.CLOSE, Ending.CLOSE_LATER)
        and ("Connection", "close") not in one.answer.headers
        for one in observation.requests
    )


def wait_until_closed(observation: Observation) -> None:
    """Wait until the peer has closed the connections that its script closes, and a little longer.

    A client with an event loop notices the close only if the loop runs before the next inference, as in an ordinary
    program.
    """
    for one in observation.requests:
        if isinstance(one.answer, HttpAnswer) and one.answer.ending in (Ending.CLOSE, Ending.CLOSE_LATER):
            one.answer.closed.wait(MAX_CLOSING_S)
            time.sleep(EXTRA_CLOSING_WAIT_S)


@client_claim(
    "goes-on-after-errors",
    GOES_ON,
    (
        *[make_incomplete_row(f"after-{name}", grpc=script) for name, script in AFTER_GRPC.items()],
        make_after_silence_row(honest.USUAL, UNENDED_CALLS["silent"], f"{ENDS}/grpc"),
    ),
)
@rows(
    *[make_incomplete_row(f"after-{name}", script) for name, script in AFTER_BINARY.items()],
    *[make_incomplete_row(f"after-{name}", script, form="json") for name, script in AFTER_JSON.items()],
    make_after_silence_row(SILENT_SCRIPT, honest_calls.USUAL, ENDS),
)
def goes_on_after_errors(client: Client, inference: Inference, script: Script, timeout: float) -> None:
    """The client reads the next answer correctly after an error, a wrong answer or a closed connection.

    Raises BlockedError: the peer received no complete request, so that it sent no wrong answer.
    """
    form = inference.get_form(0)
    following = replace(
        make_small_inference(f"following-{inference.model}", form, outputs=(RequestedOutput("OUT0", form),)),
        unneeded=inference.unneeded,
    )
    for pause in CLOSING_PAUSES_S:
        failed = infer_and_wait_for_close(client, inference, script, timeout)
        if pause == CLOSING_PAUSES_S[0]:
            expect_answerable_request(failed)
        time.sleep(pause)
        with attribute_failures_to(GOES_ON):
            observation = client.infer(following, make_small_script(following), timeout=timeout)
        if observation.requests or not has_closed_unannounced(failed):
            break
    with attribute_failures_to(GOES_ON):
        if (
            client.is_over_grpc
            and not observation.requests
            and any(not one.answer.is_connection_kept for one in failed.requests)
        ):
            # grpc-core ends the call before its channel notices the close: the next call may use the old connection.
            observation = client.infer(following, make_small_script(following), timeout=timeout)
        expect_request(observation, GOES_ON)
        expect_outputs(observation)
