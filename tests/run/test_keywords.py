"""The words for `-k` in the documentation select rows: areas, checks, requirements and other words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.clients.adapter.programs import make_option, make_small_command
from tests.support.servers import judge

DOCS = Path(__file__).parents[2] / "docs"
OF_CLIENTS = ("clients.md", "tutorials/client.md")
# A word behind `-k` in code; `unxz -k` is another program.
_WORD = re.compile(r"(?<!unxz )-k ([\w.\-]+)")


def find_words(*pages: Path) -> list[str]:
    return sorted({word for page in pages for word in _WORD.findall(page.read_text(encoding="utf-8"))})


def count_selected(folder: Path, *options: str) -> int:
    """Return how many rows a run with these options would have."""
    done = judge(folder, "--collect-only", "-q", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return sum("::" in line for line in done.stdout.splitlines())


@pytest.mark.parametrize("word", find_words(*(DOCS / page for page in OF_CLIENTS)))
def test_a_word_in_the_pages_about_clients_selects_rows(tmp_path: Path, word: str) -> None:
    assert count_selected(tmp_path, make_option(make_small_command("both")), "-k", word) > 0


@pytest.mark.parametrize("word", find_words(DOCS / "options.md", DOCS / "failures.md", DOCS / "performance.md"))
def test_a_word_in_the_pages_about_servers_selects_rows(tmp_path: Path, reference: str, word: str) -> None:
    assert count_selected(tmp_path, f"--target-url={reference}", "-k", word) > 0


def test_an_area_of_clients_selects_its_rows_alone(tmp_path: Path) -> None:
    adapter = make_option(make_small_command("both"))
    whole, http, grpc = (
        count_selected(tmp_path, adapter, *options) for options in ((), ("-k", "client"), ("-k", "client-grpc"))
    )
    assert http > 0
    assert grpc > 0
    assert http + grpc == whole
