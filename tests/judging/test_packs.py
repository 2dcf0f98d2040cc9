"""Packs: one that is named is judged beside the suite, and a broken one is one line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance import checks, judge
from conformance.api import JudgeError
from conformance.commands import main
from conformance.judging import packs
from conformance.pages import explanations
from conformance.report import formats, report_file
from conformance.report.comparison import compare
from conformance.report.matrix import build_matrix
from conformance.spec import ledger
from conformance.spec.data_files import compute_digest
from tests.support.few_rows import FEW_ROWS
from tests.support.installed_packs import FILES, write_pack
from tests.support.servers import judge as run_suite


@pytest.fixture(autouse=True)
def _forget_packs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(packs, "_LOADED", {})
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "oip_little_pack"]:
        del sys.modules[name]


def install(place: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], **names: str) -> None:
    write_pack(place, changes, **names)
    monkeypatch.syspath_prepend(str(place))


BROKEN = {
    "raises": ({"live.py": "1 / 0"}, "ZeroDivisionError: division by zero"),
    "exits": ({"__init__.py": "raise SystemExit('bye')"}, "SystemExit: bye"),
    "several-lines": ({"__init__.py": "raise OSError('one\\ntwo\\x1b[31m')"}, "OSError: one\\ntwo\\x1b[31m"),
    "no-syntax": ({"live.py": "def"}, "SyntaxError: invalid syntax (live.py, line 1)"),
    "no-interface": ({"__init__.py": "#"}, "it has INTERFACE = None, and this suite has 1: see docs/develop/packs.md"),
    "newer": ({"__init__.py": "INTERFACE = 2"}, "it has INTERFACE = 2, and this suite has 1: update oip-conformance"),
    "no-file": ({"requirements.toml": ""}, "requirements.toml: No such file or directory"),
    "no-toml": ({"sentences.toml": "]"}, "sentences.toml: not TOML: "),
    "not-the-schema": ({"sentences.toml": "[a]\ntitle = 1"}, "sentences.toml: $.a"),
    "foreign-document": (
        {"sentences.toml": FILES["sentences.toml"].replace("little-doc", "oip-rest")},
        "sentences.toml: there is another document oip-rest",
    ),
    "foreign-id": (
        {"requirements.toml": FILES["requirements.toml"].replace("LITTLE-LIVE", "OIP-ALIVE")},
        "requirements.toml: OIP-ALIVE does not begin with LITTLE-",
    ),
    "extension": (
        {"requirements.toml": FILES["requirements.toml"].replace("concern", "extension")},
        "requirements.toml: LITTLE-LIVE: the keys of a requirement are ",
    ),
    "unknown-sentence": (
        {"requirements.toml": FILES["requirements.toml"].replace("little-doc.live", "little-doc.dead")},
        "requirements.toml: LITTLE-LIVE cites little-doc.dead, which no document has",
    ),
    "unknown-role": (
        {"live.py": FILES["live.py"].replace("identity_int32", "identity_int33")},
        "little.is-fast needs the role identity_int33, which neither the suite nor roles.toml has",
    ),
    "foreign-check": (
        {"live.py": FILES["live.py"].replace("little.is-live", "sizes.is-live")},
        "the check sizes.is-live is not `little.` and some words, over HTTP or gRPC, on rows of its own",
    ),
    "foreign-requirement": (
        {"live.py": FILES["live.py"].replace("LITTLE-LIVE", "OIP-ALIVE")},
        "little.is-live [live] cites OIP-ALIVE: cite what requirements.toml has",
    ),
    "twice": (
        {"live.py": FILES["live.py"].replace("little.is-fast", "little.is-live")},
        "the suite is invalid: two checks have the id little.is-live: ",
    ),
    "no-check": ({"live.py": ""}, "no check cites LITTLE-LIVE"),
}


@pytest.mark.parametrize(("changes", "line"), BROKEN.values(), ids=BROKEN)
def test_a_broken_pack_is_one_line(
    changes: dict[str, str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, changes)
    with pytest.raises(packs.PackError) as raised:
        packs.load("little")
    assert str(raised.value).startswith(f"the pack little of oip_little_pack 0.5 cannot be used: {line}")
    assert "\n" not in str(raised.value)
    assert packs.list_loaded() == ()
    with pytest.raises(ledger.UnknownRequirementError):
        ledger.get_requirement("LITTLE-NOTHING")


@pytest.mark.parametrize("name", ["raw", "sizes", "Little", "li-ttle", "robustness", "must", "over_http"])
def test_a_name_of_the_suite_or_of_another_form_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, {}, name=name)
    with pytest.raises(packs.PackError, match="it cannot be called"):
        packs.load(name)


def test_two_packs_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "one", monkeypatch, {})
    install(tmp_path / "two", monkeypatch, {}, package="oip_other_pack")
    with pytest.raises(packs.PackError, match=r"two packs have one name: little of oip_little_pack 0\.5 and little"):
        packs.load("little")


def test_an_unknown_name_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, {})
    with pytest.raises(JudgeError, match=r"^extensions: unknown 'litle'; give one of binary_.*\(installed: .*little"):
        judge("http://127.0.0.1:9", extensions=["litle"])


def test_a_pack_changes_nothing_of_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: str) -> None:
    """Neither does one that fails, and that is named, nor one that is only installed."""
    install(tmp_path, monkeypatch, {})
    version, requirements, rows = ledger.compute_version(), dict(ledger.load()), checks.load()
    without, beside = (judge(small, extensions=names) for names in (["protocol"], ["protocol", "little"]))
    theirs, ours = ({**report.to_dict()} for report in (without, beside))
    (found,) = ours.pop("packs")
    for report in (theirs, ours):
        for name in ("started", "finished", "footer"):
            del report[name]
        for row in report["rows"]:
            del row["duration_s"]
    assert ours == theirs
    assert (ledger.compute_version(), dict(ledger.load()), checks.load()) == (version, requirements, rows)
    assert (found["name"], found["version"], found["verdict"]) == ("little", "0.5", "nonconformant")
    assert {entry["id"]: entry["verdict"] for entry in found["requirements"]} == {
        "LITTLE-LIVE": "fail",
        "LITTLE-FAST": "advisory",
    }


def run_pytest(place: Path, server: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_suite(place, "-q", f"--target-url={server}", "-o", f"pythonpath={place}", *arguments)


def test_a_run_has_a_section_and_files_that_show_the_pack(tmp_path: Path, small: str) -> None:
    write_pack(tmp_path, {})
    path = tmp_path / "report.json"
    done = run_pytest(tmp_path, small, "--target-extension=little", "-k", "little", f"--conformance-report={path}")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].endswith("; pack little: nonconformant")
    assert "= pack little 0.5 =" in done.stdout
    report = report_file.read(path)
    assert report["packs"][0]["digest"] == compute_digest((tmp_path / "oip_little_pack",))
    page, markdown = (formats.FORMATS[suffix](report) for suffix in (".html", ".md"))
    for text in (page, markdown):
        assert "LITTLE-LIVE" in text
        assert "It does not affect the verdict." in text or "it does not affect the verdict" in text
        assert "\x1b" not in text
    assert "<b>this one" not in page
    matrix = build_matrix(compare([("report", report)]), [("report", report)])
    kinds = {row.id: row.cells[0].kind for row in matrix.rows if row.extension == "little"}
    assert kinds == {"LITTLE-LIVE": "fail", "LITTLE-FAST": "advisory"}


def test_a_bug_report_is_about_an_installed_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], small: str
) -> None:
    install(tmp_path, monkeypatch, {})
    own = (f"--conformance-report={tmp_path}/r.json", f"--conformance-evidence={tmp_path}/e")
    run_pytest(tmp_path, small, "--target-extension=little", "-k", "little", *own)
    for source in ("r.json", "e"):
        assert main.main(["bug-report", str(tmp_path / source)]) == 0
        assert "- Requirement: [LITTLE-LIVE](https://example.org/little#live) (MUST)" in capsys.readouterr().out
        assert main.main(["bug-report", str(tmp_path / source), "little-fast"]) == 0
        assert "- Requirement: [LITTLE-FAST]" in capsys.readouterr().out


def test_rows_of_a_pack_run_in_no_other_process(tmp_path: Path, small: str) -> None:
    write_pack(tmp_path, {})
    done = run_pytest(tmp_path, small, "--target-extension=little", "-n", "2")
    assert done.returncode == 4
    assert "--target-extension little cannot be combined with -n: the rows of a pack run alone" in done.stderr


def test_a_baseline_has_the_rows_of_a_pack(tmp_path: Path, small: str) -> None:
    write_pack(tmp_path, {})
    baseline = f"--conformance-baseline={tmp_path / 'baseline.toml'}"
    asked = (
        "--target-extension=protocol",
        "--target-extension=little",
        "--conformance-profile=quick",
        baseline,
        *FEW_ROWS,
    )
    assert run_pytest(tmp_path, small, *asked, "--conformance-update-baseline").returncode == 0
    assert "little.is-live" in (tmp_path / "baseline.toml").read_text(encoding="utf-8")
    assert run_pytest(tmp_path, small, *asked).returncode == 0


@pytest.mark.parametrize(
    ("source", "status", "said"),
    [
        ("1 / 0", 4, "ERROR: the pack little of oip_little_pack 0.5 cannot be used: ZeroDivisionError: "),
        (FILES["live.py"].replace("UnmetError(", "SystemExit("), 1, "the suite failed: SystemExit"),
    ],
)
def test_a_hostile_pack_ends_no_run(source: str, status: int, said: str, tmp_path: Path, small: str) -> None:
    write_pack(tmp_path, {"live.py": source})
    done = run_pytest(tmp_path, small, "--target-extension=little", "--target-extension=protocol", "-k", "little", "-v")
    assert (done.returncode, said in done.stdout + done.stderr) == (status, True)


def test_explain_and_baseline_check_know_an_installed_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, monkeypatch, {})
    assert "Statement  The server is live." in explanations.explain("little-live")
    assert "--target-extension=little -k little.is-live" in explanations.explain("little.is-live")
    file = tmp_path / "baseline.toml"
    entry: dict[str, Any] = {"check": "little.is-live", "requirement": "LITTLE-LIVE", "reason": "known"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    file.write_text("\n".join(["schema = 1", "[[known]]", *lines]), encoding="utf-8")
    main.main(["baseline", "check", str(file)])
    assert "no such check" not in "".join(capsys.readouterr())
