"""The bugs that reached users: each is told once, and what is said to stop it does."""

from __future__ import annotations

from collections import Counter

from conformance.spec import ledger
from reference_server import faults
from tests.clients import alterations
from tests.support.history_page import Bug, read_bugs, read_stopping_rows, render
from tests.support.tables import on_each, own_name

BUGS = read_bugs()


def test_no_bug_is_told_twice() -> None:
    assert [name for name, count in Counter(bug.name for bug in BUGS).items() if count > 1] == []


@on_each(BUGS, own_name)
def test_a_bug_says_where_it_is_known_from_and_what_became_of_it(bug: Bug) -> None:
    assert bool(bug.number) != bool(bug.commit)
    assert bug.state.split()[0] in ("fixed", "open", "unknown")
    assert bug.title.endswith(".")


@on_each(BUGS, own_name)
def test_what_a_bug_breaks_is_no_observation(bug: Bug) -> None:
    assert {ledger.get_requirement(name).level for name in bug.breaks} <= {"MUST", "SHOULD"}


@on_each(BUGS, own_name)
def test_a_bug_has_a_fault_that_breaks_the_same_or_a_reason(bug: Bug) -> None:
    if not bug.fault:
        assert bug.why
        return
    assert bug.breaks
    if bug.is_of_client:
        missed = alterations.load("faults")[bug.fault]
        assert missed.broad or set(bug.breaks) <= set(missed.misses)
        return
    found = faults.load()[bug.fault]
    assert found.broad or set(bug.breaks) <= set(found.breaks)


@on_each(BUGS, own_name)
def test_a_bug_that_no_request_can_show_has_no_fault(bug: Bug) -> None:
    assert not bug.needs or (bug.breaks and bug.why and not bug.fault)


@on_each(BUGS, own_name)
def test_a_bug_with_a_fault_is_stopped(bug: Bug) -> None:
    assert not bug.fault or bug.key in read_stopping_rows()


def test_the_page_counts_what_is_forbidden_and_what_is_stopped() -> None:
    seen = Bug("a/b", "One.", "open", ("OIP-ID",), number=1, fault="id-left-out")
    unseen = Bug("a/b", "Two.", "open", ("OIP-ID",), commit="0123456789", why="no row sends it")
    unreachable = Bug("a/b", "Four.", "open", ("OIP-ID",), number=4, why="it is at random", needs="chance")
    allowed = Bug("c/d", "Three.", "unknown", (), number=2, why="nobody forbids it")
    page = render(
        [seen, unseen, unreachable, allowed],
        {(False, "id-left-out"): ("json.id", "short"), (True, "two"): ("client.id", "long")},
    )
    assert (
        "Of 4 bugs that reached users, 3 break a sentence of the documents, and the suite stops 1 of these (33 %)"
        in page
    )
    assert "can bring about 2 of them, and this one stops 50 % of those. The other 1 need more: chance (1)." in page
    assert "| [OIP-ID](requirements/json.md#OIP-ID) | `json.id` [short] |" in page
    assert "| not stopped: no row sends it |" in page
    assert "[01234567](https://github.com/a/b/commit/0123456789)" in page
    assert "| no sentence | nobody forbids it |" in page
