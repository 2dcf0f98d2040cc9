"""The page of errata: whole, and every erratum of the ledger is told there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.commands import main
from conformance.pages import errata
from conformance.pages.servers import ServerResult
from conformance.spec import ledger
from tests.support.tables import on_each

NAMES = {found.name: found for found in errata.load()}


def test_every_erratum_of_the_ledger_is_told() -> None:
    """A note that says `Erratum` or `Contested` has an erratum; what has none says why as `no_erratum`."""
    told = {entry.id for found in errata.load() for entry in found.requirements}
    tables = {name: table for area in ledger.AREAS for name, table in ledger.read_area(area).items()}
    excused = {name for name, table in tables.items() if "no_erratum" in table}
    noted = {entry.id for entry in ledger.load().values() if re.search(r"\b(Erratum|Contested): ", entry.note)}
    assert len(noted) > 20
    assert sorted(noted - told - excused) == [], "give each [[ID.errata]]"
    assert sorted(excused - noted | excused & told) == [], "these need no no_erratum"


def test_the_page_begins_with_what_is_contested() -> None:
    kinds = [found.kind for found in errata.load()]
    assert len(kinds) > 20
    assert kinds == sorted(kinds, key=list(errata.KINDS).index)
    assert set(kinds) == set(errata.KINDS)


@on_each(NAMES)
def test_an_entry_is_whole(name: str) -> None:
    found = NAMES[name]
    assert "```" not in found.wording
    assert "<" not in re.sub(r"`[^`]*`", "", " ".join((found.title, *found.readings)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"also": ["OIP-GONE"]}, "erratum fish of OIP-ID: unknown requirement 'OIP-GONE'"),
        ({"sentences": ["fish.red"]}, "erratum fish of OIP-ID: \"unknown sentence 'fish.red'\""),
        ({"document": "fish"}, "erratum fish of OIP-ID: 'fish'"),
    ],
)
def test_an_entry_that_names_what_there_is_not(
    changes: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, first), *_ = ledger.list_entries("errata")
    monkeypatch.setattr(ledger, "list_entries", lambda _: [("OIP-ID", {**first, "name": "fish", **changes})])
    with pytest.raises(KeyError) as caught:
        errata.load.__wrapped__()
    assert caught.value.args[0].startswith(message)


def test_servers_that_do_the_same_stand_together() -> None:
    def server(name: str, word: str, *observed: str) -> ServerResult:
        every = frozenset({"binary_tensor_data", "protocol"})
        verdicts = {"BIN-ALL-TRUE-LISTED": word}
        return ServerResult(name, every, frozenset({"http"}), verdicts, {"BIN-ALL-TRUE-LISTED": observed})

    page = errata.render([
        server("a_1", "observed", "JSON"), server("b", "fail", "a|b"), server("c", "observed", "JSON"),
        ServerResult("d", frozenset(), frozenset({"http"}), {}),
    ])  # fmt: skip
    table = page[page.index("| servers | BIN-ALL-TRUE-LISTED |") :].splitlines()[2:6]
    assert table == ["| a_1, c | JSON |", "| b | fail<br>a\\|b |", "| d | no result yet |", ""]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["sources", "errata", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert [found.title for found in errata.load() if f". {found.title}\n" not in printed] == []
    assert "**Servers**" not in printed
    (tmp_path / "a.json").write_text("{}")
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert main.main(["sources", "errata", str(folder)]) == 2
        assert capsys.readouterr().err.startswith(f"oip-conformance: error: {folder}")
