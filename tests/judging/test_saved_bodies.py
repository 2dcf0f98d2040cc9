"""Bodies that are too long for a command, as files that are there."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from conformance.judging import evidence
from conformance.judging.evidence import SavedBodies


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_body_is_kept_once(tmp_path: Path) -> None:
    bodies = SavedBodies()
    assert list(tmp_path.iterdir()) == []
    first, again, other = bodies.keep(b"a" * 2000), bodies.keep(b"a" * 2000), bodies.keep(b"b" * 2000)
    assert first is not None
    assert other is not None
    assert first == again != other
    assert (Path(first).read_bytes(), Path(other).read_bytes()) == (b"a" * 2000, b"b" * 2000)


def test_there_is_room_for_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "MAX_SAVED_FILES", 2)
    bodies = SavedBodies()
    assert [bodies.keep(bytes([number])) is not None for number in (1, 2, 3, 1)] == [True, True, False, True]
    assert SavedBodies(_room=3).keep(b"four") is None


def test_where_nothing_can_be_written_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    assert SavedBodies().keep(b"a") is None
