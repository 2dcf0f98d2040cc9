"""A folder of the full profile over both transports fits into a pull request: a bound for each part of it.

A whole run costs a minute; its report is made up here, of every row. Of its recording it is seen that what comes again
is packed once, however far away: that makes 3.6 MB of 4.3. A registry takes no folder that is larger.
"""

from __future__ import annotations

import lzma
from base64 import b64encode
from pathlib import Path
from random import Random

from conformance.certification import sealing
from conformance.certification.manifest import PAGES, RECORDING, REPORT
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.conclusion import Conclusion
from conformance.judging.selection import list_profile_rows
from conformance.report.json_report import build
from conformance.spec.extensions import PROTOCOL, TRANSPORTS
from conformance.spec.outcome import Outcome
from conformance.spec.report import Report
from conformance.spec.result import CheckResult
from conformance.spec.verdict import Verdict
from tests.support.made_reports import CONFORMANT
from tests.support.registries import VENDOR_KEY, make_manifest

OF_REPORT = 1024 * 1024  # bytes, as docs/certification.md says


def whole_report() -> Report:
    """Return a report in which every row of the certify profile passes, after as many exchanges as a row has."""
    seconds = Random(7)
    results = [
        CheckResult(
            case.check.id, case.row.id, case.check.claim, case.check.area, PROTOCOL, Outcome.PASS, [*case.requirements],
            duration_s=round(seconds.random() / 100, 6), exchanges=4,
        )
        for case in list_profile_rows("certify", transports=TRANSPORTS)
    ]  # fmt: skip
    facts = {"options": CONFORMANT["options"], "started": CONFORMANT["started"], "finished": CONFORMANT["finished"]}
    verdict = Verdict("conformant", interoperable=True)
    return build(Conclusion(verdict, results), DiscoveryResult(), url="http://x", grpc="grpc://x:1", seed=0, **facts)


def test_the_report_of_a_whole_run_and_its_pages(tmp_path: Path) -> None:
    report = whole_report()
    recording = tmp_path / "r"
    recording.write_bytes(lzma.compress(b"{}"))
    (tmp_path / "c").mkdir()
    sealing.seal(tmp_path / "c", make_manifest(), report, recording, VENDOR_KEY)
    assert sum((tmp_path / "c" / name).stat().st_size for name in (REPORT, *PAGES)) < OF_REPORT


def test_what_a_recording_has_twice_is_packed_once(tmp_path: Path) -> None:
    """The window of a run's own packing, 1 MiB, does not reach from one area of the suite to the next."""
    length = 3 * 512 * 1024
    once = b64encode(Random(7).randbytes(length))
    recording = tmp_path / "r"
    recording.write_bytes(lzma.compress(once + once, preset=1))
    assert recording.stat().st_size > 1.9 * length
    (tmp_path / "c").mkdir()
    sealing.seal(tmp_path / "c", make_manifest(), CONFORMANT, recording, VENDOR_KEY)
    assert (tmp_path / "c" / RECORDING).stat().st_size < 1.1 * length
