"""A server with limits that its target file declares: the verdict, its words in every output, and contradictions."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import conformance
from conformance.report import formats
from conformance.roles import roles
from conformance.roles.declared_limits import describe_limits, find_excess_of_role
from conformance.wire.datatypes import DATATYPES, OIP_DATATYPES
from tests.support import fussy_app
from tests.support.few_rows import FEW_ROWS
from tests.support.servers import judge, run_bundled, run_command
from tests.support.valid_reports import read_valid_report

NO_BYTES = [name for name in DATATYPES if name != "BYTES"]
LIMITED = str(Path(__file__).parents[1] / "support/limited_server.py")
KINDS: Mapping[str, dict[str, Any]] = {
    "without BYTES": {"datatypes": NO_BYTES},
    "with INT32 and FP32 alone": {"datatypes": ["FP32", "INT32"]},
    "with fixed shapes alone": {"fixed_shapes": True},
    "without batches": {"max_batch": 0},
    "with INT32 alone, with fixed shapes alone": {"datatypes": ["INT32"], "fixed_shapes": True},
}


def list_models(limits: Mapping[str, Any]) -> list[str]:
    return [f"--model={name}" for name, role in roles.load().items() if not find_excess_of_role(limits, role)]


def write_file(folder: Path, limits: Mapping[str, Any], more: str = "") -> str:
    """Write a target file with these limits; return the option that names it."""
    table = "".join(f"{name} = {json.dumps(value)}\n" for name, value in limits.items())
    (folder / "t.toml").write_text(f"{more}\n[limits]\n{table}")
    return "--target-config=t.toml"


def expect_limits_in_every_output(folder: Path, last_line: str, words: str, limits: Mapping[str, Any]) -> None:
    report = read_valid_report(folder / "r.json")
    assert (report["verdict"], report["target"]["limits"]) == ("conformant", limits)
    assert f" is conformant {words} (" in last_line
    for suffix in formats.FORMATS:
        text = (folder / f"r{suffix}").read_text()
        assert suffix == ".json" or f"conformant {words}" in text, suffix


@pytest.mark.parametrize("words", KINDS)
def test_what_needs_more_than_the_limits_does_not_apply(tmp_path: Path, words: str) -> None:
    limits = KINDS[words]
    files = [f"--conformance-report=r{suffix}" for suffix in formats.FORMATS]
    with run_bundled(*list_models(limits)) as url:
        run = judge(tmp_path, write_file(tmp_path, limits), f"--target-url={url}", *FEW_ROWS, *files)
    assert run.returncode == 0, run.stdout[-2000:]
    assert f"\nlimits      {words}\n" in run.stdout
    expect_limits_in_every_output(tmp_path, run.stdout.splitlines()[-1], words, limits)


def test_a_server_that_declares_no_limits_is_partial(tmp_path: Path) -> None:
    """With any of KINDS: tests/judging/test_coverage.py."""
    with run_bundled(*list_models(KINDS["with INT32 alone, with fixed shapes alone"])) as url:
        run = judge(tmp_path, f"--target-url={url}", *FEW_ROWS, "--conformance-report=r.json")
    assert read_valid_report(tmp_path / "r.json")["verdict"] == "partial"
    assert "under [limits] in the target file" in run.stdout


@pytest.mark.parametrize(("most", "status"), [(4, 400), (1, 500)])
def test_larger_batches_than_declared_do_not_apply(tmp_path: Path, most: int, status: int) -> None:
    files = [f"--conformance-report=r{suffix}" for suffix in formats.FORMATS]
    rows = ["-k", "batch or ranked"]
    with run_bundled(program=(LIMITED, str(most), str(status))) as url:
        file = write_file(tmp_path, {"max_batch": most}, f'url = "{url}"')
        run = judge(tmp_path, file, *files, *rows)
    assert run.stdout.splitlines()[-1].endswith("none failed"), run.stdout[-2000:]
    report = read_valid_report(tmp_path / "r.json")
    beyond = [row for row in report["rows"] if row["reason"] and row["reason"]["kind"] == "declared_limit"]
    assert len(beyond) > most == report["target"]["limits"]["max_batch"]
    assert {row["outcome"] for row in report["rows"]} <= {"pass", "observed", "not_applicable", "advisory"}
    advised = {row["failure"]["requirement"] for row in report["rows"] if row["outcome"] == "advisory"}
    assert advised <= {"OIP-ERROR-STATUS"} if status == 500 else not advised


def test_a_server_that_has_no_labels_declares_it(tmp_path: Path) -> None:
    with run_bundled("--fault=labels-are-left-out") as url:
        without = judge(tmp_path, f"--target-url={url}", "-k", "label and not grpc")
        run = judge(tmp_path, write_file(tmp_path, {"labels": False}, f'url = "{url}"'), "-k", "label and not grpc")
    assert "CLS-LABEL" in without.stdout
    assert "declare limits.labels = false if no model has labels" in without.stdout
    assert "\nlimits      without labels\n" in run.stdout
    assert run.stdout.splitlines()[-1].endswith("none failed"), run.stdout[-2000:]


CONTRADICTIONS = {
    "datatypes": (["FP32"], "model identity_bool of the server has BOOL tensors"),
    "fixed_shapes": (True, "model identity_bool of the server has a variable shape"),
    "max_batch": (4, "model batching of the server answers a batch of 5"),
    "labels": (False, "model scores_labelled of the server returns a label"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_limit_that_the_server_contradicts_is_an_error_of_the_file(tmp_path: Path, reference: str, name: str) -> None:
    value, said = CONTRADICTIONS[name]
    write_file(tmp_path, {name: value}, f'url = "{reference}"')
    with pytest.raises(conformance.JudgeError, match="config: limits") as raised:
        conformance.judge(config=tmp_path / "t.toml")
    assert str(raised.value) == f"config: limits.{name}: {said}: correct the limit, or stop serving the model"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_batch": 1}, "limits.max_batch: model batching of the server answers a batch of 2"),
        ({"datatypes": ["FP32"]}, "limits.datatypes: model batching of the server has INT32 tensors"),
    ],
)
def test_a_deployed_model_contradicts_a_limit_as_well(
    tmp_path: Path, reference: str, limits: dict[str, Any], said: str
) -> None:
    file = write_file(tmp_path, limits, f'url = "{reference}"\nroles.scores = "scores"')
    run = judge(tmp_path, file, "--target-model=batching", *FEW_ROWS)
    assert run.returncode == 4
    expected = f"ERROR: --target-config t.toml: {said}: correct the limit, or stop serving the model"
    assert run.stderr.strip() == expected


def test_models_that_the_server_lists_count_though_they_are_not_judged(tmp_path: Path) -> None:
    write_file(tmp_path, {"datatypes": ["FP32"]})
    with pytest.raises(conformance.JudgeError, match="model special of the server has BYTES tensors"):
        conformance.judge(fussy_app.app, models=["iris"], config=tmp_path / "t.toml")
    write_file(tmp_path, {"datatypes": ["FP32", "BYTES"], "fixed_shapes": True})  # no datatype is named float32
    report = conformance.judge(fussy_app.app, models=["iris"], config=tmp_path / "t.toml")
    assert report.document["target"]["limits"] == {"datatypes": ["FP32", "BYTES"], "fixed_shapes": True}


def test_limits_that_limit_nothing_are_not_named() -> None:
    assert describe_limits({}) == describe_limits({"datatypes": [*OIP_DATATYPES]}) == ""


def test_init_proposes_the_limits_that_the_models_show(tmp_path: Path) -> None:
    with run_bundled("--model=fixed", "--model=scores_batching") as url:
        assert run_command(tmp_path, "init", url, "-o", "t.toml").returncode == 0
    text = (tmp_path / "t.toml").read_text()
    assert "limits" not in tomllib.loads(text)  # only the user knows whether they hold
    table = text.partition("# [limits]\n")[2].partition("\n\n")[0]
    assert tomllib.loads(table.replace("# ", "", 1).replace("\n# ", "\n")) == {
        "datatypes": ["INT32", "FP32"],
        "fixed_shapes": True,
    }
