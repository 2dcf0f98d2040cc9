"""Raw requests: the body is the only input, whatever its bytes; its shape, its content type, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.checks.raw.raw_answers import (
    FLOATS,
    NO_RAW_ANSWER,
    NUMBERS,
    STRINGS,
    VARIABLE_NUMBERS,
    expect_agreement,
    expect_correct_outputs,
    expect_own_plain_values,
    expect_own_served,
    expect_own_shape,
    expect_own_values,
    is_simple_raw_answered,
    make_sample,
    send_raw,
)
from conformance.checks.support.changed_tensors import (
    fill_floats_with_fractions,
    fill_floats_with_lookalike,
    fill_strings,
)
from conformance.checks.support.controls import is_wrong_if_accepted
from conformance.checks.support.framing import FRAMING, expect_framed
from conformance.checks.support.inputs import Change, make_large_inputs
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.roles.roles import map_identity_roles
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ONE_INPUT
from conformance.spec.text import format_shape
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import JSON

# --- the body is the input ------------------------------------------------------------------------------------------

# Bodies that look like JSON or HTTP to a server that inspects them.
OPAQUE = (
    ("all-bytes", bytes(range(256))),
    ("an-inference-request", b'{"inputs":[{"name":"INPUT","shape":[1],"datatype":"UINT8","data":[7]}]}'),
    ("an-open-brace", b"{"),
    ("an-empty-object", b"{}"),
    ("an-empty-line", b"\r\n\r\n"),
    ("a-last-chunk", b"0\r\n\r\n"),
    ("blanks", b" \t\r\n "),
    ("gzip-magic", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"),
    ("byte-order-mark", b"\xef\xbb\xbf{}"),
    ("zeros", bytes(9)),
    ("one-byte", b"\xff"),
)


@check("raw.header-0-makes-the-body-data", requirements="RAW-HEADER-ZERO")
@rows(
    *[Row(name, (body,), role="identity_uint8") for name, body in OPAQUE],
    Row("deployed", ("plain",), fit=ONE_INPUT),
    *[Row(f"deployed-{name}", (name,), fit=FLOATS) for name in ("open-brace", "blanks")],
)
def header_0_makes_the_body_data(target: Target, model: Model, body: bytes | str) -> None:
    """The server reads the whole body as tensor data when the inference header is 0."""
    if body == "plain":
        expect_own_plain_values(target, model)
        return
    if isinstance(body, str):
        expect_own_values(target, model, lambda tensors: fill_floats_with_lookalike(tensors, body))
        return
    reply = target.infer(model.raw(body))
    expect(reply).answered()
    expect_agreement(target, model, reply, model.tensor(list(body)))


# Every datatype except BYTES, and casts, which judge the body and the answer separately.
ENCODED = (
    *(role for name, role in map_identity_roles().items() if name != "BYTES"),
    *("cast_int32_fp32", "cast_fp16_fp32", "cast_fp32_fp16", "cast_bf16_fp32", "fixed", "raw_middle"),
)


@check("raw.body-is-binary-tensor-data", requirements="RAW-ENCODING")
@rows(
    *[Row(role.replace("_", "-"), (None,), role=role) for role in ENCODED],
    Row("64-kib", ((16384,),), role="cast_int32_fp32"),
    Row("1-mib", ((131072,),), role="identity_int64"),
    Row("deployed", (None, list), fit=NUMBERS),
    Row("deployed-fractions", (None, fill_floats_with_fractions), fit=FLOATS),
    Row("deployed-64-kib", (None, "large"), fit=replace(FLOATS, is_variable=True)),
)
def body_is_binary_tensor_data(
    target: Target, model: Model, shape: Sequence[int] | None, own_change: Change | str | None = None
) -> None:
    """The server reads a raw body as little-endian elements of native size, row by row."""
    if own_change is not None:
        expect_own_values(
            target, model, (lambda _: make_large_inputs(model)) if isinstance(own_change, str) else own_change
        )
        return
    tensor = make_sample(model, shape)
    expect_agreement(target, model, send_raw(target, model, tensor), tensor)


# --- content types ----------------------------------------------------------------------------------------------------

VALUES = [200, 201, 202, 203]  # neither JSON nor white space nor UTF-8


TYPES = (("as-json", JSON), ("without-content-type", None))


@check("raw.request-of-another-type-is-served", requirements="RAW-CONTENT-TYPE-OTHER")
@rows(
    *[Row(name, (content_type,), role="identity_uint8") for name, content_type in TYPES],
    *[Row(f"deployed-{name}", (content_type, True), fit=ONE_INPUT) for name, content_type in TYPES],
)
def request_of_another_type_is_served(
    target: Target, model: Model, content_type: str | None, is_deployed: bool = False
) -> None:
    """The server accepts a raw request with Content-Type application/json, or without any."""
    if is_deployed:
        first, tensor = expect_own_served(target, model)
        reply = target.send(first.exchange.message.with_header("Content-Type", content_type), fresh=True)
        expect(reply).answered()
        with block_if(
            lambda: is_wrong_if_accepted(lambda: expect_correct_outputs(target, model, first, tensor)),
            "the answer to the raw request with its usual Content-Type is also wrong",
        ):
            expect_correct_outputs(target, model, reply, tensor)
        return
    tensor = model.tensor(VALUES)
    message = model.raw(bytes(tensor.to_bytes()))
    reply = target.infer(message.with_header("Content-Type", content_type))
    with block_if(lambda: not is_simple_raw_answered(target), NO_RAW_ANSWER):
        expect(reply).answered()
    expect_agreement(target, model, reply, tensor)


# --- which models ---------------------------------------------------------------------------------------------------


@check("raw.model-of-one-input-is-served", requirements="RAW-ONE-INPUT")
@rows(
    Row("fixed-shape", role="raw_fixed"),
    Row("one-variable-dimension", role="raw_variable"),
    Row("two-outputs", role="raw_two_outputs"),
    Row("batching", role="raw_batching"),
    Row("documented", role="documented_raw"),
    Row("deployed", (True,), fit=ONE_INPUT),
)
def model_of_one_input_is_served(target: Target, model: Model, is_deployed: bool = False) -> None:
    """The server answers a raw request to a model with one input."""
    if is_deployed:
        expect_own_served(target, model)
        return
    reply = send_raw(target, model, make_sample(model))
    with block_if(lambda: not is_simple_raw_answered(target), NO_RAW_ANSWER):
        expect(reply).answered()


@check("raw.variable-dimension-is-deduced", requirements=("RAW-ONE-VARIABLE", "RAW-ENCODING"))
@rows(
    Row("no-variable-dimension", ((2, 2),), role="raw_fixed"),
    *[Row(f"first-{size}", ((size, 2),), role="raw_variable") for size in (1, 2, 3, 100)],
    *[Row(f"middle-{size}", ((2, size, 3),), role="raw_middle") for size in (1, 2, 4)],
    *[Row(f"alone-{size}", ((size,),), role="identity_fp64") for size in (1, 2, 7)],
    Row("alone-one-byte-elements", ((5,),), role="identity_bool"),
    Row("alone-two-byte-elements", ((5,),), role="identity_fp16"),
    Row("deployed", (None,), fit=VARIABLE_NUMBERS),
)
def variable_dimension_is_deduced(target: Target, model: Model, shape: Sequence[int] | None) -> None:
    """The server computes the variable dimension from the number of bytes."""
    if shape is None:
        expect_own_shape(target, model)
    else:
        _expect_first_output_shape(target, model, shape)


@check("raw.batching-model-gets-one-item", requirements=("RAW-BATCH-OF-ONE", "RAW-ONE-VARIABLE", "RAW-ENCODING"))
@rows(
    Row("fixed-shape", ((1, 4),), role="raw_batching"),
    Row("fixed-shape-identity", ((1, 3),), role="batching"),
    Row("variable-1", ((1, 1),), role="raw_batching_variable"),
    Row("variable-4", ((1, 4),), role="raw_batching_variable"),
    Row("two-dimensions", ((1, 2, 2),), role="scores_batching_rank2"),
)
def batching_model_gets_one_item(target: Target, model: Model, shape: Sequence[int]) -> None:
    """The server reads a raw body for a batching model as a batch of one."""
    _expect_first_output_shape(target, model, shape)


def _expect_first_output_shape(target: Target, model: Model, shape: Sequence[int]) -> None:
    """Expect the first output to have the input's shape, and the correct values, which RAW-ENCODING judges."""
    tensor = make_sample(model, shape)
    reply = send_raw(target, model, tensor)
    with block_if(lambda: not is_simple_raw_answered(target), NO_RAW_ANSWER):
        expect(reply).answered()
    output = expect(reply, "RAW-OUTPUTS").output(model.role.outputs[0].name)
    if output.shape != tensor.shape:
        # With the expected batch dimension, the item has the wrong shape.
        one_item = model.role.batching and (output.shape or ())[:1] == (1,) != output.shape
        raise UnmetError(
            f"{output.name} with {format_shape(tensor.shape)}",
            format_shape(output.shape),
            reply,
            requirement="RAW-ONE-VARIABLE" if one_item else None,
        )
    expect_agreement(target, model, reply, tensor, requirement="RAW-ENCODING")


# --- BYTES ------------------------------------------------------------------------------------------------------------
# By the documents, such a body is the one element; whether it has a length prefix is a matter of interpretation.

PREFIX = 4  # bytes of a length prefix
ROLE = "raw_bytes_one"
CONTENTS = (
    Row("text", (b"hello",), role=ROLE),
    Row("nul", (b"a\x00b\x00",), role=ROLE),
    Row("not-utf-8", (b"\xff\x00\xfe",), role=ROLE),
    Row("json", (b'{"inputs":[]}',), role=ROLE),
    Row("an-empty-line", (b"\r\n\r\n",), role=ROLE),
    Row("gzip-magic", (b"\x1f\x8b\x08\x00",), role=ROLE),
    Row("255-bytes", (b"x" * 255,), role=ROLE),
    Row("256-bytes", (b"x" * 256,), role=ROLE),
    Row("64-kib", (b"0123456789abcdef" * 4096,), role=ROLE),
)


@check("raw.bytes-of-one-element-are-served", requirements="RAW-BYTES")
@rows(
    *CONTENTS,
    Row("deployed", (None,), fit=STRINGS),
    Row("deployed-nul", (None, b"a\x00b\x00"), fit=STRINGS),
    Row("deployed-256-bytes", (None, b"x" * 256), fit=STRINGS),
)
def bytes_of_one_element_are_served(
    target: Target, model: Model, content: bytes | None, own_content: bytes = b""
) -> None:
    """The server passes the body of a raw request to a BYTES input of shape [1] unchanged."""
    if content is None:
        expect_own_values(
            target, model, lambda tensors: fill_strings(tensors, [own_content]) if own_content else list(tensors)
        )
    else:
        _expect_bytes_served(target, model, content)


def _expect_bytes_served(target: Target, model: Model, content: bytes) -> None:
    """Expect the correct answer to a raw request with a length prefix before the content."""
    # With a prefix, the body is right for both interpretations of RAW-BYTES-BODY: one element, or prefix and content.
    prefixed = len(content).to_bytes(4, "little") + content
    readings = [model.tensor([element], (1,)) for element in (prefixed, content)]
    expect_agreement(target, model, target.infer(model.raw(prefixed)), *readings)


@check("raw.bytes-body-has-no-prefix", requirements=("RAW-BYTES-BODY", "RAW-BYTES"), role=ROLE)
@rows(
    *CONTENTS,
    ("three-bytes", b"abc"),
    ("looks-prefixed", b"\x05\x00\x00\x00hello"),
    ("looks-wrongly-prefixed", b"\xff\xff\xff\xffhello"),
)
def bytes_body_has_no_prefix(target: Target, model: Model, body: bytes) -> str:
    """The server reads a raw BYTES body as the element itself, or as a length prefix and the element."""
    reply = target.infer(model.raw(body))
    if is_refused(target, model, reply):
        return "refused: the server requires a length prefix"
    whole = model.tensor([body], (1,))
    if not is_met(lambda: expect_agreement(target, model, reply, whole)):
        read = model.tensor([body[PREFIX:]], (1,))
        is_prefixed = int.from_bytes(body[:PREFIX], "little") == len(body) - PREFIX
        expect_agreement(target, model, reply, *([read] if is_prefixed else []), whole, requirement="RAW-BYTES")
        return "the element behind its length"
    return "the element itself"


# --- the answer -----------------------------------------------------------------------------------------------------

ANSWERS = (
    Row("one-output", role="raw_fixed"),
    Row("two-outputs", role="raw_two_outputs"),
    Row("two-outputs-alike", role="documented_raw"),
    Row("batching", role="raw_batching"),
    Row("bytes", role="raw_bytes_one"),
    Row("deployed", (True,), fit=ONE_INPUT),
)


def _expect_raw_answered(target: Target, model: Model) -> Reply:
    """Expect an answer to a raw request with a sample input of the model."""
    reply = target.infer(model.raw(bytes(make_sample(model).to_bytes())))
    with block_if(lambda: not is_simple_raw_answered(target), NO_RAW_ANSWER):
        expect(reply, "RAW-BYTES" if model.role.inputs[0].datatype == "BYTES" else "RAW-ONE-INPUT").answered()
    return reply


@check("raw.every-output-is-binary", requirements="RAW-OUTPUTS")
@rows(*ANSWERS)
def every_output_is_binary(target: Target, model: Model, is_deployed: bool = False) -> None:
    """The server returns every output of the model as binary data to a raw request."""
    reply = expect_own_served(target, model)[0] if is_deployed else _expect_raw_answered(target, model)
    expect(reply).forms({spec.name: "binary" for spec in model.role.outputs}, "a raw request")


@check("raw.answer-is-framed-like-others", requirements=("RAW-OUTPUTS", *FRAMING, "BIN-ORDER-O"))
@rows(*ANSWERS)
def answer_is_framed_like_others(target: Target, model: Model, is_deployed: bool = False) -> None:
    """The server frames the answer to a raw request like any binary answer."""
    reply = expect_own_served(target, model)[0] if is_deployed else _expect_raw_answered(target, model)
    expect_framed(reply)
    if not is_deployed:
        _expect_data_in_order(reply, model)


def _expect_data_in_order(reply: Reply, model: Model) -> None:
    """Expect binary data in the order of the outputs in the JSON; report only data in reverse order."""
    data = {tensor.name: bytes(tensor.to_bytes()) for tensor in model.expected([make_sample(model)])}
    right = [data[name] for name in reply.answer.names() if name in data]
    tail = reply.body[reply.answer.json_end :]
    if tail != b"".join(right) and tail == b"".join(reversed(right)):  # no role here has more than two outputs
        names = [name for name in reply.answer.names() if name in data]
        expected = f"the binary data of {' before those of '.join(names)}, as in the JSON"
        raise UnmetError(
            expected,
            "these binary data in reverse order",
            reply,
            requirement="BIN-ORDER-O",
            offset=reply.answer.json_end,
        )
