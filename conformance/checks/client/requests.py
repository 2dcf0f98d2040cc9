"""What clients send around the tensors: paths, headers, JSON, outputs, several inputs, codings, raw requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from conformance.checks.support.client_rows import (
    asking,
    model_of,
    over_grpc,
    over_grpc_raw,
    salt_of,
    sending_row,
    small,
    small_answer,
    tensor,
)
from conformance.clients.client import Client
from conformance.clients.expectations.sending import expect_sent
from conformance.clients.inference import AskedOutput, Inference
from conformance.roles.sample_values import sample_tensor
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import GRPC
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

FORMS: Sequence[Form] = ("binary", "json")
OUT0, OUT1, OUT2 = (AskedOutput(f"OUT{k}") for k in range(3))
# Inputs of sizes that differ, so that a wrong order shows.
SEVERAL = (("A", "INT32", (3,)), ("B", "BYTES", (2,)), ("C", "FP64", (2,)))
# Names that a URL has to encode, and of which characters and bytes are not as many.
MODELS = {"two-words": "two words", "not-ascii": "größe-猫", "per-cent": "50%25", "question-mark": "a?b=c#d&e+f"}


def several(row: str, order: Sequence[int], *forms: Form) -> Inference:
    """Return an inference with three inputs in an order."""
    made = [tensor(row, *SEVERAL[place]) for place in order]
    return asking(row, made, *forms)


def order_rows() -> Iterator[Row]:
    """Yield a row for each order of three binary inputs."""
    for order in permutations(range(3)):
        name = "-".join(SEVERAL[place][0] for place in order)
        yield sending_row(name, several(name, order))


def mixed_rows() -> Iterator[Row]:
    """Yield rows of requests with inputs in both forms."""
    for forms in (("binary", "json", "binary"), ("json", "binary", "binary"), ("binary", "binary", "json")):
        for order in ((0, 1, 2), (2, 1, 0)):
            name = "-".join(f"{SEVERAL[place][0]}-{form}" for place, form in zip(order, forms, strict=True))
            yield sending_row(name, several(name, order, *forms), ["CLIENT-SENDS-DATA-OR-SIZE"])


@check("client.sends-inputs-in-order", answers="CLIENT-SENDS-ORDER")
@rows(*order_rows())
@check("client-grpc.sends-inputs-in-order", answers="CLIENT-SENDS-ORDER/grpc", over=(GRPC,))
@rows(*map(over_grpc, order_rows()))
def sends_inputs_in_order(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """The bytes of several inputs are in the order in which the request lists them."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


@check("client.sends-both-forms-at-once", answers="CLIENT-SENDS-ORDER")
@rows(*mixed_rows())
def sends_both_forms_at_once(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """Some inputs are sent as binary data and others as JSON in one request."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


# --- the frame --------------------------------------------------------------------------------------------------------

WHOLE = ("CLIENT-SENDS-WHOLE", "CLIENT-SENDS-JSON", "CLIENT-SENDS-MEMBERS", "CLIENT-SENDS-MEMBER-ONCE")
BINARY = (
    *("CLIENT-SENDS-HEADER", "CLIENT-SENDS-HEADER-LENGTH"),
    *("CLIENT-SENDS-PARAMETERS", "CLIENT-SENDS-PARAMETERS-PLACE", "CLIENT-SENDS-DATA-OR-SIZE"),
)
AS_JSON = ("CLIENT-SENDS-HEADER-ON-JSON",)


def frame_rows() -> Iterator[Row]:
    """Yield rows of requests whose JSON has as many bytes as characters, and of others."""
    for form in FORMS:
        own = (*(BINARY if form == "binary" else AS_JSON), *WHOLE)
        for names, name, identity in (("ascii", "IN0", "id-1"), ("not-ascii", "größe-猫-😀", "ключ-é")):
            row = f"{names}-{form}"
            yield sending_row(row, asking(row, [tensor(row, name, "INT32", (5,))], form, id=identity), own)


@check("client.frames-its-requests", answers="CLIENT-SENDS-HEADER-LENGTH")
@rows(*frame_rows())
@check("client-grpc.frames-its-requests", answers="CLIENT-SENDS-MEMBERS/grpc", over=(GRPC,))
@rows(*map(over_grpc, frame_rows()))
def frames_its_requests(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """Headers, lengths and members of a request are as the documents say, whatever letters its names have."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


def bare_row(name: str, inference: Inference, *requirements: str) -> Row:
    """Return a row that is about these requirements alone."""
    return Row(name, (inference, requirements), answers=requirements)


def one_form_row(form: Form) -> Row:
    """Return a row over gRPC of several inputs in one form."""
    name = f"one-form-{form}"
    return bare_row(name, several(name, (0, 1, 2), form), "CLIENT-SENDS-ONE-FORM")


@check("client-grpc.uses-one-form", answers="CLIENT-SENDS-ONE-FORM", over=(GRPC,))
@rows(*map(one_form_row, FORMS))
def uses_one_form(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """A request has raw contents or typed contents."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


@check("client.states-the-content-type", answers="CLIENT-SENDS-CONTENT-TYPE")
@rows(*[bare_row(form, small(f"type-{form}", form), "CLIENT-SENDS-CONTENT-TYPE") for form in FORMS])
def states_the_content_type(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """The content type is octet-stream with binary data and JSON without."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


def path_rows() -> Iterator[Row]:
    """Yield rows of models and versions."""
    post = "CLIENT-SENDS-POST"
    yield bare_row("plain", small("path-plain", "json"), post)
    for name, model in MODELS.items():
        yield bare_row(name, replace(small(f"path-{name}", "json"), model=model), post)
    yield bare_row("version", small("path-version", "json", version="7"), post)


@check("client.posts-to-the-model", answers="CLIENT-SENDS-POST")
@rows(*path_rows())
@check("client-grpc.names-the-model", answers="CLIENT-SENDS-POST/grpc", over=(GRPC,))
@rows(*map(over_grpc_raw, path_rows()))
def posts_to_the_model(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """A request goes to the model, and the version, that the caller names."""
    expect_sent(client.infer(inference, small_answer(inference)), own, unheard="CLIENT-SENDS-POST")


def coding_rows() -> Iterator[Row]:
    """Yield rows of requests in content codings."""
    for coding in ("gzip", "deflate"):
        for form in FORMS:
            row = f"{coding}-{form}"
            own = ("CLIENT-SENDS-CODING", *(("CLIENT-SENDS-HEADER-LENGTH",) if form == "binary" else ()))
            made = asking(row, [tensor(row, "IN0", "INT32", (300,))], form, coding=coding)
            yield sending_row(row, made, own)


@check("client.applies-the-coding-it-announces", answers="CLIENT-SENDS-CODING")
@rows(*coding_rows())
def applies_the_coding_it_announces(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """A compressed request announces its coding, and its inference header counts the JSON before that."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


# --- outputs ----------------------------------------------------------------------------------------------------------

WITH_OUTPUTS: dict[str, dict[str, object]] = {
    "none-listed": {},
    "one-listed": {"outputs": (OUT1,)},
    "all-listed": {"outputs": (OUT0, OUT1, OUT2)},
    "another-order": {"outputs": (OUT2, OUT0, OUT1)},
    "with-id": {"outputs": (OUT0,), "id": "request-17"},
    "with-id-not-ascii": {"outputs": (OUT0,), "id": "ключ-猫-😀"},
    "name-not-ascii": {"outputs": (AskedOutput("größe-猫"),)},
}
WITH_FORMS: dict[str, dict[str, object]] = {
    "binary": {"outputs": (replace(OUT0, form="binary"),)},
    "json": {"outputs": (replace(OUT0, form="json"),)},
    "both": {"outputs": (replace(OUT0, form="json"), replace(OUT1, form="binary"))},
    "all-binary": {"all_outputs": "binary"},
    "all-json": {"all_outputs": "json"},
    "one-differs": {"all_outputs": "binary", "outputs": (OUT0, replace(OUT1, form="json"))},
}


def output_rows(options: dict[str, dict[str, object]]) -> list[Row]:
    """Return rows of requests that ask for outputs."""
    own = ("CLIENT-SENDS-OUTPUTS", "CLIENT-SENDS-PARAMETERS-PLACE")
    return [bare_row(name, small(f"out-{name}", "json", **given), *own) for name, given in options.items()]


@check("client.asks-for-the-outputs", answers="CLIENT-SENDS-OUTPUTS")
@rows(*output_rows({**WITH_OUTPUTS, **WITH_FORMS}))
@check("client-grpc.asks-for-the-outputs", answers="CLIENT-SENDS-OUTPUTS/grpc", over=(GRPC,))
@rows(*map(over_grpc_raw, output_rows(WITH_OUTPUTS)))
def asks_for_the_outputs(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """A request asks for the outputs, in the forms and under the id, that the caller asks for."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


# --- raw binary requests ----------------------------------------------------------------------------------------------

RAW = (("INT32", (4,)), ("FP16", (3,)), ("FP32", (2, 3)), ("UINT8", (7,)), ("FP64", (0,)))


def raw_row(datatype: str, shape: tuple[int, ...]) -> Row:
    """Return a row of a raw binary request."""
    name = f"{datatype}-{'x'.join(map(str, shape))}"
    return sending_row(name, asking(f"raw-{name}", [tensor(name, "IN0", datatype, shape)], is_raw=True))


@check("client.sends-raw-requests", answers="CLIENT-SENDS-RAW")
@rows(*[raw_row(*one) for one in RAW])
def sends_raw_requests(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """A raw binary request is the tensor's bytes alone, with an inference header of 0."""
    expect_sent(client.infer(inference, small_answer(inference)), own)


def requests_on_one_connection(count: int, forms: Sequence[Form]) -> list[Inference]:
    """Return inferences of sizes that go up and down, each of a model of its own, in one form after the other."""
    names = [f"connection-{count}-{k}" for k in range(count)]
    tensors = [sample_tensor("IN0", "FP32", (1 + 37 * (k * k % 29),), salt_of(name)) for k, name in enumerate(names)]
    pairs = zip(names, tensors, strict=True)
    return [Inference(model_of(name), (one,), (forms[k % len(forms)],)) for k, (name, one) in enumerate(pairs)]


@check("client.sends-each-request-anew", answers="CLIENT-SENDS-VALUES")
@rows(("40", 40, FORMS), ("40-json", 40, FORMS[1:]))
@check("client-grpc.sends-each-request-anew", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(("40", 40, FORMS[:1]))
def sends_each_request_anew(client: Client, count: int, forms: Sequence[Form]) -> None:
    """Nothing of one request is left in the next, whatever its size and form."""
    inferences = requests_on_one_connection(count, forms)
    outputs = small_answer(inferences[0])
    for seen in client.infer_all(inferences, outputs):
        expect_sent(seen)


def shared_name_row(form: Form) -> Row:
    """Return a row in which names of inputs begin alike, are long, or hold what JSON escapes."""
    row = f"odd-names-{form}"
    names = ("IN", "IN0", 'quote"and\\slash', "x" * 300)
    made = [Tensor.of(name, "INT16", [k, -k, salt_of(row + name)]) for k, name in enumerate(names)]
    return sending_row(row, asking(row, made, form))


@check("client.sends-names-as-they-are", answers="CLIENT-SENDS-VALUES")
@rows(*map(shared_name_row, FORMS))
@check("client-grpc.sends-names-as-they-are", answers="CLIENT-SENDS-VALUES/grpc", over=(GRPC,))
@rows(*[over_grpc(shared_name_row(form)) for form in FORMS])
def sends_names_as_they_are(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """Names of inputs are sent as the caller has them: long ones, and such that JSON has to escape."""
    expect_sent(client.infer(inference, small_answer(inference)), own)
