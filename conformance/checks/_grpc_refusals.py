"""Checks of gRPC: calls that have to be refused, with which status, and what comes after.

Every call is a good request with one fault in its message. Sent by nobody unless that is asked for: what has ended
servers, the classes of strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from conformance.check import Row, check, rows
from conformance.checks._grpc import (
    Refusal,
    each_of,
    expect_right,
    nothing,
    over_grpc,
    refusal_rows,
    refuses,
    set_raw,
    set_shape,
    set_typed,
    still_answers,
)
from conformance.expect import expect
from conformance.outcome import Unmet
from conformance.roles import Model
from conformance.target.grpc_door import Door
from conformance.text import safe
from conformance.wire.grpc_request import Edit, Pb, infer_message
from conformance.wire.request import Output
from conformance.wire.tensor import Tensor

# --- sizes and forms of contents ---------------------------------------------------------------------------------------


def _cut(request: Pb) -> None:
    request.raw_input_contents[0] = request.raw_input_contents[0][:-1]


def _lengthened(request: Pb) -> None:
    request.raw_input_contents[0] += b"\0"


def _no_raw(request: Pb) -> None:
    del request.raw_input_contents[:]


def _one_raw_less(request: Pb) -> None:
    del request.raw_input_contents[-1]


def _one_raw_more(request: Pb) -> None:
    request.raw_input_contents.append(request.raw_input_contents[0])


def _both_forms(request: Pb) -> None:
    request.inputs[0].contents.int_contents.extend([1, 2, 3])


def _a_form_each(request: Pb) -> None:
    """The first input has typed contents, the second the only raw entry."""
    raw = request.raw_input_contents[1]
    _no_raw(request)
    request.raw_input_contents.append(raw)
    request.inputs[0].contents.int_contents.extend([1, 2, 3])


def _strings(*data: str, count: int) -> Edit:
    return each_of(set_shape(count), set_raw(bytes.fromhex("".join(data))))


SIZES: tuple[Refusal, ...] = (
    Refusal("raw-one-byte-short", "GRPC-NEG-SIZE", "identity_int32", _cut, "binary"),
    Refusal("raw-one-byte-long", "GRPC-NEG-SIZE", "identity_int32", _lengthened, "binary"),
    Refusal("raw-one-element-short", "GRPC-NEG-SIZE", "identity_int32", set_shape(4), "binary"),
    Refusal("raw-one-element-long", "GRPC-NEG-SIZE", "identity_int32", set_shape(2), "binary"),
    Refusal("raw-empty", "GRPC-NEG-SIZE", "identity_fp32", set_raw(b""), "binary"),
    Refusal("raw-in-8-bytes-an-element", "GRPC-NEG-SIZE", "identity_fp32", set_raw(bytes(24)), "binary"),
    Refusal("raw-in-2-bytes-an-element", "GRPC-NEG-SIZE", "identity_uint64", set_raw(bytes(6)), "binary"),
    Refusal("typed-one-element-short", "GRPC-NEG-SIZE", "identity_int32", set_shape(4)),
    Refusal("typed-one-element-long", "GRPC-NEG-SIZE", "identity_int32", set_shape(2)),
    Refusal("typed-strings-one-short", "GRPC-NEG-SIZE", "identity_bytes", set_shape(4)),
    Refusal("typed-booleans-one-long", "GRPC-NEG-SIZE", "identity_bool", set_shape(2)),
    Refusal("length-past-the-end", "GRPC-NEG-FRAME", "identity_bytes", _strings("05000000 6162", count=1), "binary"),
    Refusal(
        "length-of-2-to-the-32-less-1", "GRPC-NEG-FRAME", "identity_bytes", _strings("ffffffff 61", count=1), "binary"
    ),
    Refusal("three-bytes-of-a-length", "GRPC-NEG-FRAME", "identity_bytes", _strings("010000", count=1), "binary"),
    Refusal(
        "byte-behind-the-last-string", "GRPC-NEG-FRAME", "identity_bytes", _strings("01000000 61 62", count=1), "binary"
    ),
    Refusal("string-too-few", "GRPC-NEG-FRAME", "identity_bytes", _strings("01000000 61", count=2), "binary"),
    Refusal(
        "string-too-many", "GRPC-NEG-FRAME", "identity_bytes", _strings("01000000 61 01000000 62", count=1), "binary"
    ),
)

FORMS: tuple[Refusal, ...] = (
    Refusal("no-contents-at-all", "GRPC-NEG-NONE", "identity_int32", _no_raw, "binary"),
    Refusal("raw-entry-missing-for-the-last-input", "GRPC-NEG-NONE", "add_sub", _one_raw_less, "binary"),
    Refusal("raw-entry-more-than-inputs", "GRPC-NEG-EXTRA", "identity_int32", _one_raw_more, "binary"),
    Refusal("raw-and-typed-contents", "GRPC-NEG-BOTH", "identity_int32", _both_forms, "binary"),
    Refusal("raw-for-one-input-and-typed-for-another", "GRPC-NEG-BOTH", "add_sub", _a_form_each, "binary"),
    Refusal("int8-of-300", "GRPC-NEG-RANGE", "identity_int8", set_typed("int_contents", 1, 300, 3)),
    Refusal("int8-of-minus-129", "GRPC-NEG-RANGE", "identity_int8", set_typed("int_contents", 1, -129, 3)),
    Refusal("int16-of-32768", "GRPC-NEG-RANGE", "identity_int16", set_typed("int_contents", 1, 32768, 3)),
    Refusal("uint8-of-256", "GRPC-NEG-RANGE", "identity_uint8", set_typed("uint_contents", 1, 256, 3)),
    Refusal("uint16-of-65536", "GRPC-NEG-RANGE", "identity_uint16", set_typed("uint_contents", 1, 65536, 3)),
)


@check("grpc.contents-of-a-wrong-size-are-refused", answers="GRPC-NEG-SIZE")
@over_grpc
@rows(*refusal_rows(SIZES, "GRPC-NEG-SIZE", "GRPC-NEG-FRAME"))
def contents_of_a_wrong_size_are_refused(door: Door, model: Model, refusal: Refusal) -> None:
    """Contents that do not fill the shape, or hold more, are refused."""
    refuses(door, model, refusal)


@check("grpc.contents-that-make-no-tensor-are-refused", answers="GRPC-NEG-NONE")
@over_grpc
@rows(*refusal_rows(FORMS, "GRPC-NEG-NONE", "GRPC-NEG-EXTRA", "GRPC-NEG-BOTH", "GRPC-NEG-RANGE"))
def contents_that_make_no_tensor_are_refused(door: Door, model: Model, refusal: Refusal) -> None:
    """Contents that are missing, too many, in both forms at once, or beyond the datatype are refused."""
    refuses(door, model, refusal)


# Datatype -> field of another one, what it holds, and the elements that these are.
OTHER_FIELDS: tuple[tuple[str, str, str, tuple[int | float, ...]], ...] = (
    ("uint32-as-in-the-documents", "documented_scores", "int_contents", (4, 1, 3, 2)),
    ("uint32-in-int", "identity_uint32", "int_contents", (3, 1, 2)),
    ("int32-in-uint", "identity_int32", "uint_contents", (3, 1, 2)),
    ("int64-in-int", "identity_int64", "int_contents", (3, 1, 2)),
    ("uint64-in-uint", "identity_uint64", "uint_contents", (3, 1, 2)),
    ("fp32-in-int", "identity_fp32", "int_contents", (3, 1, 2)),
    ("fp32-in-fp64", "identity_fp32", "fp64_contents", (1.5, -2.25, 3.0)),
    ("fp64-in-fp32", "identity_fp64", "fp32_contents", (1.5, -2.25, 3.0)),
    ("fp16-in-fp32", "identity_fp16", "fp32_contents", (1.5, -2.25, 3.0)),
    ("bool-in-int", "identity_bool", "int_contents", (1, 0, 1)),
)


@check("grpc.another-field-is-refused-or-read", answers="GRPC-FIELD")
@over_grpc
@rows(*[Row(identity, (field, values), role=role) for identity, role, field, values in OTHER_FIELDS])
def another_field_is_refused_or_read(door: Door, model: Model, field: str, values: tuple[int | float, ...]) -> str:
    """Contents in the field of another datatype are refused, or are the values that they are."""
    (spec,) = model.role.inputs
    shape = (2, 2) if model.role.compute == "table" else (3,)
    right = Tensor.of(spec.name, spec.datatype, list(map(bool, values)) if spec.datatype == "BOOL" else values, shape)
    message = infer_message(model.request([right]), each_of(_no_raw, set_typed(field, *values)))
    reply = door.send(message)
    if reply.status is not None and reply.status >= 400:
        still_answers(door, model)
        return f"refused: {reply.outcome()}"
    expect_right(reply, model, [right])
    return "read"


# --- what cannot be carried out ----------------------------------------------------------------------------------------


def _model(request: Pb) -> None:
    request.model_name = "there-is-no-such-model"


def _output(request: Pb) -> None:
    request.outputs.add(name="THERE_IS_NO_SUCH_OUTPUT")


def _input(request: Pb) -> None:
    request.inputs[0].name = "THERE_IS_NO_SUCH_INPUT"


def _inputs(request: Pb) -> None:
    del request.inputs[:]


def _without_the_last_input(request: Pb) -> None:
    del request.inputs[-1]


def _datatype(name: str) -> Edit:
    def edit(request: Pb) -> None:
        request.inputs[0].datatype = name

    return edit


def _further_input(request: Pb) -> None:
    entry = request.inputs.add(name="FURTHER", datatype="INT32", shape=[1])
    entry.contents.int_contents.append(1)


def _as_floats(request: Pb) -> None:
    request.inputs[0].datatype = "FP32"
    set_typed("fp32_contents", 1.0, 2.0, 3.0)(request)


IMPOSSIBLE: tuple[Refusal, ...] = (
    Refusal("unknown-model", "GRPC-ERR", "identity_int32", _model, unknown=True),
    Refusal("unknown-output", "GRPC-ERR", "identity_int32", _output, unknown=True),
    Refusal("needed-input-under-an-unknown-name", "GRPC-ERR", "identity_int32", _input, unknown=True),
    Refusal("no-inputs", "GRPC-ERR", "identity_int32", _inputs),
    Refusal("needed-input-missing", "GRPC-ERR", "add_sub", _without_the_last_input),
    Refusal("cut-message", "GRPC-ERR", "identity_int32", nothing, body=lambda body: body[:-2], unknown=True),
    Refusal("no-message", "GRPC-ERR", "identity_int32", nothing, body=lambda _: b"\xff\xff\xff", unknown=True),
    Refusal("json-for-a-message", "GRPC-ERR", "identity_int32", nothing, body=lambda _: b'{"inputs":[]}', unknown=True),
    Refusal("another-datatype", "GRPC-ERR-SIGNATURE", "identity_int32", _as_floats),
    Refusal("unknown-datatype", "GRPC-ERR-SIGNATURE", "identity_int32", _datatype("INT33")),
    Refusal("another-shape", "GRPC-ERR-SIGNATURE", "fixed", set_shape(3, 2)),
    Refusal("another-rank", "GRPC-ERR-SIGNATURE", "fixed", set_shape(6)),
    Refusal("negative-shape", "GRPC-ERR-SIGNATURE", "identity_int32", set_shape(-3)),
    Refusal("further-input", "GRPC-ERR-SIGNATURE", "identity_int32", _further_input, unknown=True),
)


@check("grpc.impossible-calls-are-refused", answers="GRPC-ERR")
@over_grpc
@rows(*refusal_rows(IMPOSSIBLE, "GRPC-ERR"))
def impossible_calls_are_refused(door: Door, model: Model, refusal: Refusal) -> None:
    """A call that cannot be carried out ends with another status than OK."""
    refuses(door, model, refusal)


@check("grpc.input-against-the-metadata-is-refused", answers="GRPC-ERR-SIGNATURE")
@over_grpc
@rows(*refusal_rows(IMPOSSIBLE, "GRPC-ERR-SIGNATURE"))
def input_against_the_metadata_is_refused(door: Door, model: Model, refusal: Refusal) -> None:
    """An input that contradicts the model's metadata, or that the model does not have, is refused."""
    refuses(door, model, refusal)


# --- classification ----------------------------------------------------------------------------------------------------


def _parameter(**choice: object) -> Edit:
    """Return an edit that makes the parameter classification one of another kind; no choice leaves it without any."""

    def edit(request: Pb) -> None:
        parameter = request.outputs[0].parameters["classification"]
        parameter.Clear()
        for kind, value in choice.items():
            setattr(parameter, kind, value)

    return edit


def _classes(fault: str, **choice: object) -> Refusal:
    return Refusal(fault, "GRPC-CLS-NEG", "scores", _parameter(**choice), classes=2)


WRONG_PARAMETERS: tuple[Refusal, ...] = (
    _classes("count-of-minus-1", int64_param=-1),
    _classes("count-right-only-modulo-2-to-the-32", int64_param=2 - 2**32),
    _classes("count-as-string", string_param="2"),
    _classes("count-as-boolean", bool_param=True),
    _classes("count-as-double", double_param=2.0),
    _classes("count-as-unsigned", uint64_param=2),
    _classes("count-without-a-kind"),
)


def refusals() -> Iterator[Refusal]:
    """Yield all of them."""
    yield from (*SIZES, *FORMS, *IMPOSSIBLE, *WRONG_PARAMETERS)


def _needs(refusal: Refusal) -> tuple[str, ...]:
    return ("classification_grpc",) if refusal.classes else ()


# --- any refusal -------------------------------------------------------------------------------------------------------


@check("grpc.refusal-says-that-the-request-is-wrong", answers="GRPC-ERR-CODE")
@over_grpc
@rows(*[Row(one.fault, (one,), role=one.role, needs=_needs(one)) for one in refusals()])
def refusal_says_that_the_request_is_wrong(door: Door, model: Model, refusal: Refusal) -> None:
    """A refusal has the status INVALID_ARGUMENT, or another that fits where a name is unknown."""
    reply = door.send(refusal.message(model))
    if reply.succeeded:
        return
    expect(reply, "GRPC-ERR").refused(refusal.told)
    code = reply.exchange.code
    if code != "INVALID_ARGUMENT" and not refusal.unknown:
        raise Unmet(f"INVALID_ARGUMENT for {refusal.told}", safe(reply.outcome()), reply)


_FIRST = {one.requirement: one for one in reversed(list(refusals()))}


@check("grpc.good-call-after-a-refusal-is-answered-right", answers="GRPC-ALIVE")
@over_grpc
@rows(*[Row(one.fault, (one,), role=one.role, needs=_needs(one)) for one in _FIRST.values()])
def good_call_after_a_refusal_is_answered_right(door: Door, model: Model, refusal: Refusal) -> None:
    """A good call is answered after a refusal as it was before, on the same connection."""
    other = replace(model, salt=(model.salt + 101) % 256)
    good = infer_message(other.request(send="json"))
    if not door.target.send(good).succeeded:
        good = infer_message(other.request(send="binary"))
    before = door.target.send(good)
    door.target.send(refusal.message(model))
    after = door.target.send(good)
    arrays = [(output, output.array) for output in before.answer.outputs if output.array is not None]
    usual = [Tensor(output.name, output.datatype, array.shape, array) for output, array in arrays]
    try:
        expect(after).tensors(usual, through_json=False)
    except Unmet as unmet:
        unmet.requirement = "GRPC-ALIVE"  # it was right before, whatever seems wrong now
        raise


@check("grpc.server-outlives-what-has-ended-others", answers="GRPC-ALIVE")
@over_grpc
@rows(
    Row("classified-strings", role="identity_bytes", needs=("classification_grpc",), dangerous=True),
    Row("classes-of-no-elements", role="identity_fp32", needs=("classification_grpc",), dangerous=True),
)
def server_outlives_what_has_ended_others(door: Door, model: Model) -> None:
    """A call that has ended servers is answered, with or without an error, and so is a good one afterwards."""
    tensors = None if model.role.inputs[0].datatype == "BYTES" else [model.tensor([], (0,))]
    wanted = [Output(model.role.outputs[0].name, classification=1)]
    reply = door.send(infer_message(model.request(tensors, outputs=wanted)))
    if reply.status is None:
        raise expect(reply).unmet("an answer, with or without an error", safe(reply.outcome()))
    still_answers(door, model)
