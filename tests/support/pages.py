"""Writes every generated page of docs/, or names those that are old.

    python -m tests.support.pages            # write the old ones; judge new rows and faults, choose quick rows
    python -m tests.support.pages --check    # name the old ones; exit status 1 if there are any

What servers and clients do comes from docs/results, which their recipes write.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from conformance.checks import PACKAGES, load_every_check
from conformance.commands import sources
from conformance.judging.selection import list_profile_rows
from conformance.pages import coverage, errata, pages, servers
from conformance.report import comparison_page
from conformance.report.comparison import compare
from conformance.report.report_file import read
from conformance.report.simple_page import render_markdown
from conformance.spec import ledger, links
from conformance.spec.documents import load_sentences
from conformance.spec.extensions import EXTENSIONS, TRANSPORTS
from reference_server import faults
from tests.clients import alterations
from tests.clients import kill_matrix_page as clients_matrix
from tests.strangers import bugs
from tests.support import history_page, kept_results, quick_rows, results, strangers_page
from tests.support import kill_matrix_page as matrix
from tests.support.matrix import find_wrong, load_all, run_changed
from tests.support.quick_record import list_server_rows, read_seen_by
from tests.support.samples import SEEN_BY

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
# The extensions, wherever a schema lists them.
LISTED_EXTENSIONS = re.compile(rf'"{EXTENSIONS[0]}"(?:, "(?:{"|".join(EXTENSIONS)})")+')
CHECK_ID = re.compile(rf"`((?:{'|'.join(PACKAGES)})\.[a-z0-9-]+)`")


def render_pages() -> Iterator[tuple[Path, str]]:
    """Yield each generated page with the text that it should have."""
    yield matrix.PAGE, matrix.render(faults.load(), matrix.read_lines(matrix.PAGE))
    variations = alterations.load("variations")
    yield (
        clients_matrix.PAGE,
        clients_matrix.render(alterations.load("faults"), matrix.read_lines(clients_matrix.PAGE), variations),
    )
    of_clients = strangers_page.render_clients(list(bugs.list_client_bugs()), bugs.read_caught(bugs.CLIENTS_CAUGHT))
    yield strangers_page.PAGE, strangers_page.render(list(bugs.list_bugs()), bugs.read_caught()) + of_clients
    yield history_page.PAGE, history_page.render(history_page.read_bugs(), history_page.read_stopping_rows())
    kept = [(path.stem, read(path, is_whole=False)) for path in sorted(RESULTS.glob("*.json"))]
    yield ROOT / "docs/results.md", render_markdown(comparison_page.build_page(compare(kept)))
    yield ROOT / "docs/results-clients.md", _render_clients()
    cited = sources.group_requirements_by_sentence(ledger.load().values())
    yield ROOT / "docs/sentences.md", sources.render_sentences(load_sentences().values(), cited)
    yield ROOT / "docs/coverage.md", coverage.render()[0]
    yield ROOT / "docs/errata.md", errata.render(servers.load(RESULTS, bundled=True))
    for name, text in pages.render(servers.load(RESULTS)).items():
        yield ROOT / links.PAGES_FOLDER / name, text
    for path in sorted((ROOT / "schemas").iterdir()):
        yield path, LISTED_EXTENSIONS.sub(json.dumps(EXTENSIONS)[1:-1], path.read_text(encoding="utf-8"))


def _render_clients() -> str:
    sys.path.insert(0, str(ROOT / "targets" / "runner"))  # programs, and no package
    clients, page = import_module("clients"), import_module("clients_page")
    return "\n".join(page.render_page(page.read_reports(RESULTS / "clients"), clients.read_known())) + "\n"


def find_old() -> list[Path]:
    """Return the pages that are not as they should be; a page with a fault of which it does not know is one."""
    if find_new(matrix.PAGE, described_faults()):
        return [matrix.PAGE]
    if find_new(clients_matrix.PAGE, described_client_faults()):
        return [clients_matrix.PAGE]
    return [path for path, text in render_pages() if not path.exists() or path.read_text(encoding="utf-8") != text]


def described_faults() -> Mapping[str, Sequence[str]]:
    """Return what the kill matrix says of each fault of the bundled server: what it does, and what it breaks."""
    return {
        name: (fault.summary, ", ".join(fault.breaks) or "nearly everything") for name, fault in faults.load().items()
    }


def described_client_faults() -> Mapping[str, Sequence[str]]:
    """Return the same of each fault of a client."""
    known = alterations.load("faults")
    return {name: (fault.summary, clients_matrix.describe_missed(fault)) for name, fault in known.items()}


def find_new(page: Path, described: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the faults of which a page says nothing, or something else, or that a check caught which is gone."""
    lines = matrix.read_lines(page)
    told = {name: line.replace("\\|", "|").split(" | ")[1:3] for name, line in lines.items()}
    known = {check.id for of_clients in (False, True) for check in load_every_check(of_clients=of_clients)}
    gone = {name for name, line in lines.items() if not set(CHECK_ID.findall(line)) <= known}
    return [name for name, words in described.items() if name in gone or told.get(name) != list(words)]


def list_without_row() -> list[str]:
    """Return the faults whose recorded rows are all gone."""
    rows = list_server_rows().keys()
    return [name for name, seen in read_seen_by(SEEN_BY).items() if rows.isdisjoint(seen)]


def has_new_rows() -> bool:
    """Say whether the kept result of the bundled server has other rows than the suite."""
    kept = read(RESULTS / f"{servers.BUNDLED}.json", is_whole=False)
    rows: int = kept["footer"]["rows"]
    return rows != len(list_profile_rows("certify", transports=TRANSPORTS))


def judge_bundled() -> None:
    """Judge the bundled server, and keep the result."""
    report = ROOT / "build" / "results" / f"{servers.BUNDLED}.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    options = ("--target-url=reference", "-q", "-p", "no:cacheprovider", f"--conformance-report={report}")
    subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, check=True)
    results.write(report)


def write_pages() -> None:
    """Judge what is new, choose the rows of the profile quick if something is, and write every page."""
    is_new = has_new_rows()
    if is_new:
        judge_bundled()
    if names := [*find_new(matrix.PAGE, described_faults()), *list_without_row()]:
        matrix.main(names)
        is_new = True
    if names := find_new(clients_matrix.PAGE, described_client_faults()):
        clients_matrix.main(names)
        is_new = True
    if is_new:
        quick_rows.main()
    for path in find_old():
        print(path.relative_to(ROOT))  # noqa: T201
    for path, text in render_pages():
        path.write_text(text, encoding="utf-8")
    keep_results()


def keep_results() -> None:
    """Run the faults and valid servers of which something has changed, keep the results, and name what is wrong."""
    kept = kept_results.read()
    for name, sighting in run_changed(kept):
        print(f"{name} ({sighting.seconds} s)", *find_wrong(sighting, load_all()[name]), sep="\n    ")  # noqa: T201
    kept_results.write(kept)


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or check them; return the exit status."""
    if list(arguments) != ["--check"]:
        write_pages()
        return 0
    old = find_old()
    print("".join(f"{path.relative_to(ROOT)} is old\n" for path in old), end="")  # noqa: T201
    return int(bool(old))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
