"""How long bodies are put together."""

from __future__ import annotations

import pytest

from reference_server import workers


@pytest.mark.parametrize("slice_", [1, 3, 100])
def test_long_parts_are_joined_as_short_ones_are(slice_: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "JOINED_BYTES", slice_)
    parts: list[bytes | memoryview] = [b"abcd", memoryview(b"efghijk"), b"", b"l"]
    assert workers.join_parts(parts) == b"abcdefghijkl"
    assert workers.join_parts([]) == b""
