"""What a reader of the HTML report sees before anything is opened, and that every view of it has an address."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

from conformance.report import anchors, page_markdown
from conformance.report.findings import build_groups
from conformance.report.page_html import MAX_FIRST_BLOCKS
from conformance.report.view import build_view
from conformance.spec import ledger
from tests.support.made_reports import CONFORMANT, NONCONFORMANT, Report, check, failure, report, requirement
from tests.support.page_tags import parse_report_page as parsed
from tests.support.page_tags import read_text as text


def with_class(page: Element, name: str) -> list[Element]:
    return [element for element in page.iter() if name in (element.get("class") or "").split()]


# --- what to fix first ----------------------------------------------------------------------------------------------


def test_the_requirements_to_fix_first_stand_there_with_a_symptom() -> None:
    (first,) = with_class(parsed(NONCONFORMANT), "first")
    (entry,) = first.findall("li")
    statement = ledger.get_requirement("BIN-ORDER-O").statement
    assert text(entry).startswith("MUST BIN-ORDER-O 2 of 5 rows Bytes follow outputs . expected a, got b"), statement
    assert [link.get("href") for link in entry.iter("a")] == ["#unmet-BIN-ORDER-O"]


def test_there_are_five_of_them() -> None:
    rows = [check(f"ordering.x-{number}", outcome="fail", failure=failure(f"ODD-{number}")) for number in range(9)]
    page = parsed(report("nonconformant", rows=rows))
    (first,) = with_class(page, "first")
    assert len(first.findall("li")) == MAX_FIRST_BLOCKS == 5
    assert "Fix these first, of 9 requirements" in text(page)


def test_conformant_run_has_no_first_block() -> None:
    page = parsed(CONFORMANT)
    assert with_class(page, "first") == []
    assert "Nothing has to be fixed" in text(page)


def test_advice_is_first_if_all_musts_are_met() -> None:
    advised = check("ordering.advice", "", "advisory", failure=failure("BIN-BODY-LONG", level="SHOULD"))
    (first,) = with_class(parsed(report(rows=[check(), advised])), "first")
    assert [link.get("href") for link in first.iter("a")] == ["#advice-BIN-BODY-LONG"]


def test_blocked_row_is_first_if_nothing_is_judged() -> None:
    blocked = check("ordering.stuck", "a", "blocked", message="m answers no plain request")
    page = parsed(report("incomplete", rows=[blocked]))
    (first,) = with_class(page, "first")
    assert text(first) == "ordering.stuck 1 row m answers no plain request"
    assert [link.get("href") for link in first.iter("a")] == ["#stuck-row-ordering.stuck[a]"]


# --- the grid of requirements ---------------------------------------------------------------------------------------


def squares(made: Report) -> dict[str, Element]:
    found = [element for element in with_class(parsed(made), "square") if element.tag == "a"]
    return {(element.get("aria-label") or "").partition(",")[0]: element for element in found}


def test_every_requirement_is_a_square_with_a_name_and_a_mark() -> None:
    found = squares(NONCONFORMANT)
    assert list(found) == [entry["id"] for entry in NONCONFORMANT["requirements"]]
    failed = found["BIN-ORDER-O"]
    assert failed.get("aria-label") == "BIN-ORDER-O, MUST, failed"
    tip = failed.get("data-tip") or ""
    assert tip.startswith("BIN-ORDER-O MUST, failed: The binary data of an answer follow")
    style = parsed(NONCONFORMANT).findtext(".//style") or ""
    marks = dict(re.findall(r'^\.([a-z_-]+) \{ --mark: "(.)"; \}$', style, re.MULTILINE))
    assert [marks[(square.get("class") or "").split()[-1]] for square in found.values()] == list(
        "\u2717\u2013!\u25b2\u25cf"
    )


def test_a_square_leads_to_the_block_or_else_to_the_requirement() -> None:
    links = {name: square.get("href") for name, square in squares(NONCONFORMANT).items()}
    assert links["BIN-ORDER-O"] == "#unmet-BIN-ORDER-O"
    assert links["BIN-BODY-LONG"] == "#advice-BIN-BODY-LONG"
    assert links["BIN-HEADER-O"] == "#req-BIN-HEADER-O"


def test_the_grid_is_by_area_and_each_area_leads_to_its_requirements() -> None:
    over_grpc = requirement("OIP-ID/grpc", "MUST", "pass", area="grpc", extension="protocol")
    sizes = requirement("BIN-SIZE-O", "MUST", "pass", area="sizes")
    page = parsed(report(requirements=[over_grpc, *CONFORMANT["requirements"], sizes]))
    (grid,) = with_class(page, "grid")
    assert [text(name) for name in grid.iter("dt")] == ["ordering", "sizes", "grpc"]
    assert [link.get("href") for name in grid.iter("dt") for link in name] == [
        "#requirements?area=ordering", "#requirements?area=sizes", "#requirements?area=grpc",
    ]  # fmt: skip


# --- places ---------------------------------------------------------------------------------------------------------


def test_places_come_from_requirement_check_and_row() -> None:
    rows = [check(row="four", outcome="fail"), check(row="a b/#\u202e?", outcome="fail"), check(row="four")]
    assert list(anchors.build_row_anchors(rows).values()) == [
        "row-ordering.x[four]", "row-ordering.x[a%20b/%23%E2%80%AE%3F]", "row-ordering.x[four]!2",
    ]  # fmt: skip
    assert anchors.build_requirement_anchor("OIP-ID/grpc") == "req-OIP-ID/grpc"
    assert anchors.build_requirement_anchor("\ud800") == "req-%5Cud800"
    (group,) = build_groups([check(row="a", outcome="blocked")], "blocked")
    assert anchors.build_blocked_anchor(group, anchors.build_row_anchors(group.rows)) == "stuck-row-ordering.x[a]"


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    one, other = anchors.encode_name("x" * 10_000 + "a"), anchors.encode_name("x" * 10_000 + "b")
    assert len(one) == len(other) < 200
    assert one != other


def test_the_place_of_a_row_is_the_same_whatever_stands_before_it() -> None:
    def of(made: Report) -> str | None:
        return next(
            element.get("id") for element in parsed(made).iter() if (element.get("id") or "").endswith("x[four]")
        )

    before = [check("headers.y", str(number), "fail", failure=failure("BIN-HEADER-I")) for number in range(30)]
    row = check(row="four", outcome="fail")
    assert of(report("nonconformant", rows=[row])) == of(report("nonconformant", rows=[*before, row]))


def test_a_pattern_stands_at_its_requirement() -> None:
    found = {
        "requests": "with `X` <b>", "answer": "refused", "requirement": "BIN-ORDER-O", "missed": {"BIN-ORDER-O": 3},
        "rows": 3, "others": 40,
    }  # fmt: skip
    made = NONCONFORMANT | {"failure_patterns": [found]}
    shown = text(parsed(made))
    sentence = "Every request with X <b> is refused (3 of 3 rows; 0 of 40 other rows)"
    assert shown.count(sentence) == 2
    assert "- `BIN-ORDER-O`: Every request with `X` &lt;b&gt; is refused" in page_markdown.render(build_view(made))
