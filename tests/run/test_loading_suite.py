"""A suite in which an id stands twice is refused by name when it loads, for servers and for clients."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest

from conformance import checks
from conformance.checks import DuplicateIdError, expect_unique_ids
from conformance.checks.client import requests
from conformance.checks.metadata import models
from conformance.terms.check import Check, Row


def body() -> None:
    """Do nothing."""


def made(identity: str, *rows: str) -> Check:
    return Check(identity, (), None, tuple(map(Row, rows)), body)


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        ([made("raw.a", "x", "y", "x")], f"two rows of raw.a, in {__name__}, have one id: 'x'"),
        ([made("raw.a", ""), made("raw.a", "y")], f"two checks have the id raw.a, in {__name__}"),
    ],
)
def test_an_id_that_stands_twice_is_named(suite: Sequence[Check], message: str) -> None:
    with pytest.raises(DuplicateIdError, match=f"^{re.escape(message)}$"):
        expect_unique_ids(suite)


def test_rows_of_two_checks_may_have_one_id() -> None:
    expect_unique_ids([made("raw.a", "x"), made("raw.b", "x")])


@pytest.fixture
def unloaded() -> Iterator[None]:
    """Let the suite be loaded anew, before and after."""
    caches = (checks.every, checks.of_area, checks.load)
    for one in caches:
        one.cache_clear()
    yield
    for one in caches:
        one.cache_clear()


@pytest.mark.parametrize(("module", "of_clients"), [(models, False), (requests, True)], ids=["servers", "clients"])
@pytest.mark.usefixtures("unloaded")
def test_the_suite_is_refused_when_it_loads(module: object, of_clients: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    name, found = next((name, one) for name, one in vars(module).items() if isinstance(one, Check))
    twice = Check(found.id, found.answers, found.role, (*found.rows, found.rows[0]), found.body)
    monkeypatch.setattr(module, name, twice)
    with pytest.raises(DuplicateIdError, match=re.escape(f"two rows of {found.id}, ")):
        checks.every(of_clients=of_clients)
