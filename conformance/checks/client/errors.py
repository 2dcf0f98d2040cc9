"""What a caller is given where the server answers with an error, and where it does not."""

from __future__ import annotations

from conformance.checks.support.client_rows import choose_plain_form, make_script, make_small_inference
from conformance.clients.answers.errors import ERRORS, ErrorAnswer
from conformance.clients.client import Client
from conformance.clients.expectations import expect_error, expect_outputs, expect_text
from conformance.clients.inference import RequestedOutput
from conformance.spec.check import check, rows
from conformance.spec.extensions import GRPC
from conformance.wire.tensor import Tensor


@check("client.gives-errors-to-its-caller", answers="CLIENT-READS-ERROR")
@rows(*ERRORS.items())
@check("client-grpc.gives-errors-to-its-caller", answers="CLIENT-READS-ERROR/grpc", over=(GRPC,))
@rows(*ERRORS.items())
def gives_errors_to_its_caller(client: Client, error: ErrorAnswer) -> None:
    """An answer with an error status reaches the caller as an error."""
    seen = client.infer(make_small_inference(f"error-{error.status}", choose_plain_form(client)), error.script())
    expect_error(seen, f"the status is {error.code if client.is_over_grpc else error.status}")


@check("client.says-what-the-server-said", answers="CLIENT-READS-ERROR-TEXT")
@rows(*ERRORS.items())
@check("client-grpc.says-what-the-server-said", answers="CLIENT-READS-ERROR-TEXT/grpc", over=(GRPC,))
@rows(*ERRORS.items())
def says_what_the_server_said(client: Client, error: ErrorAnswer) -> None:
    """The error that the caller is given holds the server's message, or the status where there is none."""
    seen = client.infer(make_small_inference(f"text-{error.status}", choose_plain_form(client)), error.script())
    expect_error(seen, f"the status is {error.code if client.is_over_grpc else error.status}")
    expect_text(seen, *error.list_expected_texts(over_grpc=client.is_over_grpc))


@check("client.takes-no-success-for-an-error", answers="CLIENT-READS-ERROR")
@rows("error", "status", "message")
@check("client-grpc.takes-no-success-for-an-error", answers="CLIENT-READS-ERROR/grpc", over=(GRPC,))
@rows("error", "status", "message")
def takes_no_success_for_an_error(client: Client, name: str) -> None:
    """An answer with success is none that failed, also where an output is called like an error and looks like one."""
    output = Tensor.of(name, "BYTES", [f'{{"error":"no {name}"}}', "error"])
    made = make_small_inference(f"no-{name}", choose_plain_form(client), outputs=(RequestedOutput(name, "json"),))
    expect_outputs(client.infer(made, make_script((output,))))
