"""The regression gate on results made by hand: what is known, new, fixed and stale, and how the file is kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from conformance.judging.baseline import Baseline, BaselineEntry, GateResult, revert_baseline
from conformance.judging.baseline_file import BaselineError, from_text, load, update_text
from conformance.judging.selection import list_profile_rows
from conformance.spec.check import Case, Row
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult, Failure

TODAY = date(2026, 11, 20)
ORDER = next(case for case in list_profile_rows("certify") if case.check.id == "ordering.request-follows-its-json")


def result(
    outcome: str, row: str = "a", *, check: str = "sizes.one", message: str = "got HTTP 200", unmet: str = "BIN-A"
) -> CheckResult:
    failed = outcome in ("fail", "known_failure", "advisory")
    failure = Failure(unmet, "MUST", "", "", "x", "y") if failed else None
    return CheckResult(
        check, row, "Claim.", "sizes", "protocol", Outcome(outcome), ["BIN-A"], message, "", 0.1, 1, failure
    )


def known(*rows: str, **members: str | date | None) -> BaselineEntry:
    return BaselineEntry(**{"reason": "why", "check": "sizes.one", "rows": rows or ("*",), **members})  # type: ignore[arg-type]


def wide(**members: str) -> BaselineEntry:
    return BaselineEntry("why", **members)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("entry", "found", "outcome"),
    [
        (known(), result("fail"), "known_failure"),
        (known("a"), result("fail"), "known_failure"),
        (known("b*"), result("fail"), "fail"),
        (known("[a]"), result("fail"), "fail"),
        (known("[a]"), result("fail", "[a]"), "known_failure"),
        (known("?"), result("fail", ""), "fail"),
        (known(), result("fail", check="sizes.other"), "fail"),
        (known(message="HTTP 200"), result("fail"), "known_failure"),
        (known(message="HTTP 500"), result("fail"), "fail"),
        (known(requirement="BIN-A"), result("fail"), "known_failure"),
        (known(requirement="BIN-B"), result("fail"), "fail"),
        (known(), result("blocked"), "known_failure"),
        (known(), result("error"), "error"),
        (known(), result("advisory"), "advisory"),
        (known(), result("not_applicable"), "not_applicable"),
        (known(), result("pass"), "fixed"),
        (known(), result("observed"), "fixed"),
        (known("a", "b*"), result("fail", "b2"), "known_failure"),
        (known("a", "b*"), result("fail", "c"), "fail"),
        (known("a", "b*"), result("pass", "b2"), "fixed"),
        (wide(check="sizes.*"), result("fail"), "known_failure"),
        (wide(check="sizes.*"), result("pass"), "pass"),
        (wide(check="raw.*"), result("fail"), "fail"),
        (wide(check="sizes.*", requirement="BIN-B"), result("fail"), "fail"),
        (wide(requirement="BIN-A"), result("fail"), "known_failure"),
        (wide(requirement="BIN-A"), result("pass"), "pass"),
        (wide(requirement="BIN-A"), result("blocked"), "known_failure"),
        (wide(requirement="BIN-B"), result("fail", unmet="BIN-B"), "known_failure"),
        (wide(requirement="BIN-A"), result("fail", unmet="BIN-B"), "fail"),
        (known(expires=TODAY), result("fail"), "known_failure"),
        (known(expires=date(2026, 11, 19)), result("fail"), "fail"),
        (known(expires=date(2026, 11, 19)), result("pass"), "pass"),
    ],
)
def test_what_an_entry_makes_of_a_row(entry: BaselineEntry, found: CheckResult, outcome: str) -> None:
    assert Baseline([entry], TODAY).apply(found).outcome == outcome


def test_the_gate_lets_known_failures_through_and_nothing_else() -> None:
    baseline = Baseline([known("a")], TODAY)
    results = [baseline.apply(each) for each in (result("fail"), result("pass", "b"))]
    gate = baseline.gate(results, whole=True)
    assert (gate.is_passed, gate.known) == (True, ["sizes.one [a]"])
    worse = [*results, result("fail", "b")]
    assert baseline.gate(worse, whole=True) == GateResult(["sizes.one [a]"], ["sizes.one [b]"], [], ())
    assert not baseline.gate(worse, whole=True).is_passed


def test_a_fix_and_stale_entries_fail_the_gate() -> None:
    old = known("b", expires=date(2026, 1, 1))
    baseline = Baseline([known("a"), known("gone"), old], TODAY)
    gate = baseline.gate([baseline.apply(result("pass"))], whole=True)
    assert gate.fixed == ["sizes.one [a]"]
    assert gate.stale == (
        "sizes.one [gone] matches no check or row of this run",
        "sizes.one [b] expired on 2026-01-01: why",
    )
    assert not gate.is_passed
    narrowed = Baseline([known("gone")], TODAY).gate([result("pass")], whole=False)
    assert narrowed.is_passed


@pytest.mark.parametrize(
    ("entry", "results", "stale"),
    [
        (wide(requirement="BIN-A"), [result("fail"), result("pass", "b")], ()),
        (wide(requirement="BIN-A"), [result("pass"), result("pass", "b")], ("BIN-A no longer fails: why",)),
        (wide(requirement="BIN-A"), [result("not_applicable")], ()),
        (wide(requirement="BIN-B"), [result("fail")], ("BIN-B matches no check or row of this run",)),
        (wide(check="sizes.*"), [result("pass")], ("sizes.* [*] no longer fails: why",)),
        (wide(check="s*", message="other"), [result("fail"), result("pass", "b")], ("s* [*] no longer fails: why",)),
        (known("a", "gone"), [result("fail")], ("sizes.one [gone] matches no check or row of this run",)),
        (known("a"), [result("fail")], ()),
    ],
)  # fmt: skip
def test_an_entry_that_is_of_no_use_is_noticed(
    entry: BaselineEntry, results: list[CheckResult], stale: tuple[str, ...]
) -> None:
    baseline = Baseline([entry], TODAY)
    applied = [baseline.apply(each) for each in results]
    assert baseline.gate(applied, whole=True).stale == stale
    assert baseline.gate(applied, whole=False).stale == ()


def test_advice_counts_where_the_baseline_says_so() -> None:
    results = [result("advisory"), result("advisory", "b")]
    entries = [known("a", requirement="BIN-A")]
    lenient, counting = Baseline(entries, TODAY), Baseline(entries, TODAY, advice=True)
    assert [counting.apply(each).outcome for each in results] == ["advisory", "advisory"]
    assert lenient.gate(results, whole=True) == GateResult([], [], [])
    assert counting.gate(results, whole=True) == GateResult(["sizes.one [a]"], ["sizes.one [b]"], [], ())
    assert counting.gate([counting.apply(result("pass"))], whole=True).fixed == ["sizes.one [a]"]


FILE = """\
# Ours.

[[known]]
check = "sizes.one"  # of Triton
rows = "a"
reason = "looked at"

# Soon.
[[known]]
check = "sizes.one"
rows = "b"
reason = "gone"
"""


def test_an_update_keeps_what_holds_with_its_comments_and_drops_what_does_not() -> None:
    text = update_text(FILE, [result("known_failure"), result("fixed", "b"), result("fail", "c")])
    assert text.startswith('# Ours.\n\n[[known]]\ncheck = "sizes.one"  # of Triton\nrows = "a"\nreason = "looked at"\n')
    assert 'rows = "b"' not in text
    assert text.endswith(
        '[[known]]\ncheck = "sizes.one"\nrows = "c"\nrequirement = "BIN-A"\nreason = "not investigated yet"\n'
    )


def test_an_update_of_nothing_is_a_file_that_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(update_text("", [result("fail"), result("pass", "b")]))
    assert load(tmp_path / "b.toml").entries == [BaselineEntry("not investigated yet", "sizes.one", ("a",), "BIN-A")]
    assert update_text((tmp_path / "b.toml").read_text(), [result("fail")]) == (tmp_path / "b.toml").read_text()


def settled(text: str, results: list[CheckResult]) -> str:
    """Return a file brought up to date, which passes its own gate, and which a second time leaves as it is."""
    after = update_text(text, results)
    baseline = from_text(after)
    applied = [baseline.apply(revert_baseline(each)) for each in results]
    assert baseline.gate(applied, whole=True).is_passed
    assert update_text(after, applied) == after
    return after


def test_what_fails_anew_is_one_entry_for_a_check_and_a_requirement() -> None:
    all_rows = [result("fail", row) for row in "abcde"]
    whole = settled("", all_rows)
    assert whole.count("[[known]]") == 1
    assert "rows" not in whole
    some = settled("", [*all_rows, result("pass", "f")])
    assert some.count("[[known]]") == 1
    assert from_text(some).entries[0].rows == tuple("abcde")
    assert from_text(settled("advice = true\n", [result("advisory")])).entries[0].rows == ("*",)
    other = settled("", [*all_rows, result("fail", "f", unmet="BIN-B"), result("blocked", "g")])
    assert [(entry.requirement, entry.rows) for entry in from_text(other).entries] == [
        ("BIN-A", tuple("abcde")),
        ("BIN-B", ("f",)),
        (None, ("g",)),
    ]
    assert from_text(settled("", [result("fail", ""), result("pass", check="sizes.x")])).entries[0].rows == ("*",)


def test_an_entry_hides_no_row_that_fails_for_its_requirement_later() -> None:
    """No row passes, and one of them ends the server: later another one does."""
    before = [result("fail", "a", unmet="OIP-ALIVE-LEGAL"), result("fail", "b", unmet="OIP-DATA")]
    later = [before[0], result("fail", "b", unmet="OIP-ALIVE-LEGAL")]
    baseline = from_text(settled("", before))
    assert baseline.gate([baseline.apply(each) for each in later], whole=True).new == ["sizes.one [b]"]
    (tables,) = (from_text(settled(settled("", before[1:]), later)).entries,)
    assert [(entry.requirement, entry.rows) for entry in tables] == [("OIP-ALIVE-LEGAL", ("*",))]


def test_an_entry_covers_no_row_that_was_not_judged() -> None:
    failed = [result("fail", row) for row in "ab"]
    left_out = [Case(replace(ORDER.check, id="sizes.one"), Row("d"))]
    for text in (update_text("", failed, left_out), settled("", [*failed, result("not_applicable", "c")])):
        baseline = from_text(text)
        assert [baseline.apply(result(outcome, "c")).outcome for outcome in ("fail", "pass")] == ["fail", "pass"]


@pytest.mark.parametrize(
    ("entry", "stale"),
    [
        (known(*ORDER.ids[1:], check=ORDER.check.id), 0),
        (known("no-such-row", check=ORDER.check.id), 1),
        (wide(requirement=ORDER.requirements[0]), 0),
        (wide(check="ordering.*"), 0),
        (wide(check="nothing.*"), 1),
    ],
)
def test_a_row_that_the_profile_leaves_out_makes_no_entry_stale(entry: BaselineEntry, stale: int) -> None:
    gate = Baseline([entry], TODAY).gate([result("pass")], whole=True, left_out=[ORDER])
    assert len(gate.stale) == stale


def test_an_update_keeps_rows_that_the_profile_leaves_out() -> None:
    failed = [replace(result("fail", row), id=ORDER.check.id) for row in (ORDER.row.id, "gone")]
    before = update_text("", failed, [ORDER])
    assert [entry.rows for entry in from_text(before).entries] == [(ORDER.row.id, "gone")]
    after = update_text(before, [result("pass")], [ORDER])
    assert [entry.rows for entry in from_text(after).entries] == [(ORDER.row.id,)]


def test_what_is_blocked_names_its_rows() -> None:
    entries = from_text(settled("", [result("blocked"), result("blocked", "b")])).entries
    assert entries == [BaselineEntry("not investigated yet", "sizes.one", ("a", "b"))]


def test_an_update_takes_fixed_rows_out_of_a_list() -> None:
    before = settled("", [*[result("fail", row) for row in "abc"], result("pass", "d")]).replace(
        "not investigated yet", "looked at"
    )
    after = settled(before, [result("fail"), result("pass", "b"), result("fail", "c"), result("pass", "d")])
    assert from_text(after).entries == [BaselineEntry("looked at", "sizes.one", ("a", "c"), "BIN-A")]
    assert from_text(settled(before, [result("pass", row) for row in "abcd"])).entries == []


def test_rows_are_named_by_patterns_that_match_no_other_row() -> None:
    failing = [result("fail", row) for row in ("in-a-1", "in-a-2", "in-a-3", "in-b-1", "in-c-1", "in-c-2", "in-c-3")]
    others = [result("pass", "in-b-2"), result("fail", "in-c-4", unmet="BIN-B"), result("not_applicable", "x")]
    before = settled("", [*failing, *others]).replace("not investigated yet", "looked at", 1)
    assert from_text(before).entries[0].rows == ("in-a-*", "in-b-1", "in-c-1", "in-c-2", "in-c-3")
    after = settled(before, [result("pass", "in-a-2"), *failing[:1], *failing[2:], *others])
    assert from_text(after).entries[0].rows == ("in-a-1", "in-a-3", "in-b-1", "in-c-1", "in-c-2", "in-c-3")
    assert from_text(after).entries[0].reason == "looked at"


WIDE = '[[known]]\nrequirement = "BIN-A"  # ours\nreason = "all of it"\n'


def test_an_update_keeps_a_wide_entry_as_long_as_it_holds() -> None:
    assert settled(WIDE, [result("fail"), result("fail", check="raw.two"), result("pass", "b")]) == WIDE
    assert from_text(settled(WIDE, [result("pass")])).entries == []
    assert settled(WIDE, [result("fail"), result("fail", "b", unmet="BIN-B")]).startswith(WIDE)


def test_an_update_lists_advice_where_it_counts() -> None:
    results = [result("advisory"), result("pass", "b")]
    assert "[[known]]" not in update_text("", results)
    assert from_text(settled("advice = true\n", results)).entries[0].rows == ("a",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("known = 1", "known: 1 is not of type 'array'"),
        ('[[known]]\ncheck = "a"', "known.0: 'reason' is a required property"),
        ('[[known]]\ncheck = "a"\nreason = ""', "known.0.reason: '' should be non-empty"),
        (
            '[[known]]\ncheck = "a"\nreason = "b"\nrow = "c"',
            "known.0: Additional properties are not allowed ('row' was",
        ),
        (
            '[[known]]\ncheck = "a"\nreason = "b"\nexpires = "2027-01-01"',
            "expires: write a date without quotes, such as 2027-01-31, not '2027-01-01'",
        ),
        ('[[known]]\nreason = "b"', "known.0: give a check, a requirement, or both"),
        (
            '[[known]]\nrequirement = "A"\nrows = "c"\nreason = "b"',
            "known.0.rows: name the check of these rows as well",
        ),
        ("advice = 1", "advice: 1 is not of type 'boolean'"),
        ("known", "not TOML: "),
    ],
)
def test_errors_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "b.toml").write_text(text)
    with pytest.raises(BaselineError) as raised:
        load(tmp_path / "b.toml")
    assert str(raised.value).startswith(f"--conformance-baseline {tmp_path / 'b.toml'}: {message}")
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="No such file or directory"):
        load(tmp_path / "b.toml")
