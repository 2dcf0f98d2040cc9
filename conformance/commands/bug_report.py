"""`oip-conformance bug-report`: writes bug reports for a server's maintainers, one for each unmet requirement."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.commands import evidence_reader
from conformance.commands.evidence_reader import CHECK_FILE
from conformance.judging import packs
from conformance.judging.selection import find_row
from conformance.report import bug_report, report_file
from conformance.report.bug_report import Bug, FailedRow
from conformance.report.output_files import convert_write_errors
from conformance.roles import roles
from conformance.spec import ledger
from conformance.spec.check import Case
from conformance.spec.ledger import Level, Party, Requirement
from conformance.spec.report import Pattern, list_rows
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError
from conformance.spec.version import __version__


def add_subcommand(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "bug-report",
        help="write bug reports for a server's maintainers",
        description="Write a bug report in Markdown for each MUST that a run found unmet: the error, commands that "
        "reproduce it without the suite, the sentence of the document with its link, and expected and actual bytes.",
    )
    parser.add_argument(
        "source", type=Path, metavar="EVIDENCE",
        help="the folder of --conformance-evidence, the folder of one row in it, or a JSON report",
    )  # fmt: skip
    parser.add_argument("requirement", nargs="?", metavar="ID", help="only this requirement, of any level")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="write a file for each into this folder (default: print them)"
    )


def run(options: argparse.Namespace) -> str:
    """Return the bug reports as text; with `--output`, write them and return a message with each path.

    Raises:
        UserError: the source cannot be read or has no failure to report, or a file cannot be written.
        UnknownRequirementError: the ledger has no such requirement.
    """
    server, suite, rows, patterns = _read_failed_rows(options.source)
    known = _load_requirements({options.requirement or "", *(row.failure["requirement"] for row in rows)})
    wanted = ledger.get_requirement(ledger.normalise_id(options.requirement)) if options.requirement else None
    bugs = list(_collect_bugs(known, server, suite, rows, wanted.id if wanted else None))
    if not bugs:
        what = wanted.id if wanted else "a MUST of a server"
        raise UserError(f"{options.source} has no row in which {what} is not met")
    bugs = bug_report.merge_same_causes(bugs, patterns)
    if options.output is None:
        return "\n".join(map(_render_bug, bugs))
    written = zip(_write_reports(bugs, options.output), bugs, strict=True)
    return "\n".join(f"wrote {path}{_describe_same_cause(bug)}" for path, bug in written)


def _describe_same_cause(bug: Bug) -> str:
    return f", which covers {', '.join(bug.same_cause)}" if bug.same_cause else ""


def _load_requirements(names: Iterable[str]) -> list[Requirement]:
    """Return the requirements of the suite, then those of the installed packs that some of the ids belong to."""
    own = {pack.name: pack for name in sorted(names) if (pack := packs.load_pack_of_id(name))}
    return [*ledger.load().values(), *(entry for pack in own.values() for entry in pack.requirements.values())]


def _collect_bugs(
    known: Iterable[Requirement], server: str, suite: str, failed: Sequence[FailedRow], wanted: str | None
) -> Iterator[Bug]:
    """Yield a bug for each unmet requirement among the known ones, in their order."""
    for requirement in known:
        found = [row for row in failed if row.failure["requirement"] == requirement.id]
        is_asked = requirement.id == wanted if wanted else requirement.level is Level.MUST
        if found and is_asked and requirement.party is Party.SERVER and not requirement.is_of_robustness:
            case = _find_case(bug_report.find_simplest(found))
            role = roles.load_with_packs()[case.role] if case and case.role else None
            yield Bug(server, requirement, found, suite, role, case)


def _find_case(row: FailedRow) -> Case | None:
    _, _, model = row.row.rpartition("@")
    return find_row(row.check, row.row, [model] if model != row.row else ())


def _render_bug(bug: Bug) -> str:
    """Return a bug report.

    Raises UserError: the evidence of the bug, which may come from a stranger, cannot be read.
    """
    try:
        return bug_report.render(bug)
    except (ValueError, OSError) as error:
        raise UserError(f"the evidence of {bug.example.label} cannot be read: {escape_text(str(error))}") from error


def _write_reports(bugs: Iterable[Bug], folder: Path) -> Iterator[Path]:
    with convert_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for bug in bugs:
            path = folder / f"{bug.requirement.id.replace('/', '-')}.md"
            path.write_text(_render_bug(bug), encoding="utf-8")
            yield path


def _read_failed_rows(source: Path) -> tuple[str, str, list[FailedRow], Sequence[Pattern]]:
    """Return the server's name and version, the version of the suite, the rows that failed, and their patterns."""
    if not source.is_dir():
        return _read_report(source)
    own = source / CHECK_FILE
    files = [own] if own.exists() else sorted(source.glob(f"*/{CHECK_FILE}"))
    if not files:
        raise UserError(f"{source}: there is no evidence of a failed row")
    if evidence_reader.is_all_client_evidence(files):
        raise UserError(
            f"{source} is evidence of a client, and bug reports are for servers: see its request and answer"
        )
    read = [(evidence_reader.read(file), file.parent) for file in files]
    discovery_result = read[0][0]["survey"]
    rows = [_make_failed_row(about, folder) for about, folder in read if "failure" in about]
    product = _format_product(discovery_result["name"], discovery_result["version"])
    return product, __version__, rows, evidence_reader.read_patterns(source)


def _make_failed_row(about: dict[str, Any], folder: Path) -> FailedRow:
    models, grpc = about["survey"]["roles"], about.get("grpc", "")
    return FailedRow(
        about["check"], about["row"], about["url"], about["failure"], folder=folder, models=models, grpc=grpc
    )


def _read_report(path: Path) -> tuple[str, str, list[FailedRow], Sequence[Pattern]]:
    report = report_file.read(path)
    target = report["target"]
    rows = [
        FailedRow(
            row["check"], row["row"], target["url"], row["failure"], len(row["exchanges"]), models=target["roles"]
        )
        for row in list_rows(report)
        if row["failure"]
    ]
    product = _format_product(target["name"], target["version"])
    return product, report["suite"]["version"], rows, report.get("failure_patterns", ())


def _format_product(name: str | None, version: str | None) -> str:
    return escape_text(" ".join(filter(None, (name, version))), 100)
