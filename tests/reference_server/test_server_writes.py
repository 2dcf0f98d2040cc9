"""How long bodies are put together."""

from __future__ import annotations

import pytest

from reference_server import byte_joining


@pytest.mark.parametrize("slice_", [1, 3, 100])
def test_long_parts_are_joined_as_short_ones_are(slice_: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_joining, "SLICE", slice_)
    parts: list[bytes | memoryview] = [b"abcd", memoryview(b"efghijk"), b"", b"l"]
    assert byte_joining.join_parts(parts) == b"abcdefghijkl"
    assert byte_joining.join_parts([]) == b""
