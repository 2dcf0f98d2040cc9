"""The patterns that travel with the suite: whole, up to date, small, and good at naming what made them."""

from __future__ import annotations

import pytest

from conformance import checks
from conformance.fault_hints import patterns
from conformance.fault_hints.hint_selection import CLEAR_FIT
from conformance.spec import ledger
from reference_server import faults
from tests.support import fault_hints_page
from tests.support import fault_hints_patterns as written
from tests.support import fault_hints_trials as trials

REFRESH = "run python -m tests.support.fault_hints_patterns with these names"
KNOWN = patterns.load()
MAX_FILE_BYTES = 300_000  # bytes


def test_every_fault_has_a_pattern() -> None:
    assert [name for name in written.find_patterned_faults() if name not in KNOWN.of] == [], REFRESH


def test_every_pattern_is_of_a_fault_as_it_is_now() -> None:
    known = faults.load()
    assert [name for name in KNOWN.of if name not in known] == []
    changed = [
        name
        for name, pattern in KNOWN.of.items()
        if pattern.summary != known[name].summary
        or (known[name].breaks or pattern.breaks) != pattern.breaks
        or pattern.met != set(written.find_met_kinds(known[name]))
    ]
    assert changed == [], REFRESH


def test_every_check_is_one_of_the_suite() -> None:
    kinds = {check.id: written.find_kind(check) for area in checks.PACKAGES for check in checks.list_area_checks(area)}
    assert {check: kind for check, kind in KNOWN.kinds.items() if kinds.get(check) != kind} == {}, REFRESH


def test_every_symptom_is_of_a_known_check_and_requirement() -> None:
    for pattern in KNOWN.of.values():
        assert pattern.unmet, pattern.fault
        assert {check for check, _ in pattern.unmet} | set(pattern.stuck) <= set(KNOWN.rows)
        assert {requirement for _, requirement in pattern.unmet} | set(pattern.breaks) <= set(ledger.load())
        assert {KNOWN.kinds[check] for check, _ in pattern.unmet} <= pattern.met


def test_every_fault_shows_what_it_is_about() -> None:
    silent = [
        pattern.fault
        for pattern in KNOWN.of.values()
        if pattern.requirement not in {requirement for _, requirement in pattern.unmet}
    ]
    assert silent == [], REFRESH


def test_the_file_is_small() -> None:
    assert patterns.FILE.stat().st_size < MAX_FILE_BYTES


def test_the_file_is_as_it_is_written() -> None:
    before = written.read()
    assert patterns.unpack(written.pack(written.make_table(before["rows"]), before["faults"])) == before, REFRESH


def test_rows_keep_their_places_and_new_ones_follow() -> None:
    before = {"http": {"ordering.response-follows-its-json": ["a row that is gone"]}}
    rows = written.make_table(before)["http"]["ordering.response-follows-its-json"]
    assert rows[0] == "a row that is gone"
    assert "INT64-BOOL-FP32" in rows


def test_what_is_gone_leaves_the_file() -> None:
    plain = written.read()
    name = next(iter(plain["faults"]))
    entry = plain["faults"][name]
    unmet = {**entry["unmet"], "ordering.gone": {"BIN-ORDER-O": "1"}}
    changed = {**entry, "unmet": unmet, "stuck": {**entry["stuck"], "ordering.gone": "1"}}
    kept = written.pack(plain["rows"], {name: changed, "a-fault-that-is-gone": entry})
    assert patterns.unpack(kept)["faults"] == {name: entry}


@pytest.mark.parametrize("kind", ["http", "grpc", "walk"])
def test_a_fault_is_named_by_half_of_its_rows(kind: str) -> None:
    few = [name for name, pattern in KNOWN.of.items() if kind in pattern.met][::8]
    tally = trials.Tally()
    for name in few:
        found = trials.make_run([KNOWN.of[name]], KNOWN, trials.select_half(KNOWN, name))
        if found.unmet:
            tally.add([KNOWN.of[name]], trials.find_named(found, KNOWN))
    assert tally.right >= 0.9 * tally.trials > 0, tally.missed


def test_two_faults_are_named_both() -> None:
    tally = trials.try_pairs(KNOWN, trials.draw_pairs(list(KNOWN.of), 20))
    assert tally.right >= 0.6 * tally.trials > 0, tally.missed


def test_few_names_are_false_where_the_fault_is_unknown() -> None:
    tally = trials.Tally()
    for name, pattern in list(KNOWN.of.items())[::16]:
        found = trials.make_run([pattern], KNOWN, trials.select_all_rows(KNOWN))
        tally.add([pattern], trials.find_named(found, trials.drop_fault(KNOWN, name)))
    assert tally.false <= 0.05 * tally.trials > 0, tally.missed


def test_the_page_says_what_has_to_be_reached() -> None:
    page = fault_hints_page.PAGE.read_text(encoding="utf-8")
    assert f"has to be {CLEAR_FIT.score} at least, and {CLEAR_FIT.kept:.0%}" in page
