"""A folder of the full profile over both transports fits into a pull request: a bound for each part of it.

A whole run costs a minute; its report is kept in docs/results. Of its recording it is seen that what comes again is
packed once, however far away: that makes 3.6 MB of 4.3. A registry takes no folder that is larger.
"""

from __future__ import annotations

import json
import lzma
from base64 import b64encode
from pathlib import Path
from random import Random
from typing import Any

from conformance.certification import sealing
from conformance.certification.manifest import PAGES, RECORDING, REPORT
from conformance.judging.selection import collected_rows
from conformance.terms.extensions import TRANSPORTS
from tests.support.made_manifests import VENDOR_KEY, made_manifest
from tests.support.made_reports import CONFORMANT

ROOT = Path(__file__).parents[2]
OF_REPORT = 1_000_000


def test_the_report_of_a_whole_run_and_its_pages(tmp_path: Path) -> None:
    report: dict[str, Any] = json.loads((ROOT / "docs/results/reference.json").read_text())
    assert {(row["check"], row["row"]) for row in report["rows"]} >= {
        (check.id, row.id) for check, row in collected_rows("certify", transports=TRANSPORTS)
    }
    recording = tmp_path / "r"
    recording.write_bytes(lzma.compress(b"{}"))
    (tmp_path / "c").mkdir()
    sealing.seal(tmp_path / "c", made_manifest(), report, recording, VENDOR_KEY)
    assert sum((tmp_path / "c" / name).stat().st_size for name in (REPORT, *PAGES)) < OF_REPORT


def test_what_a_recording_has_twice_is_packed_once(tmp_path: Path) -> None:
    """The window of a run's own packing, 1 MiB, does not reach from one area of the suite to the next."""
    length = 3 * 512 * 1024
    once = b64encode(Random(7).randbytes(length))
    recording = tmp_path / "r"
    recording.write_bytes(lzma.compress(once + once, preset=1))
    assert recording.stat().st_size > 1.9 * length
    (tmp_path / "c").mkdir()
    sealing.seal(tmp_path / "c", made_manifest(), CONFORMANT, recording, VENDOR_KEY)
    assert (tmp_path / "c" / RECORDING).stat().st_size < 1.1 * length
