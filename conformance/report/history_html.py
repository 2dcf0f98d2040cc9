"""A history of runs as one HTML file: no script, nothing loaded from elsewhere, for wide and narrow screens.

Jinja2 escapes every text, and `escape_text` takes control characters out of it; the policy in the page's head forbids
scripts all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.report import history_labels
from conformance.report.bar import compute_parts
from conformance.report.comparison import LEGEND
from conformance.report.history import Product, pair_runs
from conformance.report.html_environment import environment


def render(products: Sequence[Product]) -> str:
    """Return the page, ending in a newline."""
    templates = environment()
    templates.filters |= {
        "kinds": history_labels.group_changes,
        "turn": history_labels.format_transition,
        "when": history_labels.format_date,
        "bar": compute_parts,
        "pairs": lambda product: list(pair_runs(product)),
    }
    return templates.get_template("history.html.jinja").render(
        products=products,
        page=history_labels,
        written_by=history_labels.WRITTEN_BY.replace("`", ""),
        words={outcome: word for outcome, (word, _) in LEGEND.items()},
    )
