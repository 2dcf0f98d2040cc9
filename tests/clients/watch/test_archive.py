"""A recording of clients is a HAR, and reading it again gives the same requests."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from conformance.clients.recording import archive
from conformance.clients.recording.records import RecordedAnswer, RecordedExchange
from conformance.transport.har import NAME, HarError
from conformance.wire.client_request import ClientRequest
from conformance.wire.grpc_request import GRPC_METHOD

RECORDED = [
    RecordedExchange(
        1,
        ClientRequest(
            "POST", "/v2/models/m/infer?a=b", (("X", "\xe4"), ("x", "2")), b"\0\xff{", "HTTP/1.0", trouble="cut"
        ),
        answer=RecordedAnswer(200, (("Y", "1"),), b"\0body", "HTTP/1.0"),
        elapsed=0.25,
        started="2026-01-02T03:04:05.678+00:00",
    ),
    RecordedExchange(
        2,
        ClientRequest("POST", "/v2/models/m/infer", is_chunked=True),
        is_whole=False,
        answer=RecordedAnswer(trouble="none"),
    ),
    RecordedExchange(
        3,
        ClientRequest(
            GRPC_METHOD, "/inference.GRPCInferenceService/ModelInfer", (("user-agent", "g"),), b"\n\1m", "HTTP/2"
        ),
        answer=RecordedAnswer(400, (("grpc-status", "3"),), b"", code="INVALID_ARGUMENT", details="no \u00e4"),
    ),
]


def written(folder: Path, *, stopped: str = "", strict: bool = False) -> Path:
    writer = archive.ArchiveWriter(folder, "http://127.0.0.1:1/base", "grpc://127.0.0.1:2", is_strict=strict)
    for one in reversed(RECORDED):
        writer.write(one, f"client {one.number}")
    writer.close(stopped)
    return folder / NAME


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = written(tmp_path / "new", stopped="interrupted", strict=True)
    assert archive.is_client_recording(file)
    found = archive.load(file)
    assert (found.url, found.grpc) == ("http://127.0.0.1:1/base", "grpc://127.0.0.1:2")
    assert (found.is_strict, found.stopped) == (True, "interrupted")
    assert [client for client, _ in found.requests] == ["client 1", "client 2", "client 3"]
    for (_, read), one in zip(found.requests, RECORDED, strict=True):
        assert (read.number, read.is_whole) == (one.number, one.is_whole)
        assert (read.received.path, read.received.headers) == (one.received.path, one.received.headers)
        assert (read.received.body, read.received.trouble) == (one.received.body, one.received.trouble)
        assert (read.received.method, read.received.is_chunked) == (one.received.method, one.received.is_chunked)
        assert read.answer is not None
        assert one.answer is not None
        assert (read.answer.status, read.answer.body) == (one.answer.status, one.answer.body)
        assert (read.answer.code, read.answer.details) == (one.answer.code, one.answer.details)
        assert read.answer.trouble == one.answer.trouble


def test_it_is_a_har_of_any_tool(tmp_path: Path) -> None:
    log = json.loads(lzma.decompress(written(tmp_path).read_bytes()))["log"]
    assert log["version"] == "1.2"
    entry = next(entry for entry in log["entries"] if entry["_call"] == 1)
    assert entry["startedDateTime"] == "2026-01-02T03:04:05.678+00:00"
    assert entry["request"]["url"] == "http://127.0.0.1:1/base/v2/models/m/infer?a=b"
    assert {"request", "response", "cache", "timings", "time"} <= set(entry)


def test_what_is_no_recording_of_clients_is_told_apart(tmp_path: Path) -> None:
    other = tmp_path / "other.har"
    for text in ("", "no JSON", "[]", '{"log": {"version": "1.2", "_target": "u", "entries": [\n]}}\n'):
        other.write_text(text)
        assert not archive.is_client_recording(other)
        with pytest.raises(HarError):
            archive.load(other)
    assert not archive.is_client_recording(tmp_path / "nowhere")
    with pytest.raises(HarError, match="No such file"):
        archive.load(tmp_path / "nowhere")


def test_one_that_was_broken_off_is_refused_in_a_line(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_bytes(file.read_bytes()[:-40])
    assert archive.is_client_recording(file)
    with pytest.raises(HarError, match="is no recording of clients"):
        archive.load(file)
