"""The body of an answer as a file of the evidence: whole, or where it is long its head, its tail, length and digest."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.transport.har_bodies import JUDGED_LIMIT, Excerpt, shorten


def write_body(folder: Path, name: str, body: bytes) -> None:
    """Write a body as `NAME.bin`, or what is kept of it as `NAME.head.bin`, `NAME.tail.bin` and `NAME.json`.

    Raises:
        OSError: it cannot be written.
    """
    kept = shorten(body, JUDGED_LIMIT)
    if not isinstance(kept, Excerpt):
        (folder / f"{name}.bin").write_bytes(body)
        return
    (folder / f"{name}.head.bin").write_bytes(kept[: kept.head])
    (folder / f"{name}.tail.bin").write_bytes(kept[kept.head :])
    about = {"length": kept.length, "sha256": kept.digest}
    (folder / f"{name}.json").write_text(json.dumps(about) + "\n", encoding="ascii")
