"""The pages of the site in a folder of their own: those that are there, those that are made, and what they link to."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from conformance.spec.links import PAGES_FOLDER
from tests.support.site import generated, links, matrix
from tests.support.site.commonmark import convert_for_mkdocs

ROOT = generated.ROOT
CONFIG = ROOT / "docs/mkdocs.yml"
OWN_ASSETS = (ROOT / "tests/support/site/site.css", ROOT / "tests/support/site/site.js")
# A requirement on its page, and the beginning of the line with its results.
_ID = re.compile(r'<a id="([^"]+)"></a>')
RESULTS = "**Real servers**"
# A question of a newcomer, and the requirements that answer it.
_QUESTION = re.compile(r"^- ([^\[\n]+\?) (\[.+)$", re.MULTILINE)
QUESTIONS = f"{PAGES_FOLDER}/README.md"
# Pages of requirements that most searches are not after.
LATER = ("client.md", "robustness.md", "glossary.md")
# A page that explains what a run prints; for words of a message it comes first.
MESSAGES = "docs/failures.md"
# Tables for those who develop the suite, and reports whose content a page shows: an eighth of the whole site. The
# repository has them.
LEFT_OUT = ("docs/kill-matrix.md", "docs/kill-matrix-clients.md", "docs/results/clients")


def stage(folder: Path) -> Path:
    """Write everything that MkDocs reads into a folder; return its configuration."""
    waiting = {path.relative_to(ROOT).as_posix(): text for path, text in links.read_pages().items()}
    waiting = {name: text for name, text in waiting.items() if name not in LEFT_OUT}
    waiting |= {name: make() for name, make in generated.PAGES.items()}
    for name, make in generated.RAW_PAGES.items():
        del waiting[name]
        _write(folder / "pages" / name, make())
    seen = {*waiting, *generated.RAW_PAGES}
    while waiting:
        name, text = waiting.popitem()
        for link in links.find_links(ROOT / name, text):
            place = link.target.relative_to(ROOT).as_posix() if link.target.is_relative_to(ROOT) else ""
            if place in LEFT_OUT:
                text = _name_instead(text, link.written, place)
            elif link.target.is_dir():
                index = (link.target / "README.md").relative_to(ROOT).as_posix()
                text = _to_index(text, link.written)
                if index not in seen:
                    seen.add(index)
                    waiting[index] = generated.render_files_page(link.target)
            elif link.target.suffix != ".md":
                _copy(link.target, folder / "pages")
        # As headings, questions are found by the search.
        text = _QUESTION.sub(r"### \1\n\n\2\n", text) if name == QUESTIONS else text
        _write(folder / "pages" / name, _rank(name) + convert_for_mkdocs(_link_to_matrix(text)))
    for path in OWN_ASSETS:
        shutil.copy(path, folder / "pages")
    return Path(shutil.copy(CONFIG, folder / "mkdocs.yml"))


def _link_to_matrix(text: str) -> str:
    """Return a page on which the results of a requirement lead to its row of the matrix."""
    name, judged = "", {row.id for row in matrix.build().rows}
    lines = text.split("\n")
    for number, line in enumerate(lines):
        name = found[1] if (found := _ID.fullmatch(line)) else name
        if line.startswith(RESULTS) and name in judged:
            lines[number] = f"{RESULTS} ([what each does](../results.md#{name})){line.removeprefix(RESULTS)}"
    return "\n".join(lines)


def _rank(name: str) -> str:
    """Return the head of a page that the search shows before others: what servers have to do, and what runs print."""
    folder, _, page = name.rpartition("/")
    boost = 12 if name == MESSAGES else 4 if folder == PAGES_FOLDER and page not in LATER else 0
    return f"---\nsearch:\n  boost: {boost}\n---\n" if boost else ""


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _name_instead(text: str, written: str, place: str) -> str:
    """Return a page that names a file of the repository in place of a link to it."""
    return re.sub(rf"\[([^\]]*)\]\({re.escape(written)}\)", rf"\1 (`{place}`)", text)


def _to_index(text: str, written: str) -> str:
    """Return a page whose links to a folder lead to its index."""
    return text.replace(f"]({written})", f"]({written.rstrip('/')}/README.md)")


def _copy(path: Path, pages: Path) -> None:
    place = pages / path.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, place)
