"""A server that is interoperable and not conformant: what it can be certified as, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.certification.manifest import read
from conformance.commands.main import main
from tests.support.certify_runs import MISSES_A_REFUSAL, PRODUCT, SCORES_MODEL, run_certify
from tests.support.forging import forge, load
from tests.support.servers import run_bundled

pytestmark = pytest.mark.usefixtures("few_models_are_enough")


def test_it_is_verified_as_what_it_is(interoperable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(interoperable)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("verified: P 1 by V is interoperable under the profile classification, ")
    assert (
        said[1] == "every MUST about exchanges and the transport is met; of the others, 1 MUST is not met: OIP-REFUSAL"
    )
    note = (interoperable / "REPRODUCE.md").read_text()
    assert "certified as interoperable" in note
    assert "--conformance-gate=interoperable" in note
    assert ">interoperable " in (interoperable / "badge.svg").read_text()


def test_it_is_not_conformant_by_its_manifest(
    interoperable: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forge(load(interoperable), interoperable, tmp_path, lambda found: found.manifest.update(standing="conformant"))
    assert main(["verify", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "refused: the verdict is nonconformant but interoperable: " in said
    assert "refused: 1 MUST is not met: OIP-REFUSAL" in said


def test_it_is_not_certified_unless_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with run_bundled(*MISSES_A_REFUSAL, program=PRODUCT) as url:
        assert run_certify(tmp_path / "c", f"--target-url={url}") == 1
    said = capsys.readouterr().out
    assert "P 1 is not certified for the profile classification: " in said
    assert said.rstrip().endswith("It can be certified as interoperable: --conformance-gate=interoperable")
    assert main(["verify", str(tmp_path / "c")]) == 1


def test_a_conformant_server_is_certified_as_that(
    honest: Path, scoring: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_certify(tmp_path / "c", f"--target-url={scoring}", "--conformance-gate=interoperable") == 0
    assert "P 1 is certified for the profile classification. " in capsys.readouterr().out
    assert read(tmp_path / "c").standing == read(honest).standing == "conformant"


def test_a_server_that_is_neither_is_not_certified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with run_bundled("--fault", "first-label-is-taken-for-a-heading", SCORES_MODEL, program=PRODUCT) as url:
        assert run_certify(tmp_path / "c", f"--target-url={url}", "--conformance-gate=interoperable") == 1
    assert "P 1 is not certified as interoperable for the profile classification: " in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "c")]) == 1
    assert "refused: the verdict is nonconformant: " in capsys.readouterr().out
