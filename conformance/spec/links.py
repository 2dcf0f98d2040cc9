"""Links to the explanation of a requirement: the command that prints it, and the URL of its page.

Ids and the anchors of pages never change, so that links to the branch `main` stay valid.
"""

from __future__ import annotations

# The project's public repository, equal to `Repository` of [project.urls] in pyproject.toml. If empty, pages have no
# URL. The command works offline, and explains the installed version.
REPOSITORY = ""
BRANCH = "main"
PAGES_FOLDER = "docs/requirements"


def format_page_name(area: str) -> str:
    """Return the file name of the documentation page of an area."""
    return f"{area}.md"


def make_requirement_url(area: str, requirement_id: str) -> str:
    """Return the URL of a requirement on its page; empty if the project has no public repository."""
    return f"{REPOSITORY}/blob/{BRANCH}/{PAGES_FOLDER}/{format_page_name(area)}#{requirement_id}" if REPOSITORY else ""


def format_explain_command(requirement_id: str) -> str:
    """Return the shell command that prints an explanation of a requirement."""
    return f"oip-conformance explain {requirement_id}"
