"""What is known of real clients, and the page that shows it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import clients
import clients_page

from conformance.judging.selection import CLIENTS, collected_rows
from conformance.terms import ledger

DOCS = Path(__file__).parents[2] / "docs"


def test_what_is_known_names_clients_rows_and_requirements() -> None:
    names = clients.read_clients()
    rows = [
        (check.id, row.id) for check, row in collected_rows("certify", subjects=CLIENTS, transports=("http", "grpc"))
    ]
    for known in clients.read_known():
        assert known.reason
        assert set(known.clients) <= names.keys(), known
        assert ledger.requirement(known.requirement), known
        is_watched = known.check.startswith("client.watched-")
        assert is_watched or any(check == known.check and fnmatchcase(row, known.rows) for check, row in rows), known


def test_every_adapter_is_there() -> None:
    for client in clients.read_clients().values():
        assert (clients.CLIENTS / client.adapter).is_file()


def test_page_is_fresh() -> None:
    folder = DOCS / "results" / "clients"
    reports = {client: clients_page.read(folder / f"{name}.json") for name, client in clients.read_clients().items()}
    fresh = "\n".join(clients_page.page(reports, clients.read_known())) + "\n"
    assert (DOCS / "results-clients.md").read_text(encoding="utf-8") == fresh, (
        "stale: python targets/runner/clients_page.py docs/results/clients > docs/results-clients.md"
    )
