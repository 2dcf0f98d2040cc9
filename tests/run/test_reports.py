"""Reports of runs: they agree with each other and with the exit status, and hold no secret and no foreign markup."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import html5lib
import pytest

from conformance.plugin import SUITE
from conformance.report import formats
from conformance.report.page_html import SCRIPTS
from conformance.spec.outcome import ReasonKind
from tests.support.few_rows import FEW_ROWS
from tests.support.servers import FEW_MODELS, JsonOnly, judge, judge_and_interrupt, run_bundled, run_proxy, serve
from tests.support.valid_reports import read_valid_report

ALL_REPORTS = tuple(f"--conformance-report=r{suffix}" for suffix in formats.FORMATS)
ANNOTATION = re.compile(r"::(error|warning) title=oip-conformance[^:]*::.*")


ROWS = ("--conformance-junit=rows", "--junitxml=rows.xml")


def junit_of(folder: Path, name: str = "j.xml") -> ElementTree.Element:
    return ElementTree.parse(folder / name).getroot()[0]  # noqa: S314 - of our own run


def check_agreement(folder: Path, output: str, unended: int = 0) -> dict[str, Any]:
    """Say that the last line of a run and all its reports have one verdict and one count, and return the JSON one.

    Args:
        folder: of the reports.
        output: of the run.
        unended: how many checks pytest's own report may lack, because their end was not heard of.
    """
    report: dict[str, Any] = read_valid_report(folder / "r.json")
    offered = [name for name, extension in report["extensions"].items() if extension["offered"]]
    entries = [entry for entry in report["requirements"] if entry["level"] == "MUST" and entry["area"] != "grpc"]
    applying = [entry for entry in entries if entry["verdict"] != "not_applicable" or "unjudged" in entry]
    musts = [entry["verdict"] for entry in applying if entry["extension"] in offered]
    met = musts.count("pass")
    last = output.splitlines()[-1]
    assert report["verdict"] in last
    counts = (
        f"narrowed run, {len(report['rows'])} of " if report["verdict"] == "narrowed" else f"({met} of {len(musts)} "
    )
    assert counts in last
    badge = f"{report['verdict']} {met}/{len(musts)}"
    assert json.loads((folder / "r.shields.json").read_text())["message"] == badge
    assert f">{badge}</text>" in (folder / "r.svg").read_text()
    outcomes = Counter(check["outcome"] for check in report["rows"])
    for page in ((folder / f"r.{suffix}").read_text() for suffix in ("html", "md")):
        assert f"{met} of {len(musts)} MUSTs that apply are met" in page
        assert report["footer"]["complete"] is ("This is not a whole run." not in page)
        assert all(reason in page for reason in report["why"])
    for outcome, word in (("fail", "failed"), ("pass", "passed"), ("error", "error")):
        if outcomes[outcome]:
            assert f"{outcomes[outcome]} {word}" in (folder / "r.md").read_text()
    if (folder / "j.xml").exists():
        suite = junit_of(folder)
        named = [entry["verdict"] for entry in report["requirements"] if entry["checks"]]
        assert (int(suite.attrib["tests"]), suite.attrib["errors"]) == (len(named), "0")
        assert named.count("fail") == int(suite.attrib["failures"])
    if (folder / "rows.xml").exists():
        suite = junit_of(folder, "rows.xml")
        lost = [check for check in report["rows"] if (check["reason"] or {}).get("kind") == ReasonKind.TARGET_LOST]
        assert len(report["rows"]) - int(suite.attrib["tests"]) in range(unended + 1)
        assert int(suite.attrib["failures"]) == outcomes["fail"] + outcomes["error"] - len(lost)
        assert int(suite.attrib["skipped"]) == outcomes["not_applicable"] + outcomes["blocked"] + len(lost)
        assert suite.attrib["errors"] == "0"
    return report


# --- a server that attacks who reads of it ---------------------------------------------------------------------------

TOKEN = "tok-Sup3r/S3cret+vX9qLm2TzR"  # noqa: S105 - planted
COOKIE = "cook13-value-8HdkW5nYpB"
PASSWORD = "pa55-w0rd-J4cGf7uEsa"  # noqa: S105 - planted
ATTACK = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"' \x1b[31mred\x07 \u202eevil NUL\x00"
    " \r\n::error::forged\n##[error]forged `tick` ```fence | pipe | [go](http://evil.example)"
)


class HostileServer(JsonOnly):
    """Says everything in the form of an attack, and repeats what it was told in confidence."""

    def do_GET(self) -> None:  # noqa: N802
        if self.path == "/v2":
            names = {"name": f"{ATTACK} {self._confidence()}", "version": ATTACK, "extensions": [ATTACK] * 3}
            self._answer(200, names)
        else:
            super().do_GET()

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            tensor = json.loads(body)["inputs"][0]
            output = {**tensor, "name": "OUTPUT", "data": tensor["data"]}
        except (ValueError, TypeError, LookupError):
            self._answer(400, {"error": f"{self._confidence()} {ATTACK}", ATTACK: ATTACK})
        else:
            outputs = [output, {**output, "name": f"OUTPUT {ATTACK}"}]
            self._answer(200, {"model_name": ATTACK, "outputs": outputs})

    def _confidence(self) -> str:
        told = {name: self.headers.get_all(name, []) for name in ("Authorization", "Cookie", "X-Key")}
        return " ".join(f"{name} is {', '.join(values)}" for name, values in told.items())

    def end_headers(self) -> None:
        """Repeat it in a header, too."""
        self.send_header("X-Seen", self._confidence())
        super().end_headers()


_BASE64 = re.compile(rb"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{4}){6,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def everything(folder: Path, *outputs: str) -> bytes:
    """Return all that a run printed and left behind; what stands there in base64 is there decoded, too."""
    pieces = [text.encode() for text in outputs]
    pieces += [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    whole = b"\n".join(pieces)
    return b"\n".join([whole, *map(b64decode, _BASE64.findall(whole))])


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A run against the hostile server, with every output that there is; its folder, and what it printed."""
    folder = tmp_path_factory.mktemp("attacked")
    with serve(HostileServer) as url:
        run = judge(
            folder,
            f"--target-url={url.replace('http://', f'http://user:{PASSWORD}@')}",
            "--target-header=Authorization: Bearer " + TOKEN,
            f"--target-header=Cookie: session={COOKIE}; theme=dark",
            f"--target-header=X-Key: {TOKEN}-key",
            "--target-extension=binary_tensor_data",
            "-k",
            "metadata or headers or OIP-ERROR or octet_stream",
            "--conformance-evidence=evidence",
            "--junitxml=j.xml",
            *ALL_REPORTS,
            GITHUB_ACTIONS="true",
            GITHUB_STEP_SUMMARY=str(folder / "summary.md"),
        )
    return folder, run.stdout, run.stderr


def test_a_hostile_server_is_judged_like_any_other(attacked: tuple[Path, str, str]) -> None:
    folder, output, _ = attacked
    report = check_agreement(folder, output)
    assert {check["outcome"] for check in report["rows"]} >= {"fail", "pass"}
    assert report["target"]["name"].startswith("</script><script>alert(1)")


def test_control_characters_reach_no_output(attacked: tuple[Path, str, str]) -> None:
    folder, output, errors = attacked
    texts = [output, errors, *(path.read_text() for path in folder.iterdir() if path.is_file())]
    texts += [path.read_text() for path in (folder / "evidence").rglob("*") if path.suffix in (".txt", ".sh", ".py")]
    assert len(texts) > 10
    for text in texts:
        assert not set(text) & set("\x00\x07\x1b\r\u202e")


def test_hostile_text_is_text_in_the_pages(attacked: tuple[Path, str, str]) -> None:
    page = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse((attacked[0] / "r.html").read_text())
    assert len(list(page.iter("script"))) == len(SCRIPTS)
    assert list(page.iter("img")) == []
    assert "</script><script>alert(1)</script>" in "".join(page.itertext())
    for markdown in ("r.md", "summary.md"):
        lines = (attacked[0] / markdown).read_text().splitlines()
        assert not [line for line in lines if line.lstrip().startswith(("::", "##[", "<script", "<img"))]
    for image in ("r.svg", "j.xml"):
        ElementTree.parse(attacked[0] / image)  # noqa: S314 - well-formed, or an error


def test_annotations_are_ours_alone(attacked: tuple[Path, str, str]) -> None:
    lines = attacked[1].splitlines()
    orders = [line for line in lines if line.lstrip().startswith("::") or "##[" in line]
    assert orders
    assert [line for line in orders if not ANNOTATION.fullmatch(line)] == []
    assert max(Counter(line[:7] for line in orders).values()) <= 10
    assert " is nonconformant" in lines[-1]


def test_secrets_appear_nowhere_though_the_server_repeats_them(attacked: tuple[Path, str, str]) -> None:
    folder, output, errors = attacked
    whole = everything(folder, output, errors)
    basic = b64encode(f"user:{PASSWORD}".encode()).decode()
    for secret in (TOKEN, TOKEN.replace("/", "\\/"), COOKIE, PASSWORD, basic):
        pieces = {secret[start : start + 10].encode() for start in range(len(secret) - 9)}
        assert [piece for piece in pieces if piece in whole] == []
    assert f"Authorization is Basic {'*' * len(basic)}, Bearer {'*' * len(TOKEN)} Cookie is".encode() in whole


# --- runs that are not whole -----------------------------------------------------------------------------------------


def test_a_run_in_two_processes(tmp_path: Path, reference: str) -> None:
    run = judge(tmp_path, f"--target-url={reference}", "-n", "2", "-k", "ordering", "--junitxml=j.xml", *ALL_REPORTS)
    assert run.returncode == 0
    report = check_agreement(tmp_path, run.stdout)
    assert report["verdict"] == "narrowed"
    assert report["extensions"]["raw"]["verdict"] == "narrowed"
    lines = [line.split(maxsplit=1)[0] for line in run.stdout.splitlines() if line]
    order = [lines.index(word) for word in ("platform", "target", "extensions", "profile", "created:")]
    assert order == sorted(order)  # the header of pytest comes before ours, and that of its workers behind


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two"])
def test_a_run_that_stops_at_the_first_failure(tmp_path: Path, workers: tuple[str, ...]) -> None:
    with serve(JsonOnly) as url:
        asked = ("--target-extension=binary_tensor_data", "-x", "--junitxml=j.xml", *workers)
        run = judge(tmp_path, f"--target-url={url}", *asked, *ALL_REPORTS)
    assert run.returncode == 1
    report = check_agreement(tmp_path, run.stdout)
    assert (report["verdict"], report["footer"]["complete"]) == ("nonconformant", False)
    assert re.fullmatch(r"\d+ rows not run: stopping after 1 failures", report["why"][1])
    unmet = {check["failure"]["requirement"] for check in report["rows"] if check["failure"]}
    assert unmet
    shown = re.findall(r"^      Explain   oip-conformance explain (.+)$", run.stdout, re.MULTILINE)
    assert sorted(shown) == sorted(unmet)
    cases = junit_of(tmp_path).iter("properties")
    listed = [{entry.attrib["name"]: entry.attrib["value"] for entry in case} for case in cases]
    commands = {case["explain"] for case in listed if case["verdict"] in ("fail", "advisory")}
    assert commands == {f"oip-conformance explain {name}" for name in unmet}


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two"])
def test_a_run_that_is_interrupted(tmp_path: Path, reference: str, workers: tuple[str, ...]) -> None:
    arguments = (f"--target-url={reference}", "-v", *ROWS, *workers)
    run = judge_and_interrupt(tmp_path, *arguments, *ALL_REPORTS, after="PASS")
    assert run.returncode == 2, run.stderr
    report = check_agreement(tmp_path, run.stdout, unended=2)
    assert (report["verdict"], report["footer"]["complete"]) == ("incomplete", False)
    assert re.fullmatch(r"\d+ rows not run: interrupted", report["why"][0])
    assert report["rows"]


def test_a_target_that_dies_halfway(tmp_path: Path, reference: str) -> None:
    with run_proxy(reference, connections=400) as url:
        asked = (f"--target-url={url}", "--conformance-profile=quick", "--target-timeout=1", "--junitxml=j.xml")
        run = judge(tmp_path, *asked, *ALL_REPORTS)
    assert run.returncode == 1, run.stdout[-2000:]
    report = check_agreement(tmp_path, run.stdout)
    outcomes = Counter(check["outcome"] for check in report["rows"])
    assert (outcomes["fail"], outcomes["pass"] > 100, outcomes["error"] > 100) == (1, True, True)
    (failed,) = [check for check in report["rows"] if check["outcome"] == "fail"]
    since = f"since {failed['check']}" + (f" [{failed['row']}]" if failed["row"] else "")
    assert report["why"][0] == "1 row failed"
    assert report["why"][1].startswith(f"{outcomes['error']} rows not judged: the target is gone: cannot connect")
    assert re.search(rf"is nonconformant: 1 row failed; .*{re.escape(since)}", run.stdout.splitlines()[-1])
    assert run.stdout.count("ERROR") == 0
    assert run.stdout.count(f"{outcomes['error']} rows are not judged: ") == 1
    assert re.search(rf"1 failed, .*{outcomes['error']} not judged", run.stdout)
    assert junit_of(tmp_path).findall(".//failure/..")[0].findall("properties")


def test_a_target_that_never_was(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    run = judge(tmp_path, "--target-url=http://127.0.0.1:9", "--target-timeout=0.5", *ALL_REPORTS, **github)
    assert run.returncode == 6
    lines = run.stdout.splitlines()
    assert lines[-2].startswith("::error title=oip-conformance::incomplete: cannot connect to http://127.0.0.1:9")
    assert lines[-1].startswith("incomplete: cannot connect to http://127.0.0.1:9")
    assert summary.read_text() == (tmp_path / "r.md").read_text()
    assert "This is not a whole run." in (tmp_path / "r.html").read_text()


# --- JUnit -----------------------------------------------------------------------------------------------------------


class BrokenServer(JsonOnly):
    """Has a model that is described under another name, and answers no request of inference."""

    def do_GET(self) -> None:  # noqa: N802
        if self.path == "/v2/models/identity_int32":
            self._answer(200, {"name": "another", "inputs": [], "outputs": []})
        else:
            super().do_GET()

    def do_POST(self) -> None:  # noqa: N802
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(500, {"error": "out of order"})


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two"])
def test_junit_of_rows_has_failures_and_no_errors(tmp_path: Path, workers: tuple[str, ...]) -> None:
    with serve(BrokenServer) as url:
        extensions = ("--target-extension=binary_tensor_data", "--target-extension=raw")
        asked = (*extensions, "--target-extension=protocol", "-k", "metadata or datatypes", *ROWS)
        run = judge(tmp_path, f"--target-url={url}", *asked, *workers, *ALL_REPORTS)
    assert run.returncode == 1
    report = check_agreement(tmp_path, run.stdout)
    assert {check["outcome"] for check in report["rows"]} >= {"pass", "fail", "blocked", "not_applicable"}
    cases = junit_of(tmp_path, "rows.xml").findall("testcase")
    by_label = {case.findall("properties/property[@name='check']")[0].attrib["value"]: case for case in cases}
    assert len(by_label) == len(report["rows"])
    for check in report["rows"]:
        case = by_label[f"{check['check']} [{check['row']}]" if check["row"] else check["check"]]
        properties = {found.attrib["name"]: found.attrib["value"] for found in case.iter("property")}
        assert properties["requirements"].split() == check["requirements"]
        assert properties["outcome"] == check["outcome"]
        assert case.find("error") is None
        assert (case.find("failure") is not None) is (check["outcome"] == "fail")
        assert (case.find("skipped") is not None) is (check["outcome"] in ("blocked", "not_applicable"))
    failed = by_label["metadata.model-metadata-describes-the-model [identity_int32]"].find("failure")
    assert failed is not None
    assert failed.attrib["message"].startswith("MUST OIP-MODEL-METADATA: expected ")
    for part in ("Requires", "Source", "Sent      GET /v2/models/", "Repeat    curl", "Rerun     pytest --target-url="):
        assert part in (failed.text or "")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two"])
def test_junit_has_a_case_for_each_requirement(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_own.py").write_text("def test_own():\n    assert False\n")
    with run_bundled("--fault", "binary-outputs-in-reverse", *FEW_MODELS) as url:
        paths = (SUITE, "test_own.py")
        asked = ("-k", "BIN-ORDER-O or BIN-ORDER-I or BIN-MIXED-O or test_own", "--junitxml=j.xml")
        run = judge(tmp_path, f"--target-url={url}", *paths, *asked, *workers, "--conformance-report=r.json")
    assert run.returncode == 1
    assert f"generated xml file: {tmp_path / 'j.xml'}" in run.stdout
    cases = {case.attrib["name"].partition(": ")[0]: case for case in junit_of(tmp_path).findall("testcase")}
    own = cases.pop("test_own")
    assert own.find("failure") is not None
    named = {entry["id"]: entry for entry in read_valid_report(tmp_path / "r.json")["requirements"] if entry["checks"]}
    assert list(cases) == list(named)
    for name, case in cases.items():
        assert case.attrib["classname"] == named[name]["area"]
        properties = {found.attrib["name"]: found.attrib["value"] for found in case.iter("property")}
        assert (properties["requirement"], properties["verdict"]) == (name, named[name]["verdict"])
        assert (case.find("failure") is not None) is (named[name]["verdict"] == "fail")
        assert (case.find("skipped") is not None) is (named[name]["verdict"] in ("blocked", "not_applicable"))
    failed = cases["BIN-ORDER-O"].find("failure")
    assert failed is not None
    assert re.match(r"MUST BIN-ORDER-O: expected OUT_INT64 .* \(and \d+ more rows\)$", failed.attrib["message"])
    shown = failed.text or ""
    for check in read_valid_report(tmp_path / "r.json")["rows"]:
        if check["failure"] and check["failure"]["requirement"] == "BIN-ORDER-O":
            assert f"{check['check']} [{check['row']}]" in shown
    for part in ("Requires", "Source", "Repeat    ", "Rerun     pytest --target-url="):
        assert part in shown


def test_a_fixed_row_is_red_in_junit(tmp_path: Path, lone: str) -> None:
    known = '[[known]]\ncheck = "ordering.response-follows-its-json"\nrows = "*"\nreason = "ours"\n'
    (tmp_path / "b.toml").write_text(known)
    asked = (*FEW_ROWS, "--conformance-baseline=b.toml", "--junitxml=j.xml")
    run = judge(tmp_path, f"--target-url={lone}", *asked)
    assert run.returncode == 1
    (failure,) = junit_of(tmp_path).iter("failure")
    assert failure.attrib["message"].endswith("listed as a known failure, but it passes: ours")
