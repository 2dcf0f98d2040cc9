"""The page of coverage shows every claim, and each hole has a reason."""

from __future__ import annotations

from conformance.pages import coverage
from conformance.spec.check import Check, Row, check, claim, rows


def test_each_hole_has_a_reason() -> None:
    assert coverage.render()[1].unexplained == []


def test_each_pattern_gives_a_reason() -> None:
    used = coverage.render()[1].used
    patterns = [(column, one) for column, found in coverage.load_reasons().items() for one in found]
    assert [pattern for pattern in patterns if pattern not in used] == []


def test_a_hole_without_a_reason_is_reported() -> None:
    @check("json.answer-is-large", requirements="OIP-ID")
    @rows(Row("own", role="multi"))
    def answer_is_large() -> None:
        """The answer is large."""

    holes = coverage.Holes()
    one = coverage.Claim((answer_is_large,))
    assert [holes.format_cell(one, column) for column in ("http", "roles")] == ["1", "1"]
    assert holes.format_cell(one, "grpc").startswith("none")
    assert holes.unexplained == [("json.answer-is-large", "grpc")]


def test_clients_are_asked_by_the_same_sentences() -> None:
    found = {one.id: one.client_requirements for one in coverage.list_claims()}
    assert found["ordering.request-follows-its-json"][0] == "CLIENT-SENDS-ORDER"
    assert found["ordering.response-follows-its-json"][0] == "CLIENT-READS-ORDER"
    assert found["state.expect-100-continue-is-answered"] == []


def test_a_claim_covers_both_transports() -> None:
    @claim("json.answer-is-large", requirements="OIP-ID")
    @rows(Row("own", role="multi"))
    def answer_is_large() -> None:
        """The answer is large."""

    checks: tuple[Check, ...] = (answer_is_large, *answer_is_large.also)
    assert coverage.Claim(checks).count_rows() == {"http": 1, "grpc": 1, "roles": 2}


def test_the_page_names_every_check() -> None:
    page = coverage.render()[0]
    assert [each.id for one in coverage.list_claims() for each in one.checks if f"`{each.id}`" not in page] == []
