"""Raw binary requests: the inference header is 0 and the body is the data of the model's one input, without any JSON.

The answer always comes as binary data, so that one side alone cannot be seen. Where it is not what it should be, the
same tensor is sent as a binary request, all outputs binary: a server that answers both alike reads the raw body as it
reads binary data, and the fault, wherever it is, is no fault of raw requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.check import Row, check, rows
from conformance.checks import _raw_strings
from conformance.checks._framing import FRAMING, is_framed
from conformance.checks._raw import UNTAKEN, agrees, ask, sample, takes_any
from conformance.checks._raw_refusals import REFUSALS, TWO_ITEMS
from conformance.checks._refusals import Refusal, refusal_rows
from conformance.checks._values import blocked_where, is_right_alone
from conformance.expect import expect, refuses, still_answers
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.text import safe, shown_shape
from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor

# --- the body is the input ------------------------------------------------------------------------------------------

# Bodies that mean something to a server that looks into them.
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


@check("raw.header-0-makes-the-body-data", answers="RAW-IHCL0", role="identity_uint8")
@rows(*OPAQUE)
def header_0_makes_the_body_data(target: Target, model: Model, body: bytes) -> None:
    """With an inference header of 0 the whole body is tensor data, whatever it looks like."""
    reply = target.infer(model.raw(body))
    expect(reply).answered()
    agrees(target, model, reply, model.tensor(list(body)))


# Every datatype but BYTES, and casts, which show the body read and the answer written apart.
ENCODED = (
    *(f"identity_{name.lower()}" for name in DATATYPES if name != "BYTES"),
    *("cast_int32_fp32", "cast_fp16_fp32", "cast_fp32_fp16", "cast_bf16_fp32", "fixed", "raw_middle"),
)


@check("raw.body-is-binary-tensor-data", answers="RAW-ENC")
@rows(
    *[Row(role.replace("_", "-"), (None,), role=role) for role in ENCODED],
    Row("64-kib", ((16384,),), role="cast_int32_fp32"),
    Row("1-mib", ((131072,),), role="identity_int64", thorough=True),
)
def body_is_binary_tensor_data(target: Target, model: Model, shape: Sequence[int] | None) -> None:
    """A raw body is little-endian, row by row, each element in its native size."""
    tensor = sample(model, shape)
    agrees(target, model, ask(target, model, tensor), tensor)


# --- which models ---------------------------------------------------------------------------------------------------


@check("raw.model-of-one-input-is-served", answers="RAW-ONE")
@rows(
    Row("fixed-shape", role="raw_fixed"),
    Row("one-variable-dimension", role="raw_variable"),
    Row("two-outputs", role="raw_two_outputs"),
    Row("batching", role="raw_batching"),
    Row("documented", role="documented_raw"),
)
def model_of_one_input_is_served(target: Target, model: Model) -> None:
    """A raw request to a model with one input is answered."""
    reply = ask(target, model, sample(model))
    with blocked_where(lambda: not takes_any(target), UNTAKEN):
        expect(reply).answered()


@check("raw.variable-dimension-is-deduced", answers=("RAW-VAR", "RAW-ENC"))
@rows(
    Row("no-variable-dimension", ((2, 2),), role="raw_fixed"),
    *[Row(f"first-{size}", ((size, 2),), role="raw_variable") for size in (1, 2, 3, 100)],
    *[Row(f"middle-{size}", ((2, size, 3),), role="raw_middle") for size in (1, 2, 4)],
    *[Row(f"alone-{size}", ((size,),), role="identity_fp64") for size in (1, 2, 7)],
    Row("alone-one-byte-elements", ((5,),), role="identity_bool"),
    Row("alone-two-byte-elements", ((5,),), role="identity_fp16"),
)
def variable_dimension_is_deduced(target: Target, model: Model, shape: Sequence[int]) -> None:
    """The variable dimension is what the number of bytes makes it."""
    _has_shape(target, model, shape)


@check("raw.batching-model-gets-one-item", answers=("RAW-B1", "RAW-VAR", "RAW-ENC"))
@rows(
    Row("fixed-shape", ((1, 4),), role="raw_batching"),
    Row("fixed-shape-identity", ((1, 3),), role="batching"),
    Row("variable-1", ((1, 1),), role="raw_batching_variable"),
    Row("variable-4", ((1, 4),), role="raw_batching_variable"),
    Row("two-dimensions", ((1, 2, 2),), role="scores_batching_rank2"),
)
def batching_model_gets_one_item(target: Target, model: Model, shape: Sequence[int]) -> None:
    """A batching model takes a raw body for a batch of one."""
    _has_shape(target, model, shape)


def _has_shape(target: Target, model: Model, shape: Sequence[int]) -> None:
    """Expect the first output in the input's shape, and with the right values, which are a matter of RAW-ENC."""
    tensor = sample(model, shape)
    reply = ask(target, model, tensor)
    with blocked_where(lambda: not takes_any(target), UNTAKEN):
        expect(reply).answered()
    output = expect(reply, "RAW-OUT").output(model.role.outputs[0].name)
    if output.shape != tensor.shape:
        # Behind the right batch it is the item that has the wrong shape.
        one_item = model.role.batching and (output.shape or ())[:1] == (1,) != output.shape
        raise Unmet(
            f"{output.name} with {shown_shape(tensor.shape)}",
            shown_shape(output.shape),
            reply,
            requirement="RAW-VAR" if one_item else None,
        )
    agrees(target, model, reply, tensor, requirement="RAW-ENC")


# --- BYTES ----------------------------------------------------------------------------------------------------------

bytes_of_one_element_are_served = _raw_strings.bytes_of_one_element_are_served
bytes_body_has_no_prefix = _raw_strings.bytes_body_has_no_prefix

# --- the answer -----------------------------------------------------------------------------------------------------

ANSWERS = (
    Row("one-output", role="raw_fixed"),
    Row("two-outputs", role="raw_two_outputs"),
    Row("two-outputs-alike", role="documented_raw"),
    Row("batching", role="raw_batching"),
    Row("bytes", role="raw_bytes_one"),
)


def _any_raw(target: Target, model: Model) -> Reply:
    """Send a raw request that every server takes which takes any; expect an answer."""
    reply = target.infer(model.raw(bytes(sample(model).to_bytes())))
    with blocked_where(lambda: not takes_any(target), UNTAKEN):
        expect(reply, "RAW-STR" if model.role.inputs[0].datatype == "BYTES" else "RAW-ONE").answered()
    return reply


@check("raw.every-output-is-binary", answers="RAW-OUT")
@rows(*ANSWERS)
def every_output_is_binary(target: Target, model: Model) -> None:
    """The answer to a raw request has every output of the model, as binary data."""
    expect(_any_raw(target, model)).forms({spec.name: "binary" for spec in model.role.outputs}, "a raw request")


@check("raw.answer-is-framed-like-others", answers=("RAW-OUT", *FRAMING, "BIN-ORD-O"))
@rows(*ANSWERS)
def answer_is_framed_like_others(target: Target, model: Model) -> None:
    """The answer to a raw request has the header, the sizes and the order of any binary answer."""
    reply = _any_raw(target, model)
    is_framed(reply)
    data = {tensor.name: bytes(tensor.to_bytes()) for tensor in model.expected([sample(model)])}
    right = [data[name] for name in reply.answer.names() if name in data]
    tail = reply.body[reply.answer.json_end :]
    if tail != b"".join(right) and tail == b"".join(reversed(right)):  # no role here has more than two
        names = [name for name in reply.answer.names() if name in data]
        expected = f"the binary data of {' before those of '.join(names)}, as in the JSON"
        raise Unmet(expected, "the same in reverse", reply, requirement="BIN-ORD-O", offset=reply.answer.json_end)


# --- refusals -------------------------------------------------------------------------------------------------------


def _refusals(requirement: str) -> list[Row]:
    return refusal_rows(refusal for refusal in REFUSALS if refusal.requirement == requirement)


@check("raw.model-of-several-inputs-is-refused", answers="RAW-ONE")
@rows(*_refusals("RAW-ONE"))
def model_of_several_inputs_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw request to a model with more than one input is refused."""
    refuses(target, model, refusal.message(model), refusal.told)


@check("raw.several-variable-dimensions-are-refused", answers="RAW-VAR2")
@rows(*_refusals("RAW-VAR2"))
def several_variable_dimensions_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw request to an input with more than one variable dimension is refused."""
    refuses(target, model, refusal.message(model), refusal.told)


@check("raw.other-bytes-shapes-are-refused", answers="RAW-STR-SHAPE")
@rows(*_refusals("RAW-STR-SHAPE"))
def other_bytes_shapes_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw request to a BYTES input of a shape other than [1] is refused."""
    refuses(target, model, refusal.message(model), refusal.told)


@check("raw.body-that-does-not-fit-is-refused", answers="RAW-SIZE")
@rows(*_refusals("RAW-SIZE"))
def body_that_does_not_fit_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw body that does not fill the input exactly is refused."""
    refuses(target, model, refusal.message(model), refusal.told)


@check("raw.two-items-are-refused", answers=("RAW-B1", "RAW-SIZE"), role="raw_batching")
def two_items_are_refused(target: Target, model: Model) -> None:
    """A raw body is no batch of two."""
    reply = target.send(TWO_ITEMS.message(model), fresh=True)
    output = reply.answer.output(model.role.outputs[0].name) if reply.succeeded else None
    # One item in the answer: the second was not taken for one, but dropped.
    dropped = output is not None and output.shape is not None and output.shape[:1] == (1,)
    expect(reply, "RAW-SIZE" if dropped else "RAW-B1").refused(TWO_ITEMS.told)
    still_answers(target, model)


@check("raw.body-without-header-is-refused", answers=("RAW-IHCL0", "BIN-IHCL-MISSING"))
@rows(*[Row(row.id, row.values, role=row.role) for row in _refusals("BIN-IHCL-MISSING")])
def body_without_header_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw body without an inference header is no raw request, and refused."""
    expect(target.send(refusal.message(model), fresh=True), "BIN-IHCL-MISSING").refused(refusal.told)
    still_answers(target, model)


def _nothing(model: Model) -> Tensor:
    """Return what an empty body stands for: no elements, or one empty string."""
    spec = model.role.inputs[0]
    if spec.datatype == "BYTES":
        return model.tensor([b""], (1,))
    shape = [max(size, 0) for size in spec.shape]
    return model.tensor([], [1, *shape] if model.role.batching else shape)


# --- observed -------------------------------------------------------------------------------------------------------


@check("raw.empty-body", answers="RAW-EMPTY")
@rows(
    Row("alone", role="identity_int32"),
    Row("before-a-fixed-one", role="raw_variable"),
    Row("batching", role="raw_batching_variable"),
    Row("bytes", role="raw_bytes_one"),
)
def empty_body(target: Target, model: Model) -> str:
    """An empty raw body is a tensor without elements, an empty string, or refused."""
    reply = target.send(model.raw(b""), fresh=True)
    if reply.status is not None and reply.status >= 400 and not reply.exchange.failure:
        still_answers(target, model)
        return f"refused: {reply.outcome()}"
    output = expect(reply, "RAW-OUT").output(model.role.outputs[0].name)
    if output.array is not None and output.array.size == 0:
        return f"no elements, shape {list(output.array.shape)}"
    if output.array is not None and output.datatype == "BYTES" and output.array.reshape(-1).tolist() == [b""]:
        return "one empty string"
    actual = f"{safe(output.datatype, 20)} {shown_shape(output.shape)}"
    if not is_right_alone(target, _nothing(model), "written"):
        raise Blocked(f"such an output is written wrong in any answer: {actual}")
    raise Unmet("no elements, an empty string, or a refusal", actual, reply, requirement="RAW-VAR")
