"""Certifications of clients: verified without the client, and refused where the recording shows something else."""

from __future__ import annotations

import json
import lzma
import shlex
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.certification import client_rejudge, manifest
from conformance.clients.recording import calls
from conformance.commands.main import main
from conformance.report.report_file import read
from conformance.transport.har import NAME
from tests.support.certify_runs import LABEL_OPTIONS, certify_few_rows
from tests.support.forging import Document, FolderContents, edit_answer, forge, load

ROOT = Path(__file__).parents[2]
TOKEN = "Zq7-sesame-open-4711"  # noqa: S105 - a made one
ADAPTER = ("env", f"PYTHONPATH={ROOT}", f"API_TOKEN={TOKEN}", sys.executable, "-m", "tests.clients.honest")
VALUES = "client.sends-every-datatype"


@pytest.fixture(scope="module", autouse=True)
def few_rows() -> Iterator[None]:
    with certify_few_rows():
        yield


def certify(folder: Path, *fault: str) -> int:
    label = (*LABEL_OPTIONS, "--product=honest", "--profile=full")
    return main(["certify", f"--client-adapter={shlex.join((*ADAPTER, *fault))}", *label, "-o", str(folder)])


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("right") / "c"
    assert certify(folder) == 0
    return folder


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a client that returns earlier answers."""
    folder = tmp_path_factory.mktemp("wrong") / "c"
    assert certify(folder, "--fault", "reuses-last-answer") == 1
    return folder


@pytest.fixture(scope="module")
def original(right: Path) -> FolderContents:
    return load(right)


def find_differences(folder: Path) -> list[str]:
    """Return how the report of a folder differs from what its recording shows."""
    return list(client_rejudge.find_differences(calls.load(folder / NAME), read(folder / manifest.REPORT)))


def test_a_right_client_is_certified_and_verified(right: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(right)]) == 0
    said = capsys.readouterr().out
    assert "verified: honest 1 by V is conformant under the profile full" in said
    assert "label: honest 1; the client reports honest 1\n" in said
    made = json.loads((right / manifest.NAME).read_text())
    assert (made["party"], made["schema"]) == ("client", 3)
    assert "without the client" in (right / manifest.NOTE).read_text()


def test_a_faulty_client_is_judged_again_as_it_was(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert find_differences(wrong) == []
    assert any(row["outcome"] == "fail" for row in read(wrong / manifest.REPORT)["rows"])
    assert main(["verify", str(wrong)]) == 1
    assert capsys.readouterr().out.startswith("refused: the verdict is nonconformant")


def test_no_secret_reaches_the_folder(right: Path, wrong: Path) -> None:
    for folder in (right, wrong):
        for path in folder.iterdir():
            data = path.read_bytes()
            assert TOKEN.encode() not in (lzma.decompress(data) if path.suffix == ".xz" else data), path


def strip_times(found: FolderContents) -> list[Document]:
    """Return rows of the report, and requests and results of the recording, without times and ports.

    The order of requests that are in flight together is chance.
    """
    entries = found.har["log"]["entries"]
    by_chance = {entry["_scope"] for entry in entries if len(entry.get("_said", {}).get("results", ())) > 1}
    rows = [{**row, "duration_s": 0} for row in found.report["rows"]]
    calls = [
        {
            "where": [entry[name] for name in ("_scope", "_call", "_place")],
            "body": entry["request"].get("postData", {}).get("text"),
            "answer": [entry["response"][name] for name in ("status", "content")],
            "said": {name: value for name, value in entry.get("_said", {}).items() if name != "elapsed"},
        }
        for entry in entries
        if entry["_scope"] not in by_chance
    ]
    return [*rows, *calls]


def test_two_runs_say_the_same(original: FolderContents, tmp_path: Path) -> None:
    assert certify(tmp_path / "c") == 0
    assert strip_times(load(tmp_path / "c")) == strip_times(original)


# --- forgeries: every digest is right again, and the folder is signed -------------------------------------------------


def first(found: FolderContents, check: str = VALUES) -> Document:
    return next(entry for entry in found.entries(check) if "_received" in entry)


def change_request(found: FolderContents) -> None:
    data = first(found)["request"]["postData"]
    body = b64decode(data["text"])
    data["text"] = b64encode(body[:-1] + bytes([body[-1] ^ 1])).decode()


def change_result(found: FolderContents) -> None:
    first(found, "client.reads-corner-values")["_said"]["results"][0] = {"error": {"message": "no"}}


def change_count(found: FolderContents) -> None:
    first(found)["_said"]["results"] *= 2


def change_introduction(found: FolderContents) -> None:
    found.har["log"]["_client"]["version"] = "2"


def leave_out(found: FolderContents) -> None:
    found.har["log"]["entries"].remove(first(found))


def add_call(found: FolderContents) -> None:
    entry = first(found)
    found.har["log"]["entries"].append({**entry, "_call": 9})


def change_form(member: str, value: Any) -> Callable[[FolderContents], None]:
    def edit(found: FolderContents) -> None:
        first(found)[member] = value

    return edit


FORGERIES: dict[str, tuple[Callable[[FolderContents], Any], str]] = {
    "request": (change_request, f"{VALUES} ["),
    "result": (change_result, "by its recording, pass in the report"),
    "results": (change_count, "results for 1 inferences"),
    "answer": (
        lambda found: edit_answer(first(found), lambda body: body[:-1]),
        "the recorded answer differs from that of the script",
    ),
    "introduction": (change_introduction, "the report's target is not what its recording shows"),
    "call-missing": (leave_out, "the recording has no call 0"),
    "call-added": (add_call, "the recording has 1 adapter calls that this suite does not make"),
    "inference-of-no-call": (
        lambda found: first(found)["_received"].update(inference=7),
        "has an inference that the suite does not make",
    ),
    "said-nothing": (change_form("_said", {}), "is not a recording of this suite: KeyError"),
    "said-text": (change_form("_said", "x"), "is not a recording of this suite"),
    "results-of-no-schema": (change_form("_said", {"results": [{}], "elapsed": 1}), "does not fit schemas/adapter"),
    "received-text": (change_form("_received", "x"), "entry: _received has the wrong type"),
    "called-twice": (
        lambda found: found.har["log"]["entries"].append(first(found)),
        "is recorded twice, or its first entry is missing",
    ),
    "of-a-server": (lambda found: found.har["log"].pop("_party"), "is not a recording of a client"),
    "manifest-of-a-server": (
        lambda found: found.manifest.pop("party"),
        "the report is of a client, the manifest of a server",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused(
    name: str, right: Path, original: FolderContents, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit, reason = FORGERIES[name]
    forge(original, right, tmp_path, edit, with_har=True)
    assert main(["verify", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert reason in said
    assert all(line.startswith(("refused: ", "label: ")) for line in said.splitlines())


def test_a_verdict_that_was_changed_is_found(wrong: Path, tmp_path: Path) -> None:
    def change(found: FolderContents) -> None:
        row = next(row for row in found.report["rows"] if row["outcome"] == "fail")
        row.update(outcome="pass", failure=None, message="")

    forge(load(wrong), wrong, tmp_path, change)
    assert any("is fail by its recording, pass in the report" in line for line in find_differences(tmp_path))


# --- the command line -------------------------------------------------------------------------------------------------

USAGE = {
    "a-server-as-well": (("http://h", "--client-adapter=x"), "--target-url is for servers; it cannot be"),
    "processes": (("--client-adapter=x", "-n", "2"), "-n is for servers"),
    "self-test": (("--client-adapter=x", "--self-test"), "--self-test is for the suite's own server"),
    "no-command": (("--client-adapter=",), "--client-adapter: give a command"),
    "no-quotation": (("--client-adapter='",), '--client-adapter "\'": No closing quotation'),
    "no-program": (("--client-adapter=/no/such",), "the adapter cannot be started"),
    "another-label": (
        (f"--client-adapter={shlex.join(ADAPTER)}",),
        "the label is P 1, and the client reports honest 1",
    ),
}


@pytest.mark.parametrize("name", USAGE)
def test_what_cannot_be_certified_ends_with_a_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, reason = USAGE[name]
    assert main(["certify", *arguments, *LABEL_OPTIONS, "-o", str(tmp_path / "c")]) != 0
    said = capsys.readouterr().err
    assert reason in said
    assert said.count("\n") == 1
