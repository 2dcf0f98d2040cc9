"""Renders a report as a badge: an SVG file, or the equivalent JSON for an endpoint badge of shields.io."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape

from conformance.report.view import View
from conformance.spec.outcome import CONFORMANT, GATES, INCOMPLETE, INTEROPERABLE, NARROWED, NONCONFORMANT, PARTIAL
from conformance.spec.text import escape_text

LABEL = "oip conformance"
# Dark enough for white text (WCAG AA).
COLORS: Mapping[str, str] = {
    CONFORMANT: "1a7f37",
    PARTIAL: "6639ba",
    NONCONFORMANT: "cf222e",
    INCOMPLETE: "8a5a00",
    NARROWED: "57606a",
    INTEROPERABLE: "0969da",
}
CHAR_WIDTHS: Mapping[str, float] = dict.fromkeys("fijlrt1 /.-", 4.4) | {"m": 10.7, "w": 9.0}
DEFAULT_CHAR_WIDTH = 7.0
PADDING = 6

TEMPLATE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="20" role="img" aria-labelledby="title">
  <title id="title">{title}</title>
  <clipPath id="round"><rect width="{width:g}" height="20" rx="3"/></clipPath>
  <g clip-path="url(#round)">
    <rect width="{left:g}" height="20" fill="#444c56"/>
    <rect x="{left:g}" width="{right:g}" height="20" fill="#{color}"/>
  </g>
  <g fill="#fff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11" aria-hidden="true">
    <text x="{padding}" y="14" textLength="{label_length:g}">{label}</text>
    <text x="{message_x:g}" y="14" textLength="{message_length:g}">{message}</text>
  </g>
</svg>
"""


def render_svg(view: View) -> str:
    """Return the badge as SVG."""
    title = f"{escape_text(view.title, 120)}: {view.verdict_in_words}, {view.musts.sentence}"
    return draw_badge(_format_message(view), COLORS[view.standing], title)


def draw_badge(message: str, color: str, title: str) -> str:
    """Return a badge as SVG.

    `message`: the text on the right side, a few words.
    `color`: six hexadecimal digits.
    """
    label_length, message_length = _estimate_width(LABEL), _estimate_width(message)
    left, right = label_length + 2 * PADDING, message_length + 2 * PADDING
    return TEMPLATE.format(
        title=escape(title),
        label=escape(LABEL),
        message=escape(message),
        color=color,
        width=left + right,
        left=left,
        right=right,
        padding=PADDING,
        label_length=label_length,
        message_length=message_length,
        message_x=left + PADDING,
    )


def render_shields(view: View) -> str:
    """Return the JSON of an endpoint badge of shields.io; on errors its color cannot be overridden in the URL."""
    return build_endpoint(_format_message(view), COLORS[view.standing], is_error=view.standing not in GATES)


def build_endpoint(message: str, color: str, *, is_error: bool) -> str:
    """Return the JSON of an endpoint badge of shields.io; see `draw_badge`."""
    document = {"schemaVersion": 1, "label": LABEL, "message": message, "color": color, "isError": is_error}
    return json.dumps(document, indent=1) + "\n"


def _format_message(view: View) -> str:
    limits = f" {view.limits}" if view.limits else ""
    return f"{view.standing}{limits} {view.musts.met}/{view.musts.applying}"


def _estimate_width(text: str) -> float:
    """Return the approximate width of a text in 11px Verdana; the SVG attribute `textLength` enforces this width."""
    return round(sum(CHAR_WIDTHS.get(character, DEFAULT_CHAR_WIDTH) for character in text), 1)
