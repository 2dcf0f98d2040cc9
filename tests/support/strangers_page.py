"""The page of bugs that strangers planted in their servers: how many the suite sees, and what it names first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from conformance.pages.pages import escape_cell, link_requirement
from tests.strangers.bugs import PROFILES, Bug, Sighting, is_seen, load_reasons
from tests.strangers.hosts import Host, read_hosts
from tests.strangers.servers import STRANGERS

PAGE = Path(__file__).parents[2] / "docs" / "strangers.md"
HEAD = """# Bugs in servers of strangers

Written by `python -m tests.support.pages`. Six servers in five languages were written from the documents alone, and are
conformant. People who had read the documents and no check planted bugs in them, of the kinds that the language makes
easy: `bugs.toml` beside each server in `tests/strangers/` holds them as edits. `python -m tests.strangers --bugs`
judges each server with each bug, first under `quick`, and under `certify` if `quick` sees nothing.

The level is that of the bug's author: MUST where the words of a document, or what follows from them, forbid the bug;
SHOULD where good sense does. The suite sees a MUST if a row fails, and a SHOULD if a row fails or advises. The reason
stands beside each bug that it does not see. *Advised alone* are bugs that no sentence forbids by the ledger, though the
author calls them a MUST: the suite advises against them, and may not fail a server for them.

"""
COLUMNS = ("server", "bugs against a MUST", "seen by `quick`", "seen by `certify`", "advised alone", "not seen")
SUMMARY = f"| {' | '.join(COLUMNS)} | bugs against a SHOULD | seen |\n|{'---|' * (len(COLUMNS) + 2)}\n"
TABLE = "| bug | what the server does | level | seen by | named first, or why it is not seen |\n|---|---|---|---|---|\n"
HOSTS = """
## HTTP servers under one application

`tox -e hosts` judges one honest application behind the usual HTTP servers of the Python world. What is not met is the
HTTP server's own doing.

| HTTP server | not met | what it does |
|---|---|---|
"""
Sightings = Mapping[str, Sighting]


def render(bugs: Sequence[Bug], sightings: Sightings) -> str:
    """Return the page, ending in a newline."""
    tried = [bug for bug in bugs if _key(bug) in sightings]
    servers = [name for name in STRANGERS if any(bug.server == name for bug in tried)]
    summary = [_summarise(name, [bug for bug in tried if bug.server == name], sightings) for name in servers]
    total = [_summarise("all", tried, sightings)] if tried else []
    tables = [*summary, *total, *_render_servers(servers, tried, sightings), HOSTS, *_render_hosts(read_hosts())]
    return HEAD + SUMMARY + "".join(tables)


def _render_hosts(hosts: Mapping[str, Host]) -> Iterator[str]:
    for name, host in hosts.items():
        unmet = ", ".join(link_requirement(requirement, "requirements/") for requirement in host.get("unmet", []))
        yield f"| {name} | {unmet} | {host.get('why', '')} |\n"


def _key(bug: Bug) -> str:
    return f"{bug.server}/{bug.name}"


def _summarise(name: str, bugs: Sequence[Bug], sightings: Sightings) -> str:
    musts = [bug for bug in bugs if bug.level == "MUST"]
    shoulds = [bug for bug in bugs if bug.level == "SHOULD"]
    quick, every, advised = (
        sum(is_seen(bug, sightings[_key(bug)], profiles) for bug in own)
        for own, profiles in ((musts, PROFILES[:1]), (musts, PROFILES), (shoulds, PROFILES))
    )
    advised_musts = sum(sightings[_key(bug)].outcome == "advisory" for bug in musts)
    rest = len(musts) - every - advised_musts
    return f"| {name} | {len(musts)} | {quick} | {every} | {advised_musts} | {rest} | {len(shoulds)} | {advised} |\n"


def _render_servers(servers: Sequence[str], bugs: Sequence[Bug], sightings: Sightings) -> Iterator[str]:
    for name in servers:
        own = [bug for bug in bugs if bug.server == name]
        yield f"\n## {name}\n\n{TABLE}{''.join(_format_line(bug, sightings[_key(bug)]) for bug in own)}"


def _format_line(bug: Bug, sighting: Sighting) -> str:
    seen = f"`{sighting.profile}`" if is_seen(bug, sighting) else "advised" if sighting.outcome else "not seen"
    first = link_requirement(sighting.first, "requirements/") if sighting.first else sighting.outcome
    cells = (
        bug.name,
        bug.what,
        bug.level,
        seen,
        first if is_seen(bug, sighting) else load_reasons().get(_key(bug), ""),
    )
    return f"| {' | '.join(map(escape_cell, cells))} |\n"
