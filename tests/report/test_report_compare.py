"""`oip-conformance compare`: reports side by side, whatever a server wrote into them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.commands import main
from conformance.report import comparison_page, matrix_page
from conformance.report.comparison import Comparison, compare, keep_differences
from conformance.report.matrix import build_matrix
from conformance.report.report_file import read
from conformance.report.simple_page import render_markdown
from conformance.spec.extensions import OVER_HTTP
from tests.support.small_reports import Report, check, report, requirement

RESULTS = Path(__file__).parents[2] / "docs/results"
SERVERS = ["aissemble", "dynamo", "kserve-0.14", "kserve", "mlserver", "omle", "reference", "triton-2.39", "triton"]


def markdown(*reports: Report) -> list[str]:
    return in_markdown(compared(*reports)).splitlines()


def compared(*reports: Report) -> Comparison:
    return compare([(f"file{place}", report) for place, report in enumerate(reports)])


def in_markdown(comparison: Comparison) -> str:
    return render_markdown(comparison_page.build_page(comparison))


def in_html(comparison: Comparison, *reports: Report) -> str:
    return matrix_page.render_page(
        build_matrix(comparison, [(f"file{place}", each) for place, each in enumerate(reports)])
    )


def section(lines: list[str], heading: str) -> list[str]:
    """Return the lines below a heading, up to the next of its rank."""
    rank = heading.partition(" ")[0] + " "
    rest = lines[lines.index(heading) + 1 :]
    end = next((place for place, line in enumerate(rest) if line.startswith(rank)), len(rest))
    return [line for line in rest[:end] if line]


# --- what the page says ---------------------------------------------------------------------------------------------


def test_facts_stand_on_top() -> None:
    strict = {"profile": "quick", "strict": True, "extensions": ["binary_tensor_data"], "timeout_s": 1, "headers": []}
    met = [requirement("A", "MUST", "pass"), requirement("B", "MUST", "not_applicable")]
    bad = report(
        "beta",
        "2",
        verdict="nonconformant",
        interoperable=False,
        why=["1 row failed"],
        options=strict,
        requirements=[*met, requirement("C", "SHOULD", "advisory")],
        rows=[check("ordering.x", "", "fail", unmet="A")],
    )
    lines = markdown(report(), bad)
    assert lines[4 : 20 + len(OVER_HTTP)] == [
        "|  | alpha 1 | beta 2 |",
        "|---|---|---|",
        "| verdict | conformant | **nonconformant: 1 row failed** |",
        "| base protocol | not offered | not asked for |",
        "| binary_tensor_data | conformant (exchange 1/2, refusal 1/2, transport 1/2) "
        "| conformant (exchange 1/2, refusal 1/2, transport 1/2) |",
        *[f"| {name} | not offered | not asked for |" for name in OVER_HTTP[1:]],
        "| MUST | 0 of 0 met | 1 of 2 met, 1 not judged |",
        "| SHOULD | 0 of 0 met | 0 of 1 met, 1 not met |",
        "| rows: FAIL | 0 | 1 |",
        "| roles | 1 | 1 |",
        "| suite | 0.1.0 (01234567) | 0.1.0 (01234567) |",
        "| profile | certify | quick; strict; extensions binary_tensor_data |",
        "| date | 2026-01-02 | 2026-01-02 |",
        "",
        "## Requirements",
        "",
        "| sign | means |",
        "|---|---|",
    ]


def test_versions_of_a_server_are_set_against_each_other() -> None:
    old = report(
        "alpha",
        "1.9",
        requirements=[requirement("A", "MUST", "fail"), requirement("BIN-ORDER-O", "SHOULD", "advisory")],
        rows=[
            check("ordering.x", "one", "fail", unmet="A"),
            check("ordering.x", "two", "fail", unmet="A"),
            check("ordering.y", "", "advisory", unmet="BIN-ORDER-O"),
        ],
    )
    new = report("alpha", "1.10", requirements=[requirement("A", "MUST", "pass"), requirement("B", "MUST", "pass")])
    lines = markdown(report("beta", "1"), new, old, new)
    assert section(lines, "## From version to version")[1:] == [
        "### alpha 1.9 and alpha 1.10 (file1)",
        "| requirement | level | alpha 1.9 | alpha 1.10 (file1) |",
        "|---|---|---|---|",
        "| `BIN-ORDER-O` | SHOULD | advice, 1 row | - |",
        "| `A` | MUST | **FAIL, 2 rows** | pass |",
    ]
    assert (
        section(markdown(new, report("alpha", "2")), "### alpha 1.10 and alpha 2")[0]
        == "Both versions meet the same requirements."
    )
    assert "FAIL, 2 rows &rarr; pass" in in_html(compared(old, new), old, new)


def test_requirements_by_servers() -> None:
    one = report(
        requirements=[requirement("BIN-ORDER-O", "MUST", "pass"), requirement("NEW", "SHOULD", "advisory", "raw")]
    )
    two = report("beta", requirements=[requirement("BIN-ORDER-O", "MUST", "fail")])
    lines = markdown(one, two)
    statement = "The binary data of an answer follow the order in which the answer's own JSON lists the outputs."
    assert section(lines, "### ordering")[2] == f"| `BIN-ORDER-O` | MUST | {statement} | pass | **FAIL** |"
    assert section(lines, "### raw")[2] == "| `NEW` | SHOULD |  | advice | - |"
    legend = section(lines, "## Requirements")
    assert "| - | not in this report: another version of the suite wrote it |" in legend
    assert "| blocked | what it rests on fails already |" not in legend


@pytest.mark.parametrize(
    ("servers", "titles"),
    [
        ([("a", "1"), ("b", "1")], ["a 1", "b 1"]),
        ([("a", "1"), ("a", "2")], ["a 1", "a 2"]),
        ([("a", "1"), ("a", "1")], ["a 1 (same)", "a 1 (same) #2"]),
        ([("a", None), (None, None)], ["a", "(same)"]),
    ],
)
def test_columns_have_names_of_their_own(servers: list[tuple[str | None, str | None]], titles: list[str]) -> None:
    assert compare([("same", report(*server)) for server in servers]).titles == titles


def test_rows_that_say_the_same_are_one_line() -> None:
    refused = 'expected 2xx, got HTTP 400: {"error":"no '
    checks = [
        check("ordering.x", "one-two", "fail", "expected [1, 2] for one two, got 3", "BIN-ORDER-O"),
        check("ordering.x", "three", "fail", "expected [4] for three, got 5", "BIN-ORDER-O"),
        check("ordering.x", "four", "fail", "expected [4] for four, got nothing", "BIN-ORDER-O"),
        *[check("ordering.y", f"r{k}", "fail", f'{refused}{k}"}}', "BIN-ORDER-I") for k in "abcde"],
        check("ordering.y", "z", "fail", "expected 2xx, got HTTP 500: x", "BIN-ORDER-I"),
        check("ordering.y", "w", "advisory", "expected less", "BIN-BODY-LONG"),
        check("ordering.z", "", "blocked", "it rests on nothing"),
        check("ordering.z", "e", "error", "the target is gone"),
        check("ordering.p", "", "pass", "never shown"),
    ]
    lines = markdown(report(), report("beta", rows=checks))
    assert section(lines, "## Failures") == [
        "### beta 1",
        r"- `BIN-ORDER-O` `ordering.x` (one-two, three): expected \[1, 2\] for one two, got 3",
        r"- `BIN-ORDER-O` `ordering.x` (four): expected \[4\] for four, got nothing",
        '- `BIN-ORDER-I` `ordering.y` (ra, rb, rc and 2 more): expected 2xx, got HTTP 400: {"error":"no a"}',
        "- `BIN-ORDER-I` `ordering.y` (z): expected 2xx, got HTTP 500: x",
    ]
    assert section(lines, "## Advice") == ["### beta 1", "- `BIN-BODY-LONG` `ordering.y` (w): expected less"]
    assert section(lines, "## Blocked, or in error") == [
        "### beta 1",
        "- `BIN-ORDER-O` `ordering.z` (blocked): it rests on nothing",
        "- `BIN-ORDER-O` `ordering.z` (e) (error): the target is gone",
    ]


def seen(identity: str, *texts: str) -> list[Report]:
    return [check("o.x", str(k), "observed", observation=t, requirements=[identity]) for k, t in enumerate(texts)]


def test_observations_are_summed_up() -> None:
    one = report(rows=[*seen("UNKNOWN", "a"), *seen("BIN-ALL-TRUE-LISTED", "JSON", "binary data", "JSON")])
    two = report("beta", rows=seen("BIN-ALL-TRUE-LISTED", "HTTP 400: no", "HTTP 400: never", "1", "2", "3", "4"))
    assert section(markdown(one, two), "## Observations")[1:] == [
        "| requirement | check | alpha 1 | beta 1 |",
        "|---|---|---|---|",
        "| `BIN-ALL-TRUE-LISTED` | `o.x` | JSON (2)<br>binary data | HTTP 400 (2)<br>1<br>2<br>3<br>and 1 more |",
        "| `UNKNOWN` | `o.x` | a |  |",
    ]


def test_empty_sections_are_omitted() -> None:
    headings = [line for line in markdown(report()) if line.startswith("#")]
    assert headings == ["# Conformance of model servers, side by side", "## Requirements", "## Observations"]


# --- files ----------------------------------------------------------------------------------------------------------


ALIKE = [requirement("BIN-ORDER-O", "MUST", "fail"), requirement("BIN-ORDER-I", "MUST", "pass")]
FAILED = check("ordering.x", "a", "fail", "expected more", "BIN-ORDER-O")
ONE = report(
    requirements=[*ALIKE, requirement("BIN-SIZE-O", "MUST", "fail", "sizes")],
    rows=[FAILED, check("sizes.x", "a", "fail", "expected less", "BIN-SIZE-O"), *seen("BIN-ALL-TRUE-LISTED", "JSON"),
          *seen("X", "text", "text")],
)  # fmt: skip
TWO = report(
    "beta",
    requirements=[*ALIKE, requirement("BIN-SIZE-O", "MUST", "pass", "sizes")],
    rows=[FAILED, *seen("BIN-ALL-TRUE-LISTED", "binary"), *seen("X", "text", "text", "text")],
)


def test_keep_differences_drops_equal_entries() -> None:
    found = keep_differences(compared(ONE, TWO))
    assert [(entry.id, entry.outcomes) for own in found.areas.values() for entry in own] == [
        ("BIN-SIZE-O", ["fail", "pass"])
    ]
    assert [entry.requirement for entry in found.observations] == ["BIN-ALL-TRUE-LISTED"]
    assert [[line.check for line in lines] for lines in found.failures] == [["sizes.x"], []]
    assert {fact.label for fact in found.facts} == {"MUST", "rows: FAIL", "rows: observed"}
    page = in_markdown(found)
    assert "This page shows only requirements and rows that differ between the columns." in page
    assert "BIN-SIZE-O" in page
    assert "BIN-ORDER" not in page
    alike = in_markdown(keep_differences(compared(ONE, ONE)))
    assert alike.count("None differs.") == 2
    assert "BIN-" not in alike
    assert "This page shows only" not in in_markdown(compared(ONE, TWO))


@pytest.mark.parametrize("options", [[], ["--only-differences"]])
def test_the_command_prints_or_writes(tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(tmp_path / "one.json"), str(tmp_path / "two.json")]
    for file, made in zip(files, (ONE, TWO), strict=True):
        Path(file).write_text(json.dumps(made))
    both = compare([("one", ONE), ("two", TWO)])
    shown = keep_differences(both) if options else both
    assert main.main(["compare", *options, *files]) == 0
    assert capsys.readouterr().out == in_markdown(shown)
    for suffix, page in ((".md", in_markdown(shown)), (".html", in_html(shown, ONE, TWO))):
        assert main.main(["compare", *options, *files, "-o", f"{tmp_path}/page{suffix}"]) == 0
        assert capsys.readouterr().out == f"wrote {tmp_path}/page{suffix}\n"
        assert (tmp_path / f"page{suffix}").read_text(encoding="utf-8") == page
    assert {path.name for path in tmp_path.iterdir()} == {"one.json", "two.json", "page.md", "page.html"}


def changed(**changes: Any) -> Callable[[], bytes]:
    return lambda: json.dumps(report() | changes).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot read {file}: No such file or directory"),
        (lambda: b"", "{file} is not a report of oip-conformance: not JSON: Expecting value"),
        (lambda: b"\xff\xfe", "{file} is not a report of oip-conformance: "),
        (lambda: b"[" * 100_000, "{file} is not a report of oip-conformance: "),
        (lambda: b'{"schema": 1}', "{file} is not a report of oip-conformance\n"),
        (lambda: b"[1]", "{file} is not a report of oip-conformance\n"),
        (changed(schema=2), "{file} is a report of schema version 2; this suite reads 3\n"),
        (changed(verdict="\x1b\nfine"), "{file} is not a report of oip-conformance: $.verdict: "),
        (changed(rows=[{}]), "{file} is not a report of oip-conformance: $.rows[0]: "),
    ],
    ids=["absent", "empty", "bytes", "nested", "too little", "an array", "version", "member", "check"],
)
def test_invalid_report_is_one_line_error(
    content: Callable[[], bytes] | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.json"
    if content:
        file.write_bytes(content())
    assert main.main(["compare", str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("oip-conformance: error: " + said.format(file=file))
    assert printed.err.count("\n") == 1
    assert "\x1b" not in printed.err


@pytest.mark.parametrize("name", ["\ud800", "a"])
@pytest.mark.parametrize("digest", ["0" * 64 + "\n", "0" * 64])
def test_report_refused_by_fast_check_is_validated_by_jsonschema(name: str, digest: str, tmp_path: Path) -> None:
    target = report()["target"] | {"roles": {name: "m"}}
    file = tmp_path / "x.json"
    file.write_bytes(changed(target=target, suite=report()["suite"] | {"digest": digest})())
    assert read(file)["target"] == target


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x.json", "-o", "page.pdf"], "page.pdf: unknown suffix '.pdf', known are .md, .html"),
        (["x.json", "-o", "no/page.md"], "cannot write no/page.md: No such file or directory"),
        (["--only-differences", "x.json"], "--only-differences needs two reports or more"),
        (
            ["--gate", "x.json"],
            "--gate compares exactly two reports, OLD NEW; it cannot be combined with -o or --only-differences",
        ),
        (
            ["--only-differences", "--gate", "x.json", "x.json"],
            "--gate compares exactly two reports, OLD NEW; it cannot be combined with -o or --only-differences",
        ),
    ],
)
def test_what_it_cannot_do_is_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(report()))
    monkeypatch.chdir(tmp_path)
    assert main.main(["compare", *arguments]) == 2
    assert capsys.readouterr().err == f"oip-conformance: error: {said}\n"


# --- docs/results -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERVERS)
def test_reports_hold_no_path_of_the_machine_they_come_from(name: str) -> None:
    text = json.dumps(read(RESULTS / f"{name}.json.xz", is_whole=False))
    assert re.findall(r"[^\s\"]*/(?:home|root|tmp|opt|usr|var|work|site-packages)/[^\s\"]*", text) == []
