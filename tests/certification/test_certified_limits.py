"""A certification of a server whose target file declares limits: its words name them, and `verify` applies them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.certification import manifest, rejudge
from conformance.certification.manifest import RECORDING, REPORT
from conformance.certification.verifying import Folder
from conformance.commands.main import main
from conformance.registry import entries
from conformance.report.report_file import read
from conformance.roles import roles
from conformance.roles.declared_limits import find_excess_of_role
from conformance.transport import recording
from tests.support.certify_runs import PRODUCT, run_certify
from tests.support.servers import run_bundled

LIMITS = {"datatypes": ["INT32", "FP32", "UINT32"], "fixed_shapes": True}
WORDS = "conformant with UINT32, INT32 and FP32 alone, with fixed shapes alone"
pytestmark = pytest.mark.usefixtures("few_rows_are_enough")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The URL of a product that keeps to the limits."""
    served = [f"--model={name}" for name, role in roles.load().items() if not find_excess_of_role(LIMITS, role)]
    with run_bundled(*served, program=PRODUCT) as address:
        yield address


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, url: str) -> Path:
    file = tmp_path_factory.mktemp("limits") / "t.toml"
    table = "".join(f"{name} = {json.dumps(value)}\n" for name, value in LIMITS.items())
    file.write_text(f'url = "{url}"\n[limits]\n{table}')
    assert run_certify(file.parent / "c", f"--target-config={file}") == 0
    return file.parent / "c"


def test_manifest_note_and_verification_name_the_limits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = manifest.read(folder)
    assert (made.standing, made.limits, made.certified_as) == ("conformant", LIMITS, WORDS)
    text = (folder / "REPRODUCE.md").read_text(encoding="utf-8")
    assert f", for a server {WORDS.removeprefix('conformant ')}. Contact:" in text
    assert tomllib.loads(text.partition("```toml")[2].partition("```")[0]) == {"limits": LIMITS}
    assert "--target-config=target.toml" in text
    assert WORDS in (folder / "badge.svg").read_text(encoding="utf-8")
    assert main(["verify", str(folder)]) == 0
    assert f"is {WORDS} under the profile classification" in capsys.readouterr().out


def test_a_registry_names_the_limits(folder: Path) -> None:
    made = manifest.read(folder)
    entry = entries.Entry(Folder(folder), "c", (), None, entries.Status.VALID)
    assert entry.message == f"classification {WORDS.removeprefix('conformant ')} 1"
    assert ("certified as", made.certified_as) in entry.facts


def test_other_limits_in_the_manifest_are_found(folder: Path) -> None:
    found = recording.load(folder / RECORDING)
    claimed = replace(manifest.read(folder), limits=None)
    assert list(rejudge.find_differences(found, read(folder / REPORT), claimed)) != []


def test_a_contradicted_limit_ends_the_certification(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.toml").write_text('[limits]\ndatatypes = ["FP32"]\n')
    assert run_certify(tmp_path / "c", f"--target-url={url}", f"--target-config={tmp_path / 't.toml'}") == 2
    assert "limits.datatypes: model rank0 of the server has INT32 tensors" in capsys.readouterr().err
