"""`oip-conformance baseline FILE...`: checks baseline files without a server, for a pre-commit hook."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from conformance import checks
from conformance.judging import baseline_file, packs
from conformance.judging.baseline import BaselineEntry
from conformance.judging.baseline_file import DEFAULT_REASON, BaselineError
from conformance.judging.selection import matches_pattern
from conformance.spec import files, ledger
from conformance.spec.text import escape_text


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "baseline",
        help="check baseline files without a server",
        description="Check files of --conformance-baseline without a server. Every entry needs a reason, an existing "
        "check and an existing requirement; no entry may occur twice or have expired. Exit status 0: no file has an "
        "error; 1: at least one has, with a line for each error.",
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a baseline (repeatable)")
    parser.add_argument(
        "--sorted", action="store_true", help="require that entries are sorted by check and requirement"
    )


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Return the text to print and the exit status."""
    faults = [
        f"{path}: {escape_text(fault, 400)}"
        for path in options.files
        for fault in _find_file_faults(path, is_sorted=options.sorted)
    ]
    number = len(options.files)
    return ("\n".join(faults), 1) if faults else (f"{number} baseline{'s are' if number > 1 else ' is'} valid", 0)


def _find_file_faults(path: Path, *, is_sorted: bool) -> Iterator[str]:
    """Yield the errors in a baseline file."""
    try:
        entries = baseline_file.from_text(files.read_text(path)).entries
    except (BaselineError, files.UnreadableError) as error:
        yield str(error)
        return
    today = date.today()
    for index, entry in enumerate(entries):
        yield from (f"{entry.display_name}: {fault}" for fault in _find_entry_faults(entry, entries[:index], today))
    if is_sorted:
        yield from _find_order_fault(entries)


def _find_entry_faults(entry: BaselineEntry, before: Sequence[BaselineEntry], today: date) -> Iterator[str]:
    """Yield the errors in an entry; `before` contains the entries above this entry in the file."""
    if entry.reason == DEFAULT_REASON:
        yield f"give a reason instead of {DEFAULT_REASON!r}"
    if entry.has_expired(today):
        yield f"expired on {entry.expires}"
    if entry.check is not None and not _is_known(entry.check, _list_checks()):
        yield "this suite has no such check"
    if entry.requirement is not None and not _is_known(entry.requirement, ledger.load()):
        yield f"this suite has no requirement {entry.requirement}"
    if any(
        _get_sort_key(other) == _get_sort_key(entry) and bool(set(other.rows) & set(entry.rows)) for other in before
    ):
        yield "is listed twice"


def _is_known(pattern: str, names: Collection[str]) -> bool:
    """Return whether a pattern matches a name of the suite, or one of an installed pack."""
    pack = None if any(matches_pattern(name, pattern) for name in names) else packs.load_pack_of_id(pattern)
    of_pack = (*(check.id for check in pack.checks), *pack.requirements) if pack else names
    return any(matches_pattern(name, pattern) for name in of_pack)


def _find_order_fault(entries: Sequence[BaselineEntry]) -> Iterator[str]:
    """Yield an error for the first entry that is not sorted by check and requirement."""
    for above, entry in pairwise(entries):
        if _get_sort_key(entry) < _get_sort_key(above):
            yield f"{entry.display_name}: belongs before {above.display_name}"
            return


def _get_sort_key(entry: BaselineEntry) -> tuple[str, str, str]:
    return entry.check or "", entry.requirement or "", entry.message or ""


@cache
def _list_checks() -> frozenset[str]:
    """Return the ids of all checks, of servers and of clients."""
    return frozenset(check.id for area in checks.PACKAGES for check in checks.list_area_checks(area))
