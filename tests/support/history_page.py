"""The page of bugs that reached users: what a client saw, which requirement it breaks, and the row that stops it."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.pages.pages import escape_cell, link_requirement
from tests.support.samples import SEEN_BY

ROOT = Path(__file__).parents[2]
BUGS = tuple(ROOT / "tests" / "faults" / f"reported_bugs{part}.toml" for part in ("", "_others", "_clients"))
HEAD = """# Bugs that reached users

Written by `python -m tests.support.pages`. This page measures how many real bugs the suite would have found before a
release. The bugs come from issues of users and maintainers of model servers and their clients, and from corrections in
the history of these. A bug of a server is listed if a client can see it in the answer to a request that the suite
covers, and a bug of a client if a server can see it, or the client's caller. Bugs of shared memory, sequences, streams,
metrics and the loading of models are not listed.

For each bug that breaks a requirement the bundled server has a fault with the same trigger and the same symptom, or the
honest client of the tests has one. The last column names the first row of the suite that fails or advises for this
fault ([of servers](kill-matrix.md), [of clients](kill-matrix-clients.md)), or the reason why no row does. Rows of
`robustness` run only with `--conformance-robustness`, and do not affect the verdict. Some requests that are known to
crash servers are sent only with `--conformance-dangerous`. If no sentence of the documents forbids a behaviour, the
suite must not fail a server for it.

"""
TABLE = "| bug | version | state | what a client saw | breaks | stopped by |\n|---|---|---|---|---|---|\n"
CLIENTS_SEEN_BY = ROOT / "tests" / "clients" / "seen_by.json"
# Names of check and row.
Row = tuple[str, str]
# Whether a fault is one of the honest client, and its name.
FaultKey = tuple[bool, str]


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug that reached users.

    Attributes:
        repository: where it was reported, `owner/name`.
        number: of the issue or pull request; else `commit` names the correction.
        version: one that has the bug, where known.
        state: "open", "unknown" or "fixed", with the version of the correction where known.
        title: what a client saw.
        breaks: ids of requirements.
        fault: name of the fault of the bundled server or of the honest client that does the same; "" if there is none.
        why: why no requirement forbids it, or why no row stops it.
        needs: what it needs to show, where no legal request to the models of the suite brings it about.
    """

    repository: str
    title: str
    state: str
    breaks: tuple[str, ...]
    number: int = 0
    commit: str = ""
    version: str = ""
    fault: str = ""
    why: str = ""
    needs: str = ""

    @property
    def name(self) -> str:
        """The repository, and the number or the commit."""
        return f"{self.repository}#{self.number}" if self.number else f"{self.repository}@{self.commit}"

    @property
    def is_of_client(self) -> bool:
        """Whether it breaks a requirement on clients."""
        return any(name.startswith("CLIENT-") for name in self.breaks)

    @property
    def key(self) -> FaultKey:
        """What tells its fault from all others."""
        return self.is_of_client, self.fault

    @property
    def link(self) -> str:
        """The link to the report or to the correction; GitHub redirects an issue's path to a pull request."""
        place, text = (
            (f"issues/{self.number}", f"#{self.number}") if self.number else (f"commit/{self.commit}", self.commit[:8])
        )
        return f"[{text}](https://github.com/{self.repository}/{place})"


def read_bugs(paths: Sequence[Path] = BUGS) -> list[Bug]:
    """Return the bugs of every file that exists, in the order of the files."""
    entries = [entry for path in paths if path.exists() for entry in tomllib.loads(path.read_text("utf-8"))["bug"]]
    return [Bug(**{**entry, "breaks": tuple(entry["breaks"])}) for entry in entries]


def read_stopping_rows() -> dict[FaultKey, Row]:
    """Return for each fault the first row that failed or advised, as the kill matrices have recorded it."""
    found: dict[bool, dict[str, list[list[str]]]] = {
        is_of_client: json.loads(path.read_text(encoding="utf-8"))
        for is_of_client, path in ((False, SEEN_BY), (True, CLIENTS_SEEN_BY))
    }
    return {(kind, name): (rows[0][0], rows[0][1]) for kind in found for name, rows in found[kind].items() if rows}


def render(bugs: Sequence[Bug], rows: Mapping[FaultKey, Row]) -> str:
    """Return the page, ending in a newline."""
    return HEAD + "\n".join([_summarise(bugs, rows), *_render_tables(bugs, rows)])


def _summarise(bugs: Sequence[Bug], rows: Mapping[FaultKey, Row]) -> str:
    forbidden = [bug for bug in bugs if bug.breaks]
    stopped = [bug for bug in forbidden if bug.key in rows]
    out_of_reach = Counter(bug.needs for bug in forbidden if bug.needs)
    reachable = len(forbidden) - out_of_reach.total()
    return (
        f"Of {len(bugs)} bugs that reached users, {len(forbidden)} break a sentence of the documents, and the suite "
        f"stops {len(stopped)} of these ({_compute_share(stopped, len(forbidden))} %).\n\n"
        f"A suite that sends legal requests to models that a vendor deploys for it can bring about {reachable} of "
        f"them, and this one stops {_compute_share(stopped, reachable)} % of those. "
        f"The other {out_of_reach.total()} need more: "
        f"{', '.join(f'{needs} ({count})' for needs, count in out_of_reach.most_common()) or 'none'}.\n"
    )


def _compute_share(stopped: Sequence[Bug], count: int) -> int:
    """Return which share of `count` bugs is stopped, in percent, rounded down."""
    return 100 * len(stopped) // max(count, 1)


def _render_tables(bugs: Sequence[Bug], rows: Mapping[FaultKey, Row]) -> Iterator[str]:
    for repository in dict.fromkeys(bug.repository for bug in bugs):
        own = [bug for bug in bugs if bug.repository == repository]
        yield f"## {repository}\n\n{TABLE}{''.join(_format_line(bug, rows) for bug in own)}"


def _format_line(bug: Bug, rows: Mapping[FaultKey, Row]) -> str:
    requirements = ", ".join(link_requirement(name, "requirements/") for name in bug.breaks)
    cells = (bug.link, bug.version, bug.state, bug.title, requirements or "no sentence", _format_end(bug, rows))
    return f"| {' | '.join(map(escape_cell, cells))} |\n"


def _format_end(bug: Bug, rows: Mapping[FaultKey, Row]) -> str:
    """Return the row that stops a bug, and what there is to say of it."""
    if bug.breaks and bug.key in rows:
        check, row = rows[bug.key]
        return " ".join([f"`{check}` [{row}]", *([f"({bug.why})"] if bug.why else [])])
    return f"{'not stopped: ' if bug.breaks else ''}{bug.why}"
