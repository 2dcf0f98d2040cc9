"""What the tests of registries share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.certification import verifying


@pytest.fixture
def believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every folder verify but those named `forged`: made by hand, their recordings show nothing."""
    own = verifying.find_refusal_reasons

    def reasons(found: verifying.Folder, keys: verifying.RequiredSigners) -> Iterator[str]:
        return own(found, keys) if found.path.name == "forged" else iter(())

    monkeypatch.setattr(verifying, "find_refusal_reasons", reasons)
