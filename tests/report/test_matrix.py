"""The matrix: what each cell holds, which findings matter most, and that what a server wrote stays text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from conformance.report import matrix_page
from conformance.report.comparison import compare, keep_differences
from conformance.report.key_findings import KeyFinding, choose_findings
from conformance.report.matrix import Cell, Links, Matrix, build_matrix, sort_versions
from conformance.report.scope import describe_scope
from conformance.spec import ledger
from conformance.spec.ledger import Concern, Level, Party
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
def test_cell_has_kind_and_word_of_outcome(entry: Report, kind: str, word: str) -> None:
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
    assert line.failure is not None
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


def test_an_unmet_requirement_links_to_the_issues_of_its_server() -> None:
    links = Links(find_issues=lambda server, name: [f"https://tracker.example/{server}/{name}"])
    found = build(judged("A", "fail", 1), named("b", "1", judged("A", "pass")), links=links)
    assert [list(cell.issues) for cell in cells(found, "A")] == [["https://tracker.example/alpha/A"], []]
    assert 'href="https://tracker.example/alpha/A" rel="noreferrer">' in matrix_page.render_page(found)


def test_cell_with_same_rows_links_to_next_version() -> None:
    found = build(*[named("a", str(place), judged("A", "fail", 1 + place // 2)) for place in range(3)])
    assert [cell.same_as for cell in cells(found, "A")] == [1, None, None]
    page = matrix_page.render_page(found)
    assert page.count('Its rows have the same results as those of <a href="#A--a-1">a 1</a>.') == 1
    assert page.count("expected 1</dd>") == 2


def test_a_requirement_says_who_meets_it() -> None:
    found = build(*[named(name, "1", judged("A", "pass", passing=1 + place)) for place, name in enumerate("ab")])
    page = matrix_page.render_page(found)
    assert "Met by a 1 (1 row), b 1 (2 rows)." in " ".join(page.split())
    assert [cell.has_details for cell in cells(found, "A")] == [False, False]


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


def test_findings_come_by_level_then_legality_then_share() -> None:
    found = find(
        ("S", "SHOULD", "exchange", 9, 0),
        ("T", "MUST", "transport", 9, 0),
        ("R", "MUST", "refusal", 9, 0),
        ("FEW", "MUST", "exchange", 5, 95),
        ("MANY", "MUST", "exchange", 2, 1),
        ("SECOND", "SHOULD", "exchange", 1, 9),
    )
    assert [each.row.id for each in found] == ["T", "MANY", "FEW", "R", "S"]
    assert find(("A", "MUST", "exchange", 1, 0), ("B", "MUST", "exchange", 1, 0), limit=1)[0].row.id == "A"


def test_usual_requests_come_before_others_and_rare_ones_last() -> None:
    names = ["HTTP-HEAD", "OIP-ID", "HTTP-CHUNKED"]
    found = find(*[(name, "MUST", "transport", 9, 0) for name in names])
    assert [each.row.id for each in found] == names[::-1]


def test_finding_of_several_servers_precedes_finding_of_one() -> None:
    reports = [named(name, "1", judged("OIP-ID", "fail", 1, 9)) for name in "ab"]
    alone = named("c", "1", judged("OIP-MODEL-VERSION", "fail", 9))
    assert [each.row.id for each in choose_findings(build(alone, *reports))] == ["OIP-ID", "OIP-MODEL-VERSION"]


def test_usage_is_of_musts_about_legal_requests() -> None:
    names = {entry.name for entry in ledger.load().values() if entry.usage}
    musts = {
        each.name
        for each in ledger.load().values()
        if each.party is Party.SERVER and each.level is Level.MUST and each.concern is not Concern.REFUSAL
    }
    assert len(names) > 50
    assert names - musts == set()


@pytest.mark.parametrize(
    ("target", "areas", "offered", "scope"),
    [
        ({}, ["json", "grpc"], ["raw"], "Judged over HTTP and gRPC: the base protocol and raw binary requests."),
        ({}, ["json"], [], "Judged over HTTP alone: the base protocol."),
        (
            {},
            ["grpc"],
            [],
            "Judged over gRPC alone, since it offers none of the extensions over HTTP: the base protocol.",
        ),
        (
            {"url": "grpc://h:1"},
            ["grpc"],
            ["classification_grpc"],
            "Judged over gRPC alone, since the run had no HTTP URL: the base protocol and classification over gRPC.",
        ),
        ({}, [], [], ""),
    ],
)
def test_a_column_says_what_is_judged(target: Report, areas: list[str], offered: list[str], scope: str) -> None:
    made = report(requirements=[requirement(f"A-{area}", "MUST", "pass", area) for area in areas])
    made["target"] |= target
    made["extensions"] = {name: {"offered": True} for name in offered}
    assert describe_scope(made) == scope


def test_findings_are_of_newest_versions_and_merge_transports_and_servers() -> None:
    over_grpc = requirement("CLS-COUNT-ABOVE/grpc", "MUST", "fail", "grpc")
    both = report(requirements=[requirement("CLS-COUNT-ABOVE", "MUST", "fail"), over_grpc])
    old = named("b", "1", judged("BIN-ORDER-O", "fail", 3))
    new = named("b", "2", judged("CLS-COUNT-ABOVE", "fail", 1))
    (found,) = choose_findings(build(both, old, new))
    assert found.symptom == "Returns a wrong number of classes when more are requested than exist"
    assert [(column.title, [cell.anchor for cell in own]) for column, own in found.unmet] == [
        ("alpha 1", ["CLS-COUNT-ABOVE--alpha-1", "CLS-COUNT-ABOVE/grpc--alpha-1"]),
        ("b 2", ["CLS-COUNT-ABOVE--b-2"]),
    ]
    page = matrix_page.render_page(build(both, old, new))
    assert (
        'href="#CLS-COUNT-ABOVE--alpha-1">Returns a wrong number of classes when more are requested than exist</a>'
        in page
    )


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


def test_matrix_of_differences_says_so() -> None:
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
