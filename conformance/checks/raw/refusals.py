"""Raw requests that a server must or may refuse: ineligible models, bodies of a wrong size, empty bodies."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from conformance.checks.raw.raw_answers import (
    NUMBERS,
    STRINGS,
    expect_agreement,
    find_serving_requirement,
    require_exact_length,
    send_own_raw,
)
from conformance.checks.support.controls import is_right_alone
from conformance.checks.support.inputs import require_several_inputs
from conformance.checks.support.refusals import Refusal, expect_fault_refused, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, make_refusals, send_raw
from conformance.discovery.deployed_model import encode_raw_body
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive, expect_refusal
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ONE_INPUT, SEVERAL_INPUTS
from conformance.spec.text import escape_text, format_shape
from conformance.transport.target import Target
from conformance.wire.message_edits import Body, set_length
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

# --- requests ---------------------------------------------------------------------------------------------------------

_COUNTING = bytes(range(1, 65))

# role -> body sizes that do not fit its input; further sizes are golden cases
MISFITS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("raw_fixed", (4, 17, 32)),
    ("raw_variable", (4, 7, 9)),
    ("raw_middle", (6, 11, 13, 18)),
    ("raw_two_outputs", (2, 6)),
    ("identity_int64", (4, 12)),
    ("identity_fp16", (1, 3)),
    ("raw_batching", (4, 8, 17)),
    ("raw_batching_variable", (6,)),
)

# Fault, role, body, and the elements that a server may read: split by length prefixes, or as one element.
BYTES_BODIES: tuple[tuple[str, str, bytes, tuple[list[bytes], ...]], ...] = (
    ("bytes-2", "raw_bytes_two", b"hello", ()),
    ("bytes-2-prefixed", "raw_bytes_two", b"\1\0\0\0a\1\0\0\0b", ([b"a", b"b"],)),
    ("bytes-2-three-prefixed", "raw_bytes_two", b"\1\0\0\0a\1\0\0\0b\1\0\0\0c", ()),
    ("bytes-variable", "raw_bytes_variable", b"hello", ([b"hello"],)),
    ("bytes-variable-prefixed", "raw_bytes_variable", b"\5\0\0\0hello", ([b"hello"], [b"\5\0\0\0hello"])),
)


def _send_first_input(model: Model) -> Message:
    """Return a raw request with the first input of a model that has several inputs."""
    require_several_inputs(model)
    return send_raw(model)


def _send_variable_dimensions(model: Model) -> Message:
    """Return a raw request to an input with several variable dimensions, not counting the first."""
    spec, tensor = model.role.inputs[0], model.items()[0]
    if spec.datatype == "BYTES" or spec.shape[1:].count(-1) < 2 or tensor.elements < 2:
        raise NotApplicableError(f"metadata do not show that {model.name} has several variable dimensions")
    return send_item(model)


def send_item(model: Model) -> Message:
    """Return a raw request with the only input of a deployed model."""
    return model.raw(encode_raw_body(model.items()[0]))


SEVERAL_INPUT_FAULTS = (
    Fault("two-inputs-bytes-of-both", "raw_two_inputs", Body(_COUNTING[:16])),
    Fault("four-inputs", "multi", Body(_COUNTING[:16])),
    Fault("deployed-bytes-of-one", None, (), SEVERAL_INPUTS, start=_send_first_input),
)
SEVERAL_VARIABLES = (
    Fault("four-variable-dimensions", "rank4", Body(_COUNTING[:64])),
    Fault("deployed", None, (), ONE_INPUT, start=_send_variable_dimensions),
)
WRONG_LENGTHS = [
    Fault(f"{role.replace('_', '-')}-{size}-bytes", role, Body(_COUNTING[:size]))
    for role, sizes in MISFITS
    for size in sizes
]
WITHOUT_HEADER = (
    Fault(
        "bytes-without-its-header",
        "raw_bytes_one",
        (Body(b"hello"), set_length()),
        tensors=lambda model: [model.tensor([b"hello"])],
    ),
    Fault(
        "deployed-without-its-header",
        None,
        set_length(),
        ONE_INPUT,
        start=send_item,
        tensors=lambda model: model.items()[:1],
    ),
)

(TWO_ITEMS,) = make_refusals("RAW-BATCH-OF-ONE", send_raw, [Fault("two-items", "raw_batching", Body(_COUNTING[:32]))])
REFUSALS: tuple[Refusal, ...] = (
    *make_refusals("RAW-SEVERAL-INPUTS", send_raw, SEVERAL_INPUT_FAULTS),
    *make_refusals("RAW-TWO-VARIABLES", send_raw, SEVERAL_VARIABLES),
    *make_refusals(
        "RAW-BYTES-SHAPE", send_raw, [Fault(name, role, Body(body)) for name, role, body, _ in BYTES_BODIES]
    ),
    *make_refusals("RAW-SIZE", send_raw, WRONG_LENGTHS),
    TWO_ITEMS,
    *make_refusals("BIN-HEADER-MISSING", send_raw, WITHOUT_HEADER),
)


# --- refusals -------------------------------------------------------------------------------------------------------


def _make_rows(requirement: str) -> list[Row]:
    """Return a row for each refusal that a requirement demands."""
    return make_refusal_rows(REFUSALS, requirement)


@check("raw.model-of-several-inputs-is-refused", requirements="RAW-SEVERAL-INPUTS")
@rows(*_make_rows("RAW-SEVERAL-INPUTS"))
def model_of_several_inputs_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a raw request to a model with several inputs."""
    expect_fault_refused(target, model, refusal)


@check("raw.several-variable-dimensions-are-refused", requirements="RAW-TWO-VARIABLES")
@rows(*_make_rows("RAW-TWO-VARIABLES"))
def several_variable_dimensions_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a raw request to an input with several variable dimensions."""
    expect_fault_refused(target, model, refusal)


@check("raw.other-bytes-shapes-are-refused", requirements=("RAW-BYTES-SHAPE-SAFE", "RAW-BYTES-SHAPE"))
@rows(
    *[Row(fault, (body, readings), role=role) for fault, role, body, readings in BYTES_BODIES],
    Row("deployed", (b"hello", None), fit=STRINGS, requirements=("RAW-BYTES-SHAPE-SAFE",)),
)
def other_bytes_shapes_are_refused(
    target: Target, model: Model, body: bytes, readings: Sequence[Sequence[bytes]] | None
) -> None:
    """The server refuses a raw request to a BYTES input of another shape than [1], or reads all of its body."""
    if readings is None:
        _expect_strings_refused_or_right(target, model, body)
        return
    reply = target.send(model.raw(body), fresh=True)
    if reply.succeeded and readings:
        expect_agreement(target, model, reply, *[model.tensor(elements) for elements in readings])
    advised = reply.succeeded and readings
    expect(reply, "RAW-BYTES-SHAPE" if advised else "RAW-BYTES-SHAPE-SAFE").refused("BYTES of a shape other than [1]")
    expect_alive(target, model)


def _expect_strings_refused_or_right(target: Target, model: Model, body: bytes) -> None:
    """Expect the server to refuse a body without length prefixes, or to read one element if the shape is [-1].

    Raises NotApplicableError: metadata do not show that the input has a shape other than [1].
    """
    shape = model.role.inputs[0].shape
    if shape != (-1,) and (-1 in shape or prod(shape) < 2):
        raise NotApplicableError(f"the shape {list(shape)} in the metadata does not exclude the shape [1]")
    reply = target.send(model.raw(body), fresh=True)
    if reply.succeeded and shape == (-1,):
        read = model.tensor([body])
        model.expected([read])  # raises if all inputs have the same answer
        expect_agreement(target, model, reply, read)
    else:
        expect(reply).refused("BYTES of a shape other than [1]")
    expect_alive(target, model)


@check("raw.body-that-does-not-fit-is-refused", requirements="RAW-SIZE")
@rows(
    *_make_rows("RAW-SIZE"),
    Row("deployed-without-its-last-byte", (-1,), fit=NUMBERS),
    Row("deployed-with-a-byte-more", (1,), fit=NUMBERS),
)
def body_that_does_not_fit_is_refused(target: Target, model: Model, refusal: Refusal | int) -> None:
    """The server refuses a raw body that does not fill the input exactly."""
    if isinstance(refusal, Refusal):
        expect_fault_refused(target, model, refusal)
    else:
        _expect_length_refused(target, model, refusal)


def _expect_length_refused(target: Target, model: Model, length_change: int) -> None:
    """Expect a refusal of an otherwise accepted body with one more byte (1) or without its last byte (-1)."""
    find_serving_requirement(model)
    reply, tensor = send_own_raw(target, model)
    if not reply.succeeded:
        raise NotApplicableError(f"a raw request to {model.name} is refused")
    require_exact_length(model, tensor)
    body = bytes(tensor.to_bytes())
    fault = "a raw body that does not fit the input"
    expect_refusal(target, model, model.raw(body + b"\x01" if length_change > 0 else body[:-1]), fault)


@check("raw.two-items-are-refused", requirements=("RAW-BATCH-OF-ONE", "RAW-SIZE"), role="raw_batching")
def two_items_are_refused(target: Target, model: Model) -> None:
    """The server does not read a raw body as a batch of two."""
    reply = target.send(TWO_ITEMS.message(model), fresh=True)
    output = reply.answer.output(model.role.outputs[0].name) if reply.succeeded else None
    # One item in the answer: the server dropped the second.
    dropped = output is not None and output.shape is not None and output.shape[:1] == (1,)
    expect(reply, "RAW-SIZE" if dropped else "RAW-BATCH-OF-ONE").refused(TWO_ITEMS.described)
    expect_alive(target, model)


@check(
    "raw.body-without-header-is-refused",
    requirements=("RAW-HEADER-ZERO", "BIN-HEADER-MISSING-SAFE", "BIN-HEADER-MISSING"),
)
@rows(*[Row(row.id, row.values, role=row.role, fit=row.fit) for row in _make_rows("BIN-HEADER-MISSING")])
def body_without_header_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a raw body without an inference header, or reads it as a raw request."""
    expect_fault_refused(target, model, refusal)


def _make_empty_tensor(model: Model) -> Tensor:
    """Return the tensor that an empty body represents: no elements, or one empty string."""
    spec = model.role.inputs[0]
    if spec.datatype == "BYTES":
        return model.tensor([b""], (1,))
    shape = [max(size, 0) for size in spec.shape]
    return model.tensor([], [1, *shape] if model.role.batching else shape)


@check("raw.empty-body", requirements="RAW-EMPTY")
@rows(
    Row("alone", role="identity_int32"),
    Row("before-a-fixed-one", role="raw_variable"),
    Row("batching", role="raw_batching_variable"),
    Row("bytes", role="raw_bytes_one"),
)
def empty_body(target: Target, model: Model) -> str:
    """The server reads an empty raw body as a tensor without elements or an empty string, or refuses it."""
    reply = target.send(model.raw(b""), fresh=True)
    if reply.status is not None and reply.status >= 400 and not reply.exchange.failure:
        expect_alive(target, model)
        return f"refused: {reply.outcome()}"
    output = expect(reply, "RAW-OUTPUTS").output(model.role.outputs[0].name)
    if output.array is not None and output.array.size == 0:
        return f"no elements, shape {list(output.array.shape)}"
    if output.array is not None and output.datatype == "BYTES" and output.array.reshape(-1).tolist() == [b""]:
        return "one empty string"
    actual = f"{escape_text(output.datatype, 20)} {format_shape(output.shape)}"
    if not is_right_alone(target, _make_empty_tensor(model), "written"):
        raise BlockedError(f"the server writes such an output wrong in answers to other requests as well: {actual}")
    expected = "no elements, an empty string, or a refusal with a 4xx status"
    raise UnmetError(expected, actual, reply, requirement="RAW-ONE-VARIABLE")
