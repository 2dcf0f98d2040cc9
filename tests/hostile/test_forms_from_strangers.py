"""One member of another form, in what strangers hand to us: what comes of it is a verdict or one sentence, at once."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.certification import manifest
from conformance.clients.recording import archive
from conformance.commands import evidence_reader
from conformance.commands.main import main
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.report import comparison_page, formats, history
from conformance.report.comparison import compare
from conformance.report.report_file import read as read_report
from conformance.report.simple_page import render_markdown
from conformance.roles import roles
from conformance.spec.user_error import UserError
from conformance.transport import har, recording
from conformance.transport.har import HarError, validate_entry
from tests.hostile.special_files import make_device_link, make_folder, make_pipe
from tests.support.registries import make_full_manifest
from tests.support.results import summarize
from tests.support.servers import JsonOnly, serve
from tests.support.small_reports import check, report, requirement

# What stands in the place of a member, and of an element.
ODD: tuple[Any, ...] = (None, "", "\x00\n\ud800", [], {}, -1, 10**400, float("inf"), True, [[[[{}]]]])
REFUSALS = (HarError, UserError)


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where every member and element of a document is."""
    members = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, member in members:
        yield (*path, name)
        yield from places(member, (*path, name))


def with_odd(document: Any, each: int) -> Iterator[Any]:
    """Yield the document with odd values in each place, every so many of them, and without the member that is there."""
    for number, path in enumerate(places(document)):
        for odd in (*ODD, "gone")[number % each :: each]:
            changed = copy.deepcopy(document)
            parent = changed
            for name in path[:-1]:
                parent = parent[name]
            if odd == "gone":
                del parent[path[-1]]
            else:
                parent[path[-1]] = odd
            yield changed


ENTRY = {
    "startedDateTime": "2026-01-01T00:00:00+00:00",
    "time": 1.5,
    "request": {
        "method": "POST",
        "url": "http://x/v2",
        "headers": [{"name": "a", "value": "b"}],
        "postData": {"mimeType": "", "text": "YQ==", "_encoding": "base64"},
    },
    "response": {
        "status": 200,
        "httpVersion": "HTTP/1.1",
        "headers": [{"name": "a", "value": "b"}],
        "content": {"text": "YQ==", "encoding": "base64"},
    },
    "_scope": "survey",
    "_call": 0,
    "_place": 0,
    "_note": "n",
    "_go_ahead": "given",
    "_failure": "broken",
    "_failure_kind": "broken",
    "_short_wait": True,
    "_grpc": {"code": "OK", "details": ""},
}
RECEIVED = {"path": "/v2", "version": "1.1", "chunked": False, "trouble": "", "whole": True}
TENSOR = {"name": "a", "datatype": "INT32", "shape": [1]}
MODEL = {
    "name": "m", "inputs": [TENSOR], "outputs": [TENSOR], "sent": [{**TENSOR, "bytes": "AQAAAA=="}],
    "declared": {"a": "INT32"}, "binary_only": [], "unsteady": [], "trouble": "", "refusal": "", "missing": "",
    "json_trouble": "", "demands": "", "samples": [], "varies": True, "takes_counts": False, "by_place": False,
    "is_described": True,
}  # fmt: skip
EXCHANGE = {
    "path": "/v2", "method": "GET", "sent_headers": [["a", "b"]], "sent": "", "url": "http://x", "status": 500,
    "headers": [["a", "b"]], "body": "", "failure": ["timeout", "late"], "code": "", "details": "",
}  # fmt: skip
EVIDENCE = {
    "check": "ordering.response-follows-its-json", "row": "", "url": "http://x",
    "placements": {"multi": {"model": "m", "version": "", "inputs": {"a": "b"}, "outputs": {}}},
    "survey": {
        **DiscoveryResult(name="n", listed=["raw"], offered={"raw": "works"}, roles={"multi": "m"}).to_dict(),
        "models": {"m": MODEL}, "broken": [{"scope": "s", "lost": "", "reply": EXCHANGE, "again": EXCHANGE}],
    },
}  # fmt: skip
REPORT = report(
    requirements=[requirement("BIN-ORDER-O", "MUST", "fail")],
    rows=[check("ordering.x", "a", "fail", unmet="BIN-ORDER-O")],
)
MANIFEST = json.loads(make_full_manifest().to_json())


def of_server(path: Path) -> object:
    return recording.load(path)


def of_clients(path: Path) -> object:
    return archive.load(path)


def of_manifest(path: Path) -> object:
    return manifest.read(path.parent)


def pages(path: Path) -> object:
    """Read a report and make every page of it."""
    found = read_report(path)
    return [make(found) for make in formats.FORMATS.values()], pages_of_several(path)


def pages_of_several(path: Path) -> object:
    """Read a report, or a summary, and make the pages that show several."""
    found = read_report(path, is_whole=False)
    compared = comparison_page.build_page(compare([("a", found), ("b", found)]))
    return render_markdown(compared), render_markdown(history.build_page(history.build_history([("a", found)])))


DOCUMENTS: dict[str, tuple[Callable[[Path], object], Any]] = {
    "recording": (of_server, {"log": {"_target": "http://x", "_grpc": "", "entries": [ENTRY]}}),
    "watched": (
        of_clients,
        {
            "log": {
                "_target": "http://x", "_grpc": "", "_strict": False, "_stopped": "", "_watched": True,
                "entries": [{**ENTRY, "_client": "c", "_received": RECEIVED}],
            }
        },
    ),
    "manifest": (of_manifest, MANIFEST),
    "report": (pages, REPORT),
    "summary": (pages_of_several, summarize(REPORT)),
    "evidence": (evidence_reader.read, EVIDENCE),
}  # fmt: skip


# Of so many odd values one, where a document has many places or takes long to be read.
EVERY = {"recording": 1, "watched": 3, "manifest": 1, "report": 5, "summary": 4, "evidence": 4}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_an_odd_member_is_read_or_refused_with_a_sentence(tmp_path: Path, kind: str) -> None:
    read, document = DOCUMENTS[kind]
    path = tmp_path / manifest.NAME
    path.write_text(json.dumps(document))
    read(path)
    refused = 0
    for odd in with_odd(document, EVERY[kind]):
        path.write_text(json.dumps(odd))
        said = refusal(read, path)
        refused += bool(said)
        assert "\n" not in said
        assert len(said) < 1000
    assert refused > 20


def refusal(read: Callable[[Path], object], path: Path) -> str:
    """Return why a file is refused; empty where it is read. Any other error is one of ours."""
    try:
        read(path)
    except REFUSALS as error:
        return str(error)
    return ""


NOT_READ = {"mimeType"}


@pytest.mark.parametrize("path", [path for path in places(ENTRY) if path[-1] not in NOT_READ], ids=str)
def test_every_member_of_an_entry_that_is_read_has_its_type(path: tuple[Any, ...]) -> None:
    """What got past here would be a traceback in the middle of judging, or a verdict on what nobody sent."""
    changed = copy.deepcopy(ENTRY)
    parent: Any = changed
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = [[[[{}]]]]
    with pytest.raises(ValueError, match=r"is not an object|has the wrong type"):
        validate_entry(changed)


# --- commands --------------------------------------------------------------------------------------------------------


def deep(path: Path) -> None:
    path.write_text("[" * 100_000)


@pytest.mark.parametrize("make", [make_pipe, make_device_link, make_folder, deep])
@pytest.mark.parametrize("name", ["check.json", "run.har", "a.json"])
def test_commands_on_a_folder_with_such_a_file(
    tmp_path: Path, make: Callable[[Path], None], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / name)
    commands = {"check.json": "replay", "run.har": "replay", "a.json": "history"}
    assert main([commands[name], str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("make", [make_pipe, make_device_link, make_folder])
@pytest.mark.parametrize("name", ["report.json.xz", har.NAME, "report.html", "REPRODUCE.md"])
def test_verify_refuses_what_is_no_regular_file(
    tmp_path: Path, make: Callable[[Path], None], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / manifest.NAME).write_text(json.dumps(MANIFEST))
    make(tmp_path / name)
    assert main(["verify", str(tmp_path)]) == 1
    assert f"refused: {name} is missing, or no regular file of this folder\n" in capsys.readouterr().out + "\n"


# --- metadata --------------------------------------------------------------------------------------------------------


ROLES = roles.load()


class Metadata(JsonOnly):
    """Lists one model, whose metadata are what the test says."""

    model = b""
    name = "m"

    def do_GET(self) -> None:  # noqa: N802
        if self.path == "/v2/models":
            self._answer(200, {"models": [self.name]})
        elif self.path.startswith("/v2/models/") and self.path.split("/")[3] not in ROLES:
            self._send(200, self.model)
        else:
            self._answer(404, {"error": "unknown"})

    def do_POST(self) -> None:  # noqa: N802
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(400, {"error": "no"})


NAME = '"n]\\n[headers]\\nX-Evil = \\"1\\u0000/../"'
MODELS = {
    "infinity": b'{"name": "m", "inputs": [{"name": "a", "datatype": "INT32", "shape": [Infinity]}], "outputs": []}',
    "huge": b'{"name": "m", "inputs": [{"name": "a", "datatype": "INT32", "shape": [1e400, 99999999999999999999]}]}',
    "digits": b'{"name": "m", "inputs": [{"name": "a", "datatype": "INT32", "shape": [' + b"1" * 5000 + b"]}]}",
    "types": b'{"name": {}, "inputs": {"a": 1}, "outputs": [null, 1, "x", {"name": 5}]}',
    "names": f'{{"inputs": [{{"name": {NAME}, "datatype": {NAME}, "shape": [1]}}], "outputs": []}}'.encode(),
    "deep": b'{"inputs": ' + b"[" * 100_000,
    "long": b'{"inputs": [{"name": "' + b"n" * 50_000 + b'", "datatype": "INT32", "shape": [1]}], "outputs": []}',
}


@pytest.mark.parametrize("kind", MODELS)
def test_init_writes_toml_of_any_metadata(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    class Odd(Metadata):
        model = MODELS[kind]
        name = json.loads(NAME) if kind == "names" else "m"

    with serve(Odd) as url:
        status = main(["init", "--target-url", url, "-o", str(tmp_path / "t.toml")])
    said = capsys.readouterr()
    assert status in (0, 2), said.err
    if status == 0:
        assert "headers" not in tomllib.loads((tmp_path / "t.toml").read_text())
    else:
        assert said.err.count("\n") == 1
