"""The tools of fuzzing: mutations that can be repeated, and a corpus that is as small as can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import smallest, target
from tests.fuzz.http_input import HttpInput, golden_requests
from tests.fuzz.mutator import mutate
from tests.fuzz.target import CORPUS, Target
from tests.fuzz.targets import TARGETS

MAX_CORPUS_BYTES = 400_000


def unchanged(data: bytes) -> bytes:
    return data


def test_a_mutation_is_the_same_for_the_same_seed() -> None:
    data = next(golden_requests())
    made = [mutate(data, seed, unchanged) for seed in range(200)]
    assert made == [mutate(data, seed, unchanged) for seed in range(200)]
    assert len(set(made)) > 150


def test_any_input_can_be_mutated() -> None:
    for data in (b"", b"\n", b"{}", b"\xff" * 10):
        assert {mutate(data, seed, unchanged) for seed in range(50)} != {data}


def test_mutations_keep_a_request_readable_often_enough() -> None:
    data = next(golden_requests())
    made = [HttpInput.of(mutate(data, seed, unchanged)) for seed in range(200)]
    assert sum(given.role == HttpInput.of(data).role for given in made) > 100


def test_an_input_is_what_it_was_made_of() -> None:
    for data in golden_requests():
        assert HttpInput.of(data).to_bytes() == data


def test_the_corpus_is_small_and_of_targets_that_are_there() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.glob("*/*")) < MAX_CORPUS_BYTES


def test_what_reaches_nothing_new_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "CORPUS", tmp_path)
    monkeypatch.setattr(smallest, "OURS", (__file__,))

    def holds(data: bytes) -> None:
        if data.startswith(b"a"):
            len(data)
        if data.startswith(b"ab"):
            len(data)

    made = Target("made", holds, lambda: [b""])
    assert smallest.keep_smallest(made, [b"", b"a", b"abc", b"aa", b"x", b"ab"]) == 2
    assert {path.read_bytes() for path in made.folder.iterdir()} == {b"a", b"ab"}
    assert smallest.keep_smallest(made, []) == 2
