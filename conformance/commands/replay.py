"""`oip-conformance replay DIR`: runs failed rows again, from the folder of --conformance-evidence.

A check sends the same requests each time. Each failed row is therefore run again, on the models that discovery found in
the failed run; the recorded answers are not used. A client with an adapter makes the same inferences again. The
recorded requests of watched clients are judged again, without the clients.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.commands import client_replay, evidence_reader
from conformance.commands.evidence_reader import CHECK_FILE
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.selection import find_row
from conformance.judging.session import Session
from conformance.roles.placement import Placement
from conformance.spec.check import Case, format_label
from conformance.spec.options import add_command_options
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError
from conformance.transport import config
from conformance.transport.broken_request import is_broken
from conformance.transport.grpc_packages import expect_grpc
from conformance.transport.reference import serve_reference
from conformance.transport.target import Target

OUTCOME_LABELS = {Outcome.PASS: "fixed", Outcome.OBSERVED: "fixed", Outcome.FAIL: "failed", Outcome.ADVISORY: "failed"}


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "replay",
        help="judge failed rows again, from a folder of evidence",
        description="Judge failed rows again, from a folder of --conformance-evidence, and print for each whether it "
        "is fixed. Exit status 0: all are; 1: one still fails; 6: one cannot be judged. A recording of `client watch` "
        "is judged again without its clients, and gets a verdict.",
    )
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="the folder of --conformance-evidence, or the folder of one row in it"
    )
    add_command_options(parser, "replay")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Return the text to print and the exit status.

    Raises UserError: there is no evidence, this suite lacks a row of the evidence, or the settings are invalid.
    """
    if recording := client_replay.find_recording(options.folder):
        return client_replay.replay_recording(recording, options.conformance_gate)
    if options.conformance_gate:
        raise UserError("--conformance-gate: only a recording of `client watch` has a verdict")
    with serve_reference(options.target_url or "") as options.target_url:
        results = list(_judge_rows(options))
    lines = [_format_result(result) for result in results]
    words = {OUTCOME_LABELS.get(result.outcome, "error") for result in results}
    return "\n".join(lines), 6 if "error" in words else 1 if "failed" in words else 0


def _format_result(result: CheckResult) -> str:
    word = OUTCOME_LABELS.get(result.outcome, "error")
    return f"{word:<7} {result.label}" + (f": {escape_text(result.message, 400)}" if result.message else "")


def _judge_rows(options: argparse.Namespace) -> Iterator[CheckResult]:
    own = options.folder / CHECK_FILE
    files = [own] if own.exists() else sorted(options.folder.glob(f"*/{CHECK_FILE}"))
    if not files:
        raise UserError(f"{options.folder}: there is no evidence of a failed row")
    if evidence_reader.is_all_client_evidence(files):
        yield from client_replay.replay_rows(files, options.client_adapter)
        return
    for file in files:
        about = evidence_reader.read(file)
        case = _find_evidence_row(about, file)
        with _build_session(options, about) as session:
            yield session.judge(case)


def _find_evidence_row(about: dict[str, Any], file: Path) -> Case:
    found = find_row(about["check"], about["row"], list(about["survey"]["models"]))
    if found is None:
        raise UserError(f"{file}: this suite has no row {escape_text(format_label(about['check'], about['row']))}")
    return found


def _build_session(options: argparse.Namespace, about: dict[str, Any]) -> Session:
    grpc = options.target_grpc or about.get("grpc")
    if grpc:
        expect_grpc("gRPC")
    url = options.target_url or (about["url"] if about["url"].startswith("http") else "")
    made = config.read_options(options).build_settings(url, grpc)
    placements = {role: Placement.from_dict(entry) for role, entry in about["placements"].items()}
    discovery_result, seed = DiscoveryResult(**about["survey"]), about.get("seed")
    return _resend_broken_requests(Session(Target(made), discovery_result, placements=placements, seed=seed))


def _resend_broken_requests(session: Session) -> Session:
    """Resend the requests that got no answer, or a server error, during discovery; forget those that succeed now."""
    target = session.target
    target.broken_in_discovery = [
        one for one in target.broken_in_discovery if is_broken(target.send(one.reply.exchange.message))
    ]
    return session
