"""The regression gate on results made by hand: what is known, new, fixed and stale, and how the file is kept."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from conformance.judging.baseline import Baseline, BaselineError, Gate, Known, load, updated
from conformance.terms.outcome import Outcome
from conformance.terms.result import CheckResult, Failure

TODAY = date(2026, 11, 20)


def result(outcome: str, row: str = "a", *, check: str = "sizes.one", message: str = "got HTTP 200") -> CheckResult:
    failure = Failure("BIN-A", "MUST", "", "", "x", "y") if outcome in ("fail", "known_failure") else None
    return CheckResult(
        check, row, "Claim.", "sizes", "protocol", Outcome(outcome), ["BIN-A"], message, "", 0.1, 1, failure
    )


def known(rows: str = "*", **members: str | date) -> Known:
    return Known("sizes.one", "why", rows, **members)  # type: ignore[arg-type]


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
        (known(expires=TODAY), result("fail"), "known_failure"),
        (known(expires=date(2026, 11, 19)), result("fail"), "fail"),
        (known(expires=date(2026, 11, 19)), result("pass"), "pass"),
    ],
)
def test_what_an_entry_makes_of_a_row(entry: Known, found: CheckResult, outcome: str) -> None:
    assert Baseline([entry], TODAY).applied(found).outcome == outcome


def test_the_gate_lets_known_failures_through_and_nothing_else() -> None:
    baseline = Baseline([known("a")], TODAY)
    results = [baseline.applied(each) for each in (result("fail"), result("pass", "b"))]
    gate = baseline.gate(results, whole=True)
    assert (gate.is_passed, gate.known) == (True, ["sizes.one [a]"])
    worse = [*results, result("fail", "b")]
    assert baseline.gate(worse, whole=True) == Gate(["sizes.one [a]"], ["sizes.one [b]"], [], ())
    assert not baseline.gate(worse, whole=True).is_passed


def test_a_fix_and_stale_entries_fail_the_gate() -> None:
    old = known("b", expires=date(2026, 1, 1))
    baseline = Baseline([known("a"), known("gone"), old], TODAY)
    gate = baseline.gate([baseline.applied(result("pass"))], whole=True)
    assert gate.fixed == ["sizes.one [a]"]
    assert gate.stale == (
        "sizes.one [gone] names no check or row of this run",
        "sizes.one [b] expired on 2026-01-01: why",
    )
    assert not gate.is_passed
    narrowed = Baseline([known("gone")], TODAY).gate([result("pass")], whole=False)
    assert narrowed.is_passed


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
    text = updated(FILE, [result("known_failure"), result("fixed", "b"), result("fail", "c")])
    assert text.startswith('# Ours.\n\n[[known]]\ncheck = "sizes.one"  # of Triton\nrows = "a"\nreason = "looked at"\n')
    assert 'rows = "b"' not in text
    assert text.endswith(
        '[[known]]\ncheck = "sizes.one"\nrows = "c"\nrequirement = "BIN-A"\nreason = "not looked into yet"\n'
    )


def test_an_update_of_nothing_is_a_file_that_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(updated("", [result("fail"), result("pass", "b")]))
    assert load(tmp_path / "b.toml").entries == [Known("sizes.one", "not looked into yet", "a", "BIN-A")]
    assert updated((tmp_path / "b.toml").read_text(), [result("fail")]) == (tmp_path / "b.toml").read_text()


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
