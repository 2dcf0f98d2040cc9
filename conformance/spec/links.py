"""Links to the explanation of a requirement: the command that prints it, and the URL of its page.

Ids and the anchors of pages never change, so that links stay valid.
"""

from __future__ import annotations

# The address of the published site, equal to `Documentation` of [project.urls] in pyproject.toml. If empty, pages have
# no URL. The command works offline, and explains the installed version.
SITE = ""
PAGES_FOLDER = "docs/requirements"  # within the site


def format_page_name(area: str) -> str:
    """Return the file name of the documentation page of an area."""
    return f"{area}.md"


def make_requirement_url(area: str, requirement_id: str) -> str:
    """Return the URL of a requirement on its page; empty if the site is not published."""
    return f"{SITE}/{PAGES_FOLDER}/{area}/#{requirement_id}" if SITE else ""


def format_explain_command(requirement_id: str) -> str:
    """Return the shell command that prints an explanation of a requirement."""
    return f"oip-conformance explain {requirement_id}"
