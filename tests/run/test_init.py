"""`oip-conformance init`: a template, and what it finds on a server."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.api.serving import serve_app as serving_app
from conformance.roles import roles
from conformance.spec.extensions import CHOICES
from conformance.transport import config
from conformance.transport.reference import ReferenceServer
from tests.support import fussy_app
from tests.support.few_rows import FEW_ROWS
from tests.support.renamed_server import IN, MODEL, OUT
from tests.support.servers import JsonOnly, judge, run_command, serve


def test_the_template_is_a_file_that_can_be_used(tmp_path: Path) -> None:
    done = run_command(tmp_path, "init", "-o", "t.toml")
    assert done.stdout == "wrote t.toml: pytest --target-config=t.toml\n"
    text = (tmp_path / "t.toml").read_text()
    assert config.load(tmp_path / "t.toml").url == "http://host:8000"
    settings = "\n".join(
        line.removeprefix("# ") for line in text.splitlines() if " = " in line or line.startswith("# [")
    )
    (tmp_path / "all.toml").write_text(settings.replace("${MODEL_TOKEN}", "t"))
    found = config.load(tmp_path / "all.toml")
    assert (found.timeout, found.never, found.headers) == (10, ("state.*",), ("Authorization: Bearer t",))
    assert (found.grpc, found.restart, found.extensions) == ("host:8001", "systemctl restart my-server", CHOICES)
    assert set(found.roles or ()) == {"identity_int32", "multi"}


def test_models_of_the_roles_own_names_fill_them(tmp_path: Path, reference: str) -> None:
    run_command(tmp_path, "init", "--target-url", reference, "-o", "t.toml")
    found = config.load(tmp_path / "t.toml")
    assert {role: placement.model for role, placement in (found.roles or {}).items()} == {r: r for r in roles.load()}
    assert "offered here: binary_tensor_data, raw, classification" in (tmp_path / "t.toml").read_text()


def test_models_of_other_names_fill_roles_by_what_they_do(tmp_path: Path, renamed: str) -> None:
    names = [f"--target-model={MODEL}{role}" for role in roles.load()]
    run_command(tmp_path, "init", "--target-url", renamed, *names, "-o", "t.toml")
    found = config.load(tmp_path / "t.toml").roles or {}
    assert set(found) == set(roles.load())
    assert found["multi"].names.inputs["IN_BOOL"] == f"{IN}IN_BOOL"
    assert found["multi"].names.outputs["OUT_FP32"] == f"{OUT}OUT_FP32"
    assert found["scores_labelled"].model == f"{MODEL}scores_labelled"
    assert found["cast_fp16_fp32"].model == f"{MODEL}cast_fp16_fp32"
    few = ("-k", "ordering or datatypes or classification", *FEW_ROWS)
    run = judge(tmp_path, "--target-config=t.toml", *few, "-q")
    assert run.returncode == 0, run.stdout[-2000:]


def test_models_that_fill_no_role_are_told(tmp_path: Path, renamed: str) -> None:
    done = run_command(
        tmp_path, "init", "--target-url", renamed, f"--target-model={MODEL}emit", "--target-model=not-there"
    )
    assert 'emit = { model = "prod-emit", inputs = { COUNTS = "x.COUNTS" }' in done.stdout
    assert "# 1 of 59 roles are filled" in done.stdout
    assert "\n[models.not-there]  # unknown tensors\n" in done.stdout
    assert "does not describe a model not-there: HTTP 404" in done.stdout


def test_a_server_of_one_model(tmp_path: Path) -> None:
    with serve(JsonOnly) as url:
        done = run_command(tmp_path, "init", "--target-url", url)
    found = tomllib.loads(done.stdout)
    assert found["roles"] == {"identity_int32": "identity_int32"}
    assert found["extensions"] == ["protocol"]  # a run without extensions judges the base protocol if asked for


def test_the_grpc_address_is_written(tmp_path: Path) -> None:
    server = ReferenceServer("--model=identity_int32", grpc=True)
    try:
        done = run_command(tmp_path, "init", server.url, f"--target-grpc={server.grpc}")
    finally:
        server.stop()
    found = tomllib.loads(done.stdout)
    assert (found["url"], found["grpc"]) == (server.url, server.grpc)
    assert "offered here: binary_tensor_data, raw, classification, classification_grpc" in done.stdout


# --- models whose inputs nobody guesses ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def particular() -> Iterator[str]:
    """The URL of models that take particular inputs alone."""
    with serving_app(fussy_app.app) as url:
        yield url


def asked(text: str, model: str) -> list[str]:
    table = text.partition(f"[models.{model}]")[2].partition("\n\n")[0]
    return [line for line in table.splitlines() if line.startswith("# [") or " = " in line]


def test_the_missing_lines_are_asked_for_and_no_others(tmp_path: Path, particular: str) -> None:
    done = run_command(tmp_path, "init", "--target-url", particular, "-o", "t.toml")
    text = (tmp_path / "t.toml").read_text()
    assert (
        done.stdout
        == "wrote t.toml; fill in the inputs of special, custom there, then run pytest --target-config=t.toml\n"
    )
    assert asked(text, "special") == [
        "# [models.special.inputs.X]",
        "# shape = [..., 4]",
        "# data = [...]  # FP32, row by row",
        "# [models.special.inputs.WORD]",
        "# shape = [1]",
        "# data = [...]  # BYTES, row by row",
    ]
    assert asked(text, "custom") == [
        "# [models.custom.inputs.NAME]",
        '# datatype = "..."',
        "# shape = [...]",
        "# data = [...]  # row by row",
    ]
    assert asked(text, "iris") == asked(text, "odd") == []
    assert set(tomllib.loads(text)["models"]) == {"special", "custom", "iris"}
    assert "`oip-conformance init`" not in text.partition("[models.special]")[2]


def test_the_file_with_these_lines_filled_in_is_judged(tmp_path: Path, particular: str) -> None:
    run_command(tmp_path, "init", "--target-url", particular, "-o", "t.toml")
    text = (tmp_path / "t.toml").read_text()
    whole = ("--target-config=t.toml", "--target-extension=protocol", "--conformance-profile=quick", *FEW_ROWS)
    options = (*whole, "--conformance-report=r.json")
    unfilled = judge(tmp_path, *options)
    (tmp_path / "t.toml").write_text(text + fussy_app.FILLED_IN_TABLES)
    run = judge(tmp_path, *options)
    assert (unfilled.returncode, run.returncode) == (6, 0), run.stdout[-2000:]
    passed = {row["row"] for row in json.loads((tmp_path / "r.json").read_text())["rows"] if row["outcome"] == "pass"}
    for model in ("special", "custom", "iris"):
        assert any(model in row for row in passed), model


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target-url=ftp://x",), "--target-url 'ftp://x' is not an http or https URL"),
        (("--target-url=http://127.0.0.1:9",), "cannot connect to http://127.0.0.1:9"),
        (("--target-grpc=127.0.0.1:9",), "init needs the URL of the server as well"),
        (("-o", "there.toml"), "cannot write there.toml: File exists"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "there.toml").touch()
    done = run_command(tmp_path, "init", *arguments)
    assert done.returncode == 2
    assert f"oip-conformance: error: {message}" in done.stderr
    assert "Traceback" not in done.stderr
