"""`oip-conformance compare --only-differences`: what is the same for all servers is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.commands import main
from conformance.report import comparison_html, comparison_markdown
from conformance.report.comparison import Comparison, compare
from conformance.report.comparison_differences import keep_differences
from tests.support.small_reports import Report, check, report, requirement


def differences(*reports: Report) -> Comparison:
    return keep_differences(compare([(f"file{place}", made) for place, made in enumerate(reports)]))


def seen(text: str, times: int = 1, identity: str = "BIN-ALL-TRUE-LISTED") -> list[Report]:
    return [check("o.x", str(n), "observed", observation=text, requirements=[identity]) for n in range(times)]


ALIKE = [requirement("BIN-ORDER-O", "MUST", "fail"), requirement("BIN-ORDER-I", "MUST", "pass")]
FAILED = check("ordering.x", "a", "fail", "expected more", "BIN-ORDER-O")
ONE = report(
    requirements=[*ALIKE, requirement("BIN-SIZE-O", "MUST", "fail", "sizes")],
    rows=[FAILED, check("sizes.x", "a", "fail", "expected less", "BIN-SIZE-O"), *seen("JSON"), *seen("text", 2, "X")],
)
TWO = report("beta", requirements=[*ALIKE, requirement("BIN-SIZE-O", "MUST", "pass", "sizes")],
             rows=[FAILED, *seen("binary"), *seen("text", 3, "X")])  # fmt: skip


def test_what_is_alike_is_left_out() -> None:
    found = differences(ONE, TWO)
    assert [(entry.id, entry.outcomes) for own in found.areas.values() for entry in own] == [
        ("BIN-SIZE-O", ["fail", "pass"])
    ]
    assert [entry.requirement for entry in found.observations] == ["BIN-ALL-TRUE-LISTED"]
    assert [[line.check for line in lines] for lines in found.failures] == [["sizes.x"], []]
    assert {fact.label for fact in found.facts} == {"MUST", "rows: FAIL", "rows: observed"}


@pytest.mark.parametrize("render", [comparison_markdown.render, comparison_html.render])
def test_pages_say_that_only_differences_are_shown(render: object) -> None:
    assert callable(render)
    page = render(differences(ONE, TWO))
    assert "Only what differs between the columns is shown." in page
    assert "BIN-SIZE-O" in page
    assert "BIN-ORDER" not in page
    alike = render(differences(ONE, ONE))
    assert "None differs." in alike
    assert "BIN-" not in alike
    assert "Only what differs" not in render(compare([("one", ONE), ("two", TWO)]))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(tmp_path / "one.json"), str(tmp_path / "two.json")]
    for file, made in zip(files, (ONE, TWO), strict=True):
        Path(file).write_text(json.dumps(made))
    found = keep_differences(compare([("one", ONE), ("two", TWO)]))
    assert main.main(["compare", "--only-differences", *files]) == 0
    assert capsys.readouterr().out == comparison_markdown.render(found)
    assert main.main(["compare", "--only-differences", *files, "-o", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text() == comparison_html.render(found)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["one.json"], "--only-differences takes two reports or more"),
        (["--gate", "one.json", "one.json"], "--gate takes two reports, OLD NEW, and prints what got worse, alone"),
    ],
)
def test_what_it_cannot_do(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.json").write_text(json.dumps(ONE))
    monkeypatch.chdir(tmp_path)
    assert main.main(["compare", "--only-differences", *arguments]) == 2
    assert capsys.readouterr().err == f"oip-conformance: error: {said}\n"
