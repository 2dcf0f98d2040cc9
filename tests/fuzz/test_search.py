"""The search finds the smallest input that breaks a property, and the corpus is small."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import __main__ as command
from tests.fuzz import search, targets
from tests.fuzz.http_input import HttpInput, golden_requests
from tests.fuzz.targets import CORPUS, TARGETS, Target

MAX_CORPUS_BYTES = 400_000


def lacks_a_word(data: bytes) -> None:
    assert b'"shape"' not in data


WRONG = Target("wrong", lacks_a_word, lambda: [b"abc" * 20])


def test_the_smallest_input_that_breaks_a_property_is_found() -> None:
    assert search.search(WRONG, 60, 1).broken == b'"shape"'


def test_the_same_inputs_are_tried_for_the_same_seed() -> None:
    tried: list[list[bytes]] = [[], [], []]
    for place, seed in enumerate((1, 1, 2)):
        search.search(Target("right", tried[place].append, lambda: [b"{}"]), 0, seed, inputs=150)
    assert tried[0] == tried[1] != tried[2]
    assert len(tried[0]) == 200


def test_what_is_found_is_left_in_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "CORPUS", tmp_path)
    monkeypatch.setitem(TARGETS, "wrong", WRONG)
    assert command.main(["wrong", "--seconds", "60", "--seed", "1"]) == 1
    assert [path.read_bytes() for path in WRONG.folder.iterdir()] == [b'"shape"']
    assert command.main(["json-tensors", "--seconds", "0", "--seed", "1"]) == 0


def test_an_input_is_what_it_was_made_of() -> None:
    for data in golden_requests():
        assert HttpInput.from_bytes(data).to_bytes() == data


def test_the_corpus_is_small_and_of_targets_that_are_there() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.glob("*/*")) < MAX_CORPUS_BYTES
