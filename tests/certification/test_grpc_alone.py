"""A certification of a server without an HTTP URL: its words say so, and its note has the command that made it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from conformance.commands.main import main
from tests.support.certify_runs import LABEL_OPTIONS, PRODUCT
from tests.support.servers import reserve_closed_port, run_bundled

pytestmark = pytest.mark.usefixtures("few_models_are_enough")
ALONE = "--profile=grpc-alone"


def test_a_server_without_a_url_is_certified_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with reserve_closed_port() as port:
        pass
    address = f"--target-grpc=127.0.0.1:{port}"
    with run_bundled(f"--grpc-port={port}", "--model=scores_labelled", program=PRODUCT):
        assert main(["certify", address, *LABEL_OPTIONS, ALONE, "-o", str(tmp_path / "c")]) == 0, capsys.readouterr()
    assert main(["verify", str(tmp_path / "c")]) == 0
    assert "P 1 by V is conformant under the profile grpc-alone" in capsys.readouterr().out
    assert "over gRPC alone" in (tmp_path / "c/badge.svg").read_text()
    command = shlex.split((tmp_path / "c/REPRODUCE.md").read_text().splitlines()[-1])
    assert command[:4] == ["oip-conformance", "certify", address, ALONE]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target-grpc=127.0.0.1:1"], "--profile=grpc-alone"),
        (["--target-url=http://127.0.0.1:1", "--target-grpc=127.0.0.1:1", ALONE], "omit the URL"),
        (["--client-adapter=true", ALONE], "is for servers"),
        ([], "certify needs the URL of a server, --target-grpc"),
    ],
)
def test_an_address_and_a_profile_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    label = [option for option in LABEL_OPTIONS if not option.startswith("--profile")]
    assert main(["certify", *label, *arguments, "-o", str(tmp_path / "c")]) == 2
    assert said in capsys.readouterr().err
