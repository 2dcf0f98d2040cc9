"""Many inferences of one client: at once, and one after the other on one connection."""

from __future__ import annotations

from conformance.checks.support.client_rows import derive_model_name, make_small_inference, make_tensor
from conformance.clients.answers import honest, honest_calls
from conformance.clients.answers.answer_barrier import AnswerBarrier
from conformance.clients.answers.script import Script, Tensors
from conformance.clients.client import Client
from conformance.clients.expectations import expect_outputs
from conformance.clients.inference import Inference, RequestedOutput
from conformance.expect.unmet import NotApplicableError, attribute_to
from conformance.spec.check import check, rows
from conformance.spec.extensions import GRPC
from conformance.wire.request import Form

OWN = "CLIENT-READS-OWN"


def make_inferences(row: str, count: int, form: Form) -> list[Inference]:
    """Return inferences, each of a model and an id of its own."""
    asked = (RequestedOutput("OUT0", form),)
    return [make_small_inference(f"{row}-{k}", form, outputs=asked, id=f"{row}-{k}") for k in range(count)]


def make_outputs(inference: Inference) -> Tensors:
    """Return what the model of an inference answers: as long, and of such values, as no other one's."""
    return (
        make_tensor(inference.model, "OUT0", "INT32", (1 + int(derive_model_name(inference.model)[-2:], 16) % 60,)),
    )


@check("client.gives-each-caller-its-own-answer", answers=OWN)
@rows(("32-binary", 32, "binary"), ("32-json", 32, "json"))
@check("client-grpc.gives-each-caller-its-own-answer", answers=f"{OWN}/grpc", over=(GRPC,))
@rows(("32", 32, "binary"))
def gives_each_caller_its_own_answer(client: Client, count: int, form: Form) -> None:
    """Of many inferences at once, whose answers come in another order, each caller is given its own answer."""
    gathering = AnswerBarrier(count)
    script = Script(make_outputs, gathering.http, gathering.grpc)
    for seen in client.infer_all(make_inferences(f"at-once-{form}", count, form), script, at_once=True):
        with attribute_to(OWN):
            expect_outputs(seen)
    if not gathering.is_met:
        raise NotApplicableError(f"the client, or its adapter, never had {count} inferences in flight at once")


@check("client.keeps-answers-apart-on-one-connection", answers=OWN)
@rows(("200-binary", 200, "binary"), ("200-json", 200, "json"))
@check("client-grpc.keeps-answers-apart-on-one-connection", answers=f"{OWN}/grpc", over=(GRPC,))
@rows(("200", 200, "binary"))
def keeps_answers_apart_on_one_connection(client: Client, count: int, form: Form) -> None:
    """Of many inferences one after the other, each gives its caller the outputs of its own answer."""
    script = Script(make_outputs, honest.USUAL, honest_calls.USUAL)
    for seen in client.infer_all(make_inferences(f"in-a-row-{form}", count, form), script):
        with attribute_to(OWN):
            expect_outputs(seen)
