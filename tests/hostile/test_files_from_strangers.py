"""Files from strangers: each is read whole or refused with one sentence, at once, whatever its name leads to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.certification import manifest
from conformance.certification.manifest import CertificationError
from conformance.judging import baseline_file
from conformance.judging.baseline_file import BaselineError
from conformance.report import report_file
from conformance.report.report_file import ReportError
from conformance.spec import files
from conformance.transport import config
from conformance.transport.settings import SettingsError
from tests.hostile.special_files import make_device_link, make_folder, make_pipe


def nothing(path: Path) -> None:
    """Leave no file there."""


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00" * 10)


def deep(path: Path) -> None:
    path.write_text("a = " + "[" * 100_000)


def deep_json(path: Path) -> None:
    path.write_text("[" * 100_000)


def many_digits(path: Path) -> None:
    path.write_text("timeout = " + "1" * 5000)


def many_digits_json(path: Path) -> None:
    path.write_text('{"schema": ' + "1" * 5000 + "}")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(5 * 1024**3)


READERS: dict[str, tuple[Callable[[Path], object], type[Exception]]] = {
    "config": (config.load, SettingsError),
    "baseline": (baseline_file.load, BaselineError),
    "report": (report_file.read, ReportError),
    "manifest": (lambda path: manifest.read(path.parent), CertificationError),
}
MADE = (
    make_pipe,
    make_device_link,
    make_folder,
    nothing,
    no_text,
    deep,
    deep_json,
    many_digits,
    many_digits_json,
    huge,
)


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("reader", READERS)
def test_a_file_is_refused_with_one_line(tmp_path: Path, reader: str, make: Callable[[Path], None]) -> None:
    read, error = READERS[reader]
    path = tmp_path / manifest.NAME
    make(path)
    with pytest.raises(error) as refused:
        read(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    assert files.read_bytes(path, max_bytes=10) == b"x" * 10
    with pytest.raises(files.UnreadableError, match="is larger than 9 bytes"):
        files.read_bytes(path, max_bytes=9)
