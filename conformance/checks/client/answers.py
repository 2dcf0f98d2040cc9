"""How clients read answers: outputs of every datatype and shape, as JSON or binary data, in any order, and classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product

from conformance.checks.support.client_rows import (
    CALLS,
    FORMS,
    block_if_unread,
    client_claim,
    expect_request_sent,
    expect_scripted_answer_read,
    get_unread_requirement,
    has_json_output,
    list_strings,
    make_script,
    make_small_inference,
    make_tensor,
    require_datatypes,
    to_grpc_row,
    to_raw_grpc_row,
)
from conformance.clients.answers.honest import Document, HeaderUse, Style
from conformance.clients.answers.honest_calls import UNKNOWN, CallStyle, encode_unpacked
from conformance.clients.answers.script import Script, Tensors
from conformance.clients.client import Client, Observation
from conformance.clients.expectations import expect_classes, expect_outputs
from conformance.clients.inference import Inference, RequestedOutput
from conformance.expect.unmet import BlockedError, NotApplicableError
from conformance.roles.corner_values import (
    DIGITS_AND_SIGNS,
    HALF_PRECISION,
    INTEGER_CORNERS,
    SHORT_DECIMALS,
    from_bits,
    get_all_corners,
)
from conformance.spec.check import Row, check, rows
from conformance.spec.text import escape_text
from conformance.wire.datatypes import FLOATS, OIP_DATATYPES
from conformance.wire.edits import DocumentEdit, Drop, Set, chain
from conformance.wire.json_writing import JsonStyle
from conformance.wire.request import JSON, OCTET_STREAM, Form
from conformance.wire.tensor import Tensor

SHAPES = ((), (2, 3), (2, 1, 3), (2, 3, 1, 2), (0,), (2, 0, 3))
BYTES_SHAPES = ((2, 3), (0,))


def make_reading_row(name: str, form: Form, outputs: Tensors, *, style: Style | None = None) -> Row:
    """Return a row with a correct answer that has these outputs, as JSON or as binary data (`form`)."""
    requested = tuple(RequestedOutput(one.name, form) for one in outputs)
    script = make_script(outputs, style or Style(), CALLS[form])
    inference = make_small_inference(f"read-{name}", form, outputs=requested)
    return Row(name, (inference, script), requirements=("CLIENT-READS-VALUES",))


def convert_to_grpc_row(row: Row) -> Row:
    """Return the row for gRPC. A JSON row gets typed contents, and also judges CLIENT-READS-FORM."""
    call = to_raw_grpc_row(row)
    return (
        replace(call, requirements=(*call.requirements, "CLIENT-READS-FORM/grpc"))
        if has_json_output(call.values[0])
        else call
    )


def expect_outputs_read(client: Client, inference: Inference, script: Script) -> None:
    """Expect the client to return the outputs of the answer.

    An error on typed contents over gRPC violates CLIENT-READS-FORM.
    """
    expect_observed_outputs(client, inference, client.infer(inference, script))


def expect_observed_outputs(client: Client, inference: Inference, seen: Observation) -> None:
    """Expect the client to have returned the outputs of the answer; see `expect_outputs_read`."""
    with require_datatypes(client, seen):
        expect_outputs(seen, through_json=has_json_output(inference), unread=get_unread_requirement(client, inference))


def make_datatype_rows() -> Iterator[Row]:
    """Yield rows for each datatype as binary data and as JSON, except FP16 as JSON."""
    for datatype in OIP_DATATYPES:
        for form in FORMS if datatype != "FP16" else FORMS[:1]:
            name = f"{datatype}-{form}"
            yield make_reading_row(name, form, (make_tensor(name, "OUT0", datatype, (4,)),))


def make_shape_rows() -> Iterator[Row]:
    """Yield rows for each shape as binary data and as JSON; shapes of several dimensions also as nested JSON."""
    for shape in SHAPES:
        for datatype in ("FP32", "BYTES") if shape in BYTES_SHAPES else ("FP32",):
            name = f"{datatype}-{'x'.join(map(str, shape)) or 'rank-0'}"
            outputs = (make_tensor(name, "OUT0", datatype, shape),)
            yield from (make_reading_row(f"{name}-{form}", form, outputs) for form in FORMS)
            if len(shape) > 1:
                yield make_reading_row(f"{name}-nested", "json", outputs, style=Style(nested=True))


FEW_COUNTS = (1, 2, 0)


def make_element_count_rows(convert: Callable[[Row], Row] = lambda row: row) -> Iterator[Row]:
    """Yield rows for each datatype as binary data and as JSON, with answers of one, two and no elements."""
    for datatype in OIP_DATATYPES:
        for form in FORMS if datatype != "FP16" else FORMS[:1]:
            cases = []
            for count in FEW_COUNTS:
                name = f"{count}-{datatype}-{form}"
                outputs = (make_tensor(name, "OUT0", datatype, (count,)),)
                cases.append(convert(make_reading_row(name, form, outputs)))
            name = cases[0].id.removeprefix(f"{FEW_COUNTS[0]}-")
            yield Row(name, (tuple(case.values for case in cases),), requirements=cases[0].requirements)


def make_corner_value_rows() -> Iterator[Row]:
    """Yield rows of corner values and of arbitrary bytes; rows in JSON contain only values that JSON can carry."""
    for datatype in (*INTEGER_CORNERS, *FLOATS):
        outputs = (Tensor.from_values("OUT0", datatype, get_all_corners(datatype)),)
        yield make_reading_row(f"{datatype}-binary", "binary", outputs)
        if datatype != "FP16":
            outputs = (Tensor.from_values("OUT0", datatype, get_all_corners(datatype, json=True)),)
            yield make_reading_row(f"{datatype}-json", "json", outputs)
    for datatype, bits in DIGITS_AND_SIGNS.items():
        row = make_reading_row(f"{datatype}-digits-and-signs-json", "json", (from_bits("OUT0", datatype, bits),))
        yield replace(row, requirements=(*row.requirements, "CLIENT-READS-NUMBERS"))
    for group, form, one in list_strings():
        yield make_reading_row(f"BYTES-{group}-{form}", form, (replace(one, name="OUT0"),))


@client_claim("reads-every-datatype", "CLIENT-READS-VALUES", convert_to_grpc_row)
@rows(*make_datatype_rows())
def reads_every_datatype(client: Client, inference: Inference, script: Script) -> None:
    """The client gives its caller the elements of an output of any datatype."""
    expect_outputs_read(client, inference, script)


@client_claim(
    "reads-every-shape",
    "CLIENT-READS-VALUES",
    [convert_to_grpc_row(row) for row in make_shape_rows() if not row.id.endswith("nested")],
)
@rows(*make_shape_rows())
def reads_every_shape(client: Client, inference: Inference, script: Script) -> None:
    """The client gives its caller the shape of an output of any rank, empty or not."""
    expect_outputs_read(client, inference, script)


@client_claim("reads-few-elements", "CLIENT-READS-VALUES", make_element_count_rows(convert_to_grpc_row))
@rows(*make_element_count_rows())
def reads_few_elements(client: Client, cases: Sequence[tuple[Inference, Script]]) -> None:
    """The client gives its caller an output of one, two or no elements unchanged."""
    for inference, script in cases:
        expect_outputs_read(client, inference, script)


@client_claim("reads-corner-values", "CLIENT-READS-VALUES", convert_to_grpc_row)
@rows(*make_corner_value_rows())
def reads_corner_values(client: Client, inference: Inference, script: Script) -> None:
    """The client gives its caller extreme values unchanged: limits, 2^53+1, subnormals, infinities, any bytes.

    Raises NotApplicableError: the client refuses NUL in a JSON string, as its parser may (RFC 8259, 9).
    """
    observation = client.infer(inference, script)
    if (
        observation.requests
        and observation.result.error is not None
        and has_nul_in_json(client, inference, observation.outputs)
    ):
        raise NotApplicableError(
            f"the client refuses JSON strings that contain NUL: {escape_text(observation.result.error)}"
        )
    expect_observed_outputs(client, inference, observation)


def make_half_precision_row(datatype: str) -> Row:
    """Return a row whose answer contains elements of a 16-bit float datatype as JSON."""
    row = make_reading_row(datatype, "json", (from_bits("OUT0", datatype, HALF_PRECISION[datatype]),))
    return replace(row, requirements=(*row.requirements, "CLIENT-READS-NUMBERS"))


@check("client.reads-half-precision-as-json", requirements=("CLIENT-READS-VALUES", "CLIENT-READS-NUMBERS"))
@rows(*map(make_half_precision_row, HALF_PRECISION))
def reads_half_precision_as_json(client: Client, inference: Inference, script: Script) -> None:
    """The client gives its caller FP16 and BF16 elements that JSON can carry exactly, or refuses them.

    Raises NotApplicableError: the client refuses 16-bit floats as JSON, which the protocol calls problematic.
    """
    observation = client.infer(inference, script)
    if observation.requests and observation.result.error is not None:
        raise NotApplicableError(f"the client refuses 16-bit floats as JSON: {escape_text(observation.result.error)}")
    expect_outputs(observation, through_json=True)


# --- spellings of numbers ---------------------------------------------------------------------------------------------

# Integers in thousands, as a server may write them.
INTEGER_SPELLINGS: Mapping[str, Callable[[float], str]] = {
    "1E3": lambda value: f"{value / 1000:g}E3",
    "1e3": lambda value: f"{value / 1000:g}e3",
    "1e+3": lambda value: f"{value / 1000:g}e+3",
    "10.0e2": lambda value: f"{value / 100:.1f}e2",
    "1000.0": lambda value: f"{value:.1f}",
}


def convert_to_floats(elements: list[int]) -> list[float]:
    """Return integers as floats, which a `JsonStyle` then formats."""
    return list(map(float, elements))


def make_number_rows() -> Iterator[Row]:
    """Yield rows whose JSON answers contain less common spellings of numbers."""
    for datatype in ("INT32", "UINT64"):
        thousands = Tensor.from_values("OUT0", datatype, [1000, 25000, 7000])
        for name, spell in INTEGER_SPELLINGS.items():
            style = Style(edit=Set("outputs.0.data", convert_to_floats), writing=JsonStyle(number=spell))
            yield make_reading_row(f"{datatype}-{name}", "json", (thousands,), style=style)
    for datatype in ("FP32", "FP64"):
        whole = Tensor.from_values("OUT0", datatype, [1.0, -0.0, 2500.0])
        style = Style(writing=JsonStyle(number=lambda value: f"{value:g}"))
        yield make_reading_row(f"{datatype}-without-fractions", "json", (whole,), style=style)
    for datatype, bits in SHORT_DECIMALS.items():
        style = Style(writing=JsonStyle(number=lambda value: f"{value:.2g}"))
        yield make_reading_row(f"{datatype}-short-decimals", "json", (from_bits("OUT0", datatype, bits),), style=style)


@check("client.reads-numbers-in-any-spelling", requirements="CLIENT-READS-NUMBERS")
@rows(*[replace(row, requirements=("CLIENT-READS-NUMBERS",)) for row in make_number_rows()])
def reads_numbers_in_any_spelling(client: Client, inference: Inference, script: Script) -> None:
    """The client reads numbers by their value: integers with an exponent, floats without a fraction, short decimals.

    Raises NotApplicableError: the client refuses FP16 or BF16 as JSON, which the protocol calls problematic.
    """
    observation, outputs = client.infer(inference, script), script.outputs(inference)
    try:
        with block_if_unread(client, inference, outputs):
            expect_outputs(observation)
    except BlockedError as blocked:
        if observation.requests and outputs[0].datatype in HALF_PRECISION:
            raise NotApplicableError(f"the client cannot read {outputs[0].datatype} as JSON") from blocked
        raise


def has_nul_in_json(client: Client, inference: Inference, outputs: Tensors) -> bool:
    """Say whether an HTTP answer has BYTES outputs in JSON that are all ASCII and contain NUL."""
    texts = b"".join(text for one in outputs if one.datatype == "BYTES" for text in one.array.flat)
    return not client.is_over_grpc and has_json_output(inference) and b"\0" in texts and texts.isascii()


# --- several outputs --------------------------------------------------------------------------------------------------

SEVERAL_OUTPUTS = (("OUT0", "INT32", (3,)), ("OUT1", "BYTES", (2,)), ("OUT2", "FP64", (2,)))
# Names that some languages treat as numbers, and sort before all other names.
NUMBERED_OUTPUTS = (("b", "INT32", (3,)), ("10", "BYTES", (2,)), ("2", "FP64", (2,)))


def make_three_outputs(row: str, specs: Sequence[tuple[str, str, tuple[int, ...]]] = SEVERAL_OUTPUTS) -> Tensors:
    """Return three outputs of different sizes; `specs` are their names, datatypes and shapes."""
    return tuple(make_tensor(row, *spec) for spec in specs)


def make_ordered_styles(order: Sequence[int]) -> tuple[Style, CallStyle]:
    """Return answer styles, for HTTP and gRPC, that list three outputs in this order."""

    def reorder(tensors: Tensors) -> Tensors:
        return tuple(tensors[place] for place in order)

    return Style(order=reorder), CallStyle(order=reorder)


def make_order_rows() -> Iterator[Row]:
    """Yield a row for each order of three binary outputs in the answer; the request always has the same order."""
    for named, order in product((SEVERAL_OUTPUTS, NUMBERED_OUTPUTS), permutations(range(3))):
        requested = tuple(RequestedOutput(name, "binary") for name, _, _ in named)
        name = "-".join(str(place) if named is SEVERAL_OUTPUTS else named[place][0] for place in order)
        script = make_script(make_three_outputs(name, named), *make_ordered_styles(order))
        inference = make_small_inference(f"order-{name}", outputs=requested)
        yield Row(name, (inference, script), requirements=("CLIENT-READS-ORDER",))
    script = make_script(make_three_outputs("unlisted"), *make_ordered_styles((2, 0, 1)))
    inference = make_small_inference("order-unlisted", all_outputs="binary")
    yield Row("unlisted-2-0-1", (inference, script), requirements=("CLIENT-READS-ORDER",))


@client_claim("reads-in-the-answers-order", "CLIENT-READS-ORDER", to_grpc_row)
@rows(*make_order_rows())
def reads_in_the_answers_order(client: Client, inference: Inference, script: Script) -> None:
    """The client reads outputs in the order of the answer, not in the order of its request."""
    with block_if_unread(client, inference, script.outputs(inference), one_output_each=True):
        expect_outputs(client.infer(inference, script))


# --- forms ------------------------------------------------------------------------------------------------------------


def make_form_row(
    name: str, forms: Sequence[Form], style: Style, shape: tuple[int, ...] = (2,), unread: str = "CLIENT-READS-FORM"
) -> Row:
    """Return a row with one output requested in each encoding of `forms`, and an answer in this style.

    If the client returns an error, the row reports the requirement `unread`.
    """
    outputs = tuple(make_tensor(name, f"OUT{k}", ("INT32", "BYTES", "FP32")[k], shape) for k in range(len(forms)))
    requested = tuple(RequestedOutput(one.name, form) for one, form in zip(outputs, forms, strict=True))
    inference = make_small_inference(f"form-{name}", forms[0], outputs=requested)
    answers = tuple(dict.fromkeys(("CLIENT-READS-FORM", unread)))
    return Row(name, (inference, make_script(outputs, style), unread), requirements=answers)


def make_no_outputs_row() -> Row:
    """Return a row with an answer that has no outputs."""
    return Row(
        "no-outputs",
        (make_small_inference("form-none", "json", unneeded="form"), make_script(())),
        requirements=("CLIENT-READS-FORM",),
    )


ALWAYS: HeaderUse = "always"
UNREQUESTED_FORM = "CLIENT-READS-FORM-UNASKED"
CONTENT_TYPE = "CLIENT-READS-CONTENT-TYPE"
# Content types that do not fit the encoding of the outputs.
MISMATCHED_CONTENT_TYPES: Sequence[tuple[Form, str]] = (
    ("binary", JSON),
    ("json", OCTET_STREAM),
    ("binary", "text/plain"),
)


def make_content_type_row(form: Form, content_type: str) -> Row:
    """Return a row whose answer has a content type that does not fit the encoding of its outputs."""
    name = f"{form}-as-{content_type.rpartition('/')[2]}"
    return make_form_row(name, (form, form), Style(content_type=content_type), unread=CONTENT_TYPE)


FORM_ROWS = (
    make_form_row("json-beside-binary", ("binary", "json", "binary"), Style()),
    make_form_row("json-before-binary", ("json", "binary", "binary"), Style()),
    make_form_row("binary-before-json", ("binary", "binary", "json"), Style()),
    make_form_row("json-with-header", ("json", "json"), Style(header=ALWAYS)),
    make_form_row("json-instead-of-binary", ("binary", "binary"), Style(form="json"), unread=UNREQUESTED_FORM),
    make_form_row(
        "json-instead-with-header", ("binary", "binary"), Style(form="json", header=ALWAYS), unread=UNREQUESTED_FORM
    ),
    make_form_row("all-empty-with-header", ("binary", "binary"), Style(), (0,)),
    make_form_row("all-empty-without-header", ("binary", "binary"), Style(header="never"), (0,), "CLIENT-READS-EMPTY"),
    make_form_row("empty-beside-json", ("binary", "json"), Style(), (2, 0)),
    make_no_outputs_row(),
    *[make_content_type_row(form, kind) for form, kind in MISMATCHED_CONTENT_TYPES],
    make_form_row(
        "json-with-header-as-octet-stream",
        ("json", "json"),
        Style(header=ALWAYS, content_type=OCTET_STREAM),
        unread=CONTENT_TYPE,
    ),
)
CALL_STYLES = {
    "raw": CallStyle(),
    "typed": CallStyle(form="typed"),
    "raw-first": CallStyle(raw_first=True),
    "unpacked": CallStyle(form="typed", integers=encode_unpacked),
    "unknown-fields": CallStyle(extra_fields=UNKNOWN),
    "typed-unknown-fields": CallStyle(form="typed", extra_fields=UNKNOWN),
}


def make_grpc_style_row(name: str, style: CallStyle) -> Row:
    """Return a gRPC row whose answer has several outputs in this style."""
    outputs = tuple(
        make_tensor(name, f"OUT{k}", datatype, (3,)) for k, datatype in enumerate(("INT64", "BYTES", "FP32", "BOOL"))
    )
    script = make_script(outputs, grpc=style)
    return Row(name, (make_small_inference(f"call-{name}"), script), requirements=("CLIENT-READS-FORM/grpc",))


@client_claim(
    "reads-the-form-that-comes",
    "CLIENT-READS-FORM",
    (
        *[make_grpc_style_row(name, style) for name, style in CALL_STYLES.items()],
        to_raw_grpc_row(make_no_outputs_row()),
    ),
)
@rows(*FORM_ROWS)
def reads_the_form_that_comes(client: Client, inference: Inference, script: Script, unread: str | None = None) -> None:
    """The client reads outputs in the encoding in which they arrive, with or without the inference header."""
    expect_scripted_answer_read(client, inference, script, unread)


# --- optional members -------------------------------------------------------------------------------------------------


def add_empty_parameters(document: Document) -> None:
    """Add empty parameters to the answer, and to each output without parameters."""
    for part in (document, *document["outputs"]):
        part.setdefault("parameters", {})


NO_VERSION = Drop("model_version")  # as servers without versions answer
OPTIONAL_MEMBERS: Mapping[str, DocumentEdit] = {
    "no-version": NO_VERSION,
    "empty-parameters": add_empty_parameters,
    "no-version-and-empty-parameters": chain(NO_VERSION, add_empty_parameters),
}


def make_optional_member_rows() -> Iterator[Row]:
    """Yield a row for each choice of optional members, as binary data and as JSON, with and without an id."""
    for (name, edit), form, has_id in product(OPTIONAL_MEMBERS.items(), FORMS, (False, True)):
        row = f"{name}-{'with-id-' if has_id else ''}{form}"
        outputs = (make_tensor(row, "OUT0", "INT32", (3,)), make_tensor(row, "OUT1", "FP64", (2,)))
        requested = tuple(RequestedOutput(one.name, form) for one in outputs)
        identity = f"id-{row}" if has_id else None
        inference = make_small_inference(f"members-{row}", form, outputs=requested, id=identity)
        yield Row(row, (inference, make_script(outputs, Style(edit=edit))))


@check("client.needs-no-optional-member", requirements="CLIENT-READS-VALUES")
@rows(*make_optional_member_rows())
def needs_no_optional_member(client: Client, inference: Inference, script: Script) -> None:
    """The client reads an answer without optional members, and with empty ones."""
    expect_outputs_read(client, inference, script)


# --- classes ----------------------------------------------------------------------------------------------------------

CLASS_TEXTS: Mapping[str, Sequence[str]] = {
    "one": ("0.750000:3",),
    "three": ("0.75:3", "0.5:11", "-0.25:0"),
    "labelled": ("17.5:2:tabby cat", "3.25:0:dog", "-1e-07:1:ibex"),
    "labels-with-colons": ("9:1:a:b", "8:0:http://x:80/:", "7:2::"),
    "labels-not-ascii": ("0.5:0:größe", "0.25:2:猫 😀"),
    "some-labelled": ("4:2:cat", "3:0", "2:1:dog"),
    "integers": ("9007199254740993:1", "-128:0"),
}


def make_class_request_rows() -> Iterator[Row]:
    """Yield rows in which the client requests one or five classes."""
    for count in (1, 5):
        for form in (None, *FORMS):
            requested = (RequestedOutput("OUT0", form, classes=count),)
            name = f"{count}-{form or 'open'}"
            requirements = ("CLIENT-SENDS-CLASSIFICATION", "CLIENT-SENDS-OUTPUTS", "CLIENT-SENDS-CLASSIFICATION-PLACE")
            plain = make_small_inference(
                f"classes-{name}", "json", outputs=requested, unneeded=None if form == "json" else "form"
            )
            yield Row(name, (plain, requirements), requirements=requirements)


@client_claim(
    "asks-for-classes",
    "CLIENT-SENDS-CLASSIFICATION",
    [to_raw_grpc_row(row) for row in make_class_request_rows() if row.id.endswith("open")],
)
@rows(*make_class_request_rows())
def asks_for_classes(client: Client, inference: Inference, requirements: Sequence[str]) -> None:
    """The client requests classes by a count in the output's parameters."""
    expect_request_sent(client, inference, requirements, not_received="CLIENT-SENDS-OUTPUTS")


def make_class_answer_rows() -> Iterator[Row]:
    """Yield rows for each list of classes in `CLASS_TEXTS`, as binary data and as JSON."""
    for name, texts in CLASS_TEXTS.items():
        for form in FORMS:
            requested = (RequestedOutput("OUT0", form, classes=len(texts)),)
            script = make_script((Tensor.from_values("OUT0", "BYTES", list(texts)),), grpc=CALLS[form])
            inference = make_small_inference(f"read-classes-{name}-{form}", form, outputs=requested)
            yield Row(f"{name}-{form}", (inference, script, texts), requirements=("CLIENT-READS-CLASSES",))


@client_claim("reads-classes", "CLIENT-READS-CLASSES", to_raw_grpc_row)
@rows(*make_class_answer_rows())
def reads_classes(client: Client, inference: Inference, script: Script, texts: Sequence[str]) -> None:
    """The client gives its caller the value, index and full label of each class."""
    unread = get_unread_requirement(client, inference)
    with block_if_unread(client, inference, script.outputs(inference), unread):
        expect_classes(client.infer(inference, script), texts, unread=unread)
