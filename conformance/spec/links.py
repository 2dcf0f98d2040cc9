"""Where a requirement is explained: the command that prints it anywhere, and the address of its page.

Ids never change, and neither do the anchors on the pages, so that a link stays good; it leads to the branch `main`.
"""

from __future__ import annotations

# The project's public repository, as `Repository` of [project.urls] in pyproject.toml has it. Without one no page
# has an address. The command works offline, and explains the version that is installed.
REPOSITORY = ""
BRANCH = "main"
PAGES_FOLDER = "docs/requirements"


def format_page_name(area: str) -> str:
    """Return the name of an area's page within its folder."""
    return f"{area}.md"


def make_requirement_url(area: str, requirement_id: str) -> str:
    """Return the URL of a requirement on its page; empty as long as the project has no public repository."""
    return f"{REPOSITORY}/blob/{BRANCH}/{PAGES_FOLDER}/{format_page_name(area)}#{requirement_id}" if REPOSITORY else ""


def format_explain_command(requirement_id: str) -> str:
    """Return the command that prints what there is to say of a requirement."""
    return f"oip-conformance explain {requirement_id}"
