"""The page of bugs that strangers planted in servers and clients: how many the suite sees, what it names first."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence

from conformance.pages.pages import escape_cell, link_requirement
from tests.strangers.bugs import PROFILES, Bug, Sighting, is_seen, load_reasons
from tests.strangers.hosts import Host, read_hosts
from tests.strangers.servers import HERE, STRANGERS

HEAD = """# Bugs in independent servers and clients

Written by `python -m tests.support.pages`. This page measures how many bugs the suite finds that its authors did not
think of. People outside of this project wrote seven servers in six languages from the documents alone; all seven are
conformant. Then people who had read the documents, but no check of the suite, planted bugs in these servers, of kinds
that are easy to make in each language. `bugs.toml` beside each server in `tests/strangers/` holds the bugs as edits.
`python -m tests.strangers --bugs` judges each server with each bug, first under `quick`, and under `certify` if `quick`
does not see the bug.

The author of a bug also chose its level. It is a MUST if the documents, or what follows from them, forbid the bug, and
a SHOULD if only good sense does. The suite sees a bug of level MUST if a row fails, and a bug of level SHOULD if a row
fails or advises. For each bug that the suite does not see, the table gives the reason. *Advised alone* are bugs that
their author calls a MUST although no sentence of the documents forbids them: the suite advises against them, and must
not fail a server for them.

"""
COLUMNS = ("server", "bugs against a MUST", "seen by `quick`", "seen by `certify`", "advised alone", "not seen")
SUMMARY = f"| {' | '.join(COLUMNS)} | bugs against a SHOULD | seen |\n|{'---|' * (len(COLUMNS) + 2)}\n"
TABLE = "| bug | what the server does | level | seen by | named first, or why it is not seen |\n|---|---|---|---|---|\n"
CLIENTS_HEAD = """
## Clients

Somebody who had read only the documents and [clients](clients.md) wrote three clients in three languages, with thirty
valid variations. All of them are conformant. Then their author planted thirty bugs in each client
(`tests/strangers/clients`), and every row judged each bug. At first the suite failed 56 of the 80 bugs against a MUST.
For each missed bug we added rows about the property behind it, or wrote down the reason below. Then we judged all of
them again.

| client | bugs against a MUST | failed | failed or advised | bugs against a SHOULD | seen |
|---|---|---|---|---|---|
"""
CLIENTS_TABLE = "| bug | what the client does | level | seen as | named first |\n|---|---|---|---|---|\n"
UNSEEN_HEAD = """
### Why some fail no row

| bug | why |
|---|---|
"""
UNSEEN = tomllib.loads((HERE / "clients" / "unseen.toml").read_text(encoding="utf-8"))
HOSTS = """
## HTTP servers under one application

`tox -e hosts` judges one correct application behind the usual HTTP servers for Python. Any unmet requirement is the
fault of the HTTP server.

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


def render_clients(bugs: Sequence[Bug], sightings: Sightings) -> str:
    """Return the section about clients, ending in a newline."""
    names = list(dict.fromkeys(bug.server for bug in bugs))
    groups = {name.removeprefix("clients/"): [bug for bug in bugs if bug.server == name] for name in names}
    summary = [_summarise_client(name, own, sightings) for name, own in {**groups, "all": list(bugs)}.items()]
    reasons = [f"| {escape_cell(key.removeprefix('clients/'))} | {escape_cell(why)} |\n" for key, why in UNSEEN.items()]
    tables = [_render_client(name, own, sightings) for name, own in groups.items()]
    return "".join([CLIENTS_HEAD, *summary, UNSEEN_HEAD, *reasons, *tables])


def _render_client(name: str, bugs: Sequence[Bug], sightings: Sightings) -> str:
    lines = [_format_client_line(bug, sightings[_key(bug)]) for bug in bugs]
    return f"\n### {name} client\n\n{CLIENTS_TABLE}{''.join(lines)}"


def _summarise_client(name: str, bugs: Sequence[Bug], sightings: Sightings) -> str:
    musts, shoulds = ([bug for bug in bugs if bug.level == level] for level in ("MUST", "SHOULD"))
    failed = sum(is_seen(bug, sightings[_key(bug)]) for bug in musts)
    named, advised = (sum(bool(sightings[_key(bug)].outcome) for bug in own) for own in (musts, shoulds))
    return f"| {name} | {len(musts)} | {failed} | {named} | {len(shoulds)} | {advised} |\n"


def _format_client_line(bug: Bug, sighting: Sighting) -> str:
    first = link_requirement(sighting.first, "requirements/") if sighting.first else ""
    cells = (bug.name, bug.what, bug.level, sighting.outcome or "not seen", first)
    return f"| {' | '.join(map(escape_cell, cells))} |\n"


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
