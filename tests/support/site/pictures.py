"""The pictures of the documentation, made anew from a real run: the end of its output, and its report in a browser.

    python -m tests.support.site.pictures

A test compares their text with that of another run, but for numbers. The server is the bundled one with the fault of
docs/tutorials/server.md; the run takes about a minute.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

import html5lib
from rich.console import Console
from rich.text import Text

from tests.support import chromium
from tests.support.servers import run_bundled

FOLDER = Path(__file__).parents[3] / "docs/pictures"
FAULT = "binary-outputs-in-reverse"
WIDTH = 100
BLOCK = 13  # lines of the first failure
END = "fix first"  # in the line with which the end begins
ADDRESS = "http://127.0.0.1:8000"  # as in the tutorial, in place of the free port of the run
SIZE = (1080, 770)
COMMAND = f"pytest --target-url={ADDRESS} --conformance-profile=quick --conformance-report=report.html"
TERMINAL, REPORT_TEXT = FOLDER / "run.svg", FOLDER / "report.txt"
SHOWN = ("h1", "h2", "p", "li", "th", "td", "dt")  # elements of a report whose text is compared
# In the picture of a terminal: the line and the text of each piece. On a line: its label, a link, or bytes.
_TEXT = re.compile(r'<text [^>]*clip-path="url\(#t-line-(\d+)\)"[^>]*>(.*?)</text>')
_FOLLOWS = re.compile(r"^ {6,}(?:([A-Z][a-z]+)  |https:|[0-9a-f]{4}  ).*")
# A style of our own: that of rich loads a font from elsewhere.
FRAME = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="A run in a terminal">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px;
}}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>{lines}</defs>
<rect fill="#14171c" width="{width}" height="{height}" rx="8"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def draw_terminal(printed: str) -> str:
    """Return the command, the first failure and the last lines of what was printed, as a picture."""
    lines = printed.rstrip().splitlines()
    first = next(number for number, line in enumerate(lines) if Text.from_ansi(line).plain.startswith("1. "))
    end = next(number for number, line in enumerate(lines) if END in line)
    shown = [f"$ {COMMAND}", "...", *lines[first : first + BLOCK], "...", *lines[end:]]
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi("\n".join(shown)), no_wrap=True, overflow="ellipsis", crop=True)
    return console.export_svg(title="The end of a run", code_format=FRAME, unique_id="t")


def judge(folder: Path) -> tuple[str, str]:
    """Judge the server; return what the run prints, in color, and its report as HTML."""
    with run_bundled("--fault", FAULT) as url:
        report = folder / "report.html"
        options = ["--conformance-profile=quick", f"--conformance-report={report}", "-p", "no:cacheprovider"]
        asked = [sys.executable, "-m", "pytest", f"--target-url={url}", *options, "--color=yes"]
        environment = {**os.environ, "COLUMNS": str(WIDTH)}
        run = subprocess.run(asked, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        return run.stdout.replace(url, ADDRESS), report.read_text(encoding="utf-8").replace(url, ADDRESS)


def read_terminal(picture: str) -> list[str]:
    """Return the lines of text of a picture of a terminal."""
    lines: dict[str, str] = {}
    for line, text in _TEXT.findall(picture):
        lines[line] = lines.get(line, "") + html.unescape(text)
    return list(lines.values())


def read_report(page: str) -> list[str]:
    """Return the text that a report shows first: each paragraph, item and cell of its head and its summary."""
    whole = html5lib.parse(page, namespaceHTMLElements=False)
    parts = [*whole.iter("header"), *whole.iterfind(".//section[@id='summary']")]
    shown = (each for part in parts for each in part.iter() if each.tag in SHOWN and each.find("p") is None)
    return [" ".join(" ".join(each.itertext()).split()) for each in shown]


def outline(lines: Iterable[str]) -> list[str]:
    """Return the form of lines: without numbers, what follows a label, what is cut off, and hours of a long run."""
    cut = (re.sub(r"\s*\S*…$| \(\d+:\d\d:\d\d\)", "", line.replace("\xa0", " ")) for line in lines)
    without = (_FOLLOWS.sub(r"\1", line) for line in cut)
    return [re.sub(r"(0[.,0]*)+", "0", re.sub(r"\d", "0", re.sub(r"=+", "=", line))).strip() for line in without]


def main() -> None:
    """Judge, and write both pictures, and the text of the one that has none."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        printed, page = judge(Path(folder))
        report = Path(folder, "report.html")
        report.write_text(page, encoding="utf-8")
        TERMINAL.write_text(draw_terminal(printed), encoding="utf-8")
        REPORT_TEXT.write_text("\n".join([*read_report(page), ""]), encoding="utf-8")
        with chromium.run_browser(Path(folder)) as browser:
            opened = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
            opened.goto(report.as_uri())
            opened.screenshot(path=FOLDER / "report.png")


if __name__ == "__main__":
    main()
