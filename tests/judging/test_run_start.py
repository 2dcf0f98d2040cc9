"""Why there is nothing to judge: one line for each kind, in the names of whoever is told."""

from __future__ import annotations

import pytest

from conformance.judging.run_start import COMMAND_LINE_NAMES, PYTHON_NAMES, MissingKind, NothingToJudge
from conformance.roles import roles
from conformance.spec.fit import SCORE_DATATYPES, Fit

URL = "http://h:8000"
# What is lacking, its details -> what to give, on the command line and in Python.
TOLD: list[tuple[MissingKind, tuple[str, ...], str, str]] = [
    (MissingKind.METADATA, ("HTTP 404",), "requires a header (--target-header)", "requires a header (headers={...})"),
    (
        MissingKind.LIST_OF_MODELS,
        (),
        "name the models to judge with --target-model NAME",
        'to judge with models=["NAME"]',
    ),
    (MissingKind.ROLES, (), "name it with --target-model NAME", 'name it with models=["NAME"]'),
    (
        MissingKind.ROLES_AMONG_MODELS,
        ("iris",),
        "it serves iris: judge with --target-model iris",
        'judge with models=["iris"]',
    ),
    (
        MissingKind.ROLES_AMONG_MODELS,
        ("iris", "{x}"),
        "it serves iris, {x}: judge with --target-model iris, or --target-model all",
        'it serves iris, {x}: judge with models=["iris"], or models=["all"]',
    ),
    (
        MissingKind.EXTENSIONS,
        ("raw: HTTP 400",),
        "(raw: HTTP 400): --target-extension=protocol judges the base protocol,"
        " --target-extension=NAME judges an extension anyway",
        '(raw: HTTP 400): extensions=["protocol"] judges the base protocol,'
        ' extensions=["NAME"] judges an extension anyway',
    ),
]


@pytest.mark.parametrize(("lack", "details", "command", "python"), TOLD)
def test_what_to_give_is_named_as_the_user_gives_it(
    lack: MissingKind, details: tuple[str, ...], command: str, python: str
) -> None:
    nothing = NothingToJudge(lack, URL, details)
    assert nothing.text(COMMAND_LINE_NAMES).endswith(command)
    assert nothing.text(PYTHON_NAMES).endswith(python)
    assert "--" not in nothing.text(PYTHON_NAMES)


@pytest.mark.parametrize("lack", MissingKind)
def test_each_kind_is_one_line_of_its_own(lack: MissingKind) -> None:
    line = NothingToJudge(lack, URL, ("why",)).text()
    assert len(line.splitlines()) == 1
    assert line.startswith(URL) or line == "why"  # that of somebody else stands as it is


def test_names_of_a_server_are_shown_safely() -> None:
    line = NothingToJudge(MissingKind.ROLES_AMONG_MODELS, URL, ("a\x1bb", *(f"m{k}" for k in range(9)))).text()
    assert line.endswith(
        "it serves a\\x1bb, m0, m1, m2, m3, m4, m5, m6 and 2 more:"
        " judge with --target-model a\\x1bb, or --target-model all"
    )


def test_an_unsuitable_model_is_told_by_a_short_list_of_datatypes() -> None:
    role = roles.load()["identity_bytes"]
    lack = Fit(inputs=SCORE_DATATYPES).describe_mismatch(role.inputs, role.outputs)
    assert lack == "a first input of FP32 or FP64 or any integer"
