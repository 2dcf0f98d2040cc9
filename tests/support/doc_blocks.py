"""The code blocks of the documentation's pages, for tests that run them as they stand."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def read_blocks(page: str, language: str, section: str = "") -> list[str]:
    """Return the code blocks of a page in a language: all of them, or those below one heading `## SECTION`."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if section:
        _, heading, text = text.partition(f"\n## {section}\n")
        assert heading, f"{page} has no section {section!r}"
        text = text.partition("\n## ")[0]
    parts = text.split("```")[1::2]
    return [part.partition("\n")[2] for part in parts if part.partition("\n")[0].strip() == language]


def read_recipe(section: str, language: str) -> str:
    """Return the only code block in a language of a recipe in docs/cookbook.md."""
    (block,) = read_blocks("cookbook.md", language, section)
    return block
