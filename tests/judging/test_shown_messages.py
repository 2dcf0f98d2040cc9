"""The JSON that a failure shows: short, and whatever it is."""

from __future__ import annotations

import json

import pytest

from conformance.judging.message_rendering import MAX_ARRAY_ITEMS, shorten_json


def test_long_arrays_lose_their_tail() -> None:
    shown = json.loads(shorten_json(json.dumps({"data": list(range(100)), "shape": [100]}).encode()))
    assert shown == {"data": [*range(MAX_ARRAY_ITEMS), "... 94 more"], "shape": [100]}


def test_long_texts_and_many_members_are_cut() -> None:
    shown = json.loads(shorten_json(json.dumps({"id": "x" * 100, **{str(n): n for n in range(9)}}).encode()))
    assert shown["id"].endswith("(100 characters)")
    assert shown["..."] == "4 more"


@pytest.mark.parametrize("text", [b"", b"no JSON", b"[" * 5000, b"\xff\xfe", b"{}" * 3])
def test_what_is_no_json_is_shown_as_it_begins(text: bytes) -> None:
    assert shorten_json(text) == text.decode("utf-8", "replace")


def test_what_is_deep_ends() -> None:
    assert shorten_json(b"[" * 40 + b"]" * 40).count("[") == 8
