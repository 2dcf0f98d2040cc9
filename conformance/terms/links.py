"""Where a requirement's page stands: the one place that knows its address.

Ids never change, and neither do the anchors on the pages, so that a link stays good; it leads to the branch `main`.
"""

from __future__ import annotations

# The project's public repository, as `Repository` of [project.urls] in pyproject.toml has it. As long as it has none, a
# link is the path of the page within the repository.
REPOSITORY = ""
BRANCH = "main"
FOLDER = "docs/requirements"


def page_name(area: str) -> str:
    """Return the name of an area's page within its folder."""
    return f"{area}.md"


def requirement_link(area: str, requirement_id: str) -> str:
    """Return the address of a requirement, as a URL where the project has a public repository, else as a path."""
    path = f"{FOLDER}/{page_name(area)}#{requirement_id}"
    return f"{REPOSITORY}/blob/{BRANCH}/{path}" if REPOSITORY else path


def is_url(link: str) -> bool:
    """Say whether a link leads somewhere from anywhere, and not only within the repository."""
    return link.startswith("https://")
