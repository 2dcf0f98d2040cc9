"""The requests of clients: paths, headers, JSON, outputs, several inputs, content codings, raw requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import permutations

import numpy as np

from conformance.checks.support.client_rows import (
    FORMS,
    block_if_unsent,
    client_claim,
    derive_model_name,
    derive_salt,
    expect_request_sent,
    has_json_output,
    make_inference,
    make_sending_row,
    make_small_inference,
    make_small_script,
    make_tensor,
    to_grpc_row,
    to_raw_grpc_row,
)
from conformance.clients.client import Client, Observation
from conformance.clients.expectations import VALUES, expect_correct_requests, expect_same_options, is_evidence_of_mixing
from conformance.clients.inference import Inference, RequestedOutput
from conformance.expect.unmet import UnmetError, is_met
from conformance.roles.sample_values import make_sample_tensor
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

OUT0, OUT1, OUT2 = (RequestedOutput(f"OUT{k}") for k in range(3))
# Inputs of different sizes, so that a wrong order is detected.
SEVERAL_INPUTS = (("A", "INT32", (3,)), ("B", "BYTES", (2,)), ("C", "FP64", (2,)))
# Names that some languages treat as numbers, and sort before all other names.
NUMBERED_INPUTS = (("b", "INT32", (3,)), ("10", "BYTES", (2,)), ("2", "FP64", (2,)))
# Names of models that have to be encoded in a URL; some have more bytes than characters.
MODEL_NAMES = {"two-words": "two words", "not-ascii": "größe-猫", "per-cent": "50%25", "question-mark": "a?b=c#d&e+f"}
# A version is a string: it need not be a number, and a client has to encode it in the URL like a name.
VERSIONS = {
    "version": "7",
    "version-with-a-letter": "v10",
    **{f"version-{name}": MODEL_NAMES[name] for name in ("two-words", "per-cent", "question-mark")},
}


def make_several_inputs(
    row: str, order: Sequence[int], *forms: Form, named: Sequence[tuple[str, str, tuple[int, ...]]] = SEVERAL_INPUTS
) -> Inference:
    """Return an inference with three inputs, listed in this order."""
    return make_inference(row, [make_tensor(row, *named[place]) for place in order], *forms)


def make_order_rows() -> Iterator[Row]:
    """Yield a row for each order of three binary inputs."""
    for named in (SEVERAL_INPUTS, NUMBERED_INPUTS):
        for order in permutations(range(3)):
            name = "-".join(named[place][0] for place in order)
            yield make_sending_row(name, make_several_inputs(name, order, named=named))


def make_mixed_encoding_rows() -> Iterator[Row]:
    """Yield rows whose request has both binary and JSON inputs."""
    for forms in (("binary", "json", "binary"), ("json", "binary", "binary"), ("binary", "binary", "json")):
        for order in ((0, 1, 2), (2, 1, 0)):
            name = "-".join(f"{SEVERAL_INPUTS[place][0]}-{form}" for place, form in zip(order, forms, strict=True))
            yield make_sending_row(name, make_several_inputs(name, order, *forms), ["CLIENT-SENDS-DATA-OR-SIZE"])


@client_claim("sends-inputs-in-order", "CLIENT-SENDS-ORDER", to_grpc_row)
@rows(*make_order_rows())
def sends_inputs_in_order(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends the bytes of several inputs in the order of the JSON."""
    expect_request_sent(client, inference, requirements)


@check("client.sends-both-forms-at-once", requirements="CLIENT-SENDS-ORDER")
@rows(*make_mixed_encoding_rows())
def sends_both_forms_at_once(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends some inputs as binary data and others as JSON in one request."""
    expect_request_sent(client, inference, requirements)


# --- headers and members ----------------------------------------------------------------------------------------------

FRAME_REQUIREMENTS = (
    *("CLIENT-SENDS-WHOLE", "CLIENT-SENDS-JSON", "CLIENT-SENDS-MEMBERS", "CLIENT-SENDS-MEMBER-ONCE"),
    "CLIENT-SENDS-CODING",  # a body that is announced without a coding has none
)
BINARY_REQUIREMENTS = (
    *("CLIENT-SENDS-HEADER", "CLIENT-SENDS-HEADER-LENGTH"),
    *("CLIENT-SENDS-PARAMETERS", "CLIENT-SENDS-PARAMETERS-PLACE", "CLIENT-SENDS-DATA-OR-SIZE"),
)
JSON_HEADER_REQUIREMENTS = ("CLIENT-SENDS-HEADER-ON-JSON",)


def make_framing_rows() -> Iterator[Row]:
    """Yield rows with ASCII names and ids, and with non-ASCII ones, whose JSON has more bytes than characters."""
    for form in FORMS:
        requirements = (*(BINARY_REQUIREMENTS if form == "binary" else JSON_HEADER_REQUIREMENTS), *FRAME_REQUIREMENTS)
        for names, name, identity in (("ascii", "IN0", "id-1"), ("not-ascii", "größe-猫-😀", "ключ-é")):
            row = f"{names}-{form}"
            tensor = make_tensor(row, name, "INT32", (5,))
            inference = make_inference(row, [tensor], form, id=identity, unneeded="id")
            yield make_sending_row(row, inference, requirements)


@check("client.frames-its-requests", requirements="CLIENT-SENDS-HEADER-LENGTH")
@rows(*make_framing_rows())
@check("client-grpc.frames-its-requests", requirements="CLIENT-SENDS-MEMBERS/grpc", over=(GRPC,))
@rows(*map(to_grpc_row, make_framing_rows()))
def frames_its_requests(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client's headers, lengths and JSON members agree with each other, even if names and ids are not ASCII."""
    expect_request_sent(client, inference, requirements)


def make_row_for_requirements(name: str, inference: Inference, *requirements: str) -> Row:
    """Return a row that judges only these requirements."""
    return Row(name, (inference, requirements), requirements=requirements)


def make_one_encoding_row(form: Form) -> Row:
    """Return a gRPC row with several inputs, all as raw contents or all as typed contents."""
    name = f"one-form-{form}"
    return make_row_for_requirements(name, make_several_inputs(name, (0, 1, 2), form), "CLIENT-SENDS-ONE-FORM")


@check("client-grpc.uses-one-form", requirements="CLIENT-SENDS-ONE-FORM", over=(GRPC,))
@rows(*map(make_one_encoding_row, FORMS))
def uses_one_form(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends either raw contents or typed contents in a call."""
    expect_request_sent(client, inference, requirements)


@check("client.states-the-content-type", requirements="CLIENT-SENDS-CONTENT-TYPE")
@rows(
    *[
        make_row_for_requirements(form, make_small_inference(f"type-{form}", form), "CLIENT-SENDS-CONTENT-TYPE")
        for form in FORMS
    ]
)
def states_the_content_type(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends binary data as octet-stream and JSON alone as JSON."""
    expect_request_sent(client, inference, requirements)


def make_model_path_rows() -> Iterator[Row]:
    """Yield rows with different model names, and with different versions."""
    post = "CLIENT-SENDS-POST"
    yield make_row_for_requirements("plain", make_small_inference("path-plain", "json", unneeded="form"), post)
    for name, model in MODEL_NAMES.items():
        plain = make_small_inference(f"path-{name}", "json", unneeded="form")
        yield make_row_for_requirements(name, replace(plain, model=model), post)
    for name, version in VERSIONS.items():
        plain = make_small_inference(f"path-{name}", "json", version=version, unneeded="form")
        yield make_row_for_requirements(name, plain, post)


@check("client.posts-to-the-model", requirements="CLIENT-SENDS-POST")
@rows(*make_model_path_rows())
@check("client-grpc.names-the-model", requirements="CLIENT-SENDS-POST/grpc", over=(GRPC,))
@rows(*map(to_raw_grpc_row, make_model_path_rows()))
def posts_to_the_model(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends a request to the model and the version that its caller names."""
    expect_request_sent(client, inference, requirements, not_received="CLIENT-SENDS-POST")


def make_compressed_request_rows() -> Iterator[Row]:
    """Yield rows with compressed requests."""
    for coding in ("gzip", "deflate"):
        for form in FORMS:
            row = f"{coding}-{form}"
            requirements = ("CLIENT-SENDS-CODING", *(("CLIENT-SENDS-HEADER-LENGTH",) if form == "binary" else ()))
            inference = make_inference(row, [make_tensor(row, "IN0", "INT32", (300,))], form, coding=coding)
            yield make_sending_row(row, inference, requirements)


@check("client.applies-the-coding-it-announces", requirements="CLIENT-SENDS-CODING")
@rows(*make_compressed_request_rows())
def applies_the_coding_it_announces(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client states the coding of a compressed request; the inference header counts the uncompressed JSON."""
    expect_request_sent(client, inference, requirements)


# --- outputs ----------------------------------------------------------------------------------------------------------

OUTPUT_OPTIONS: dict[str, dict[str, object]] = {
    "none-listed": {},
    "one-listed": {"outputs": (OUT1,)},
    "all-listed": {"outputs": (OUT0, OUT1, OUT2)},
    "another-order": {"outputs": (OUT2, OUT0, OUT1)},
    "with-id": {"outputs": (OUT0,), "id": "request-17"},
    "with-id-not-ascii": {"outputs": (OUT0,), "id": "ключ-猫-😀"},
    "with-id-of-digits": {"outputs": (OUT0,), "id": "42"},
    "with-id-between-blanks": {"outputs": (OUT0,), "id": " 7 "},
    "with-id-like-a-word-of-json": {"outputs": (OUT0,), "id": "null"},
    "name-not-ascii": {"outputs": (RequestedOutput("größe-猫"),)},
}
FORM_OPTIONS: dict[str, dict[str, object]] = {
    "binary": {"outputs": (replace(OUT0, form="binary"),)},
    "json": {"outputs": (replace(OUT0, form="json"),)},
    "both": {"outputs": (replace(OUT0, form="json"), replace(OUT1, form="binary"))},
    "all-binary": {"all_outputs": "binary"},
    "all-json": {"all_outputs": "json"},
    "one-differs": {"all_outputs": "binary", "outputs": (OUT0, replace(OUT1, form="json"))},
}


def make_output_rows(options: dict[str, dict[str, object]]) -> list[Row]:
    """Return a row for each entry of `options`: row id -> options that describe the requested outputs.

    The form of the inputs does not matter, except with outputs as JSON, whose form would change with it.
    """
    requirements = ("CLIENT-SENDS-OUTPUTS", "CLIENT-SENDS-PARAMETERS-PLACE")
    override = ("CLIENT-SENDS-OVERRIDE",)
    return [
        make_row_for_requirements(
            name,
            replace(inference, unneeded=None if has_json_output(inference) else "form"),
            *requirements,
            *(override if {"all_outputs", "outputs"} <= requested.keys() else ()),
        )
        for name, requested in options.items()
        for inference in (make_small_inference(f"out-{name}", "json", **requested),)
    ]


@client_claim("asks-for-the-outputs", "CLIENT-SENDS-OUTPUTS", map(to_raw_grpc_row, make_output_rows(OUTPUT_OPTIONS)))
@rows(*make_output_rows({**OUTPUT_OPTIONS, **FORM_OPTIONS}))
def asks_for_the_outputs(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client requests the outputs, encodings and id that its caller wants."""
    expect_request_sent(client, inference, requirements, not_received="CLIENT-SENDS-OUTPUTS")


# --- raw binary requests ----------------------------------------------------------------------------------------------

RAW_TENSORS = (("INT32", (4,)), ("FP16", (3,)), ("FP32", (2, 3)), ("UINT8", (7,)), ("FP64", (0,)))


def make_raw_row(datatype: str, shape: tuple[int, ...]) -> Row:
    """Return a row with a raw binary request."""
    name = f"{datatype}-{'x'.join(map(str, shape))}"
    return make_sending_row(
        name, make_inference(f"raw-{name}", [make_tensor(name, "IN0", datatype, shape)], is_raw=True)
    )


@check("client.sends-raw-requests", requirements="CLIENT-SENDS-RAW")
@rows(*[make_raw_row(*one) for one in RAW_TENSORS])
def sends_raw_requests(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends a raw request as the tensor's bytes alone, with an inference header of 0."""
    expect_request_sent(client, inference, requirements)


def make_alternating_inferences(count: int, forms: Sequence[Form]) -> list[Inference]:
    """Return inferences of varying sizes, each with its own model, that alternate between the encodings in `forms`."""
    names = [f"connection-{count}-{k}" for k in range(count)]
    tensors = [
        make_sample_tensor("IN0", "FP32", (1 + 37 * (k * k % 29),), derive_salt(name)) for k, name in enumerate(names)
    ]
    pairs = zip(names, tensors, strict=True)
    return [Inference(derive_model_name(name), (one,), (forms[k % len(forms)],)) for k, (name, one) in enumerate(pairs)]


# Options that the caller sets for one request, but not for the requests before and after it.
ONE_REQUEST_OPTIONS: dict[str, dict[str, object]] = {
    "all-binary": {"all_outputs": "binary"},
    "all-json": {"all_outputs": "json"},
    "a-binary-output": {"outputs": (replace(OUT0, form="binary"),)},
    "classes": {"outputs": (replace(OUT0, classes=2),)},
    "an-id": {"id": "request-17"},
    "a-version": {"version": "7"},
}


def make_one_request_option_row(name: str, options: dict[str, object]) -> Row:
    """Return a row with three inferences, of which only the second has these options."""
    given: Sequence[dict[str, object]] = ({}, options, {})
    inferences = [
        make_small_inference(f"{place}-{name}", "json", **own, unneeded="form")
        for place, own in zip(("before", "with", "after"), given, strict=True)
    ]
    return Row(name, (inferences,))


@client_claim(
    "leaves-no-option-behind",
    "CLIENT-SENDS-OUTPUTS",
    [
        to_grpc_row(make_one_request_option_row(name, ONE_REQUEST_OPTIONS[name]))
        for name in ("classes", "an-id", "a-version")
    ],
)
@rows(*[make_one_request_option_row(name, options) for name, options in ONE_REQUEST_OPTIONS.items()])
def leaves_no_option_behind(client: Client, inferences: Sequence[Inference]) -> None:
    """The client sends no option of an earlier request with a later one."""
    observations = client.infer_all(inferences, make_small_script(inferences[1]))
    for observation in observations:
        with block_if_unsent(client, observation):
            expect_correct_requests(observation, ("CLIENT-SENDS-OUTPUTS",))
    expect_same_options(observations[0], observations[2])


@client_claim("sends-each-request-anew", "CLIENT-SENDS-VALUES", (("40", 40, FORMS[:1]),))
@rows(("40", 40, FORMS), ("40-json", 40, FORMS[1:]))
def sends_each_request_anew(client: Client, count: int, forms: Sequence[Form]) -> None:
    """The client leaves nothing of one request in the next, even if sizes and encodings differ."""
    inferences = make_alternating_inferences(count, forms)
    outputs = make_small_script(inferences[0])
    for observation in client.infer_all(inferences, outputs):
        with block_if_unsent(client, observation):
            expect_correct_requests(observation)


def make_concurrent_rows() -> Iterator[Row]:
    """Yield rows with many concurrent inferences, on new connections and on reused connections."""
    kinds: Sequence[tuple[int, Form, bool]] = (
        (32, "binary", False),
        (64, "binary", False),
        (64, "json", False),
        (32, "binary", True),
    )
    for count, form, is_raw in kinds:
        for connections, bursts in (("new", 1), ("kept", 2)):
            name = f"{count}-{'raw-requests' if is_raw else form}-on-{connections}-connections"
            yield make_concurrent_row(name, count, form, is_raw, bursts, (300,))
    yield make_concurrent_row("64-of-two-large-inputs", 64, "binary", False, 3, LARGE_ELEMENTS)


def make_concurrent_row(name: str, count: int, form: Form, is_raw: bool, bursts: int, elements: Sequence[int]) -> Row:
    """Return a row with many concurrent inferences; `elements` are the sizes of their inputs."""
    requirements = ("CLIENT-SENDS-OUTPUTS", *(("CLIENT-SENDS-RAW",) if is_raw else ()), "CLIENT-SENDS-VALUES")
    return Row(name, (name, count, form, is_raw, bursts, elements), requirements=requirements)


# Numbers of elements, so large that copying the inputs takes a while.
LARGE_ELEMENTS = (6000, 6000)


def make_concurrent_inferences(
    row: str, count: int, form: Form, *, is_raw: bool, elements: Sequence[int] = (300,)
) -> list[Inference]:
    """Return inferences of two sizes, each with its own model, values and id; raw requests have no id."""
    names = [f"{row}-{k}" for k in range(count)]
    identities = [None if is_raw else f"id-{name}" for name in names]
    return [
        make_inference(name, make_numbered_inputs(k, elements), form, id=identities[k], is_raw=is_raw, unneeded="id")
        for k, name in enumerate(names)
    ]


def make_numbered_inputs(number: int, elements: Sequence[int]) -> tuple[Tensor, ...]:
    """Return the inputs of an inference; their sizes are near `elements`, and their values depend on `number`."""
    return tuple(
        Tensor.from_values(f"IN{k}", "FP32", np.arange(count + 7 * (number % 2), dtype="<f4") + 1e5 * number + k / 2)
        for k, count in enumerate(elements)
    )


@client_claim(
    "sends-each-of-many-at-once",
    ("CLIENT-SENDS-VALUES", "CLIENT-SENDS-OUTPUTS"),
    [to_grpc_row(row) for row in make_concurrent_rows() if not row.values[3]],
)
@rows(*make_concurrent_rows())
def sends_each_of_many_at_once(
    client: Client, name: str, count: int, form: Form, is_raw: bool, bursts: int, elements: Sequence[int]
) -> None:
    """The client sends each of many concurrent requests with its own tensors, id and lengths.

    A request with the tensors or the id of another caller violates CLIENT-SENDS-VALUES.
    """
    requirements = ("CLIENT-SENDS-RAW",) if is_raw else ()
    for burst in range(bursts):
        inferences = make_concurrent_inferences(f"{name}-{burst}", count, form, is_raw=is_raw, elements=elements)
        script = make_small_script(inferences[0])
        for observation in client.infer_all(inferences, script, at_once=True):
            with block_if_unsent(client, observation), attribute_to_concurrency(client, observation):
                expect_correct_requests(observation, requirements)


@contextmanager
def attribute_to_concurrency(client: Client, observation: Observation) -> Iterator[None]:
    """Report CLIENT-SENDS-VALUES for a request that is wrong only among concurrent requests.

    The client sends the same inference again alone, if concurrency may be the cause of the failure.

    Raises UnmetError: an expectation within the block is unmet.
    """
    try:
        yield
    except UnmetError as unmet:
        alone = replace(observation.inference, model=f"{observation.inference.model}_alone")
        if is_evidence_of_mixing(unmet.requirement or VALUES) and is_met(
            lambda: expect_correct_requests(client.reconnect().infer(alone, make_small_script(alone)))
        ):
            unmet.requirement = VALUES
            unmet.actual += "; without concurrent requests, the client sends this request correctly"
        raise


def make_unusual_names_row(form: Form) -> Row:
    """Return a row with unusual input names: a common prefix, great length, or characters that JSON escapes."""
    row = f"odd-names-{form}"
    names = ("IN", "IN0", 'quote"and\\slash', "x" * 300)
    tensors = [Tensor.from_values(name, "INT16", [k, -k, derive_salt(row + name)]) for k, name in enumerate(names)]
    return make_sending_row(row, make_inference(row, tensors, form))


@client_claim("sends-names-as-they-are", "CLIENT-SENDS-VALUES", to_grpc_row)
@rows(*map(make_unusual_names_row, FORMS))
def sends_names_as_they_are(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends input names unchanged, including long names and names that JSON escapes."""
    expect_request_sent(client, inference, requirements)
