"""An installation without extras: what needs one says which in one line, with status 4, and nothing else needs any."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

import conformance
from conformance.certification import rejudge
from conformance.certification.manifest import Manifest
from conformance.commands.main import main
from conformance.spec import extras
from tests.support.certify_runs import LABEL_OPTIONS

ROOT = Path(__file__).parents[2]
# Extra -> what its packages are imported as; that none is there is what these tests pretend.
IMPORTED = {
    "completion": ("shtab",),
    "fleet": ("distributed", "dask"),
    "grpc": ("grpc", "h2", "hpack", "hyperframe", "google.protobuf", "tritonclient"),
    "signing": ("cryptography",),
}
OVER_GRPC = {
    "conformance.clients.peer.grpc_peer",
    "conformance.clients.recording.grpc_frames",
    "conformance.clients.recording.grpc_tap",
    "conformance.transport.grpc_connection",
}
DAY = "2026-11-01T00:00:00+00:00"
MADE = Manifest(
    vendor="V",
    product="P",
    product_version="1",
    contact="c",
    profile="full",
    suite={"version": "1", "digest": "0" * 64, "ledger": "1"},
    started=DAY,
    finished=DAY,
    expires="2027-11-01",
    key={"id": "0" * 64, "public_key": "", "lasting": False},
)
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({blocked}))
import conformance
missing = []
for module in pkgutil.walk_packages(conformance.__path__, "conformance."):
    if ".templates" not in module.name:
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError:
            missing.append(module.name)
print(*missing)
"""


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that no extra is installed."""
    for modules in extras.MODULES.values():
        for name in modules:
            monkeypatch.setitem(sys.modules, name, None)


def test_the_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    offered = set(project["optional-dependencies"]) - {"all", "dev", "fuzz"}
    assert offered == set(extras.MODULES) == set(IMPORTED)
    assert project["optional-dependencies"]["all"] == [f"oip-conformance[{','.join(sorted(offered))}]"]


def test_what_imports_the_packages_of_an_extra_is_loaded_where_they_are_needed_alone() -> None:
    blocked = [name for names in IMPORTED.values() for name in names]
    program = [sys.executable, "-c", IMPORT_ALL.format(blocked=blocked)]
    found = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
    assert set(found) == OVER_GRPC


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    ("arguments", "option", "extra"),
    [
        (
            ("certify", "--target-url=http://127.0.0.1:9", *LABEL_OPTIONS, "-o", "c", "--sign=key.pem"),
            "--sign",
            "signing",
        ),
        (("certify", "--target-url=http://127.0.0.1:9", *LABEL_OPTIONS, "-o", "c"), "a certification", "signing"),
        (
            ("certify", "--target-grpc=127.0.0.1:9", "--target-url=http://x", *LABEL_OPTIONS, "-o", "c"),
            "--target-grpc",
            "grpc",
        ),
        (("verify", ".", "--key=key.pem"), "--key", "signing"),
        (("client", "watch", "--grpc-port=0"), "--grpc-port", "grpc"),
        (("client", "watch", "--upstream-grpc=127.0.0.1:9"), "--upstream-grpc", "grpc"),
    ],
)
def test_a_command_says_which_extra_to_install(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    option: str,
    extra: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("manifest.json").write_text(MADE.to_json())
    assert main(arguments) == 4
    said = f"{option} needs the extra {extra}: pip install 'oip-conformance[{extra}]'"
    assert capsys.readouterr().err == f"oip-conformance: error: {said}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.usefixtures("plain")
def test_judge_says_which_extra_to_install() -> None:
    with pytest.raises(conformance.JudgeError) as raised:
        conformance.judge(grpc="127.0.0.1:9")
    assert str(raised.value) == "grpc needs the extra grpc: pip install 'oip-conformance[grpc]'"


@pytest.mark.usefixtures("plain")
def test_a_folder_that_cannot_be_verified_here_is_not_refused() -> None:
    now = datetime.now(UTC)
    made = SimpleNamespace(url="http://x", grpc="grpc://x:1", times=(now, now))
    report = {"target": {"url": "http://x"}, "started": now.isoformat(), "finished": now.isoformat()}
    with pytest.raises(extras.MissingExtraError, match="recording of calls over gRPC needs the extra grpc"):
        list(rejudge.find_differences(made, report, MADE))  # type: ignore[arg-type]
