"""A recording with generated tensors, and with the trials that shrink one, is judged again without Hypothesis."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.certification import manifest, rejudge
from conformance.certification.manifest import RECORDING, REPORT
from conformance.commands.main import main
from conformance.report.report_file import read
from conformance.transport import recording
from tests.support.certify_runs import LABEL_OPTIONS, PRODUCT, SCORES_MODEL
from tests.support.servers import run_bundled

pytestmark = pytest.mark.usefixtures("few_rows_are_enough")
OPTIONS = (*LABEL_OPTIONS[:-1], "--profile=binary")


def test_a_failure_of_a_generated_tensor_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "c"
    with run_bundled(
        "--fault=strings-read-up-to-a-nul",
        SCORES_MODEL,
        "--model=identity_bytes",
        "--model=string_length",
        program=PRODUCT,
    ) as url:
        main(["certify", f"--target-url={url}", *OPTIONS, "-o", str(folder)])
    report = read(folder / REPORT)
    rows = [row for row in report["rows"] if row["check"] == "datatypes.generated-inputs-are-read"]
    (failed,) = [row for row in rows if row["outcome"] == "fail"]
    assert len(failed["exchanges"]) > 4
    for name in ("hypothesis", "conformance.roles.tensor_strategies"):
        monkeypatch.setitem(sys.modules, name, None)
    found = recording.load(folder / RECORDING)
    assert list(rejudge.find_differences(found, report, manifest.read(folder))) == []
