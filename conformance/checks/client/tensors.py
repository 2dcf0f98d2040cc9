"""The tensors that clients send: every datatype, as JSON or binary data, with unchanged values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from conformance.checks.support.client_rows import (
    FORMS,
    client_claim,
    expect_request_sent,
    list_request_requirements,
    list_strings,
    make_inference,
    make_sending_row,
    make_small_inference,
    make_small_script,
    make_tensor,
    to_grpc_row,
)
from conformance.clients.client import Client, Observation
from conformance.clients.expectations import expect_correct_requests
from conformance.clients.inference import Inference
from conformance.expect.unmet import NotApplicableError
from conformance.roles.corner_values import (
    DIGITS_AND_SIGNS,
    HALF_PRECISION,
    INTEGER_CORNERS,
    from_bits,
    get_all_corners,
    make_corner_tensor,
)
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.spec.text import escape_text
from conformance.wire import parsed_call, parsed_request
from conformance.wire.datatypes import FLOATS, OIP_DATATYPES, lookup
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

# Shapes of tensors: every rank from 0 to 4, and shapes without elements.
SHAPES = ((), (2, 3), (2, 1, 3), (2, 3, 1, 2))
EMPTY_SHAPES = ((0,), (2, 0, 3))
BYTES_SHAPES = ((2, 3), (0,))
CORNER_GROUPS = ("subnormal", "zeros", "infinities", "nan")


def list_encodings(datatype: str) -> Sequence[Form]:
    """Return the encodings of a datatype: binary data and JSON, but only binary data for FP16."""
    return FORMS[:1] if datatype == "FP16" else FORMS


def make_tensor_row(name: str, one: Tensor, form: Form) -> Row:
    """Return a row that sends one tensor."""
    return make_sending_row(name, make_inference(name, [one], form))


def make_datatype_rows() -> Iterator[Row]:
    """Yield rows for each datatype as binary data and as JSON."""
    for datatype in OIP_DATATYPES:
        for form in list_encodings(datatype):
            name = f"{datatype}-{form}"
            yield make_tensor_row(name, make_tensor(name, "IN0", datatype, (3,)), form)


def make_shape_rows() -> Iterator[Row]:
    """Yield rows with FP32 elements for each shape as binary data and as JSON; for two shapes also with BYTES."""
    for shape in (*SHAPES, *EMPTY_SHAPES):
        for datatype in ("FP32", "BYTES") if shape in BYTES_SHAPES else ("FP32",):
            for form in FORMS:
                name = f"{datatype}-{'x'.join(map(str, shape)) or 'rank-0'}-{form}"
                yield make_tensor_row(name, make_tensor(name, "IN0", datatype, shape), form)


def make_corner_value_rows() -> Iterator[Row]:
    """Yield rows of corner values.

    Integers are sent in both encodings. Each group of floats is sent as binary data, and floats that JSON can carry are
    also sent as JSON.
    """
    for datatype in INTEGER_CORNERS:
        for form in FORMS:
            tensor = Tensor.from_values("IN0", datatype, get_all_corners(datatype))
            yield make_tensor_row(f"{datatype}-{form}", tensor, form)
    for datatype in FLOATS:
        for group in CORNER_GROUPS:
            yield make_tensor_row(f"{datatype}-{group}-binary", make_corner_tensor("IN0", datatype, group), "binary")
    for datatype in ("FP32", "FP64"):
        corners = Tensor.from_values("IN0", datatype, get_all_corners(datatype, json=True))
        yield make_tensor_row(f"{datatype}-json", corners, "json")
        name, exact = f"{datatype}-digits-and-signs-json", from_bits("IN0", datatype, DIGITS_AND_SIGNS[datatype])
        yield make_sending_row(name, make_inference(name, [exact], "json"), ("CLIENT-SENDS-MINUS-ZERO",))


def make_string_rows() -> Iterator[Row]:
    """Yield rows for each group of BYTES elements as binary data, and as JSON if JSON can carry them."""
    for group, form, one in list_strings():
        yield make_tensor_row(f"{group}-{form}", replace(one, name="IN0"), form)


def make_large_input_rows() -> Iterator[Row]:
    """Yield rows with inputs of about 1 MiB."""
    for datatype, count in (("UINT8", 2**20), ("BOOL", 2**20), ("FP16", 2**19), ("FP32", 2**18), ("INT64", 2**17)):
        name = f"{datatype}-1-MiB"
        block = make_tensor(name, "IN0", datatype, (1024,)).array
        yield make_tensor_row(name, Tensor.from_values("IN0", datatype, np.tile(block, count // 1024)), "binary")
    long = [bytes([k % 256]) * (k % 700) for k in range(3000)]
    yield make_tensor_row("BYTES-1-MiB", Tensor.from_values("IN0", "BYTES", long), "binary")


def expect_tensor_sent(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """Expect the client to send the tensors of an inference.

    Raises NotApplicableError: the client sends only JSON, which cannot carry the tensor, so that it sends no request.
    """
    observation = client.infer(inference, make_small_script(inference))
    require_sendable(client, observation)
    expect_correct_requests(observation, requirements)


def require_sendable(client: Client, observation: Observation) -> None:
    """Skip the row if the client sent no request, because it sends only JSON, and JSON cannot carry every input.

    Raises NotApplicableError: the client sends only JSON (over gRPC: typed contents), which cannot carry an input.
    """
    error = observation.result.error
    is_carried = all(can_be_sent_as_json(client, one) for one in observation.inference.inputs)
    if observation.requests or error is None or is_carried:
        return
    plain = make_small_inference(f"{observation.inference.model}-plain", "binary")
    if is_sent_as_json(client.reconnect().infer(plain, make_small_script(plain))):
        raise NotApplicableError(f"the client sends no binary data: {escape_text(error)}")


def can_be_sent_as_json(client: Client, one: Tensor) -> bool:
    """Say whether JSON, or typed contents over gRPC, can carry a tensor."""
    known = lookup(one.datatype)
    if client.is_over_grpc:
        return bool(known.contents)
    if one.datatype == "BYTES":
        return all(map(is_utf8, one.array.flat))
    return known.has_json_form and (one.datatype not in FLOATS or bool(np.isfinite(one.array).all()))


def is_utf8(element: bytes) -> bool:
    """Say whether an element is UTF-8."""
    try:
        element.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_sent_as_json(observation: Observation) -> bool:
    """Say whether the client sent only JSON, or typed contents, although the caller asked for binary data."""
    if not observation.requests:
        return False
    received = observation.requests[-1].received
    parsed = parsed_call.parse(received) if received.is_over_grpc else parsed_request.parse(received)
    return parsed is not None and bool(parsed.inputs) and not any(one.binary for one in parsed.inputs)


@client_claim("sends-every-datatype", "CLIENT-SENDS-VALUES", to_grpc_row)
@rows(*make_datatype_rows())
def sends_every_datatype(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends a tensor of any datatype unchanged, in the encoding that its caller requests."""
    expect_tensor_sent(client, inference, requirements)


@client_claim("sends-every-shape", "CLIENT-SENDS-VALUES", to_grpc_row)
@rows(*make_shape_rows())
def sends_every_shape(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends a tensor of any rank, empty or not, with its caller's shape."""
    expect_tensor_sent(client, inference, requirements)


@client_claim("sends-corner-values", "CLIENT-SENDS-VALUES", to_grpc_row)
@rows(*make_corner_value_rows())
def sends_corner_values(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends limits, 2^53+1, subnormals, signed zeros and NaN unchanged."""
    expect_tensor_sent(client, inference, requirements)


@client_claim("sends-any-bytes", "CLIENT-SENDS-VALUES", to_grpc_row)
@rows(*make_string_rows())
def sends_any_bytes(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends BYTES elements unchanged, whether empty, with NUL, not UTF-8, or long."""
    expect_tensor_sent(client, inference, requirements)


@client_claim("sends-large-tensors", "CLIENT-SENDS-VALUES", to_grpc_row)
@rows(*make_large_input_rows())
def sends_large_tensors(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends a tensor of 1 MiB completely."""
    expect_tensor_sent(client, inference, requirements)


# --- less common tensors ----------------------------------------------------------------------------------------------

BOOL_VALUES = (True, False, False, True, True)


def make_bool_rows() -> Iterator[Row]:
    """Yield rows with both BOOL values, as binary data and as JSON."""
    for form in FORMS:
        name = f"both-truths-{form}"
        yield make_sending_row(name, make_inference(name, [Tensor.from_values("IN0", "BOOL", list(BOOL_VALUES))], form))


def make_empty_input_rows() -> Iterator[Row]:
    """Yield rows with an empty input before, between and after other inputs."""
    for place in range(3):
        name = f"empty-input-{place}"
        tensors = [
            make_tensor(name, f"IN{k}", ("INT32", "BYTES", "FP64")[k], (0 if k == place else 2,)) for k in range(3)
        ]
        yield make_sending_row(name, make_inference(name, tensors))


@client_claim("sends-both-truths", "CLIENT-SENDS-VALUES", to_grpc_row)
@rows(*make_bool_rows())
def sends_both_truths(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends true and false BOOL elements unchanged."""
    expect_correct_requests(client.infer(inference, make_small_script(inference)), requirements)


@client_claim("sends-empty-inputs-among-others", "CLIENT-SENDS-VALUES", to_grpc_row)
@rows(*make_empty_input_rows())
def sends_empty_inputs_among_others(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client sends an empty input beside others; over gRPC, raw contents have an entry for it."""
    expect_correct_requests(client.infer(inference, make_small_script(inference)), requirements)


FEW_COUNTS = (0, 1, 2)


def make_element_count_rows() -> Iterator[Row]:
    """Yield rows for each datatype as binary data and as JSON, with tensors of few elements."""
    for datatype in OIP_DATATYPES:
        for form in list_encodings(datatype):
            name = f"few-{datatype}-{form}"
            inferences = [
                make_inference(f"{name}-{k}", [make_tensor(name, "IN0", datatype, (k,))], form) for k in FEW_COUNTS
            ]
            requirements = list_request_requirements(inferences[-1])
            yield Row(f"{datatype}-{form}", (inferences, requirements), requirements=requirements)


@client_claim("sends-few-elements", "CLIENT-SENDS-VALUES", to_grpc_row)
@rows(*make_element_count_rows())
def sends_few_elements(client: Client, inferences: Sequence[Inference], requirements: Sequence[str]) -> None:
    """The client sends a tensor of no, one or two elements unchanged."""
    for inference in inferences:
        expect_tensor_sent(client, inference, requirements)


# --- values that JSON cannot represent --------------------------------------------------------------------------------

NON_FINITE = Tensor.from_values("IN0", "FP32", [float("nan"), float("inf"), float("-inf"), 1.5])
INVALID_UTF_8 = Tensor.from_values("IN0", "BYTES", [b"\xff\xfe\x80", b"\xc3\xa9"])


def make_unfit_for_json_row(name: str, one: Tensor, requirement: str) -> Row:
    """Return a row in which the caller requests JSON for a tensor that JSON cannot represent."""
    return make_sending_row(name, make_inference(f"unfit-{name}", [one], "json"), (requirement,))


HALF_ROWS = tuple(
    make_unfit_for_json_row(f"{datatype}-json", from_bits("IN0", datatype, bits), "CLIENT-SENDS-FP16")
    for datatype, bits in HALF_PRECISION.items()
)


@check("client.sends-nothing-else-instead", requirements="CLIENT-SENDS-VALUES")
@rows(
    *HALF_ROWS,
    make_unfit_for_json_row("NaN-json", NON_FINITE, "CLIENT-SENDS-JSON"),
    make_unfit_for_json_row("not-UTF-8-json", INVALID_UTF_8, "CLIENT-SENDS-VALUES"),
)
@check("client-grpc.sends-nothing-else-instead", requirements="CLIENT-SENDS-FP16/grpc", over=(GRPC,))
@rows(*map(to_grpc_row, HALF_ROWS))
def sends_nothing_else_instead(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client refuses a value that the requested encoding cannot carry, or sends it in another encoding."""
    observation = client.infer(inference, make_small_script(inference))
    if observation.requests:
        expect_correct_requests(observation, requirements)


@check("client.announces-no-coding-of-the-answers", requirements="CLIENT-SENDS-CODING")
@rows(*FORMS)
def announces_no_coding_of_the_answers(client: Client, form: Form) -> None:
    """A client that accepts compressed answers does not claim that its own request is compressed."""
    inference = make_small_inference(f"accepts-{form}", form, accepts="gzip")
    expect_request_sent(client, inference, ("CLIENT-SENDS-CODING",))
