"""Relations of form: each output comes as binary data or as JSON, as the two parameters of the request say."""

from __future__ import annotations

from typing import Any

from conformance.checks.relations.plain_answer import (
    expect_json_answers,
    expect_json_capable_outputs,
    expect_same,
    is_same,
    several,
)
from conformance.checks.support.output_forms import TABLE, UNLISTED
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicable
from conformance.survey.deployed import FULL, Deployed
from conformance.terms.check import Row, check, rows
from conformance.transport.target import Target
from conformance.wire.request import ABSENT, Output


def _word(value: Any) -> str:
    return str(value).lower()


def _cells() -> list[Row]:
    """Return each cell of the table; those that say nothing of binary data also behind binary inputs."""
    return [
        Row(
            f"{_word(default)}-{_word(listed)}{'-binary-in' * binary}",
            (default, listed, decided, binary),
            answers=(requirement,),
            thorough=default is False,
        )
        for (default, listed), (decided, requirement) in TABLE.items()
        for binary in (False, True)
        if not binary or (default is ABSENT and listed in (ABSENT, UNLISTED))
    ]


@check("relations.output-comes-in-its-form")
@rows(*_cells())
def output_comes_in_its_form(
    target: Target, model: Deployed, default: Any, listed: Any, decided: str, binary: bool
) -> None:
    """An output comes as binary data or as JSON as the two parameters say."""
    names = expect_json_capable_outputs(model) if decided == "json" else model.outputs
    if listed is UNLISTED and len(names) < len(model.outputs):
        raise NotApplicable(f"JSON does not carry {', '.join(model.binary_only)}")
    outputs = None if listed is UNLISTED else [Output(name, listed) for name in names]
    sends = model.inputs if binary else model.sends
    reply = target.infer(model.request(send=sends, outputs=outputs, binary_data_output=default))
    expect(reply).forms(dict.fromkeys(names, decided))


def _mixes(default: Any) -> Row:
    cells = [TABLE[default, listed] for listed in (ABSENT, False, True) if (default, listed) in TABLE]
    answers = tuple(dict.fromkeys(requirement for _, requirement in cells))
    return Row(_word(default), (default,), answers=answers, thorough=default is False)


@check("relations.each-output-comes-in-its-own-form")
@rows(*map(_mixes, (ABSENT, False, True)))
def each_output_comes_in_its_own_form(target: Target, model: Deployed, default: Any) -> None:
    """Outputs of one request, listed with different settings, come each in its own form."""
    expect_json_answers(model)
    several(model.outputs, "output")
    for settings in ((True, ABSENT, False), (ABSENT, False, True), (False, True, ABSENT)):
        wishes = {name: settings[k % 3] for k, name in enumerate(model.outputs)}
        listed = [Output(name, True if name in model.binary_only else wish) for name, wish in wishes.items()]
        reply = target.infer(model.request(send=model.sends, outputs=listed, binary_data_output=default))
        for output in listed:
            if (default, output.binary_data) in TABLE:
                decided, requirement = TABLE[default, output.binary_data]
                expect(reply, requirement).forms({output.name: decided})


@check(
    "relations.listed-output-under-binary-data-output",
    answers=("BIN-ALL-TRUE-LISTED", "BIN-HEADER-O", "BIN-SAME-AS-JSON-O"),
)
def listed_output_under_binary_data_output(target: Target, model: Deployed) -> str:
    """An output listed without binary_data under binary_data_output true comes in one of two forms, and is right."""
    name = expect_json_capable_outputs(model)[0]
    reply = target.infer(model.request(send=model.sends, outputs=[Output(name)], binary_data_output=True))
    found = "binary data" if expect(reply, "OIP-OUTPUTS-LISTED").output(name).binary else "JSON"
    expect(reply, "BIN-HEADER-O").free_of("inference-header-missing")
    if name not in model.unsteady and is_same(target, model, model.answer(target, FULL), [name]):
        expect_same(
            target, model, reply, "BIN-SAME-AS-JSON-O", [name]
        )  # where all binary data are wrong, other checks say so
    return found
