"""Files of strangers: each is read whole, or refused with one safe line."""

from __future__ import annotations

import json
import lzma
import math
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from conformance.certification import manifest
from conformance.certification.manifest import CertificationError
from conformance.fleet import fleet_file, units
from conformance.fleet.fleet_file import FleetError
from conformance.judging import baseline_file
from conformance.judging.baseline_file import BaselineError
from conformance.report import formats, report_file
from conformance.report.report_file import ReportError
from conformance.transport import config, har, settings
from conformance.transport.har import HarError
from conformance.transport.recording import load as load_recording
from conformance.transport.settings import SettingsError
from tests.fuzz.refusal import expect_read_or_refused
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
    path.write_text(found.text(), encoding="utf-8")
    assert manifest.read(path.parent) == found


def report(data: bytes) -> None:
    """A report is read, and a page can be made of it, or it is refused."""
    read_or_refused("report.json", data, _page, ReportError)


def _page(path: Path) -> None:
    found = report_file.read(path)
    for suffix in (".md", ".svg"):
        formats.write(found, path.with_suffix(suffix))


# --- where to begin --------------------------------------------------------------------------------------------------


def recordings() -> Iterator[bytes]:
    """Yield a recording of one exchange over HTTP and one over gRPC."""
    entry: dict[str, Any] = {
        "startedDateTime": "2026-01-02T03:04:05.000+00:00",
        "time": 1.5,
        "request": {
            "method": "POST",
            "url": "http://h/v2/models/m/infer",
            "headers": [{"name": "Content-Type", "value": "application/json"}],
            "postData": {"mimeType": "", "text": "e30=", "_encoding": "base64"},
        },
        "response": {
            "status": 200,
            "httpVersion": "HTTP/1.1",
            "headers": [],
            "content": {"size": 2, "text": "e30=", "encoding": "base64"},
        },
        "_scope": "a.check[row]",
        "_call": 0,
        "_place": 0,
    }
    grpc = entry | {"_grpc": {"code": "OK", "details": ""}, "_call": 1, "_failure": "x", "_failure_kind": "broken"}
    for entries in ([entry], [entry, grpc], [entry | {"_lost": "gone", "_died": True, "_go_ahead": "given"}], []):
        log = {"version": "1.2", "_target": "http://h", "_grpc": "grpc://h:1", "entries": entries}
        yield json.dumps({"log": log}).encode()
    shared = {"_sha256": sha256(b"{}").hexdigest()}
    content = entry["response"] | {"content": entry["response"]["content"] | shared}
    excerpt = {"_sha256": "0" * 64, "_length": 99, "_head": "e30=", "_tail": "e30="}
    said_again = [
        entry | {"response": content},
        entry | {"_call": 1, "response": entry["response"] | {"content": shared}},
    ]
    for entries in (said_again, [entry | {"response": entry["response"] | {"content": excerpt}}]):
        own = "".join(har.format_document({"version": "1.2", "_target": "http://h"}, entries)).encode()
        yield from (own, lzma.compress(own))


def baselines() -> Iterator[bytes]:
    """Yield baselines with each of their members."""
    yield baseline_file.FILE_HEADER.encode()
    yield b"""advice = true
# a comment
[[known]]
check = "ordering.response-follows-its-json"
rows = ["a", "b*"]
requirement = "BIN-ORDER-O"
reason = "known"
expires = 2027-01-31
"""
    yield b'known = [{check = "a.b", rows = "*", reason = "r"}]\n'


def configs() -> Iterator[bytes]:
    """Yield the example of the README, and each other member."""
    yield b"""url = "https://user:pass@gateway/models"
grpc = "grpcs://gateway:8443"
timeout = 30
never = ["state.*"]
extensions = ["raw"]
[headers]
X-Key = "value"
[tls]
ca = "ca.pem"
insecure = true
[roles]
identity_int32 = "echo-int"
multi = { model = "four", version = "3", inputs = { IN_BOOL = "flags" }, outputs = { OUT_BOOL = "flags_out" } }
[models.resnet50.inputs.A]
shape = [1]
data = [1]
datatype = "INT8"
"""
    yield b'url = "http://[::1]:80/${HOME}"\n'


def fleets() -> Iterator[bytes]:
    """Yield fleets with a target of each kind, and each member."""
    yield b"""profile = "quick"
strict = true
workers = 3
keep = 2
evidence = false
baselines = "b"
[defaults]
timeout = 5
rate = 0.5
models = ["a", "b"]
headers = { Authorization = "Bearer ${HOME}", X-Key = "value" }
limits = { connections = 2, time = 60, retries = 2, retry_pause = 1 }
[targets.eu]
url = "https://user:pass@eu/models"
grpc = "grpcs://eu:8443"
models = "all"
[targets.us]
url = "http://[::1]:80/${HOME}"
[discover]
urls = ["http://a", "http://a:1/b"]
"""
    yield b'[targets.a]\nfile = "t.toml"\n[discover]\nfile = "urls"\n'


def certified() -> Iterator[bytes]:
    """Yield manifests."""
    yield make_manifest().text().encode()
    yield make_full_manifest().text().encode()


def reports() -> Iterator[bytes]:
    """Yield small reports."""
    failed = small_reports.check("ordering.x", "r", "fail", "no", "BIN-ORDER-O")
    unmet = small_reports.requirement("BIN-ORDER-O", "MUST", "fail")
    yield json.dumps(small_reports.report()).encode()
    yield json.dumps(small_reports.report(checks=[failed], requirements=[unmet])).encode()
