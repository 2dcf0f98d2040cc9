"""`oip-conformance completion`: the scripts, and what bash completes with its own."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from conformance.commands import completion, main

# Completes a command line as bash does at the Tab key; its last word is the one to complete.
TAB = """
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
read -r _ _ _ _ function _ < <(complete -p oip-conformance)
"$function" 2> >(grep -v "compopt: not currently executing completion function" >&2)
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bash") / "oip-conformance"
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr(main, "_print_text", printed.append)
        assert main.main(["completion", "bash"]) == 0
    file.write_text(printed[0])
    return file


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("bug", "bug-report"),
        ("client wat", "watch"),
        ("run http://h:8000 --conformance-prof", "--conformance-profile"),
        ("run http://h:8000 --conformance-profile q", "quick"),
        ("client run --client-tim", "--client-timeout"),
        ("models export --format k", "kserve"),
        ("certify --profile c", "classification"),
        ("explain BIN-ORDER", "BIN-ORDER-I BIN-ORDER-O"),
        ("explain ordering.resp", "ordering.response-follows-its-json"),
        ("bug-report evidence BIN-ORDER-O", "BIN-ORDER-O"),
        ("completion ''", "bash zsh fish"),
        ("doctor http://h:8000 --target-ca ca", "ca.pem"),
    ],
)
def test_bash_completes(typed: str, completed: str, script: Path, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    words = ["oip-conformance", *shlex.split(typed)]
    done = subprocess.run(
        ["bash", "--norc", "-c", TAB, "bash", script, *words],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout.split(), done.stderr) == (completed.split(), "")


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_has_a_script_with_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    assert [name for name in main.COMMANDS if name not in printed] == []
    assert "--target-model" in printed.replace("-l target-model", "--target-model")
