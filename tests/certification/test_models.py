"""Deployed models in a certification: manifest and note record them, and `verify` judges the same ones again."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.api.serving import serve_app as serving_app
from conformance.certification import manifest, rejudge
from conformance.certification.manifest import RECORDING, REPORT, Manifest
from conformance.commands.main import main
from conformance.report.report_file import read
from conformance.spec.report import Report
from conformance.transport import recording
from tests.support import fussy_app
from tests.support.certify_runs import LABEL_OPTIONS, PRODUCT, SCORES_MODEL, run_certify
from tests.support.servers import run_bundled

pytestmark = pytest.mark.usefixtures("few_rows_are_enough")
ALIAS = ("--alias-of", "particular", "1", "--alias-reason", "an app of the tests")
NO_INPUTS: dict[str, Any] = {"inputs": {}}


def report_of(folder: Path) -> Report:
    return read(folder / REPORT)


def differences(folder: Path, made: Manifest | None = None) -> list[str]:
    """Return how the recording of a folder, judged by a manifest, differs from the report."""
    found = recording.load(folder / RECORDING)
    return list(rejudge.find_differences(found, report_of(folder), made or manifest.read(folder)))


def note_of(folder: Path) -> str:
    """Return what REPRODUCE.md says of making the run again."""
    return (folder / "REPRODUCE.md").read_text(encoding="utf-8").partition("## Make the run again")[2]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with run_bundled(SCORES_MODEL, "--model=multi", program=PRODUCT) as address:
        yield address


@pytest.fixture(scope="module")
def of_models(tmp_path_factory: pytest.TempPathFactory, url: str) -> Path:
    folder = tmp_path_factory.mktemp("models") / "c"
    run_certify(folder, f"--target-url={url}", "--target-model=multi", "--target-model=scores_labelled")
    return folder


def test_models_are_recorded_and_judged_again(of_models: Path) -> None:
    made = manifest.read(of_models)
    assert made.models == {"multi": NO_INPUTS, "scores_labelled": NO_INPUTS}
    assert report_of(of_models)["options"]["models"] == ["multi", "scores_labelled"]
    assert differences(of_models) == []
    text = note_of(of_models)
    assert "the models `multi`, `scores_labelled`, start the server" in text
    assert "--target-model=multi --target-model=scores_labelled" in text
    assert "target.toml" not in text


@pytest.mark.parametrize("models", [None, {"multi": NO_INPUTS}, {"multi": NO_INPUTS, "other": NO_INPUTS}])
def test_other_models_are_another_run(of_models: Path, models: dict[str, Any] | None) -> None:
    assert differences(of_models, replace(manifest.read(of_models), models=models)) != []


def test_models_are_certified_beside_roles(url: str, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('[roles]\nscores_labelled = "scores_labelled"\n')
    run_certify(tmp_path / "c", f"--target-url={url}", f"--target-config={tmp_path / 't.toml'}", "--target-model=multi")
    report = report_of(tmp_path / "c")
    assert (list(report["target"]["roles"]), list(report["target"]["models"])) == (["scores_labelled"], ["multi"])
    assert differences(tmp_path / "c") == []
    assert "Deploy the model roles (`oip-conformance models export`) and the models `multi`, start" in note_of(
        tmp_path / "c"
    )


def test_given_inputs_are_recorded(tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text(fussy_app.FILLED_IN_TABLES)
    with serving_app(fussy_app.app) as address:
        options = (f"--target-url={address}", f"--target-config={file}", "--target-model=all", *ALIAS)
        run_certify(tmp_path / "c", *options)
    made = manifest.read(tmp_path / "c")
    given = tomllib.loads(fussy_app.FILLED_IN_TABLES)["models"]
    assert made.models == {"all": NO_INPUTS} | given
    assert report_of(tmp_path / "c")["options"]["models"] == ["special", "custom", "iris", "odd"]
    assert differences(tmp_path / "c") == []
    text = note_of(tmp_path / "c")
    (tables,) = re.findall(r"```toml\n(.*)```", text, re.DOTALL)
    assert tomllib.loads(tables) == {"models": given}
    assert "--target-config=target.toml" in text
    assert "--target-model=all" in text
    given["custom"]["inputs"]["X"]["data"] = [6, 5, 4, 3]
    assert differences(tmp_path / "c", replace(made, models={"all": NO_INPUTS} | given)) != []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("[nan]", "models: no NaN and no infinity can be certified"),
        (f"[{'0.12345678, ' * 80_000}]", "models: give inputs of less than 1048576 bytes"),
    ],
)
def test_inputs_that_no_manifest_holds_are_refused_before_the_run(
    tmp_path: Path, data: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.toml"
    file.write_text(f'url = "http://127.0.0.1:9"\n[models.iris.inputs.X]\nshape = [1]\ndata = {data}\n')
    assert main(["certify", f"--target-config={file}", *LABEL_OPTIONS, "-o", str(tmp_path / "c")]) == 2
    assert f"oip-conformance: error: {file}: {message}" in capsys.readouterr().err
