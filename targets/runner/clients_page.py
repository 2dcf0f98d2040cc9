"""Renders the page of what real clients meet, from summaries of the reports of targets/runner/clients.py."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from clients import KnownClientFailure, RealClient, read_clients

from conformance.report.comparison import count_represented_rows
from conformance.report.report_file import read
from conformance.spec import ledger
from conformance.spec.extensions import find_transport
from conformance.spec.links import format_page_name

Report = Mapping[str, Any]

MAX_LINE_CHARS: Final = 240  # characters of a message, a request, an answer
CELLS: Final = {
    "pass": "met",
    "fail": "**not met**",
    "advisory": "advised",
    "not_applicable": "-",
    "observed": "observed",
    "blocked": "blocked",
    "error": "error",
}
HEAD: Final = """# Results of real clients

Written by `python -m tests.support.pages -o FOLDER` from the reports in [results/clients](results/clients), which
`tox -e clients` makes. [targets/clients](../targets/clients/README.md) has the adapters. `-` means that the client does
not support the feature, or that none of its requests used the feature.
"""


def read_reports(folder: Path) -> dict[RealClient, Report]:
    """Return the report of each client, or its summary."""
    return {client: read(folder / f"{name}.json.xz", is_whole=False) for name, client in read_clients().items()}


def render_page(reports: Mapping[RealClient, Report], known: Sequence[KnownClientFailure]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield HEAD
    yield from render_verdicts(reports)
    for transport, title in (("http", "Over HTTP"), ("grpc", "Over gRPC")):
        yield from render_matrix(reports, transport, title)
    yield from render_reasons(reports, known)


def render_verdicts(reports: Mapping[RealClient, Report]) -> Iterator[str]:
    """Yield the table of the verdicts."""
    yield "| client | verdict | rows met | not met | advised | cannot |\n|---|---|---|---|---|---|"
    for client, report in reports.items():
        outcomes: Counter[str] = Counter()
        for row in report["rows"]:
            outcomes[row["outcome"]] += count_represented_rows(row)
        counts = [str(outcomes[name]) for name in ("pass", "fail", "advisory", "not_applicable")]
        yield f"| {client.title} | {report['verdict']} | {' | '.join(counts)} |"
    yield ""


def render_matrix(reports: Mapping[RealClient, Report], transport: str, title: str) -> Iterator[str]:
    """Yield the table of the requirements over one transport, with a column for each client that speaks it."""
    found = {client: get_verdicts(report, transport) for client, report in reports.items()}
    columns = {client: each for client, each in found.items() if set(each.values()) - {"not_applicable"}}
    described = {one["id"]: one for report in reports.values() for one in report["requirements"]}
    yield f"## {title}\n"
    yield f"| requirement | level | {' | '.join(client.name for client in columns)} |"
    yield "|" + "---|" * (len(columns) + 2)
    for name in dict.fromkeys(name for each in columns.values() for name in each):
        cells = [CELLS[each.get(name, "not_applicable")] for each in columns.values()]
        page = format_page_name(ledger.get_requirement(name).page)
        yield f"| [{name}](requirements/{page}#{name}) | {described[name]['level']} | {' | '.join(cells)} |"
    yield ""


def get_verdicts(report: Report, transport: str) -> dict[str, str]:
    """Return the verdict of each requirement over a transport."""
    return {one["id"]: one["verdict"] for one in report["requirements"] if find_transport(one["area"]) == transport}


def render_reasons(reports: Mapping[RealClient, Report], known: Sequence[KnownClientFailure]) -> Iterator[str]:
    """Yield what is not met, by requirement, with what was asked, what came, and what the client does instead."""
    yield "## What is not met, and why\n"
    yield (
        "Each was looked at, and the client is what is wrong, but for curl, which sends what it is told to. Of the "
        "rows of a check the first is shown.\n"
    )
    for client, report in reports.items():
        mine = [each for each in known if client.name in each.clients]
        if mine:
            yield f"### {client.title}\n"
            for requirement, entries in groupby(sorted(mine, key=lambda each: each.requirement), get_group_key):
                yield from render_reason(report, requirement, list(entries))
            yield ""


def get_group_key(entry: KnownClientFailure) -> str:
    """Return what entries are put together by."""
    return entry.requirement


def render_reason(report: Report, requirement: str, entries: Sequence[KnownClientFailure]) -> Iterator[str]:
    """Yield a requirement that a client does not meet: why, the sentence, the rows, and what went over the wire."""
    told = dict.fromkeys(entry.reason for entry in entries if not entry.reason.startswith("as above"))
    yield f"- **{requirement}**: {'; '.join(told)}."
    rows: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in report["rows"]:
        if row.get("failure") and any(entry.explains(row) for entry in entries):
            rows[row["check"]].append(row)
    yield from render_sentence(requirement)
    for check, unmet in rows.items():
        names = ", ".join(row["row"] for row in unmet)
        yield f"  - `{check}` [{names}]: {escape_line(unmet[0]['message'])}"
        yield from render_exchange(unmet[0]["failure"], is_sent=requirement.startswith("CLIENT-SENDS-"))


def render_sentence(requirement: str) -> Iterator[str]:
    """Yield the first sentence that a requirement rests on."""
    source = ledger.get_requirement(requirement).sources[0]
    said = f'{source.document.title}, "{source.section}": {source.gist}'
    yield f"  - Sentence: [{said}]({source.url})"


def render_exchange(failure: Mapping[str, Any], *, is_sent: bool) -> Iterator[str]:
    """Yield the request of a client that sends wrongly, or the answer that it reads wrongly."""
    if is_sent and failure["request"]:
        yield f"    Request: {escape_line(failure['sent'])} {escape_line(failure['request'])}"
    elif not is_sent and failure["answer"]:
        yield f"    Answer: {escape_line(failure['answer'])}"


def escape_line(text: str) -> str:
    """Return the first line of a text, cut, as Markdown shows it literally."""
    line = text.partition("\n")[0].replace("`", "'")
    return f"`{line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS] + '...'}`"
