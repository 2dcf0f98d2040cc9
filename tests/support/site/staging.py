"""The pages of the site in a folder of their own: those that are there, those that are made, and what they link to."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from conformance.spec import ledger
from conformance.spec.links import PAGES_FOLDER, format_page_name
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
# Reports whose content a page shows; the repository has them.
LEFT_OUT = ("docs/results/clients",)
# Code that is the path of a page or the id of a requirement, and no link.
_CODE = re.compile(r"(?<![\[`])`([A-Z0-9]+-[A-Z0-9-]+(?:/grpc)?|docs/[\w/-]+\.md)`(?!\]|`)")


def stage(folder: Path) -> Path:
    """Write everything that MkDocs reads into a folder; return its configuration."""
    waiting = {path.relative_to(ROOT).as_posix(): text for path, text in links.read_pages().items()}
    waiting["README.md"] = matrix.render_home()
    waiting = {name: text for name, text in waiting.items() if name not in LEFT_OUT}
    del waiting[matrix.PAGE]  # the site shows it as HTML
    _write(folder / "pages" / matrix.PAGE, matrix.render_matrix())
    seen = {*waiting, matrix.PAGE}
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
        if name not in generated.render_site_pages():
            text = _link_code(text, name)
        # As headings, questions are found by the search.
        text = _QUESTION.sub(r"### \1\n\n\2\n", text) if name == QUESTIONS else text
        _write(folder / "pages" / name, _rank(name) + convert_for_mkdocs(_link_to_matrix(text)))
    for path in OWN_ASSETS:
        shutil.copy(path, folder / "pages")
    return Path(shutil.copy(CONFIG, folder / "mkdocs.yml"))


def _link_code(text: str, page: str) -> str:
    """Return a page whose code leads to the page that is made, or to the requirement, that it names."""

    def link(found: re.Match[str]) -> str:
        entry = ledger.load().get(found[1])
        place = f"{PAGES_FOLDER}/{format_page_name(entry.page)}#{entry.id}" if entry else found[1]
        if place.partition("#")[0] not in generated.render_site_pages():
            return found[0]
        return f"[{found[0]}]({'../' * page.count('/')}{place})"

    return _CODE.sub(link, text)


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
