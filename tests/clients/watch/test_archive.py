"""A recording of clients: it can be read again, and holds no credentials."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.clients.recording import archive
from conformance.clients.recording.masking import find_secrets, mask_answer, mask_request
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


def test_other_files_are_not_client_recordings(tmp_path: Path) -> None:
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
    with pytest.raises(HarError, match="is not a recording of clients"):
        archive.load(file)


# --- without credentials ----------------------------------------------------------------------------------------------


SECRET = "sesame-open-0123456789"  # noqa: S105 - made up
HEADERS = {
    "Authorization": f"Bearer {SECRET}",
    "Proxy-Authorization": f"Basic {SECRET}",
    "Cookie": f"a=b; session={SECRET}",
    "X-Api-Key": SECRET,
    "api_key": SECRET,
    "X-Auth-Token": SECRET,
    "x-goog-iam-authorization-token": SECRET,
}


@pytest.mark.parametrize("name", HEADERS)
def test_secret_header_value_is_masked(name: str) -> None:
    received = ClientRequest("POST", "/v2/models/m/infer", ((name, HEADERS[name]), ("X-A", "kept")), SECRET.encode())
    shown = mask_request(received)
    assert shown.headers == ((name, "..."), ("X-A", "kept"))
    assert SECRET.encode() not in shown.body
    assert len(shown.body) == len(received.body)
    assert SECRET in find_secrets(received)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"/v2/models/m/infer?api_key={SECRET}&a=b", "/v2/models/m/infer?api_key=...&a=b"),
        (f"/infer?a=b&access_token={SECRET}", "/infer?a=b&access_token=..."),
        (f"http://user:{SECRET}@host/v2", "http://...@host/v2"),
        (f"/v2/models/{SECRET}/infer?key={SECRET}", f"/v2/models/{'*' * len(SECRET)}/infer?key=..."),
        ("/v2/models/key/infer?a=token", "/v2/models/key/infer?a=token"),
    ],
)
def test_a_url_keeps_the_names_of_its_parameters(path: str, expected: str) -> None:
    assert mask_request(ClientRequest("POST", path)).path == expected


def test_short_or_numeric_secret_is_not_masked_in_body() -> None:
    body = b'{"inputs": [1234567890123456789]}'
    received = ClientRequest("POST", "/", (("X-Key", "inputs"), ("X-Token", "1234567890123456789")), body)
    assert mask_request(received).body == body


def test_secret_in_answer_is_masked() -> None:
    received = ClientRequest("POST", "/", (("Authorization", f"Bearer {SECRET}"),))
    answer = RecordedAnswer(
        401, (("Set-Cookie", "a=b"), ("X-Seen", SECRET)), f"no {SECRET}".encode(), details=f"no {SECRET}"
    )
    shown = mask_answer(answer, find_secrets(received))
    assert shown == replace(
        answer,
        headers=(("Set-Cookie", "..."), ("X-Seen", "*" * len(SECRET))),
        body=b"no " + b"*" * len(SECRET),
        details="no " + "*" * len(SECRET),
    )
