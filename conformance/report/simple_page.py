"""Pages of headings, paragraphs, lists and tables that can be rendered as Markdown and as HTML.

A history, the index of a fleet, and the Markdown page of a comparison are such pages. All text is treated as foreign:
it is escaped in Markdown (`markdown`) and in HTML (Jinja2), and control characters are removed. The HTML page is
responsive, has no script and loads nothing; its Content Security Policy forbids scripts and loading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from conformance.report import markdown
from conformance.spec.text import escape_text

if TYPE_CHECKING:  # slow to import, and only needed for HTML
    import jinja2


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text.

    Attributes:
        style: how the text is formatted; `own` marks trusted Markdown of the suite, whose backticks mark code.
        kind: the outcome or verdict that determines the color of the text in HTML.
        url: the target of a link; empty for plain text.
        is_small: whether HTML shows it in a small font, on a separate line.
        is_extra: whether Markdown omits it for lack of space.
        limit: the maximum number of shown characters.
    """

    text: str
    style: Literal["", "code", "strong", "own", "break"] = ""
    kind: str = ""
    url: str = ""
    is_small: bool = False
    is_extra: bool = False
    limit: int = 300


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of colored parts, which HTML draws and Markdown omits.

    Attributes:
        parts: for each part the kind that determines its color, its count, and its start and width in percent.
        label: the alternative text; empty if the adjacent text says the same.
    """

    parts: Sequence[tuple[str, int, float, float]]
    label: str = ""
    is_wide: bool = False


def compute_parts(counts: Sequence[tuple[str, int]]) -> list[tuple[str, int, float, float]]:
    """Compute adjacent parts of a bar from counts by kind, without empty parts."""
    total = sum(count for _, count in counts) or 1
    begins, found = 0.0, []
    for kind, count in counts:
        width = 100 * count / total
        found.append((kind, count, round(begins, 3), round(width, 3)))
        begins += width
    return [part for part in found if part[1]]


Piece = str | Span | Bar
LINE_BREAK = Span("", "break")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table; `kind` is the outcome or verdict that determines the color of the cell in HTML."""

    pieces: Sequence[Piece]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a level from 2 to 4."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; one that says how the page was generated is dim: HTML shows it in a lighter color."""

    pieces: Sequence[Piece]
    is_dim: bool = False


@dataclass(frozen=True, slots=True)
class BulletList:
    """A list with at least one item."""

    items: Sequence[Sequence[Piece]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        label: the accessible name, for screen readers.
        lead: the number of leading columns that identify a row; HTML merges these columns into one.
    """

    label: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    lead: int = 1
    style: Literal["", "matrix"] = ""


Block = Heading | Paragraph | BulletList | Table


@dataclass(frozen=True, slots=True)
class SimplePage:
    """A page: a title and blocks, rendered by `render_html` and `render_markdown`."""

    title: str
    blocks: Sequence[Block]


def cell(*pieces: Piece, kind: str = "") -> Cell:
    """Return a table cell with these pieces of text."""
    return Cell(pieces, kind)


def code(text: str) -> Span:
    """Return a span that shows foreign text as code."""
    return Span(text, "code")


def render_html(page: SimplePage) -> str:
    """Return the page as HTML, ending in a newline."""
    return build_environment().get_template("simple_page.html.jinja").render(page=page)


def build_environment(*packages: str, max_chars: int | None = None) -> jinja2.Environment:
    """Create a Jinja2 environment that escapes every text and rejects undefined variables.

    Its filter `safe_text` replaces control characters in a text. `packages` have further templates. With `max_chars`,
    control characters are removed from every text, and long texts are shortened.
    """
    import jinja2
    from markupsafe import Markup

    def remove_control_characters(value: Any) -> Any:
        return escape_text(value, max_chars or 0) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in ("conformance.report", *packages)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=remove_control_characters if max_chars else None,
    )
    environment.filters["safe_text"] = escape_text
    environment.filters["block_type"] = lambda block: type(block).__name__
    return environment


def render_markdown(page: SimplePage) -> str:
    """Return the page as Markdown, ending in a newline."""
    blocks = [f"# {page.title}", *("\n".join(_format_block(block)) for block in page.blocks)]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _format_block(block: Block) -> Iterator[str]:
    match block:
        case Heading(level, text):
            yield f"{'#' * level} {markdown.text(text)}"
        case Paragraph(pieces):
            yield _format_pieces(pieces)
        case BulletList(items):
            yield from (f"- {_format_pieces(pieces)}" for pieces in items)
        case Table(head=head, rows=rows):
            cells = [[_format_pieces(each.pieces) for each in row] for row in rows]
            yield from markdown.table([markdown.text(name) for name in head], cells)


def _format_pieces(pieces: Sequence[Piece]) -> str:
    return "".join(map(_format_piece, pieces))


def _format_piece(piece: Piece) -> str:
    if isinstance(piece, str):
        return markdown.text(piece)
    if isinstance(piece, Bar) or piece.is_extra:
        return ""
    if piece.style == "break":
        return "<br>"
    if piece.style == "own":
        return piece.text.replace("|", "\\|")
    shown = (markdown.code if piece.style == "code" else markdown.text)(piece.text, piece.limit)
    shown = f"**{shown}**" if piece.style == "strong" else shown
    return f"[{shown}]({piece.url})" if piece.url else shown
