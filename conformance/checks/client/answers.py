"""What clients read: outputs of every datatype, shape and form, in any order, one by one their answer's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from conformance.checks.support.client_rows import (
    answering,
    expect_like_plain,
    is_json,
    over_grpc,
    over_grpc_raw,
    small,
    strings,
    tensor,
    unread_form,
)
from conformance.clients.answers.honest import HeaderUse, Style
from conformance.clients.answers.honest_calls import UNKNOWN, CallStyle
from conformance.clients.answers.message_fields import unpacked
from conformance.clients.answers.script import Script, Tensors
from conformance.clients.client import Client
from conformance.clients.expectations.reading import expect_outputs
from conformance.clients.inference import AskedOutput, Inference
from conformance.expect.unmet import NotApplicable
from conformance.roles.corner_values import INTEGER_CORNERS, all_corners
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import GRPC
from conformance.terms.text import safe
from conformance.wire.datatypes import FLOATS, OIP_DATATYPES
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

FORMS: Sequence[Form] = ("binary", "json")
CALLS = {"binary": CallStyle(form="raw"), "json": CallStyle(form="typed")}
SHAPES = ((), (2, 3), (2, 1, 3), (2, 3, 1, 2), (0,), (2, 0, 3))
OF_BYTES = ((2, 3), (0,))
LIKE_OTHERS = ("UINT16", "UINT32", "INT16", "INT32")  # each of their limits shows in those of others


def reading(name: str, form: Form, outputs: Tensors, *, style: Style | None = None, thorough: bool = False) -> Row:
    """Return a row that reads an honest answer with these outputs, which are asked for in a form."""
    asked = tuple(AskedOutput(one.name, form) for one in outputs)
    script = answering(outputs, style or Style(), CALLS[form])
    made = small(f"read-{name}", form, outputs=asked)
    return Row(name, (made, script), answers=("CLIENT-READS-VALUES",), thorough=thorough)


def call_of(row: Row) -> Row:
    """Return the same over gRPC, where an output in typed contents is read in that form first of all."""
    call = over_grpc_raw(row)
    return replace(call, answers=(*call.answers, "CLIENT-READS-FORM/grpc")) if is_json(call.values[0]) else call


def expect_read(client: Client, inference: Inference, script: Script) -> None:
    """Expect that the caller is given the outputs; over gRPC, a client that reads no typed contents hears of that."""
    seen = client.infer(inference, script)
    expect_outputs(seen, through_json=is_json(inference), unread=unread_form(client, inference))


def datatype_rows() -> Iterator[Row]:
    """Yield a row for each datatype in each form: FP16 has none in JSON."""
    for datatype in OIP_DATATYPES:
        for form in FORMS if datatype != "FP16" else FORMS[:1]:
            name = f"{datatype}-{form}"
            yield reading(name, form, (tensor(name, "OUT0", datatype, (4,)),))


def shape_rows() -> Iterator[Row]:
    """Yield a row for each shape in each form, and nested where that is another JSON."""
    for shape in SHAPES:
        for datatype in ("FP32", "BYTES") if shape in OF_BYTES else ("FP32",):
            name = f"{datatype}-{'x'.join(map(str, shape)) or 'rank-0'}"
            made = (tensor(name, "OUT0", datatype, shape),)
            yield from (reading(f"{name}-{form}", form, made, thorough=len(shape) > 2) for form in FORMS)
            if len(shape) > 1:
                yield reading(f"{name}-nested", "json", made, style=Style(nested=True))


def corner_rows() -> Iterator[Row]:
    """Yield rows of corner values and of any bytes: in JSON those that JSON carries."""
    for datatype in (*INTEGER_CORNERS, *FLOATS):
        like = datatype in LIKE_OTHERS
        made = (Tensor.of("OUT0", datatype, all_corners(datatype)),)
        yield reading(f"{datatype}-binary", "binary", made, thorough=like)
        if datatype != "FP16":
            made = (Tensor.of("OUT0", datatype, all_corners(datatype, json=True)),)
            yield reading(f"{datatype}-json", "json", made, thorough=like)
    for group, form, one in strings():
        yield reading(f"BYTES-{group}-{form}", form, (replace(one, name="OUT0"),))


@check("client.reads-every-datatype", answers="CLIENT-READS-VALUES")
@rows(*datatype_rows())
@check("client-grpc.reads-every-datatype", answers="CLIENT-READS-VALUES/grpc", over=(GRPC,))
@rows(*map(call_of, datatype_rows()))
def reads_every_datatype(client: Client, inference: Inference, script: Script) -> None:
    """The caller is given an output of any datatype with the elements that the answer has."""
    expect_read(client, inference, script)


@check("client.reads-every-shape", answers="CLIENT-READS-VALUES")
@rows(*shape_rows())
@check("client-grpc.reads-every-shape", answers="CLIENT-READS-VALUES/grpc", over=(GRPC,))
@rows(*[call_of(row) for row in shape_rows() if not row.id.endswith("nested")])
def reads_every_shape(client: Client, inference: Inference, script: Script) -> None:
    """The caller is given an output of any rank, with or without elements, with the shape that the answer has."""
    expect_read(client, inference, script)


@check("client.reads-corner-values", answers="CLIENT-READS-VALUES")
@rows(*corner_rows())
@check("client-grpc.reads-corner-values", answers="CLIENT-READS-VALUES/grpc", over=(GRPC,))
@rows(*map(call_of, corner_rows()))
def reads_corner_values(client: Client, inference: Inference, script: Script) -> None:
    """Limits, integers that a double cannot hold, subnormals, infinities and any bytes reach the caller.

    Raises:
        NotApplicable: the client refuses a NUL in a string of JSON, which its parser may (RFC 8259, 9).
    """
    seen = client.infer(inference, script)
    if seen.heard and seen.result.error is not None and has_nul_in_json(client, inference, seen.outputs):
        raise NotApplicable(f"the client takes no strings with NUL in JSON: {safe(seen.result.error)}")
    expect_outputs(seen, through_json=is_json(inference), unread=unread_form(client, inference))


def has_nul_in_json(client: Client, inference: Inference, outputs: Tensors) -> bool:
    """Say whether an output that comes as JSON over HTTP has a NUL, and no other character beside ASCII."""
    texts = b"".join(text for one in outputs if one.datatype == "BYTES" for text in one.array.flat)
    return not client.is_over_grpc and is_json(inference) and b"\0" in texts and texts.isascii()


# --- several outputs --------------------------------------------------------------------------------------------------

SEVERAL = (("OUT0", "INT32", (3,)), ("OUT1", "BYTES", (2,)), ("OUT2", "FP64", (2,)))


def several(row: str) -> Tensors:
    """Return three outputs of sizes that differ."""
    return tuple(tensor(row, *one) for one in SEVERAL)


def in_order(order: Sequence[int]) -> tuple[Style, CallStyle]:
    """Return styles that list three outputs in an order."""

    def listed(tensors: Tensors) -> Tensors:
        return tuple(tensors[place] for place in order)

    return Style(order=listed), CallStyle(order=listed)


def order_rows() -> Iterator[Row]:
    """Yield a row for each order of three binary outputs, which are asked for by name in one and the same order."""
    asked = tuple(AskedOutput(name, "binary") for name, _, _ in SEVERAL)
    for order in permutations(range(3)):
        name = "-".join(str(place) for place in order)
        script = answering(several(name), *in_order(order))
        made = small(f"order-{name}", outputs=asked)
        yield Row(name, (made, script), answers=("CLIENT-READS-ORDER",))
    script = answering(several("unlisted"), *in_order((2, 0, 1)))
    made = small("order-unlisted", all_outputs="binary")
    yield Row("unlisted-2-0-1", (made, script), answers=("CLIENT-READS-ORDER",))


@check("client.reads-in-the-answers-order", answers="CLIENT-READS-ORDER")
@rows(*order_rows())
@check("client-grpc.reads-in-the-answers-order", answers="CLIENT-READS-ORDER/grpc", over=(GRPC,))
@rows(*map(over_grpc, order_rows()))
def reads_in_the_answers_order(client: Client, inference: Inference, script: Script) -> None:
    """Outputs are read in the order of the answer, whatever was asked for first."""
    expect_outputs(client.infer(inference, script))


# --- forms ------------------------------------------------------------------------------------------------------------


def form_row(
    name: str, forms: Sequence[Form], style: Style, shape: tuple[int, ...] = (2,), unread: str = "CLIENT-READS-FORM"
) -> Row:
    """Return a row in which outputs are asked for in forms and come in a style; `unread` is not met by an error."""
    outputs = tuple(tensor(name, f"OUT{k}", ("INT32", "BYTES", "FP32")[k], shape) for k in range(len(forms)))
    asked = tuple(AskedOutput(one.name, form) for one, form in zip(outputs, forms, strict=True))
    made = small(f"form-{name}", forms[0], outputs=asked)
    answers = tuple(dict.fromkeys(("CLIENT-READS-FORM", unread)))
    return Row(name, (made, answering(outputs, style), unread), answers=answers)


def no_outputs_row() -> Row:
    """Return a row of an answer without any outputs."""
    return Row("no-outputs", (small("form-none", "json"), answering(())), answers=("CLIENT-READS-FORM",))


ALWAYS: HeaderUse = "always"
UNASKED = "CLIENT-READS-FORM-UNASKED"
FORM_ROWS = (
    form_row("json-beside-binary", ("binary", "json", "binary"), Style()),
    form_row("json-before-binary", ("json", "binary", "binary"), Style()),
    form_row("binary-before-json", ("binary", "binary", "json"), Style()),
    form_row("json-with-header", ("json", "json"), Style(header=ALWAYS)),
    form_row("json-instead-of-binary", ("binary", "binary"), Style(form="json"), unread=UNASKED),
    form_row("json-instead-with-header", ("binary", "binary"), Style(form="json", header=ALWAYS), unread=UNASKED),
    form_row("all-empty-with-header", ("binary", "binary"), Style(), (0,)),
    form_row("all-empty-without-header", ("binary", "binary"), Style(header="never"), (0,), "CLIENT-READS-EMPTY"),
    form_row("empty-beside-json", ("binary", "json"), Style(), (2, 0)),
    no_outputs_row(),
)
CALL_STYLES = {
    "raw": CallStyle(),
    "typed": CallStyle(form="typed"),
    "raw-first": CallStyle(raw_first=True),
    "unpacked": CallStyle(form="typed", integers=unpacked),
    "unknown-fields": CallStyle(more=UNKNOWN),
    "typed-unknown-fields": CallStyle(form="typed", more=UNKNOWN),
}


def call_row(name: str, style: CallStyle) -> Row:
    """Return a row over gRPC in which outputs come in a style."""
    outputs = tuple(
        tensor(name, f"OUT{k}", datatype, (3,)) for k, datatype in enumerate(("INT64", "BYTES", "FP32", "BOOL"))
    )
    script = answering(outputs, grpc=style)
    return Row(name, (small(f"call-{name}"), script), answers=("CLIENT-READS-FORM/grpc",))


@check("client.reads-the-form-that-comes", answers="CLIENT-READS-FORM")
@rows(*FORM_ROWS)
@check("client-grpc.reads-the-form-that-comes", answers="CLIENT-READS-FORM/grpc", over=(GRPC,))
@rows(*[call_row(name, style) for name, style in CALL_STYLES.items()], over_grpc_raw(no_outputs_row()))
def reads_the_form_that_comes(client: Client, inference: Inference, script: Script, unread: str | None = None) -> None:
    """Outputs are read in the form in which they come, with the inference header and without it."""
    expect_like_plain(client, inference, script, unread)
