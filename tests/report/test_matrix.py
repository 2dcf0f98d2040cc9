"""The matrix: what each cell holds, which findings matter most, and that what a server wrote stays text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from conformance.report import matrix_page
from conformance.report.comparison import compare, keep_differences
from conformance.report.key_findings import KeyFinding, choose_findings
from conformance.report.matrix import Cell, Links, Matrix, build_matrix, sort_versions
from tests.support.page_tags import Tags
from tests.support.small_reports import HOSTILE, Report, check, report, requirement


def build(*reports: Report, links: Links | None = None) -> Matrix:
    named = sort_versions([(f"file{place}", each) for place, each in enumerate(reports)])
    return build_matrix(compare(named), named, links)


def cells(matrix: Matrix, name: str) -> list[Cell]:
    return list(next(row.cells for row in matrix.rows if row.id == name))


def judged(identity: str, verdict: str, failing: int = 0, passing: int = 0, level: str = "MUST") -> Report:
    """Return a report on one requirement with so many rows of each kind."""
    outcome = "fail" if level == "MUST" else "advisory"
    rows = [check("o.x", f"f{number}", outcome, "expected 1", identity) for number in range(failing)]
    rows += [check("o.x", f"p{number}", "pass", requirements=[identity, "BIN-ORDER-I"]) for number in range(passing)]
    return report(requirements=[requirement(identity, level, verdict)], rows=rows)


def named(name: str, version: str, made: Report) -> Report:
    return made | {"target": made["target"] | {"name": name, "version": version}}


# --- columns and rows ------------------------------------------------------------------------------------------------


def test_versions_of_a_server_are_adjacent_in_order() -> None:
    found = build(report("b", "1.10"), report("a", "2"), report("b", "1.9"), report(None, None))
    assert [(column.title, column.key) for column in found.columns] == [
        ("b 1.9", "b-1.9"),
        ("b 1.10", "b-1.10"),
        ("a 2", "a-2"),
        ("file3", "file3"),
    ]
    assert found.servers == {"b": [0, 1], "a": [2], "file3": [3]}


def test_two_runs_of_one_version_have_addresses_of_their_own() -> None:
    assert [column.key for column in build(report(), report()).columns] == ["alpha-1", "alpha-1!2"]


def test_requirements_are_grouped_by_area_and_concern() -> None:
    entries = [
        requirement("CLS-COUNT/grpc", "MUST", "pass", "grpc"),
        requirement("A", "MUST", "pass") | {"concern": "transport"},
        requirement("B", "MUST", "pass") | {"concern": "exchange"},
    ]
    found = build(report(requirements=entries))
    assert [(group.area, group.concern, [row.id for row in group.rows]) for group in found.groups] == [
        ("ordering", "exchange", ["B"]),
        ("ordering", "transport", ["A"]),
        ("grpc", "exchange", ["CLS-COUNT/grpc"]),
    ]


@pytest.mark.parametrize(
    ("entry", "kind", "word"),
    [
        (requirement("A", "MUST", "pass"), "pass", "pass"),
        (requirement("A", "MUST", "fail"), "fail", "fail"),
        (requirement("A", "SHOULD", "advisory"), "advisory", "advice"),
        (requirement("A", "MUST", "not_applicable"), "not judged", "not judged"),
        (requirement("A", "MUST", "not_applicable") | {"extension": "raw"}, "not offered", "not offered"),
        (requirement("A", "MUST", "pass") | {"verdict": "not_applicable"}, "not applicable", "not applicable"),
        (requirement("B", "MUST", "pass"), "unknown", "unknown"),
    ],
)
def test_a_cell_says_what_became_of_a_requirement(entry: Report, kind: str, word: str) -> None:
    found = cells(
        build(report(requirements=[entry]), report("z", requirements=[requirement("A", "MUST", "pass")])), "A"
    )
    assert (found[0].kind, found[0].word) == (kind, word)
    assert found[0].meaning


# --- what a cell opens to --------------------------------------------------------------------------------------------


def test_a_cell_counts_the_rows_that_do_not_meet_it() -> None:
    summary = judged("A", "fail", failing=2) | {}
    summary["rows"] = [*summary["rows"], {"outcome": "pass", "requirements": ["A"], "count": 5}]
    (found,) = cells(build(summary), "A")
    assert (found.anchor, found.unmet, found.judged) == ("A--alpha-1", 2, 7)


def test_a_cell_has_what_was_sent_and_what_came() -> None:
    made = judged("A", "fail", failing=2)
    made["rows"][0]["failure"] |= {"sent": "POST /a", "bytes": ["0000 01"]}
    made["rows"] += [check("o.y", "", "observed", observation="text", requirements=["A"])]
    (found,) = cells(build(made), "A")
    (line,) = found.lines
    assert (line.rows, line.message, line.failure["sent"], line.failure["bytes"]) == (
        ["f0", "f1"], "expected 1", "POST /a", ["0000 01"]
    )  # fmt: skip
    assert found.observed == [("text", 1)]
    page = matrix_page.render_page(build(made))
    for said in ("POST /a", "0000 01", "<strong>alpha 1</strong>: 2 of 3 rows do not meet it", "text"):
        assert said in page


def test_an_observed_cell_shows_what_was_observed_most() -> None:
    rows = [
        check("o.x", str(place), "observed", observation=text, requirements=["A"]) for place, text in enumerate("abb")
    ]
    page = matrix_page.render_page(build(report(rows=rows, requirements=[requirement("A", "OBSERVE", "observed")])))
    assert '>observed<span class="said">b</span></a>' in page


@pytest.mark.parametrize(
    ("outcomes", "since", "before"),
    [
        (["fail", "fail", "fail"], "fail in every judged version since 1", ""),
        (["fail", "pass", "pass"], "pass since 2; fail in 1", ""),
        (["pass", "pass", "fail"], "fail since 3; pass in 2", "pass"),
        (["fail"], "", ""),
    ],
)
def test_a_cell_says_since_which_version(outcomes: list[str], since: str, before: str) -> None:
    versions = [named("a", str(place + 1), judged("A", outcome)) for place, outcome in enumerate(outcomes)]
    found = build(report("z"), *reversed(versions))
    last = cells(found, "A")[-1]
    assert (last.since, last.before) == (since, before)


def test_an_unmet_requirement_links_to_its_bug_report() -> None:
    links = Links(find_bug_report=lambda server, name: f"{server}/{name}")
    found = build(judged("A", "fail", 1), named("b", "1", judged("A", "pass")), links=links)
    assert [cell.bug_report for cell in cells(found, "A")] == ["alpha/A", ""]
    assert 'href="alpha/A"' in matrix_page.render_page(found)


# --- findings --------------------------------------------------------------------------------------------------------


def find(*entries: tuple[str, str, str, int, int], **more: Any) -> list[KeyFinding]:
    """Return the findings of a server with requirements: id, level, concern, failing and passing rows."""
    made = [judged(name, "fail" if level == "MUST" else "advisory", failing, passing, level)
            for name, level, _, failing, passing in entries]  # fmt: skip
    requirements = [
        {**each["requirements"][0], "concern": concern}
        for each, (_, _, concern, _, _) in zip(made, entries, strict=True)
    ]
    rows = [row for each in made for row in each["rows"]]
    return choose_findings(build(report(requirements=requirements, rows=rows)), **more)


def test_findings_come_by_level_then_concern_then_share() -> None:
    found = find(
        ("S", "SHOULD", "exchange", 9, 0),
        ("T", "MUST", "transport", 9, 0),
        ("R", "MUST", "refusal", 9, 0),
        ("FEW", "MUST", "exchange", 5, 95),
        ("MANY", "MUST", "exchange", 2, 1),
        ("SECOND", "SHOULD", "exchange", 1, 9),
    )
    assert [each.row.id for each in found] == ["MANY", "FEW", "R", "T", "S"]
    assert find(("A", "MUST", "exchange", 1, 0), ("B", "MUST", "exchange", 1, 0), most=1)[0].row.id == "A"


def test_findings_are_of_newest_versions_and_merge_transports_and_servers() -> None:
    over_grpc = requirement("CLS-COUNT-ABOVE/grpc", "MUST", "fail", "grpc")
    both = report(requirements=[requirement("CLS-COUNT-ABOVE", "MUST", "fail"), over_grpc])
    old = named("b", "1", judged("BIN-ORDER-O", "fail", 3))
    new = named("b", "2", judged("CLS-COUNT-ABOVE", "fail", 1))
    (found,) = choose_findings(build(both, old, new))
    assert found.symptom == "Makes up classes when more are requested than exist"
    assert [(column.title, [cell.anchor for cell in own]) for column, own in found.unmet] == [
        ("alpha 1", ["CLS-COUNT-ABOVE--alpha-1", "CLS-COUNT-ABOVE/grpc--alpha-1"]),
        ("b 2", ["CLS-COUNT-ABOVE--b-2"]),
    ]
    page = matrix_page.render_page(build(both, old, new))
    assert 'href="#CLS-COUNT-ABOVE--alpha-1">Makes up classes when more are requested than exist</a>' in page


# --- the page --------------------------------------------------------------------------------------------------------


class PageTags(Tags):
    """The tags of a page with a script."""

    VOID = frozenset({*Tags.VOID, "input"})


def test_hostile_text_stays_text() -> None:
    rows = [
        check(HOSTILE, HOSTILE, "fail", HOSTILE, HOSTILE),
        check(HOSTILE, HOSTILE, "blocked", HOSTILE, requirements=[HOSTILE]),
        check(HOSTILE, HOSTILE, "observed", observation=HOSTILE, requirements=[HOSTILE]),
    ]
    rows[0]["failure"] |= dict.fromkeys(("sent", "request", "answer"), HOSTILE) | {"bytes": [HOSTILE]}
    made = report(HOSTILE, HOSTILE, why=[HOSTILE], rows=rows, requirements=[requirement(HOSTILE, "MUST", "fail")])
    later = named(HOSTILE, HOSTILE + "2", made | {"requirements": [requirement(HOSTILE, "MUST", "pass")], "rows": []})
    links = Links(find_bug_report=lambda *_: HOSTILE)
    page = matrix_page.render_page(build(made, later, links=links))
    tags = PageTags()
    tags.feed(re.sub(r"<(style|script)>.*?</\1>", r"<\1></\1>", page, flags=re.DOTALL))
    tags.close()
    assert tags.open == []
    assert page.count("<script") == 1
    assert "alert(1)" in tags.text
    assert re.findall(r"[^ -~\n\u00b7\u2013\u2192]", tags.text) == []


def test_differences_alone_are_said_to_be_that() -> None:
    same = requirement("BIN-ORDER-I", "MUST", "pass")
    pairs = [
        (name, report(name, requirements=[requirement("BIN-ORDER-O", "MUST", verdict), same]))
        for name, verdict in (("a", "fail"), ("b", "pass"))
    ]
    whole = compare(pairs)
    for comparison, names in ((whole, ["BIN-ORDER-I", "BIN-ORDER-O"]), (keep_differences(whole), ["BIN-ORDER-O"])):
        found = build_matrix(comparison, pairs)
        assert [row.id for row in found.rows] == names
        assert ("This page shows only requirements that differ" in matrix_page.render_page(found)) == (
            comparison is not whole
        )
