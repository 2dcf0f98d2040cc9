"""Opens every page of a built site in a browser, wide and narrow, light and dark, and prints what is wrong with it.

    python -m tests.support.site.browsing [FOLDER] [PAGE...]

The folder is build/site unless another is named; pages are named by parts of their addresses. Without PAGE it also
searches for each requirement, and for words that runs print. It takes some minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, product
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from conformance.spec import ledger
from tests.support import chromium
from tests.support.browser_pages import NARROW, RULES, WIDE, ColorScheme
from tests.support.site.generated import ROOT

VIEWS: Sequence[tuple[tuple[int, int], ColorScheme]] = tuple(product((WIDE, NARROW), ("light", "dark")))
SEARCH_WAIT_MS, SEARCH_TRIES = 200, 20
# Words that runs print; a page explains them.
MESSAGES = (
    "in doubt", "not judged", "rows left out by the profile quick", "the target is gone", "no answer within 10 s",
    "connection closed without an answer", "element 0 differs", "expected an answer with a 2xx status",
)  # fmt: skip
QUESTIONS = ("output is empty", "chunked requests")
AXE_VIEWS = (VIEWS[0], VIEWS[-1])  # axe takes seconds
# What is wider than its place and can neither be scrolled nor wrapped; pictures that do not show, or say nothing.
_LAYOUT = """() => {
  const found = [], root = document.documentElement;
  const name = (each) => `${each.tagName.toLowerCase()} ${each.id || each.textContent.trim().slice(0, 50)}`;
  const scrolls = (each) => {
    for (; each && each !== document.body; each = each.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(each).overflowX)) return true;
    }
    return false;
  };
  if (root.scrollWidth > innerWidth) found.push(`the page is ${root.scrollWidth} wide`);
  for (const each of document.querySelectorAll("main :is(pre, code, table, dl, p, li, h1, h2, h3)")) {
    const box = each.getBoundingClientRect();
    if (!box.width || scrolls(each)) continue;
    if (box.right > innerWidth + 1) found.push(`beyond the edge: ${name(each)}`);
    else if (each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX === "hidden") {
      found.push(`cut off: ${name(each)}`);
    }
  }
  for (const each of document.images) {
    if (!each.alt) found.push(`no alternative text: ${each.src}`);
    if (!each.naturalWidth) found.push(`does not show: ${each.src}`);
  }
  return found;
}"""


@contextmanager
def serve(site: Path) -> Iterator[str]:
    handler = partial(_Handler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


def list_pages(site: Path) -> list[str]:
    return sorted(path.relative_to(site).as_posix().removesuffix("index.html") for path in site.rglob("*.html"))


def browse(browser: Browser, address: str, pages: list[str]) -> Iterator[str]:
    """Yield what is wrong with each page, a line for each page, view and problem."""
    anchors: dict[str, set[str]] = {}
    links: list[tuple[str, str]] = []
    for size, scheme in VIEWS:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        for name in pages:
            page = context.new_page()
            problems = _watch(page, address)
            page.goto(address + name)
            page.wait_for_timeout(100)
            problems += page.evaluate(_LAYOUT)
            problems += _list_violations(page) if (size, scheme) in AXE_VIEWS else []
            yield from (f"{name or 'home'} [{size[0]} {scheme}]: {problem}" for problem in problems)
            if (size, scheme) == VIEWS[0]:
                anchors[address + name] = set(page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)"))
                links += [
                    (name, href) for href in page.evaluate("[...document.links].map(e => e.getAttribute('href'))")
                ]
            page.close()
        context.close()
    yield from _find_broken_links(browser, address, links, anchors)


def _list_violations(page: Page) -> list[str]:
    """Return what axe-core finds, a line for each element."""
    found = Axe().run(page, options={"runOnly": RULES, "resultTypes": ["violations"]}).response["violations"]
    return [
        f"{rule['id']}: {' '.join(map(str, node['target']))}: {' '.join(node['failureSummary'].split())[:200]}"
        for rule in found
        for node in rule["nodes"]
    ]


def _watch(page: Page, address: str) -> list[str]:
    """Return a list to which errors of scripts, and requests that fail or leave the site, are added."""
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(f"script: {error}"))
    page.on("response", lambda got: problems.append(f"{got.status}: {got.url}") if got.status >= 400 else None)
    page.on(
        "request",
        lambda sent: problems.append(f"asks elsewhere: {sent.url}") if not sent.url.startswith(address) else None,
    )
    return problems


def _find_broken_links(
    browser: Browser, address: str, links: list[tuple[str, str]], anchors: dict[str, set[str]]
) -> Iterator[str]:
    """Yield each link within the site that leads nowhere; of pages that were opened also the anchors are known."""
    context = browser.new_context()
    statuses: dict[str, int] = {}
    for name, href in dict.fromkeys(links):
        target, anchor = urldefrag(urljoin(address + name, href))
        if not target.startswith(address):
            continue
        if target not in anchors:
            statuses[target] = statuses.get(target) or context.request.get(target).status
            if statuses[target] >= HTTPStatus.BAD_REQUEST:
                yield f"{name}: leads nowhere: {href}"
        # What begins with a question mark is a filter of the matrix.
        elif anchor and not anchor.startswith("?") and unquote(anchor) not in anchors[target]:
            yield f"{name}: no such anchor: {href}"
    context.close()


def search(browser: Browser, address: str, wanted: Mapping[str, str]) -> Iterator[str]:
    """Yield each query whose first page, or a section of it, is not the wanted one."""
    page = browser.new_page()
    page.goto(address)
    field = page.locator("input[name=query]")
    for query, place in wanted.items():
        field.fill(query[:-1])
        field.press(query[-1])  # the page looks after each key
        if not any(place in _list_found(page) for _ in range(SEARCH_TRIES)):
            yield f"search for {query}: not first: {place}"


def _list_found(page: Page) -> set[str]:
    """Return the page that a search shows first, and its sections, after a while."""
    page.wait_for_timeout(SEARCH_WAIT_MS)
    found = page.locator(".md-search-result__item").first.locator("a")
    links = [urlsplit(link) for link in found.evaluate_all("links => links.map((each) => each.href)")]
    return {f"{link.path.strip('/')}/#{link.fragment}".removesuffix("#") for link in links}


def list_searches() -> dict[str, str]:
    """Return the page or section that a query has to lead to first."""
    requirements = [each for each in ledger.load().values() if each.party is ledger.Party.SERVER]
    sections = {each.id: f"docs/requirements/{each.page}/#{each.id.lower().replace('/', '')}" for each in requirements}
    return sections | dict.fromkeys(MESSAGES, "docs/failures/") | dict.fromkeys(QUESTIONS, "docs/requirements/")


def main() -> int:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site")
    wanted = sys.argv[2:]
    pages = [name for name in list_pages(site) if not wanted or any(part in name for part in wanted)]
    cache = ROOT / ".pytest_cache/d/chromium"
    cache.mkdir(parents=True, exist_ok=True)
    problems = []
    with serve(site) as address, chromium.run_browser(cache) as browser:
        searched = {} if wanted else list_searches()
        for problem in chain(browse(browser, address, pages), search(browser, address, searched)):
            problems.append(problem)
            print(problem, flush=True)
    print(f"{len(pages)} pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
