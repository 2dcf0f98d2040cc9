"""A certification beside which a pack was judged: the manifest names the pack, and `verify` needs the same one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.certification import manifest
from conformance.commands.main import main
from conformance.judging import packs
from conformance.report.report_file import read
from conformance.roles import roles
from tests.support.certify_runs import PRODUCT, SCORES_MODEL, run_certify
from tests.support.installed_packs import write_pack
from tests.support.servers import run_bundled

pytestmark = pytest.mark.usefixtures("few_rows_are_enough")


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let packs be looked up again."""
    monkeypatch.setattr(packs, "_LOADED", {})
    monkeypatch.setattr(roles, "_OF_PACKS", {})
    for name in [name for name in sys.modules if name.partition(".")[0] == "oip_little_pack"]:
        del sys.modules[name]


def test_a_pack_is_recorded_and_the_same_one_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, place = tmp_path / "c", tmp_path / "installed"
    write_pack(place, {})
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.chdir(place)
    forget(monkeypatch)
    with run_bundled(SCORES_MODEL, "--model=identity_int32", program=PRODUCT) as url:
        run_certify(folder, url, "--target-extension=little")
    made, report = manifest.read(folder), read(folder / manifest.REPORT)
    assert made.packs == [packs.load("little").identity]
    assert [(pack["name"], pack["verdict"]) for pack in report["packs"]] == [("little", "nonconformant")]
    assert report["verdict"] == made.standing != "nonconformant"
    text = (folder / manifest.NOTE).read_text(encoding="utf-8")
    assert "# and the pack little 0.5" in text
    assert "--target-extension=little" in text
    capsys.readouterr()
    assert main(["verify", str(folder)]) == 0
    assert "beside it, the pack little 0.5" in capsys.readouterr().out
    source = place / "oip_little_pack" / "live.py"
    source.write_text(source.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    forget(monkeypatch)
    assert main(["verify", str(folder)]) == 1
    assert "refused: verification needs the pack little 0.5 (" in capsys.readouterr().out
    forget(monkeypatch)
    (place / "oip_little_pack-0.5.dist-info" / "entry_points.txt").unlink()
    assert main(["verify", str(folder)]) == 1
    assert "): the pack: unknown 'little'; give one of " in capsys.readouterr().out


def test_a_pack_of_the_target_file_is_recorded_with_the_model_of_its_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, place = tmp_path / "c", tmp_path / "installed"
    tensor = '[{ name = "X", datatype = "INT32", shape = [-1] }]'
    role = f'[little_x]\npurpose = "x"\ncompute = "identity"\ninputs = {tensor}\noutputs = {tensor}\n'
    write_pack(place, {"roles.toml": role})
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.chdir(place)
    forget(monkeypatch)
    model = '{ model = "identity_int32", inputs = { X = "INPUT" }, outputs = { X = "OUTPUT" } }'
    names = 'identity_int32 = "identity_int32"\nscores_labelled = "scores_labelled"'
    file = tmp_path / "target.toml"
    file.write_text(f'extensions = ["little"]\n[roles]\n{names}\nlittle_x = {model}\n', encoding="utf-8")
    with run_bundled(SCORES_MODEL, "--model=identity_int32", program=PRODUCT) as url:
        run_certify(folder, url, f"--target-config={file}")
    made = manifest.read(folder)
    assert made.packs == [packs.load("little").identity]
    assert "little_x" in (made.placements or {})
    forget(monkeypatch)
    assert main(["verify", str(folder)]) == 0


def test_extensions_of_the_suite_are_chosen_by_the_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_certify(tmp_path / "c", "http://127.0.0.1:9", "--target-extension=raw") == 2
    assert "--target-extension raw: --profile chooses the extensions" in capsys.readouterr().err
