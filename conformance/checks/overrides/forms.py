"""Each output is binary data or JSON, as the parameters request."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, product
from typing import Any

from conformance.checks.support.class_expectations import (
    ALSO_WRONG_AS_BYTES,
    are_strings_written_right,
    expect_class_strings,
)
from conformance.checks.support.classes import ask, find_scored_output, read_texts, request_classes
from conformance.checks.support.controls import (
    NO_BINARY_REQUEST,
    expect_several_tensors,
    is_binary_refused,
    is_refused_as_json_too,
)
from conformance.checks.support.deployed_models import require_json_outputs
from conformance.checks.support.framing import TABLE, UNLISTED
from conformance.checks.support.inputs import make_empty_inputs
from conformance.checks.support.ranked_inputs import ITEMS, SCORES, choose_class_count, choose_inputs
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, attribute_to, block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import CLASSES
from conformance.spec.fit import ANY, JSON, SCORED, SEVERAL_OUTPUTS
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import ABSENT, RequestedOutput

# `binary_data` of four outputs in nine requests: any two outputs have each of the nine pairs of settings once.
_SETTINGS = (ABSENT, False, True)


MIXES = tuple(
    tuple(_SETTINGS[setting % 3] for setting in (i, j, i + j, i + 2 * j)) for i, j in product(range(3), repeat=2)
)


def _format_setting(value: Any) -> str:
    return value if value == UNLISTED else str(value).lower()


def _describe_parameters(default: Any, listed: Any) -> str:
    """Describe the parameters that decide whether an output is binary data or JSON."""
    default_text = "no binary_data_output" if default is ABSENT else f"binary_data_output {_format_setting(default)}"
    if listed == UNLISTED:
        return f"{default_text}, with the output not listed"
    return f"{default_text} and {'no binary_data' if listed is ABSENT else f'binary_data {_format_setting(listed)}'}"


def _make_combination_rows() -> list[Row]:
    """Return rows for each combination of parameters in `TABLE`: with one and four outputs, and with binary inputs."""
    return [
        Row(
            f"{_format_setting(default)}-{_format_setting(listed)}-{role}-{send}-in",
            (default, listed, send, form),
            role=role,
            requirements=(requirement,),
        )
        for (default, listed), (form, requirement) in TABLE.items()
        for role, send in (("cast_int32_fp32", "json"), ("multi", "json"), ("cast_int32_fp32", "binary"))
        if send == "json" or form == "json"
    ]


def _make_own_combination_rows() -> list[Row]:
    """Return rows for deployed models; combinations of `TABLE` without parameters also have binary inputs."""
    return [
        Row(
            f"{_format_setting(default)}-{_format_setting(listed)}-{send}-in",
            (default, listed, send, form),
            requirements=(requirement,),
            fit=ANY,
        )
        for (default, listed), (form, requirement) in TABLE.items()
        for send in ("json", "binary")
        if (send == "json" and (default is ABSENT or default is not listed))
        or (default is ABSENT and listed in (ABSENT, UNLISTED))
    ]


@check("overrides.output-comes-in-its-form")
@rows(*_make_combination_rows(), *_make_own_combination_rows())
def output_comes_in_its_form(target: Target, model: Model, default: Any, listed: Any, send: Any, form: str) -> None:
    """The server returns an output as binary data or JSON, as binary_data and binary_data_output say."""
    names = require_json_outputs(model) if form == "json" else tuple(spec.name for spec in model.role.outputs)
    if listed is UNLISTED and len(names) < len(model.role.outputs):
        raise NotApplicableError(f"JSON cannot represent {', '.join(model.binary_outputs)}")
    outputs = None if listed is UNLISTED else [RequestedOutput(name, listed) for name in names]
    sent = model.binary_inputs if send == "json" else send
    reply = target.infer(model.request(send=sent, outputs=outputs, binary_data_output=default))
    with block_if(lambda: send == "binary" and is_binary_refused(target, model), NO_BINARY_REQUEST):
        expect(reply).forms(dict.fromkeys(names, form), _describe_parameters(default, listed))


def _make_mix_rows() -> list[Row]:
    """Return rows whose four outputs have different values of `binary_data`, for each `binary_data_output`."""
    return [
        Row(
            f"{_format_setting(default)}-with-{'-'.join(map(_format_setting, mix))}",
            (default, mix),
            requirements=tuple(
                dict.fromkeys(TABLE[default, listed][1] for listed in mix if (default, listed) in TABLE)
            ),
        )
        for default in (ABSENT, False, True)
        for mix in MIXES
        if any((default, listed) in TABLE for listed in mix)
    ]


# Settings that the outputs of a deployed model have in rotation: two outputs show whether one setting carries over to
# the next.
_ROTATION = (True, ABSENT, False)


def _make_own_mix_rows() -> list[Row]:
    """Return rows for deployed models, whose outputs have the values of `binary_data` in `_ROTATION`."""
    return [
        Row(
            f"{_format_setting(default)}-with-each-in-turn",
            (default, _ROTATION),
            requirements=tuple(
                TABLE[default, listed][1] for listed in (False, True, ABSENT) if (default, listed) in TABLE
            ),
            fit=SEVERAL_OUTPUTS,
        )
        for default in (ABSENT, False, True)
    ]


@check("overrides.each-output-comes-in-its-own-form")
@rows(*[replace(row, role="multi") for row in _make_mix_rows()], *_make_own_mix_rows())
def each_output_comes_in_its_own_form(target: Target, model: Model, default: Any, mix: tuple[Any, ...]) -> None:
    """The server returns each output of one request in its requested encoding."""
    kept = model.binary_outputs
    wanted = zip((spec.name for spec in model.role.outputs), cycle(mix), strict=False)
    outputs = [RequestedOutput(name, True if name in kept else listed) for name, listed in wanted]
    reply = target.infer(model.request(send=model.binary_inputs, outputs=outputs, binary_data_output=default))
    for output in outputs:
        if (default, output.binary_data) in TABLE:
            form, requirement = TABLE[default, output.binary_data]
            expect(reply, requirement).forms({output.name: form}, _describe_parameters(default, output.binary_data))


@check(
    "overrides.listed-output-under-binary-data-output",
    requirements=("BIN-ALL-TRUE-LISTED", "OIP-OUTPUTS-LISTED", "BIN-HEADER-O", "BIN-SAME-AS-JSON-O"),
)
@rows(
    Row("one", (ABSENT,), role="cast_int32_fp32"),
    Row("all-of-four", (ABSENT, ABSENT, ABSENT, ABSENT), role="multi"),
    Row("first-of-four", (ABSENT, False, True, False), role="multi"),
    Row("last-of-four", (True, False, True, ABSENT), role="multi"),
    Row("one-of-any-model", (ABSENT,), fit=ANY),
)
def listed_output_under_binary_data_output(target: Target, model: Model, *listed: Any) -> str:
    """The suite records whether a listed output is binary or JSON under binary_data_output true."""
    outputs = [RequestedOutput(name, value) for name, value in zip(require_json_outputs(model), listed, strict=False)]
    reply = target.infer(model.request(send=model.binary_inputs, outputs=outputs, binary_data_output=True))
    unset_outputs = [output.name for output in outputs if output.binary_data is ABSENT]
    forms = {expect(reply, "OIP-OUTPUTS-LISTED").output(name).binary for name in unset_outputs}
    expect(reply, "BIN-HEADER-O").free_of("inference-header-missing")
    if len(outputs) == 1:  # other checks judge the order of several outputs
        _expect_right_output(target, model, reply, outputs[0].name)
    return " and ".join("binary data" if binary else "JSON" for binary in sorted(forms))


def _expect_right_output(target: Target, model: Model, reply: Reply, name: str) -> None:
    """Expect the output with this name to be correct; attribute a failure to BIN-SAME-AS-JSON-O."""
    sample = model.sample()
    right = [tensor for tensor in model.expected(sample) if tensor.name == name]
    with attribute_to("BIN-SAME-AS-JSON-O"):
        expect_several_tensors(reply, target, model, sample, right, "written")


@check("overrides.empty-output-comes-in-its-form")
@rows(
    *[
        Row(
            f"{_format_setting(default)}-{_format_setting(listed)}-{role}",
            (default, listed),
            role=role,
            requirements=(TABLE[default, listed][1],),
        )
        for default, listed in ((ABSENT, True), (False, True), (True, UNLISTED), (True, False))
        for role in ("identity_int32", "identity_bytes")
    ],
    Row("deployed", (ABSENT, True), fit=JSON, requirements=(TABLE[ABSENT, True][1],)),
)
def empty_output_comes_in_its_form(target: Target, model: Model, default: Any, listed: Any) -> None:
    """The server returns an empty output in the requested encoding."""
    names = [spec.name for spec in model.role.outputs]
    outputs = None if listed is UNLISTED else [RequestedOutput(name, listed) for name in names]
    tensors = make_empty_inputs(target, model) if model.is_deployed else [model.tensor([], [0])]
    reply = target.infer(model.request(tensors, send="json", outputs=outputs, binary_data_output=default))
    if not is_refused_as_json_too(target, model, tensors, reply):
        expect(reply).forms(dict.fromkeys(names, TABLE[default, listed][0]), _describe_parameters(default, listed))


@check("overrides.classes-under-binary-data-output", requirements="BIN-ALL-TRUE-LISTED")
@rows(
    Row("scores", (SCORES,), role="scores", needs=CLASSES),
    Row("batch", (ITEMS,), role="scores_batching_labelled", needs=CLASSES),
    Row("deployed", (None,), fit=SCORED, needs=CLASSES),
)
def classes_under_binary_data_output(target: Target, model: Model, values: Any) -> str:
    """The server returns classes under binary_data_output true as binary data or JSON."""
    name = find_scored_output(model)
    tensors, scores = choose_inputs(model, name, values)
    wanted = [RequestedOutput(name, classification=choose_class_count(model, scores))]
    reply = request_classes(target, model.request(tensors, send="json", outputs=wanted, binary_data_output=True))
    right = read_texts(ask(target, model, tensors, *wanted), name)
    with block_if(lambda: not are_strings_written_right(target, right, reply.answer.output(name)), ALSO_WRONG_AS_BYTES):
        expect_class_strings(reply, name, right, "CLS-BINARY", near=scores if model.is_deployed else None)
    return "binary data" if expect(reply).output(name).binary else "JSON"
