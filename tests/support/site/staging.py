"""The pages of the site in a folder of their own: those that are there, those that are made, and what they link to."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.site import generated, links
from tests.support.site.commonmark import convert_for_mkdocs

ROOT = generated.ROOT
CONFIG = ROOT / "docs/mkdocs.yml"


def stage(folder: Path) -> Path:
    """Write everything that MkDocs reads into a folder; return its configuration."""
    waiting = {path.relative_to(ROOT).as_posix(): text for path, text in links.read_pages().items()}
    waiting |= {name: make() for name, make in generated.PAGES.items()}
    seen = set(waiting)
    while waiting:
        name, text = waiting.popitem()
        for link in links.find_links(ROOT / name, text):
            if link.target.is_dir():
                index = (link.target / "README.md").relative_to(ROOT).as_posix()
                text = _to_index(text, link.written)
                if index not in seen:
                    seen.add(index)
                    waiting[index] = generated.render_files_page(link.target)
            elif link.target.suffix != ".md":
                _copy(link.target, folder / "pages")
        path = folder / "pages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(convert_for_mkdocs(text), encoding="utf-8")
    return Path(shutil.copy(CONFIG, folder / "mkdocs.yml"))


def _to_index(text: str, written: str) -> str:
    """Return a page whose links to a folder lead to its index."""
    return text.replace(f"]({written})", f"]({written.rstrip('/')}/README.md)")


def _copy(path: Path, pages: Path) -> None:
    place = pages / path.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, place)
