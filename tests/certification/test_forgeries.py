"""No edited certification folder is verified: neither careless edits nor those that put every digest right again."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.certification.manifest import find_last_valid_day, read
from conformance.certification.verifying import Folder as Verified
from conformance.certification.verifying import RequiredSigners, find_refusal_reasons
from conformance.commands.main import main
from conformance.spec.check import format_key
from conformance.spec.outcome import Outcome
from conformance.transport.client_names import choose_names
from conformance.transport.har import NAME
from tests.support.forging import Document, Edit, FolderContents, edit_answer, forge, link_files

Refused = Callable[[str], None]  # the fixture `refused`
pytestmark = pytest.mark.usefixtures("few_models_are_enough")


def test_an_honest_folder_is_verified(honest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(honest)]) == 0
    said = capsys.readouterr().out
    assert "verified: P 1 by V is conformant under the profile classification" in said
    assert "label: P 1; the server reports p 1\n" in said
    assert "self-attested: nobody vouches for the key" in said


def test_no_page_names_a_file_of_the_run(failing: Path) -> None:
    said = (failing / "report.md").read_text()
    assert "Rerun  " in said
    assert "/evidence/" not in said


def test_who_signs_again_has_another_key(honest: Path, original: FolderContents, tmp_path: Path) -> None:
    """An alias makes any label right: what is left is the key, which a vendor publishes and a registry knows."""
    alias = {"name": "p", "version": "1", "reason": "r"}
    forge(original, honest, tmp_path, lambda found: only(found.manifest, product="Q", alias_of=alias))
    forged, vendor = read(tmp_path), read(honest)
    assert list(find_refusal_reasons(Verified(tmp_path), RequiredSigners())) == []
    assert forged.key["id"] != vendor.key["id"]
    assert list(find_refusal_reasons(Verified(tmp_path), RequiredSigners(vendor.key["id"]))) == [
        f"the folder is signed with the key {forged.key['id'][:16]}, not with {vendor.key['id'][:16]}"
    ]


def test_a_failing_folder_is_not(failing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(failing)]) == 1
    assert "refused: the verdict is nonconformant" in capsys.readouterr().out


def rewritten(path: Path, edit: Callable[[bytes], bytes]) -> None:
    """Change a file that is a link, and not what it is linked to."""
    data = edit(path.read_bytes())
    path.unlink()
    path.write_bytes(data)


def replaced(folder: Path, said: bytes, instead: bytes) -> None:
    rewritten(folder / "manifest.json", lambda data: data.replace(said, instead))


def flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def flipped(name: str) -> Callable[[Path], None]:
    return lambda folder: rewritten(folder / name, flip)


CARELESS: dict[str, tuple[Callable[[Path], Any], str]] = {
    **{
        f"{name}-changed": (flipped(name), f"{name} was changed")
        for name in ("report.json.xz", NAME, "report.html", "report.md", "badge.svg", "REPRODUCE.md")
    },
    "recording-missing": (lambda folder: (folder / NAME).unlink(), "run.har.xz is missing"),
    "report-cut": (
        lambda folder: rewritten(folder / "report.json.xz", lambda data: data[:-10]),
        "report.json.xz was changed",
    ),
    "file-added": (lambda folder: (folder / "more.txt").touch(), "more.txt does not belong in this folder"),
    "manifest-missing": (lambda folder: (folder / "manifest.json").unlink(), "No such file or directory"),
    "manifest-no-json": (lambda folder: rewritten(folder / "manifest.json", lambda data: data[1:]), "is no manifest"),
    "manifest-cut": (
        lambda folder: rewritten(folder / "manifest.json", lambda data: data.replace(b'"vendor": "V",', b"")),
        "'vendor' is a required property",
    ),
    "product-edited": (
        lambda folder: replaced(folder, b'"product": "P"', b'"product": "Q"'),
        "manifest.sig does not match the manifest and its key",
    ),
    "product-edited-and-shown": (
        lambda folder: replaced(folder, b'"product": "P"', b'"product": "Q"'),
        "label: Q 1; the server reports p 1",
    ),
    "expiry-edited": (
        lambda folder: replaced(folder, b'"expires": "2', b'"expires": "3'),
        "manifest.sig does not match the manifest and its key",
    ),
    "signature-missing": (lambda folder: (folder / "manifest.sig").unlink(), "folder is not signed: manifest.sig is"),
    "signature-no-base64": (
        lambda folder: rewritten(folder / "manifest.sig", lambda _: b"!"),
        "manifest.sig does not match the manifest and its key",
    ),
    "countersignature-of-nobody": (
        lambda folder: (folder / "manifest.countersig").touch(),
        "manifest.countersig does not belong in this folder",
    ),
    "manifest-with-a-line-end": (
        lambda folder: rewritten(folder / "manifest.json", lambda data: data.replace(b'"V"', b'"V\\nverified"')),
        "does not match",
    ),
}


@pytest.mark.parametrize("name", CARELESS)
def test_careless_edits_are_refused(name: str, honest: Path, tmp_path: Path, refused: Refused) -> None:
    edit, reason = CARELESS[name]
    link_files(honest, tmp_path)
    edit(tmp_path)
    refused(reason)


# --- careful forgers -------------------------------------------------------------------------------------------------

LABELS = "classification.label-follows-its-index"
PATTERN = {
    "requests": "with an id", "answer": "refused", "requirement": "OIP-ANSWER", "missed": {"OIP-ANSWER": 2}, "rows": 2,
    "others": 20,
}  # fmt: skip


def set_outcomes(found: FolderContents, outcome: Outcome) -> None:
    """Make every failed row one that is met, or left out, and everything else of the report fit that."""
    for row in found.report["rows"]:
        if row["outcome"] in ("fail", "blocked"):
            row.update(outcome=str(outcome), message="", failure=None)
    conform(found)


def conform(found: FolderContents) -> None:
    """Make verdicts of a report those of a conformant server."""
    found.report.update(verdict="conformant", why=[])
    for requirement in found.report["requirements"]:
        if requirement["verdict"] in ("fail", "blocked"):
            requirement["verdict"] = "pass"
    for extension in found.report["extensions"].values():
        counts = extension["counts"]
        passed = counts.get("pass", 0) + counts.pop("fail", 0) + counts.pop("blocked", 0)
        counts |= {"pass": passed} if passed else {}
        if extension["offered"]:
            extension["verdict"] = "conformant"


def drop_failures(found: FolderContents) -> None:
    found.report["rows"] = [row for row in found.report["rows"] if row["outcome"] not in ("fail", "blocked")]
    conform(found)


def only(members: Document, **changes: Any) -> None:
    members.update(changes)


def call_interoperable(found: FolderContents) -> None:
    found.report["interoperable"] = True
    found.manifest["standing"] = "interoperable"


def call_all_refusals(found: FolderContents) -> None:
    """Make what is not met a matter of refusals."""
    call_interoperable(found)
    for requirement in found.report["requirements"]:
        requirement["concern"] = "refusal"


# Edits of the folder of a server that fails; the recording is as it was.
WHITEWASHED: dict[str, tuple[Edit, str]] = {
    "verdict": (lambda f: only(f.report, verdict="conformant", why=[]), "1 MUST is not met: CLS-LABEL"),
    "interoperable": (call_interoperable, "1 MUST is not met: CLS-LABEL"),
    "concern": (call_all_refusals, "the report's interoperable is not what its recording shows"),
    "failures-passed": (lambda f: set_outcomes(f, Outcome.PASS), "is fail by its recording, pass in the report"),
    "failures-left-out": (lambda f: set_outcomes(f, Outcome.NOT_APPLICABLE), "by its recording, not_applicable in the"),
    "failures-observed": (lambda f: set_outcomes(f, Outcome.OBSERVED), "by its recording, observed in the report"),
    "failures-advisory": (lambda f: set_outcomes(f, Outcome.ADVISORY), "by its recording, advisory in the report"),
    "failures-dropped": (drop_failures, "the report lacks classification."),
}


@pytest.mark.parametrize("name", WHITEWASHED)
def test_a_whitewashed_report_is_refused(
    name: str, failing: Path, bad: FolderContents, tmp_path: Path, refused: Refused
) -> None:
    edit, reason = WHITEWASHED[name]
    forge(bad, failing, tmp_path, edit)
    refused(reason)


def first(found: FolderContents) -> Document:
    return found.row(LABELS)


def double(found: FolderContents) -> None:
    found.report["rows"].append(copy.deepcopy(found.report["rows"][0]))


def invent(found: FolderContents) -> None:
    found.report["rows"].append(copy.deepcopy(found.report["rows"][0]) | {"row": "invented"})


def requirement(found: FolderContents) -> Document:
    return next(each for each in found.report["requirements"] if each["level"] == "SHOULD")


def ran(found: FolderContents, started: str, finished: str) -> None:
    """Let report and manifest say that the run was at another time."""
    for document in (found.report, found.manifest):
        document |= {"started": started, "finished": finished}
    found.manifest["expires"] = str(find_last_valid_day(finished))


# Edits of the report of an honest server, with every digest made right again.
def find_seed_of_other_names(found: FolderContents) -> int:
    """Return a seed by which most rows name another client; by some seeds few do, or none."""
    keys = [format_key(row["check"], row["row"]) for row in found.report["rows"] if row["exchanges"]]
    own = found.report["seed"]

    def count_others(seed: int) -> int:
        return sum(choose_names(seed, key) != choose_names(own, key) for key in keys)

    return max(range(32), key=count_others)


REPORTS: dict[str, tuple[Edit, str]] = {
    "row-removed": (lambda f: f.report["rows"].remove(first(f)), f"the report lacks {LABELS}"),
    "row-twice": (double, "the report has two entries for one row"),
    "row-invented": (invent, "[invented], which this suite does not have"),
    "observation": (lambda f: only(f.row("classification.number-0"), observation="refused"), "observation is not what"),
    "message": (lambda f: only(first(f), message="fine"), "message is not what the recording shows"),
    "requirements-of-a-row": (lambda f: only(first(f), requirements=["CLS-FORMAT"]), "requirements is not what"),
    "exchanges-of-a-row": (lambda f: only(first(f), exchanges=[0]), "exchanges is not what the recording shows"),
    "requirement": (lambda f: only(requirement(f), verdict="advisory"), "the report's requirements is not what"),
    "page": (lambda f: only(requirement(f), url="https://elsewhere/"), "the report's requirements is not what"),
    "counts": (lambda f: only(f.report["extensions"]["protocol"]["counts"], **{"pass": 1}), "extensions is not what"),
    "server-name": (lambda f: only(f.report["target"], name="Better"), "and the server reports Better 1: if"),
    "server-version": (lambda f: only(f.report["target"], version="99"), "and the server reports p 99: if"),
    "listed-extension": (
        lambda f: only(f.report["target"], extensions_listed=["classification"]),
        "the report's target is not what",
    ),
    "role-map": (lambda f: only(f.report["target"]["roles"], fixed="other"), "the report's target is not what"),
    "url": (lambda f: only(f.report["target"], url="http://other"), "the report of http://other"),
    "profile-of-the-run": (lambda f: only(f.report["options"], profile="quick"), "another option profile: 'quick'"),
    "extensions": (lambda f: only(f.report["options"], extensions=[]), "another option extensions: []"),
    "models": (lambda f: only(f.report["options"], models=["m"]), "another option models: ['m']"),
    "dangerous": (lambda f: only(f.report["options"], dangerous=True), "another option dangerous: True"),
    "incomplete": (lambda f: only(f.report["footer"], complete=False), "the run was not complete"),
    "no-seed": (lambda f: only(f.report, seed=None), "the run has no seed"),
    "another-seed": (lambda f: only(f.report, seed=find_seed_of_other_names(f)), "with another header"),
    "gate": (
        lambda f: only(f.report, gate={"passed": True, "known": [], "new": [], "fixed": [], "stale": []}),
        "used a baseline of known failures",
    ),
    "pattern": (lambda f: only(f.report, failure_patterns=[PATTERN]), "the report's failure_patterns is not what"),
    "suite-digest": (lambda f: only(f.report["suite"], digest="0" * 64), "verify it with that version (--with-suite)"),
    "suite-version": (lambda f: only(f.report["suite"], version="9.9"), "names another suite than the report"),
    "earlier": (
        lambda f: ran(f, "2020-01-01T00:00:00+00:00", "2020-01-01T00:00:09+00:00"),
        "the recording was made between",
    ),
    "ends-before-it-begins": (
        lambda f: ran(f, f.report["finished"], "2020-01-01T00:00:00+00:00"),
        "the run ended before it began",
    ),
    "more-than-was-run": (lambda f: only(f.manifest, profile="full"), "another option extensions"),
    "less-than-was-run": (lambda f: only(f.manifest, profile="binary"), "another option extensions"),
    "product": (lambda f: only(f.manifest, product="Q"), "the label is Q 1, and the server reports p 1: if"),
    "product-version": (
        lambda f: only(f.manifest, product_version="2"),
        "the label is P 2, and the server reports p 1",
    ),
    "alias": (lambda f: only(f.manifest, alias_of={"name": "q", "version": "1", "reason": "r"}), "is an alias of q 1"),
    "self-test": (lambda f: only(f.manifest, self_test=True), "--self-test needs the suite's own server"),
    "suite-of-the-manifest": (
        lambda f: only(f.manifest["suite"], version="9.9"),
        "names another suite than the report",
    ),
    "standing": (
        lambda f: only(f.manifest, standing="interoperable"),
        "the manifest says interoperable, but the report is conformant",
    ),
    "interoperable": (lambda f: only(f.report, interoperable=False), "the report's interoperable is not what"),
    "ledger": (lambda f: only(f.manifest["suite"], ledger="0" * 16), "names another suite than the report"),
    "finished-of-the-manifest": (
        lambda f: only(f.manifest, finished="2100-01-01T00:00:00+00:00"),
        "the manifest says that the run finished at 2100",
    ),
    "valid-for-ever": (lambda f: only(f.manifest, expires="2999-12-31"), "expires on 2999-12-31: that has to be"),
    "valid-never": (lambda f: only(f.manifest, expires="1999-12-31"), "expires on 1999-12-31: that has to be"),
    "no-such-day": (lambda f: only(f.manifest, expires="2026-02-31"), "$.expires: '2026-02-31' is not a"),
    "note": (lambda f: setattr(f, "note", "pip install evil"), "REPRODUCE.md is not what manifest and report say"),
    "third-party": (
        lambda f: only(f.manifest, third_party={"name": "L", "contact": "l", "key": f.manifest["key"]}),
        "the folder is not signed: manifest.countersig is missing",
    ),
    "placements": (lambda f: only(f.manifest, placements={}), "is not_applicable by its recording, pass in the report"),
}


def labelled(found: FolderContents) -> Document:
    return found.entries(f"{LABELS}[")[0]


def metadata(found: FolderContents) -> Document:
    return next(entry for entry in found.entries("survey") if entry["request"]["url"].endswith("/v2"))


def another_server(found: FolderContents) -> None:
    found.har["log"]["_target"] = "http://other"


def add_a_call(found: FolderContents) -> None:
    found.har["log"]["entries"].append(copy.deepcopy(labelled(found)) | {"_scope": "invented"})


# Edits of the recording, with every digest made right again.
RECORDINGS: dict[str, tuple[Edit, str]] = {
    "value": (lambda f: edit_answer(labelled(f), lambda body: body.replace(b":", b";")), f"{LABELS} ["),
    "answer-cut": (lambda f: edit_answer(labelled(f), lambda body: body[:-3]), f"{LABELS} ["),
    "status": (lambda f: only(labelled(f)["response"], status=500), f"{LABELS} ["),
    "failure": (lambda f: only(labelled(f), _failure="connection broken"), f"{LABELS} ["),
    "request": (lambda f: only(labelled(f)["request"]["postData"], text="e30="), f"{LABELS} ["),
    "request-path": (lambda f: only(labelled(f)["request"], url="http://x/v2"), f"{LABELS} ["),
    "call-removed": (lambda f: f.har["log"]["entries"].remove(labelled(f)), f"{LABELS} ["),
    "call-added": (add_a_call, "1 exchanges that this suite does not make"),
    "survey": (
        lambda f: edit_answer(metadata(f), lambda body: body.replace(b"binary_tensor", b"binary_censor")),
        "target is not",
    ),
    "of-another-server": (another_server, "the recording is of http://other"),
    "of-another-time": (
        lambda f: only(labelled(f), startedDateTime="2020-01-01T00:00:00.000+00:00"),
        "the recording was made between 2020",
    ),
    "no-calls": (lambda f: only(f.har["log"], entries=[]), "is not a recording of this suite"),
    "no-recording": (lambda f: f.har.pop("log"), "is not a recording of this suite"),
}


@pytest.mark.parametrize("name", [*REPORTS, *RECORDINGS])
def test_an_edited_report_or_recording_is_refused(
    name: str, honest: Path, original: FolderContents, tmp_path: Path, refused: Refused
) -> None:
    edit, reason = (REPORTS | RECORDINGS)[name]
    forge(original, honest, tmp_path, edit, with_har=name in RECORDINGS)
    refused(reason)


def test_the_recording_of_another_server_is_refused(
    failing: Path, original: FolderContents, tmp_path: Path, refused: Refused
) -> None:
    forge(original, failing, tmp_path, lambda _: None)
    refused("the recording is of http://127.0.0.1")
