"""`oip-conformance history`: the runs of a product over time, and what changed from one to the next."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.commands import main
from conformance.report.history import Product, build_history, build_page
from conformance.report.report_file import read
from conformance.report.simple_page import render_html, render_markdown
from tests.support.page_tags import parse_tags
from tests.support.small_reports import Report, check, report, requirement

RESULTS = Path(__file__).parents[2] / "docs/results"
IDS = ("BIN-ORDER-O", "BIN-ORDER-I", "BIN-SIZE-O")


def run(day: str, version: str = "1", name: str | None = "alpha", suite: str = "0", **outcomes: str) -> Report:
    """Return a report of a day; `a`, `b`, `c` say what became of three requirements, `pass` where nothing is said."""
    found = [outcomes.get(letter, "pass") for letter in "abc"]
    rows = [
        check(f"ordering.{identity.lower()}", "r", outcome, unmet=identity, requirements=[identity])
        for identity, outcome in zip(IDS, found, strict=True)
        if outcome in ("fail", "advisory", "known_failure")
    ]
    return report(
        name, version,
        started=f"{day}T03:04:05+00:00",
        suite={"name": "oip-conformance", "version": "0.1.0", "digest": suite * 64},
        verdict="nonconformant" if rows else "conformant",
        requirements=[requirement(i, "MUST", outcome) for i, outcome in zip(IDS, found, strict=True) if outcome],
        rows=rows,
    )  # fmt: skip


def only(*reports: Report) -> Product:
    (product,) = build_history((f"{place}.json", each) for place, each in enumerate(reports))
    return product


def test_runs_stand_by_day_and_those_of_a_day_by_version() -> None:
    found = only(run("2026-03-01", "2"), run("2026-01-01", "9"), run("2026-03-01", "1.10"), run("2026-03-01", "1.9"))
    assert [(each.day, each.version) for each in found.runs] == [
        ("2026-01-01", "9"), ("2026-03-01", "1.9"), ("2026-03-01", "1.10"), ("2026-03-01", "2"),
    ]  # fmt: skip


def test_fixes_and_regressions_are_listed_for_their_run() -> None:
    first, second, third = only(
        run("2026-01-01", a="fail", b="pass"), run("2026-02-01", a="pass", b="fail"), run("2026-03-01", b="fail")
    ).runs
    assert (first.fixed, first.broke) == ([], [])
    assert [change.id for change in second.fixed] == ["BIN-ORDER-O"]
    assert [change.id for change in second.broke] == ["BIN-ORDER-I"]
    assert second.broke[0].outcomes == ("pass", "fail")
    assert (third.fixed, third.broke, third.other) == ([], [], [])


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("fail", "pass", "fixed"),
        ("known_failure", "fixed", "fixed"),
        ("advisory", "observed", "fixed"),
        ("pass", "advisory", "broke"),
        ("not_applicable", "fail", "broke"),
        ("", "fail", "broke"),
        ("fail", "not_applicable", "other"),
        ("fail", "blocked", "other"),
        ("fail", "known_failure", "other"),
        ("fail", "fail", ""),
        ("pass", "not_applicable", ""),
    ],
)
def test_what_counts_as_which_change(before: str, after: str, kind: str) -> None:
    found = only(run("2026-01-01", a=before), run("2026-02-01", a=after)).runs[1]
    named = {"fixed": found.fixed, "broke": found.broke, "other": found.other}
    assert [name for name, changes in named.items() if changes] == ([kind] if kind else [])


def test_counts_of_a_run() -> None:
    (found,) = only(run("2026-01-01", a="fail", b="known_failure", c="not_applicable")).runs
    assert (found.failed, found.musts.brief, found.verdict) == (
        2,
        "0 of 3 met, 2 not met, 1 not judged",
        "nonconformant",
    )


def test_requirement_unmet_in_one_run_is_listed_for_all() -> None:
    found = only(run("2026-01-01", a="fail", c=""), run("2026-02-01", c="advisory"))
    assert {entry.id: entry.outcomes for entry in found.unmet} == {
        "BIN-ORDER-O": ["fail", "pass"],
        "BIN-SIZE-O": ["", "advisory"],
    }


def test_products_are_told_apart() -> None:
    nameless = run("2026-01-01", name=None)
    found = build_history([("a", run("2026-02-01")), ("b", run("2026-01-01", name="beta")), ("c", nameless)])
    assert [(product.title, len(product.runs)) for product in found] == [
        ("alpha", 1), ("beta", 1), ("http://127.0.0.1:8000", 1),
    ]  # fmt: skip


def test_another_suite_is_said() -> None:
    same, other = only(run("2026-01-01"), run("2026-02-01", a="fail"), run("2026-03-01", suite="1")).runs[1:]
    assert (same.is_suite_changed, other.is_suite_changed) == (False, True)


@pytest.mark.parametrize("started", ["yesterday", "2026-01-01", "2026-01-01T00:00:00"])
def test_invalid_start_time_sorts_last(started: str) -> None:
    found = only(run("2026-02-01"), run("2026-01-01") | {"started": started})
    assert [each.file for each in found.runs] == ["1.json", "0.json"]


# --- pages ----------------------------------------------------------------------------------------------------------

THREE = [
    ("a.json", run("2026-01-01", a="fail")),
    ("b.json", run("2026-02-01", "2", b="fail", suite="1")),
    ("c.json", run("2026-02-01", name="beta")),
]


def in_markdown(products: Sequence[Product]) -> str:
    return render_markdown(build_page(products))


def in_html(products: Sequence[Product]) -> str:
    return render_html(build_page(products))


def test_a_word_of_the_counts_is_explained() -> None:
    meaning = "the requirement applies, but no row of it was judged"
    assert meaning not in in_markdown(build_history(THREE))
    assert meaning in in_markdown([only(run("2026-01-01", a="not_applicable"))])


def test_the_markdown_page() -> None:
    lines = in_markdown(build_history(THREE)).splitlines()
    assert lines[4:10] == [
        "## alpha",
        "",
        "| date | version | verdict | MUSTs | rows failed | fixed | broke | suite |",
        "|---|---|---|---|---|---|---|---|",
        "| 2026-01-01 | 1 | nonconformant | 2 of 3 met, 1 not met | 1 | 0 | 0 | 0.1.0 (00000000) |",
        "| 2026-02-01 | 2 | nonconformant | 2 of 3 met, 1 not met | 1 | 1 | 1 | 0.1.0 (11111111) |",
    ]
    assert lines[11:19] == [
        "### What changed, and when",
        "",
        "#### 2026-01-01 1 to 2026-02-01 2",
        "",
        "The two runs used different versions of the suite, which may also cause differences.",
        "",
        "- fixed: `BIN-ORDER-O` MUST: FAIL, 1 row, then pass",
        "- broke: `BIN-ORDER-I` MUST: pass, then FAIL, 1 row",
    ]
    assert "| `BIN-ORDER-O` | MUST | FAIL | pass |" in lines
    beta = lines[lines.index("## beta") :]
    assert "No requirement was fixed or broken from run to run." in beta
    assert "Every run met all requirements that it judged." in beta


def test_the_html_page_says_the_same() -> None:
    page = parse_tags(in_html(build_history(THREE)))
    shown = " ".join(page.text.split())
    for said in (
        "2026-01-01a.json1nonconformant2 of 3 met, 1 not met10",
        "2026-01-01 1 to 2026-02-01 2",
        "fixed: BIN-ORDER-O MUST: FAIL, 1 row, then pass",
        "broke: BIN-ORDER-I MUST: pass, then FAIL, 1 row",
        "different versions of the suite",
        "beta",
    ):
        assert said in shown, said


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_prints_or_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    for file, made in THREE:
        (folder / file).write_text(json.dumps(made))
    assert main.main(["history", str(folder)]) == 0
    assert capsys.readouterr().out == in_markdown(build_history(THREE))
    for suffix, render in ((".md", in_markdown), (".html", in_html)):
        output = tmp_path / f"page{suffix}"
        assert main.main(["history", str(folder), "-o", str(output)]) == 0
        assert capsys.readouterr().out == f"wrote {output}\n"
        assert output.read_text(encoding="utf-8") == render(build_history(THREE))


@pytest.mark.parametrize(
    ("files", "arguments", "said"),
    [
        ({}, ["{folder}"], "{folder} holds no report (.json, .json.xz)"),
        ({}, ["{folder}/none"], "{folder}/none is not a folder"),
        ({"a.json": "{}", "b.json": "[", "c.json": json.dumps(THREE[0][1])}, ["{folder}"],
         "{folder}/a.json is not a report of oip-conformance; "
         "{folder}/b.json is not a report of oip-conformance: not JSON"),
        ({"c.json": json.dumps(THREE[0][1])}, ["{folder}", "-o", "{folder}/x.pdf"],
         "{folder}/x.pdf: unknown suffix '.pdf', known are .md, .html"),
        ({"c.json": json.dumps(THREE[0][1])}, ["{folder}", "-o", "{folder}/no/x.md"],
         "cannot write {folder}/no/x.md: No such file or directory"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_one_line(
    files: dict[str, str], arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert main.main(["history", *(argument.format(folder=tmp_path) for argument in arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"oip-conformance: error: {said.format(folder=tmp_path)}")
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


def test_a_packed_report_is_read_and_the_manifest_beside_it_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(RESULTS / "triton.json.xz", tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    assert main.main(["history", str(tmp_path)]) == 0
    assert "triton" in capsys.readouterr().out


def test_versions_of_a_real_server_stand_in_their_order() -> None:
    found = build_history(
        (name, read(RESULTS / name, is_whole=False)) for name in ("triton.json.xz", "triton-2.39.json.xz")
    )
    ((title, versions),) = [(product.title, [each.version for each in product.runs]) for product in found]
    assert title == "triton"
    assert versions == sorted(versions, key=lambda version: [int(part) for part in version.split(".")])
