"""How pages without a script are made of their templates: Jinja2 escapes every text, and nothing may be undefined."""

from __future__ import annotations

import jinja2

from conformance.spec.text import escape_text


def environment(*packages: str) -> jinja2.Environment:
    """Return an environment with the filter `safe_text`, which takes control characters out of a text.

    Args:
        packages: further ones with templates; `plain.css` is there for all.
    """
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in ("conformance.report", *packages)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["safe_text"] = escape_text
    return made
