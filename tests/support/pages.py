"""Writes what is generated in the repository, or names what of it is old; writes the pages that only the site has.

    python -m tests.support.pages              # judge new rows and faults, choose quick rows, write what is old
    python -m tests.support.pages --check      # name what is old; exit status 1 if anything is
    python -m tests.support.pages -o FOLDER    # write the pages that only the site has, as Markdown

What servers and clients do comes from docs/results, which their recipes write.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from conformance.judging.selection import list_profile_rows
from conformance.pages import servers
from conformance.report.report_file import read
from conformance.spec.extensions import EXTENSIONS, TRANSPORTS
from reference_server import faults
from tests.clients import alterations, sightings
from tests.clients import kill_matrix_page as clients_matrix
from tests.support import kept_results, quick_rows, results
from tests.support import kill_matrix_page as matrix
from tests.support.matrix import find_wrong, load_all, run_changed
from tests.support.quick_record import Key, list_server_rows, read_record
from tests.support.samples import SEEN_BY, read_seen_by
from tests.support.site.generated import ROOT, render_site_pages
from tests.support.site.matrix import PAGE, render_table

# The extensions, wherever a schema lists them.
LISTED_EXTENSIONS = re.compile(rf'"{EXTENSIONS[0]}"(?:, "(?:{"|".join(EXTENSIONS)})")+')


def render_pages() -> Iterator[tuple[Path, str]]:
    """Yield each generated file of the repository with the text that it should have."""
    yield ROOT / PAGE, render_table()
    for path in sorted((ROOT / "schemas").iterdir()):
        yield path, LISTED_EXTENSIONS.sub(json.dumps(EXTENSIONS)[1:-1], path.read_text(encoding="utf-8"))


def find_old() -> list[Path]:
    """Return the files that are not as they should be; a record of rows that does not know a fault is one."""
    records = {SEEN_BY: list_unrecorded(), sightings.SEEN_BY: list_unrecorded_of_clients()}
    pages = [path for path, text in render_pages() if not path.exists() or path.read_text(encoding="utf-8") != text]
    return [*(path for path, names in records.items() if names), *pages]


def list_unrecorded() -> list[str]:
    """Return the faults of the bundled server that no row is recorded to see, or that broke something else then."""
    broke = {name: one.breaks for name, one in read_record().faults.items()}
    unseen = find_unseen(faults.load(), read_seen_by(), list_server_rows())
    return [name for name, fault in faults.load().items() if name in unseen or broke.get(name) != fault.breaks]


def list_unrecorded_of_clients() -> list[str]:
    """Return the faults of the honest client that no row is recorded to see."""
    rows = [case.ids for case in sightings.collect_rows(TRANSPORTS)]
    return find_unseen(alterations.load("faults"), read_seen_by(sightings.SEEN_BY), rows)


def find_unseen(names: Collection[str], seen_by: Mapping[str, Sequence[Key]], rows: Collection[Key]) -> list[str]:
    """Return the names without a recorded row, or whose recorded rows are all gone."""
    return [name for name in names if set(rows).isdisjoint(seen_by.get(name, ()))]


def has_new_rows() -> bool:
    """Say whether the kept result of the bundled server has other rows than the suite."""
    kept = read(results.RESULTS / f"{servers.BUNDLED}.json.xz", is_whole=False)
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
    """Judge what is new, choose the rows of the profile quick, and write every generated file."""
    if has_new_rows():
        judge_bundled()
    if names := list_unrecorded():
        matrix.main(names)
    if names := list_unrecorded_of_clients():
        clients_matrix.main(names)
    quick_rows.main()  # always: a kept result of another server may have changed
    for path, text in render_pages():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))  # noqa: T201
    keep_results()


def keep_results() -> None:
    """Run the faults and valid servers of which something has changed, keep the results, and name what is wrong."""
    kept = kept_results.read()
    for name, sighting in run_changed(kept):
        print(f"{name} ({sighting.seconds} s)", *find_wrong(sighting, load_all()[name]), sep="\n    ")  # noqa: T201
    kept_results.write(kept)


def write_site_pages(folder: Path) -> None:
    """Write the pages that only the site has into a folder, each where the site has it."""
    for name, text in render_site_pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Write, or check; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="name what is old")
    parser.add_argument("-o", dest="folder", type=Path, metavar="FOLDER", help="write the pages that only the site has")
    options = parser.parse_args(arguments)
    if options.folder:
        write_site_pages(options.folder)
    elif options.check:
        old = find_old()
        print("".join(f"{path.relative_to(ROOT)} is old\n" for path in old), end="")  # noqa: T201
        return int(bool(old))
    else:
        write_pages()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
