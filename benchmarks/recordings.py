"""A certification folder verified: its recording is read, and judged again."""

from __future__ import annotations

import json
import lzma

from benchmarks.children import SUITE, bundled, folder, run
from benchmarks.ratio import Measured, benchmark, seconds
from benchmarks.runs import WHO
from conformance.certification.manifest import RECORDING


@benchmark("verify", "judging a recording again", "reading it with `json.loads`", reach=1.5)
def verify() -> Measured:
    """The whole command, start to end."""
    with bundled() as server, folder() as into:
        run(*SUITE, "certify", "--self-test", f"--target-url={server.url}", *WHO, "-o", "certified", folder=into)
        recording = into / "certified" / RECORDING
        ours, _ = run(*SUITE, "verify", "certified", folder=into)
        theirs = min(seconds(lambda: json.loads(lzma.decompress(recording.read_bytes()))) for _ in range(3))
    return Measured(ours, theirs)
