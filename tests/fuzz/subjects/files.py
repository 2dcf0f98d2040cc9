"""Files of strangers: each is read whole, or refused with one safe line."""

from __future__ import annotations

import json
import math
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from conformance.certification import manifest
from conformance.certification.manifest import CertificationError
from conformance.clients.adapter import AdapterCall
from conformance.clients.answers.script import HttpAnswer
from conformance.clients.inference import ClientOutput, Introduction, Result
from conformance.clients.line_process import AdapterHangsError
from conformance.clients.peer.scenario import ReceivedRequest
from conformance.clients.recording import calls
from conformance.fleet import fleet_file, units
from conformance.fleet.fleet_file import FleetError
from conformance.judging import baseline_file
from conformance.judging.baseline_file import BaselineError
from conformance.report import formats, report_file
from conformance.report.report_file import ReportError
from conformance.transport import config, har, settings
from conformance.transport.har import HarError
from conformance.transport.har_bodies import BodyWriter
from conformance.transport.recording import load as load_recording
from conformance.transport.settings import SettingsError
from conformance.wire.client_request import ClientRequest
from conformance.wire.tensor import Tensor
from tests.fuzz.subjects import expect_read_or_refused
from tests.support import small_reports
from tests.support.registries import make_full_manifest, make_manifest

ROOT = Path(__file__).parents[3]


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is gone when the process ends."""
    return tempfile.TemporaryDirectory(prefix="oip-fuzz-")


def read_or_refused(name: str, data: bytes, read: Callable[[Path], object], honest: type[Exception]) -> None:
    """Assert that a file with these bytes is read, or refused with a line."""
    path = Path(_folder().name) / name
    path.write_bytes(data)
    expect_read_or_refused(lambda: read(path), honest)


def recording(data: bytes) -> None:
    """A recording is read, or refused."""
    read_or_refused(har.PLAIN_NAME, data, load_recording, HarError)


def baseline(data: bytes) -> None:
    """A baseline is read, and can be brought up to date, or it is refused."""
    read_or_refused("baseline.toml", data, _updated, BaselineError)


def _updated(path: Path) -> None:
    baseline_file.load(path)
    text = baseline_file.update_text(path.read_text(encoding="utf-8"), [])
    assert baseline_file.update_text(text, []) == text


def target_config(data: bytes) -> None:
    """A target's file is read, and what it says makes settings, or it is refused."""
    read_or_refused("target.toml", data, _settings, SettingsError)


def _settings(path: Path) -> None:
    found = config.load(path)
    settings.make_settings(found.url or "", found.headers, timeout=found.timeout or 10.0, grpc=found.grpc)


def fleet(data: bytes) -> None:
    """The file of a fleet is read, and each of its targets makes a unit of work, or it is refused."""
    read_or_refused("fleet.toml", data, _fleet, FleetError)


def _fleet(path: Path) -> None:
    for unit in units.make_units(fleet_file.load(path), here=True):
        assert math.isfinite(unit.seconds)
        assert tomllib.loads(unit.target)


def manifests(data: bytes) -> None:
    """A manifest is read, and written again says the same, or it is refused."""
    read_or_refused(manifest.NAME, data, _manifest, CertificationError)


def _manifest(path: Path) -> None:
    found = manifest.read(path.parent)
    path.write_text(found.to_json(), encoding="utf-8")
    assert manifest.read(path.parent) == found


def report(data: bytes) -> None:
    """A report is read, and a page can be made of it, or it is refused."""
    read_or_refused("report.json", data, _page, ReportError)


def _page(path: Path) -> None:
    found = report_file.read(path)
    for suffix in (".md", ".svg"):
        formats.write(found, path.with_suffix(suffix))


# --- where to begin --------------------------------------------------------------------------------------------------


def certified() -> Iterator[bytes]:
    """Yield manifests."""
    yield make_manifest().to_json().encode()
    yield make_full_manifest().to_json().encode()


def reports() -> Iterator[bytes]:
    """Yield small reports."""
    failed = small_reports.check("ordering.x", "r", "fail", "no", "BIN-ORDER-O")
    unmet = small_reports.requirement("BIN-ORDER-O", "MUST", "fail")
    yield json.dumps(small_reports.report()).encode()
    yield json.dumps(small_reports.report(checks=[failed], requirements=[unmet])).encode()


def client_recording(data: bytes) -> None:
    """The recording of a client is read, or refused."""
    read_or_refused(har.PLAIN_NAME, data, calls.load, HarError)


def client_recordings() -> Iterator[bytes]:
    """Yield a recording with a call whose request came, and with one that was refused."""
    received = ClientRequest("POST", "/v2/models/m/infer", (("Host", "h"),), b"{}")
    answer = ReceivedRequest(received, HttpAnswer((b"",), 200, (("A", "b"),), b"{}"), "http://127.0.0.1:1")
    tensor = Tensor.from_values("O", "INT8", [1])
    asked = AdapterCall("http", "", (), False, 1.0, (Result((ClientOutput("O", tensor),)),), None, ((0, answer),), True)
    broken = AdapterCall("http", "", (), False, 1.0, error=AdapterHangsError("no answer", ["line"]))
    made = settings.make_settings("http://127.0.0.1:1")
    log = {"_target": "http://127.0.0.1:1", "_party": "client", "_client": Introduction("c").to_dict()}
    entries = []
    for index, one in enumerate((asked, broken)):
        call, own = calls.build_entries("c[r]", index, one)
        entries += [
            {**entry, **more} for entry, more in zip(har.make_entries(call, made, BodyWriter()), own, strict=True)
        ]
    yield "".join(har.format_document(log, entries)).encode("ascii")
