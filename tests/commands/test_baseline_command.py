"""`oip-conformance baseline`, and the hook of pre-commit that runs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from conformance.commands.main import main
from conformance.judging.baseline_file import DEFAULT_REASON

ROOT = Path(__file__).parents[2]
ENTRY = '[[known]]\ncheck = "ordering.response-follows-its-json"\nreason = "r"\n'
LABEL = "ordering.response-follows-its-json [*]"


def test_baselines_that_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.toml").write_text(ENTRY + '[[known]]\nrequirement = "CLIENT-SENDS-POST"\nreason = "r"\n')
    (tmp_path / "b.toml").write_text('[[known]]\ncheck = "client*"\nrequirement = "OIP-ISOLATION"\nreason = "r"\n')
    status = main(["baseline", str(tmp_path / "a.toml"), str(tmp_path / "b.toml")])
    assert (status, capsys.readouterr().out) == (0, "2 baselines are valid\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[known]]\n", "known.0: 'reason' is a required property"),
        ("[[known]\n", "not TOML: Expected ']]' at the end of an array declaration (at line 1, column 8)"),
        (ENTRY.replace('"r"', f'"{DEFAULT_REASON}"'), f"{LABEL}: give a reason instead of {DEFAULT_REASON!r}"),
        (ENTRY + "expires = 2020-01-31\n", f"{LABEL}: expired on 2020-01-31"),
        (ENTRY.replace("its", "whose"), f"{LABEL.replace('its', 'whose')}: this suite has no such check"),
        (ENTRY + 'requirement = "BIN-X"\n', f"{LABEL}: this suite has no requirement BIN-X"),
        (ENTRY + ENTRY.replace('"r"', '"s"'), f"{LABEL}: is listed twice"),
        (ENTRY + ENTRY.replace("ordering.", "o*"), f"o*{LABEL[9:]}: belongs before {LABEL}"),
        (None, "No such file or directory"),
    ],
)
def test_what_does_not_hold_is_a_line_each(
    tmp_path: Path, text: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "b.toml"
    if text is not None:
        path.write_text(text)
    assert main(["baseline", "--sorted", str(path)]) == 1
    assert capsys.readouterr().out == f"{path}: {said}\n"


def test_the_hook_runs_the_command_on_baselines() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert set(hook) == {"id", "name", "description", "entry", "language", "files"}
    assert (hook["entry"], hook["language"]) == ("oip-conformance baseline", "python")
    found = [bool(re.search(hook["files"], name)) for name in ("baseline.toml", "ci/triton-baseline.toml", "a/b.toml")]
    assert found == [True, True, False]
    assert f"id: {hook['id']}" in (ROOT / "docs/ci.md").read_text(encoding="utf-8")
