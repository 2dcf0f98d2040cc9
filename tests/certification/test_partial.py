"""A server of which nothing failed, and not everything was judged: what its certification has on its face."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from conformance.certification.manifest import NOTE, read
from conformance.commands.main import main
from tests.support.certify_runs import run_certify
from tests.support.forging import Edit, FolderContents, forge, load

pytestmark = pytest.mark.usefixtures("few_rows_are_enough")


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory, scoring: str) -> Path:
    folder = tmp_path_factory.mktemp("partial") / "c"
    with redirect_stdout(StringIO()) as said:
        assert run_certify(folder, f"--target-url={scoring}") == 0
    assert "P 1 is certified as partial (" in said.getvalue()
    return folder


def test_its_coverage_stands_everywhere(partial: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coverage = read(partial).coverage
    assert coverage is not None
    met, of = coverage["met"], coverage["of"]
    assert 0 < met < of
    assert main(["verify", str(partial)]) == 0
    said = capsys.readouterr().out.splitlines()
    label = f"partial ({met} of {of} MUSTs judged and met)"
    assert said[0].startswith(f"verified: P 1 by V is {label} under the profile classification, ")
    assert re.match(rf"not everything was judged: {of - met} MUSTs not judged \(deploy ", said[1])
    note = (partial / NOTE).read_text()
    assert f"certified as partial: it meets {met} of the {of} MUSTs that\napply" in note
    assert "--conformance-gate" not in note
    assert f">partial {met}/{of}<" in (partial / "badge.svg").read_text()


def test_it_is_not_certified_as_conformant(tmp_path: Path, scoring: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_certify(tmp_path / "d", f"--target-url={scoring}", "--conformance-gate=conformant") == 6
    said = capsys.readouterr().out
    assert "P 1 is not certified for the profile classification: " in said
    assert "MUSTs not judged (deploy " in said
    roles = [f"--role {one['role']}" for one in load(tmp_path / "d").report["coverage"]["deploy"] if one["musts"]]
    assert "\nTo judge every MUST, deploy the models that this command writes: " in said
    assert f"oip-conformance models export --format FORMAT {' '.join(roles)} DIR\n" in said
    assert said.rstrip().endswith("It can be certified as partial, without --conformance-gate")


def call_whole(found: FolderContents) -> None:
    """Make what was not judged something that does not apply."""
    for entry in found.report["requirements"]:
        entry.pop("unjudged", None)
    coverage = found.manifest["coverage"]
    coverage["of"] = coverage["met"]


FORGED: dict[str, tuple[Edit, str]] = {
    "called-conformant": (
        lambda found: found.manifest.update(standing="conformant", coverage=None),
        "refused: the verdict is partial: ",
    ),
    "called-interoperable": (
        lambda found: found.manifest.update(standing="interoperable", coverage=None),
        "refused: the verdict is partial: ",
    ),
    "without-coverage": (
        lambda found: (found.manifest.update(coverage=None), vars(found).update(note="of what cannot be written")),
        "manifest.json is no manifest: $",
    ),
    "more-than-was-judged": (
        lambda found: found.manifest["coverage"].update(met=found.manifest["coverage"]["of"]),
        "refused: the manifest and the report differ in the number of judged MUSTs",
    ),
    "a-conformant-report": (
        lambda found: (
            found.manifest.update(standing="conformant", coverage=None),
            found.report.update(verdict="conformant", why=[], interoperable=True),
            found.report.pop("coverage"),
        ),
        " MUSTs are not judged: OIP-MODEL-METADATA, HTTP-LENGTH, ",
    ),
    "nothing-is-missing": (call_whole, "the report's requirements is not what its recording shows"),
}


@pytest.mark.parametrize("name", FORGED)
def test_nothing_makes_it_more_than_it_is(
    name: str, partial: Path, tmp_path: Path, refused: Callable[[str], None]
) -> None:
    edit, reason = FORGED[name]
    forge(load(partial), partial, tmp_path, edit)
    refused(reason)


def test_the_manifest_of_one_that_is_not_partial_has_no_coverage(honest: Path) -> None:
    assert json.loads((honest / "manifest.json").read_text())["coverage"] is None
