"""Signed folders, and what `certify` says when it cannot do what is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from conformance.commands.main import main
from tests.support.certify_runs import LABEL_OPTIONS, run_certify

pytestmark = pytest.mark.usefixtures("few_models_are_enough")


def write_pair(folder: Path, name: str, key: Ed25519PrivateKey | X25519PrivateKey) -> None:
    """Write a pair of keys as PEM files, in the form that `openssl genpkey` and `openssl pkey -pubout` give them."""
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / f"{name}.pem").write_bytes(private)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub.pem").write_bytes(public)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs of keys, and one of another kind."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "theirs", "lab"):
        write_pair(folder, name, Ed25519PrivateKey.generate())
    write_pair(folder, "other", X25519PrivateKey.generate())
    return folder


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory, keys: Path, scoring: str) -> Path:
    folder = tmp_path_factory.mktemp("signed") / "c"
    third = ("--third-party=L", "--third-party-contact=l@m", f"--countersign={keys / 'lab.pem'}")
    assert run_certify(folder, f"--target-url={scoring}", "-n", "2", f"--sign={keys / 'ours.pem'}", *third) == 0
    return folder


def test_a_signature_is_verified_with_its_key_alone(
    signed: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(signed), "--key", str(keys / "ours.pub.pem")]) == 0
    assert f"signed with {keys / 'ours.pub.pem'} (" in capsys.readouterr().out
    assert main(["verify", str(signed), "--key", str(keys / "theirs.pub.pem")]) == 1
    assert "refused: the folder is signed with the key " in capsys.readouterr().out
    assert main(["verify", str(signed)]) == 0


def test_a_countersignature_is_verified_with_its_key_alone(
    signed: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(signed), "--third-party-key", str(keys / "lab.pub.pem")]) == 0
    assert "run and countersigned by L (l@m) with the key " in capsys.readouterr().out
    assert main(["verify", str(signed), "--third-party-key", str(keys / "ours.pub.pem")]) == 1
    assert "refused: the folder is not countersigned with the key " in capsys.readouterr().out
    (signed / "manifest.countersig").rename(tmp_path / "kept")
    assert main(["verify", str(signed)]) == 1
    assert "the folder is not signed: manifest.countersig is missing" in capsys.readouterr().out
    (tmp_path / "kept").rename(signed / "manifest.countersig")


def test_an_edited_manifest_is_refused_by_its_signature(
    tmp_path: Path, signed: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = signed / "manifest.json"
    text = path.read_text()
    path.write_text(text.replace('"vendor": "V"', '"vendor": "W"'))
    assert main(["verify", str(signed), "--key", str(keys / "ours.pub.pem")]) == 1
    assert "the manifest was changed, or somebody else signed it" in capsys.readouterr().out
    (signed / "manifest.sig").rename(tmp_path / "kept")
    assert main(["verify", str(signed), "--key", str(keys / "ours.pub.pem")]) == 1
    assert "the folder is not signed" in capsys.readouterr().out
    (tmp_path / "kept").rename(signed / "manifest.sig")
    path.write_text(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target-url=http://127.0.0.1:9", "--target-timeout=0.2"), None),
        (("--target-url=reference",), "the suite's own server, oip-reference-server, is not a product"),
        (("--target-url=http://x", "--alias-of", "q", "1"), "--alias-of and --alias-reason go together"),
        (("--target-url=http://x", "--third-party=L"), "--third-party, --third-party-contact and --countersign go"),
        (("--target-url=http://x", "--expires=soon"), "--expires soon: give a day as YYYY-MM-DD"),
        (("--target-url=http://x", "--expires=2001-01-01"), "--expires 2001-01-01: give a day from today to 2"),
        (("--target-url=http://x", "--container=latest"), "--container: this text is invalid or too long. The"),
        (("--target-url=http://x", "--contact=a\nb"), "--contact: this text is invalid or too long. Whom to"),
        (("--target-url=http://x", "--product-url=javascript:x"), "--product-url: this text is invalid"),
        (("--target-url=ftp://x",), "the run left no report: --target-url 'ftp://x' is not an http or https URL"),
        (("--target-config=gone.toml",), "--target-config gone.toml: No such file or directory"),
        ((), "certify needs the URL of a server, --target-grpc, --target-config, or --client-adapter"),
        (("--target-url=http://x", "-n", "-2"), "-n -2: a number of processes is at least 1"),
    ],
)
def test_what_cannot_be_run_is_one_line(
    tmp_path: Path, arguments: tuple[str, ...], message: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["certify", *LABEL_OPTIONS, *arguments, "-o", str(tmp_path / "c")])
    said = capsys.readouterr()
    if message is None:
        assert status == 6
        assert "P 1 is not certified for the profile classification: cannot connect to http://127.0.0.1:9" in said.out
    else:
        assert status == 2
        assert f"oip-conformance: error: {message}" in said.err


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").touch()
    assert main(["certify", "--target-url=reference", "--self-test", *LABEL_OPTIONS, "-o", str(tmp_path)]) == 2
    assert "is not empty: give a new folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_key_of_another_kind_is_one_line(
    signed: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_certify(tmp_path / "c", "--target-url=reference", f"--sign={keys / 'other.pem'}") == 2
    assert "no Ed25519 key; `openssl genpkey -algorithm ed25519` makes one" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()
    assert main(["verify", str(signed), "--key", str(keys / "other.pub.pem")]) == 2
    assert "other.pub.pem: no Ed25519 key" in capsys.readouterr().err
    assert main(["verify", str(signed), "--key", str(keys / "ours.pem")]) == 2
    assert "no public key in PEM" in capsys.readouterr().err
