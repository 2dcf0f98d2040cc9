"""The HTML report: valid, self-contained, navigable, and nothing that a server wrote is more than text in it."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from copy import deepcopy
from itertools import pairwise
from xml.etree.ElementTree import Element

import pytest

from conformance.report.page_html import MAX_BLOCKS, MAX_OPEN_ROWS, SCRIPTS, render
from conformance.report.view import build_view
from conformance.spec import ledger
from tests.support.made_reports import (
    ALL,
    ATTACK,
    CONFORMANT,
    CUT_SHORT,
    GATED,
    HOSTILE,
    NONCONFORMANT,
    NOTHING,
    Report,
    check,
    failure,
    report,
    requirement,
)
from tests.support.page_tags import parse_report_page as parsed
from tests.support.page_tags import read_text as text

EVERY = pytest.mark.parametrize("made", ALL.values(), ids=ALL)


def by_id(page: Element, identity: str) -> Element:
    (found,) = page.findall(f".//*[@id='{identity}']")
    return found


# --- form ------------------------------------------------------------------------------------------------------------


@EVERY
def test_landmarks_headings_and_links(made: Report) -> None:
    page = parsed(made)
    assert [len(page.findall(f".//{name}")) for name in ("h1", "nav", "main", "footer")] == [1, 1, 1, 1]
    assert page.get("lang") == "en"
    ranks = [int(element.tag[1]) for element in page.iter() if re.fullmatch("h[1-6]", str(element.tag))]
    assert ranks[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(ranks))
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    links = [link.get("href", "").partition("?")[0] for link in page.iter("a")]
    assert links[0] == "#main"
    known = {source.url for entry in ledger.load().values() for source in entry.sources}
    assert [link for link in links if link not in known and (link[:1] != "#" or link[1:] not in ids)] == []
    named = [element for element in page.iter() if element.get("aria-labelledby")]
    assert {element.get("aria-labelledby") for element in named} <= set(ids)


@EVERY
def test_nothing_is_loaded_and_nothing_foreign_runs(made: Report) -> None:
    page = parsed(made)
    assert [
        element for element in page.iter() if {"src", "srcset", "action", "onerror", "onclick"} & set(element.attrib)
    ] == []
    assert [element.tag for element in page.iter() if element.tag in ("link", "img", "iframe", "object", "base")] == []
    (style,), scripts = page.findall(".//style"), page.findall(".//script")
    policy = page.find(".//meta[@http-equiv='Content-Security-Policy']")
    assert policy is not None
    digests = [b64encode(hashlib.sha256((e.text or "").encode()).digest()).decode() for e in (style, *scripts)]
    runnable = " ".join(f"'sha256-{digest}'" for digest in digests[1:])
    expected = f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src {runnable}"
    assert policy.get("content") == expected
    assert "url(" not in (style.text or "")
    assert "import" not in (style.text or "")


def test_controls_have_labels_and_scrolling_blocks_can_be_reached() -> None:
    page = parsed(NONCONFORMANT)
    labelled = [
        control for label in page.iter("label") for control in label.iter() if control.tag in ("input", "select")
    ]
    assert labelled == [control for control in page.iter() if control.tag in ("input", "select")]
    assert len(labelled) == 5
    blocks = list(page.iter("pre"))
    assert blocks
    assert all(block.get("tabindex") == "0" and block.get("aria-label") for block in blocks)


def test_without_script_the_tools_are_hidden_and_nothing_else_is() -> None:
    page = parsed(NONCONFORMANT)
    assert [element.get("id") for element in page.iter() if "hidden" in element.attrib] == ["tools"]


# --- what it says ----------------------------------------------------------------------------------------------------


def test_the_head_says_who_what_and_why() -> None:
    header = parsed(NONCONFORMANT).find(".//header")
    assert header is not None
    assert text(header) == "OIP conformance report of 2026-01-02 alpha 1.2 nonconformant 2 rows failed"


@pytest.mark.parametrize(
    ("made", "banner"),
    [(CONFORMANT, False), (NONCONFORMANT, False), (CUT_SHORT, True), (NOTHING, True)],
    ids=["conformant", "nonconformant", "cut short", "nothing judged"],
)
def test_a_run_that_is_not_whole_says_so_at_its_top(made: Report, banner: bool) -> None:
    header = parsed(made).find(".//header")
    assert header is not None
    assert ("This is not a whole run." in text(header)) is banner


def test_the_summary_counts() -> None:
    page = parsed(NONCONFORMANT)
    assert "0 of 3 MUSTs that apply are met, 1 not met, 1 in doubt , 1 not judged . " in text(by_id(page, "summary"))
    assert "Raw binary requests: not offered" in text(by_id(page, "summary"))
    run = text(by_id(page, "run"))
    assert "Rows 2 failed 2 blocked 1 advice 1 observed 3 passed 2 n/a" in run
    assert "Binary tensor data nonconformant ordering 2 failed 2 blocked 1 advice" in run
    assert "Raw binary requests not offered" in run
    assert "90 seconds" in run


def test_a_failure_is_shown_with_all_that_a_reader_needs() -> None:
    (block,) = by_id(parsed(NONCONFORMANT), "failures").findall("details")
    shown = text(block)
    for part in (
        "BIN-ORDER-O", "2 of 5 rows", "ordering.x 2 rows", "Bytes follow the JSON.", "Bytes follow outputs .",
        'Document, "S"', "POST /v2, 164 bytes", "OUT0 INT32 [2] = [1, 2]", "[3, 4]: element 0 differs",
        "0060 03 00 .. <- tensor 0 OUT0", "curl -sS http://h/v2", "1 other row: five expected a, got b",
        "pytest --target-url=http://127.0.0.1:8000 -k ordering.x",
    ):  # fmt: skip
        assert part in shown
    assert [text(mark) for mark in block.iter("mark")] == ["0060 03 00 .. <- tensor 0 OUT0 INT32 element 0"]


def test_the_json_of_request_and_answer_stands_with_a_failure() -> None:
    unmet = failure(request='{"inputs": []}', answer='{"error": "no"}')
    page = parsed(report("nonconformant", rows=[check(outcome="fail", failure=unmet)]))
    assert 'Request {"inputs": []} Answer {"error": "no"}' in text(by_id(page, "failures"))


BODY = {"head": ["HTTP 200", "X: <b>"], "length": 3, "sha256": "0" * 64, "body_base64": "AQID",
        "fields": [[0, 3, 'tensor 0 "A" UINT8', 1]]}  # fmt: skip
LONG_BODY = {"head": ["POST /v2"], "length": 5000, "sha256": "f" * 64}


def test_bodies_stand_in_the_page_or_are_named_by_their_digests() -> None:
    unmet = failure(evidence={"request": LONG_BODY, "answer": BODY})
    page = parsed(report("nonconformant", rows=[check(outcome="fail", failure=unmet)]))
    request, answer = (element for element in page.iter("details") if element.get("class") == "message")
    assert text(request).startswith(
        "Request as it was, with 5000 bytes of body POST /v2 A body of 5000 bytes is too long"
    )
    assert "f" * 64 in text(request)
    assert text(answer) == "Answer as it was, with 3 bytes of body HTTP 200 X: <b> AQID"
    (body,) = (element for element in answer.iter("pre") if element.get("class") == "body")
    assert json.loads(body.get("data-fields") or "") == [[0, 3, 'tensor 0 "A" UINT8', 1]]
    assert body.get("data-title") == "Body of the answer"


def test_advice_and_observations_and_what_is_not_judged_have_sections_of_their_own() -> None:
    page = parsed(NONCONFORMANT)
    assert "ordering.advice" in text(by_id(page, "advice"))
    assert "ordering.advice" not in text(by_id(page, "failures"))
    observations = text(by_id(page, "observations"))
    assert "BIN-ALL-TRUE-LISTED JSON, no inference header" in observations
    assert "ordering.open" in observations
    assert "m answers no plain request" in text(by_id(page, "stuck"))
    unjudged = text(by_id(page, "unjudged"))
    assert "too large for the target: HTTP 413: 1 row" in unjudged
    assert "no model for a role: 1 row about MUSTs. Deploy models" in unjudged
    assert "multi (1 MUST, 1 row)" in unjudged
    assert "not judged BIN-ORDER-I : no model fills the role that a row needs; deploy multi" in unjudged
    assert "2 MUSTs without a verdict" in unjudged


def test_every_requirement_stands_there_with_its_checks() -> None:
    page = parsed(NONCONFORMANT)
    entries = {entry.get("id"): entry for entry in page.iter("details") if (entry.get("id") or "").startswith("req-")}
    assert list(entries) == [f"req-{entry['id']}" for entry in NONCONFORMANT["requirements"]]
    shown = text(entries["req-BIN-ORDER-O"])
    assert shown.startswith("failed BIN-ORDER-O MUST exchange The binary data of an answer follow the order")
    (source,) = ledger.get_requirement("BIN-ORDER-O").sources
    assert str(source) in shown
    assert [link.get("href") for link in entries["req-BIN-ORDER-O"].findall("./div/p/a")] == [source.url]
    assert "failed 2 rows: four, five evidence" in shown
    assert "passed 3 rows: one, two, three" in shown
    assert entries["req-BIN-ORDER-O"].findall("./ul//a")[0].get("href") == "#row-ordering.x[four]"


@pytest.mark.parametrize(
    ("source", "urls"),
    [
        (ledger.get_requirement("BIN-ORDER-O").source, [ledger.get_requirement("BIN-ORDER-O").sources[0].url]),
        ('Document, "S"', []),
    ],
)
def test_a_finding_links_to_its_sources_where_they_are_the_ledgers_own(source: str, urls: list[str]) -> None:
    """A report may come from anybody: its own URLs are nowhere a link."""
    unmet = failure(source=source, source_urls=["https://evil.example", "javascript:alert(1)"])
    made = report("nonconformant", requirements=[requirement("BIN-ORDER-O", "MUST", "fail")], rows=[
        check(outcome="fail", failure=unmet),
    ])  # fmt: skip
    page = parsed(made)
    block = by_id(page, "unmet-BIN-ORDER-O")
    assert [link.get("href") for link in block.iter("a") if link.get("href", "")[:1] != "#"] == urls
    assert source in text(block)


def test_under_a_baseline_the_difference_comes_first() -> None:
    page = parsed(GATED)
    header = page.find(".//header")
    assert header is not None
    assert "gate not passed: 1 new, 1 fixed, 1 stale, 1 known" in text(header)
    sections = [section.get("id") for section in page.findall(".//main/section")]
    assert sections[:2] == ["gate", "summary"]
    assert [text(entry) for entry in by_id(page, "gate").iter("li")] == [
        "ordering.x [new]",
        "ordering.x [met]",
        "ordering.gone[*]: names nothing",
    ]
    blocks = [text(block) for block in by_id(page, "failures").findall("details")]
    words = ("known failure MUST BIN-ORDER-I", "failed MUST BIN-ORDER-O")
    assert all(block.startswith(word) for block, word in zip(blocks, words, strict=True))
    assert "fixed ordering.x : met" in text(by_id(page, "fixed"))
    passed = GATED | {"gate": GATED["gate"] | {"passed": True, "new": [], "fixed": [], "stale": []}}
    assert "gate passed: 1 known" in text(parsed(passed))
    assert parsed(passed).find(".//section[@id='gate']") is None


def test_requirements_that_were_not_run_say_so() -> None:
    assert text(by_id(parsed(CUT_SHORT), "req-BIN-ORDER-I")).startswith("not run BIN-ORDER-I MUST")


def test_what_was_not_judged_over_grpc_does_not_count_over_http() -> None:
    over_grpc = requirement(
        "OIP-ENDPOINTS/grpc", "MUST", "not_applicable", area="grpc", extension="protocol", checks=[]
    )
    page = parsed(report(requirements=[*CONFORMANT["requirements"], over_grpc]))
    summary = text(by_id(page, "summary"))
    assert "2 of 2 MUSTs that apply are met." in summary
    assert "MUST 2 passed Rows" in summary
    assert "1 of transports and extensions that this run does not cover" in summary
    assert "Every row was judged." in text(by_id(page, "unjudged"))
    assert text(by_id(page, "req-OIP-ENDPOINTS/grpc")).startswith("n/a OIP-ENDPOINTS/grpc MUST")


def test_many_rows_of_one_check_fold_away() -> None:
    rows = [check(row=f"row-{number}", outcome="fail") for number in range(MAX_OPEN_ROWS + 7)]
    (block,) = by_id(parsed(report("nonconformant", rows=rows)), "failures").findall("details")
    (others,) = block.findall(".//details")
    assert text(others.findall("summary")[0]) == "10 other rows: row-1, row-2, row-3, ..."
    assert len(others.findall(".//li")) == MAX_OPEN_ROWS + 6
    assert len(list(block.iter("pre"))) == 2, "the evidence is that of the first row"


def test_a_block_is_closed_until_it_is_asked_for() -> None:
    page = parsed(NONCONFORMANT)
    assert [element.get("id") for element in page.iter("details") if "open" in element.attrib] == []


def test_many_requirements_that_are_not_met_fold_away() -> None:
    rows = [
        check(f"ordering.x-{number}", outcome="fail", failure=failure(f"ODD-{number}"))
        for number in range(MAX_BLOCKS + 3)
    ]
    failures = by_id(parsed(report("nonconformant", rows=rows)), "failures")
    blocks = failures.findall("details")
    assert len(blocks) == MAX_BLOCKS + 1
    assert text(blocks[-1].findall("summary")[0]) == "3 more"
    assert len(blocks[-1].findall("details")) == 3


def test_a_whole_run_stays_small() -> None:
    rows = [check(f"ordering.check-{number // 20}", f"a-row-of-some-length-{number}") for number in range(2000)]
    assert len(render(build_view(report(rows=rows))).encode()) < 300_000


def test_a_run_in_which_hardly_anything_is_met_stays_below_three_megabytes() -> None:
    repeat = f"echo {'x' * 1500} | base64 -d | curl -sS http://h/v2"
    unmet = [failure(f"ODD-{number}", repeat=repeat, actual="y" * 300) for number in range(60)]
    rows = [
        check(f"ordering.check-{n // 9}", f"row-{n}", "fail", failure=unmet[n // 9 % 60], message="z" * 600)
        for n in range(1500)
    ]
    assert len(render(build_view(report("nonconformant", rows=rows))).encode()) < 3_000_000


# --- what servers write ----------------------------------------------------------------------------------------------


def test_hostile_text_is_text() -> None:
    page = render(build_view(ATTACK))
    assert not set(page) & set("\x00\x07\x1b\r\u202e\u2066")
    tree = parsed(ATTACK)
    assert len(list(tree.iter("script"))) == len(SCRIPTS)
    assert list(tree.iter("img")) == []
    assert "</script><script>alert(1)</script>" in text(tree)
    assert "{{ 7*7 }} {% x %}" in text(tree)
    assert "\\x1b[31mred" in text(tree)


def test_endless_text_is_cut() -> None:
    endless = deepcopy(NONCONFORMANT)
    endless["rows"][3]["failure"]["actual"] = endless["rows"][3]["message"] = "x" * 10_000_000
    endless["target"]["name"] = "y" * 10_000_000
    assert len(render(build_view(endless))) < 500_000
    assert HOSTILE not in render(build_view(endless))
