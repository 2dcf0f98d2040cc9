"""A comparison of reports as one HTML file: no script, nothing loaded from elsewhere, for wide and narrow screens.

Jinja2 escapes every text, and `escape_text` takes control characters out of it; the policy in the page's head forbids
scripts all the same.
"""

from __future__ import annotations

from conformance.report.comparison import LEGEND, Comparison
from conformance.report.comparison_labels import (
    NO_DIFFERENCE,
    ONLY_DIFFERENCES,
    SAME,
    STEPS,
    STEPS_TEXT,
    WAYS_TEXT,
    WRITTEN_BY,
    format_change,
    format_observations,
    shorten_rows,
)
from conformance.report.html_environment import environment


def render(comparison: Comparison) -> str:
    """Return the page, ending in a newline."""
    templates = environment()
    templates.filters |= {"more": shorten_rows, "seen": format_observations, "changed": format_change}
    sections = (
        ("Advice", comparison.advice),
        ("Observations", None),
        ("Failures", comparison.failures),
        ("Blocked, or in error", comparison.stuck),
    )
    return templates.get_template("compare.html.jinja").render(
        title=comparison.words.title,
        written_by=WRITTEN_BY.replace("`", ""),
        comparison=comparison,
        words={outcome: word for outcome, (word, _) in LEGEND.items()},
        steps_title=STEPS,
        steps_text=STEPS_TEXT.format(comparison.words.judged),
        ways_text=WAYS_TEXT.format(comparison.words.judged),
        same=SAME,
        only_differences=ONLY_DIFFERENCES,
        no_difference=NO_DIFFERENCE,
        sections=[(heading, columns) for heading, columns in sections if columns is None or any(columns)],
    )
