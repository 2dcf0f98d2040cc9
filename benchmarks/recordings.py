"""A certification folder verified: its recording is read, and judged again."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

from benchmarks.children import SUITE, bundled, folder, run
from benchmarks.ratio import Measured, benchmark, seconds
from benchmarks.runs import WHO


@benchmark("verify", "judging a recording again", "reading it with `json.loads`", reach=1.5)
def verify() -> Measured:
    """The whole command, start to end."""
    with bundled() as server, folder() as into:
        run(*SUITE, "certify", "--self-test", f"--target-url={server.url}", *WHO, "-o", "certified", folder=into)
        recording = next((into / "certified").glob("run.har*"))
        ours, _ = run(*SUITE, "verify", "certified", folder=into)
        theirs = min(seconds(lambda: json.loads(_text(recording))) for _ in range(3))
    return Measured(ours, theirs)


def _text(recording: Path) -> bytes:
    content = recording.read_bytes()
    return lzma.decompress(content) if recording.suffix == ".xz" else content
