"""A history of runs as one HTML file: no script, nothing loaded from elsewhere, for wide and narrow screens.

Jinja2 escapes every text, and `safe` takes control characters out of it; the policy in the page's head forbids scripts
all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.report import history_words
from conformance.report.bar import parts
from conformance.report.comparison import LEGEND
from conformance.report.history import Product, pairs
from conformance.report.html_environment import environment


def render(products: Sequence[Product]) -> str:
    """Return the page, ending in a newline."""
    templates = environment()
    templates.filters |= {
        "kinds": history_words.kinds,
        "turn": history_words.turn,
        "when": history_words.when,
        "bar": parts,
        "pairs": lambda product: list(pairs(product)),
    }
    return templates.get_template("history.html.jinja").render(
        products=products,
        page=history_words,
        written_by=history_words.WRITTEN_BY.replace("`", ""),
        words={outcome: word for outcome, (word, _) in LEGEND.items()},
    )
