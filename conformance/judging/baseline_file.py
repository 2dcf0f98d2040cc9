"""Reads baseline files and updates them from a run. `schemas/baseline.schema.json` describes the format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from conformance.judging.baseline import MET, Baseline, BaselineEntry
from conformance.judging.selection import matches_pattern
from conformance.spec import files, schemas
from conformance.spec.check import Case
from conformance.spec.result import CheckResult
from conformance.spec.user_error import UserError

FILE_HEADER = """\
# Known failures: see --conformance-baseline. Written by --conformance-update-baseline, which keeps comments.
"""
DEFAULT_REASON = "not investigated yet"
MAX_ROWS_PER_LINE = 3  # a longer `rows` array is written on several lines
MIN_PATTERN_ROWS = 3  # that a pattern stands for


class BaselineError(UserError, ValueError):
    """The baseline file cannot be used; the message is one line."""


# --- reading ---------------------------------------------------------------------------------------------------------


def load(path: Path) -> Baseline:
    """Read a baseline file.

    Raises:
        BaselineError: the file cannot be read, is not TOML, or does not match the schema.
    """
    try:
        return from_text(files.read_text(path))
    except (BaselineError, files.UnreadableError) as error:
        raise BaselineError(f"--conformance-baseline {path}: {error}") from error


def from_text(text: str) -> Baseline:
    """Parse the text of a baseline file.

    Raises:
        BaselineError: the text is not TOML, or does not match the schema.
    """
    try:
        document = files.parse_toml(text)
    except files.UnreadableError as error:
        raise BaselineError(str(error)) from error
    if fault := _find_schema_violation(document):
        raise BaselineError(fault)
    return Baseline([_parse_entry(entry) for entry in document.get("known", ())], advice=document.get("advice", False))


def _parse_entry(entry: Mapping[str, Any]) -> BaselineEntry:
    rows = entry.get("rows", "*")
    return BaselineEntry(**{**entry, "rows": (rows,) if isinstance(rows, str) else tuple(rows)})


def _find_schema_violation(document: Mapping[str, Any]) -> str | None:
    """Return a message about the first schema violation of a baseline file, or None."""
    plain = json.loads(json.dumps(document, default=str))  # TOML dates become JSON strings
    error = schemas.find_error(plain, schemas.load_schema("baseline"), checks_formats=True)
    if error is not None:
        place = ".".join(str(part) for part in error.absolute_path)
        return f"{place}: {error.message}" if place else error.message
    entries = document.get("known", ())
    for index, entry in enumerate(entries):
        if not {"check", "requirement"} & set(entry):
            return f"known.{index}: give a check, a requirement, or both"
        if "rows" in entry and "check" not in entry:
            return f"known.{index}.rows: name the check of these rows as well"
    dated = [entry["expires"] for entry in entries if "expires" in entry]
    wrong = next((given for given in dated if type(given) is not date), None)
    return f"expires: write a date without quotes, such as 2027-01-31, not {wrong!r}" if wrong else None


# --- updating --------------------------------------------------------------------------------------------------------


def update_text(text: str, results: Sequence[CheckResult], left_out: Sequence[Case] = ()) -> str:
    """Update the text of a baseline file from a whole run: remove entries that no longer fail, add new failures.

    New failures get one entry per check and requirement, in the order of the suite. Comments and the order of the
    remaining entries are kept. A second update with the same results changes nothing. Entries keep the rows that the
    profile of the run leaves out (`left_out`).

    Raises:
        BaselineError: the text is not TOML.
    """
    try:
        document = tomlkit.parse(text or FILE_HEADER)
    except TOMLKitError as error:
        raise BaselineError(f"not TOML: {error}") from error
    tables = document.setdefault("known", tomlkit.aot())
    unmet = Baseline(advice=bool(document.get("advice", False))).unmet_outcomes
    failing = [result for result in results if result.outcome in unmet]
    every_row: dict[str, set[str]] = {}
    for check, row in (*((one.id, one.row) for one in results), *(case.ids for case in left_out)):
        every_row.setdefault(check, set()).add(row)
    for index in reversed(range(len(tables))):
        _drop_fixed_rows(tables, index, results, failing, left_out, every_row)
    kept = [_parse_entry(table.unwrap()) for table in tables]
    new = [
        result for result in failing if not any(entry.names_row(result) and entry.explains(result) for entry in kept)
    ]
    for table in _build_entry_tables(new, results, {case.check.id for case in left_out}, every_row):
        tables.append(table)
    return tomlkit.dumps(document)


def _drop_fixed_rows(
    tables: Any,
    index: int,
    results: Sequence[CheckResult],
    failing: Sequence[CheckResult],
    left_out: Sequence[Case],
    every_row: Mapping[str, Collection[str]],
) -> None:
    """Remove the rows of an entry that no longer fail, and the whole entry if no row is left."""
    entry = _parse_entry(tables[index].unwrap())
    held = [result.row for result in failing if entry.names_row(result) and entry.explains(result)]
    held += [case.row.id for case in left_out if entry.names_case(case)]
    met = [one.row for one in results if one.outcome in MET and entry.names_row(one) and not entry.is_wide]
    rows: list[str] = []
    for pattern in entry.rows:
        own = [row for row in held if entry.is_wide or matches_pattern(row, pattern)]
        if any(matches_pattern(row, pattern) for row in met):
            rows += _shorten_rows(own, {*every_row.get(str(entry.check), ())} - {*held})
        elif own:
            rows.append(pattern)
    if not rows:
        del tables[index]
    elif rows != list(entry.rows):
        tables[index]["rows"] = _build_toml_array(rows)


def _build_entry_tables(
    new: Sequence[CheckResult],
    results: Sequence[CheckResult],
    sampled: Collection[str],
    every_row: Mapping[str, Collection[str]],
) -> Iterator[Any]:
    """Yield a TOML table for each check and requirement of the new failures.

    An entry names its rows, unless all rows of the check fail anew, for one requirement. Else it would hide that a row
    fails for this requirement later, although it fails for another one now: that it ends the server, for example; or
    although it was not judged, for want of a model or by the profile (`sampled` has the ids of such checks).
    """
    together: dict[tuple[str, str | None], list[str]] = {}
    for result in new:
        requirement = result.failure.requirement if result.failure else None
        together.setdefault((result.id, requirement), []).append(result.row)
    new_rows = {(result.id, result.row) for result in new}
    mixed = {one.id for one in results if one.id in sampled or (one.id, one.row) not in new_rows}
    mixed |= {check for check, count in Counter(check for check, unmet in together if unmet).items() if count > 1}
    failed = {check for check, requirement in together if requirement}
    for (check, requirement), named in together.items():
        rows = _shorten_rows(named, {*every_row[check]} - {*named})
        if requirement:
            yield _build_entry_table(check, rows if check in mixed else (), requirement)
        elif check in mixed or check not in failed:  # else an entry for all rows includes the blocked ones
            yield _build_entry_table(check, rows, None)


def _shorten_rows(rows: Sequence[str], others: Collection[str]) -> list[str]:
    """Return patterns that match these rows and none of the others, which pass, fail otherwise, or were not judged."""
    found, left = [], list(rows)
    while left:
        words = left[0].split("-")
        patterns = (f"{'-'.join(words[:count])}-*" for count in range(1, len(words)))
        pattern = next((one for one in patterns if not any(matches_pattern(row, one) for row in others)), left[0])
        own = [row for row in left if matches_pattern(row, pattern)]
        if len(own) < MIN_PATTERN_ROWS:
            pattern, own = left[0], left[:1]
        found.append(pattern)
        left = [row for row in left if row not in own]
    return found


def _build_entry_table(check: str, rows: Sequence[str], requirement: str | None) -> Any:
    """Return the TOML table of an entry; without `rows` the entry covers every row of the check."""
    rows = [row for row in rows if row]  # the only row of a check may have no name
    table = tomlkit.table()
    table["check"] = check
    if rows:
        table["rows"] = _build_toml_array(rows) if len(rows) > 1 else rows[0]
    if requirement:
        table["requirement"] = requirement
    table["reason"] = DEFAULT_REASON
    return table


def _build_toml_array(rows: Sequence[str]) -> Any:
    return tomlkit.item(list(rows)).multiline(len(rows) > MAX_ROWS_PER_LINE)
