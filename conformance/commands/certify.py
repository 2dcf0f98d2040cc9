"""`oip-conformance certify`: runs the suite once, isolated, and writes a folder that a reviewer can verify.

The selection of checks depends only on the suite, the profile and the target.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from conformance.certification import manifest, profiles, sealing
from conformance.certification.manifest import BUNDLED, CertificationError, Manifest, ReportedProduct
from conformance.commands import certify_client, certify_options
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.discovery.offered_extensions import read_server_metadata
from conformance.judging import packs
from conformance.judging.session import Session
from conformance.report import json_report, terminal
from conformance.report.output_files import convert_write_errors, make_empty_folder
from conformance.report.report_file import ReportError, read
from conformance.spec import ledger
from conformance.spec.ledger import Party
from conformance.spec.options import (
    CHILD_INI,
    build_child_environment,
    format_arguments,
    list_given_arguments,
    list_isolation_arguments,
)
from conformance.spec.outcome import CONFORMANT, INCOMPLETE, INTEROPERABLE, PARTIAL
from conformance.spec.report import Report
from conformance.spec.text import format_count, join_some
from conformance.spec.verdict import EXIT_STATUS, Verdict
from conformance.spec.version import __version__
from conformance.transport import client_names, config, har
from conformance.transport.config import TargetConfig
from conformance.transport.grpc_packages import expect_grpc
from conformance.transport.reference import REFERENCE
from conformance.transport.settings import SettingsError
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

REPORT, EVIDENCE = "report.json", "evidence"
MAX_SHOWN_PROBLEMS = 12
STDERR = 2  # the file descriptor
MAX_INPUTS_BYTES = 1 << 20  # of user-given model inputs, as JSON in a manifest
PLACEHOLDER_TIME = "1970-01-01T00:00:00+00:00"


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "certify",
        help="judge a server or a client and write a folder for reviewers",
        description="Judge a server or a client in an isolated run, and write report, recording, pages and manifest "
        "into a folder that `oip-conformance verify` checks offline. Exit status 0: certified; 1 or 6: not certified, "
        "for reasons in the folder.",
    )
    certify_options.add_options(parser)


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Run the suite and write the folder; return the text to print and the exit status.

    Raises:
        CertificationError: the suite could not run, a key is unusable, the label does not match the server, or the
            folder cannot be written.
        MissingExtraError: an option needs an extra that is not installed.
    """
    folder: Path = options.output
    _check_option_combinations(options)
    named = [*options.target_extension, *packs.load_target_file(options.target_config).extensions]
    options.target_extension = list(packs.split_extensions(named)[1])
    target = _read_target(options)
    _expect_fitting_profile(options, target)
    key = sealing.read_private_key(options.sign) if options.sign else sealing.make_throwaway_key()
    third_key = sealing.read_private_key(options.countersign, "--countersign") if options.countersign else None
    made = _build_manifest(options, target, key, third_key)
    _expect_matching_label(made, options, target)
    make_empty_folder(folder, CertificationError)
    with tempfile.TemporaryDirectory() as empty:
        report = _run_suite(options, Path(empty))
        made = _complete_manifest(made, options, report)
        recording = Path(empty, EVIDENCE, har.NAME)
        if not recording.is_file():
            raise CertificationError("the run left no recording")
        with convert_write_errors(folder, CertificationError):
            sealing.seal(folder, made, report, recording, key, third_key)
    problems = _list_problems(made, report)
    return _format_result(made, report, problems, folder), _find_exit_status(made, report, problems)


def _check_option_combinations(options: argparse.Namespace) -> None:
    """Require that the options can be combined; the parser cannot check this."""
    if options.client_adapter is not None:
        certify_client.expect_client_options(options)
    if options.workers < 0:
        raise CertificationError(f"-n {options.workers}: a number of processes is at least 1")
    if options.workers and find_spec("xdist") is None:
        raise CertificationError(f"-n {options.workers} needs pytest-xdist: pip install pytest-xdist")
    if own := packs.split_extensions(options.target_extension)[0]:
        raise CertificationError(f"--target-extension {own[0]}: --profile chooses the extensions; name packs only")
    if (options.alias_of is None) != (options.alias_reason is None):
        raise CertificationError("--alias-of and --alias-reason go together")
    third = (options.third_party, options.third_party_contact, options.countersign)
    if None in third and third != (None, None, None):
        raise CertificationError("--third-party, --third-party-contact and --countersign go together")
    if options.expires is not None:
        _expect_day(options.expires)


def _expect_day(text: str) -> None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise CertificationError(f"--expires {text}: give a day as YYYY-MM-DD") from None
    latest = manifest.get_today() + manifest.MAX_VALIDITY
    if not manifest.get_today() <= day <= latest:
        raise CertificationError(f"--expires {text}: give a day from today to {latest}")


def _read_target(options: argparse.Namespace) -> TargetConfig:
    """Return the settings of the target, from its file and the other options; empty for a client."""
    target = config.read_options(options, packs.load_target_file(options.target_config))
    names = (line.partition(":")[0].strip().lower() for line in target.headers)
    if client_names.HEADER.lower() in names:
        raise CertificationError(f"{client_names.HEADER}: a certification chooses the client name of each row itself")
    return target


def _expect_fitting_profile(options: argparse.Namespace, target: TargetConfig) -> None:
    """Require an address, and the profile for gRPC alone exactly if there is no URL."""
    is_for_grpc = options.profile == profiles.GRPC_ALONE
    if options.client_adapter is not None:
        if is_for_grpc:
            raise CertificationError(f"--profile={options.profile} is for servers; choose another one")
        return
    if target.grpc:
        expect_grpc("--target-grpc")
    elif not target.url:
        raise CertificationError(
            "certify needs the URL of a server, --target-grpc, --target-config, or --client-adapter"
        )
    if target.url and is_for_grpc:
        raise CertificationError(
            f"--profile={options.profile} certifies gRPC alone: omit the URL, or choose another profile"
        )
    if not target.url and not is_for_grpc:
        raise CertificationError(
            f"without a URL, certify judges gRPC alone, which has a profile of its own: --profile={profiles.GRPC_ALONE}"
        )


def _build_manifest(
    options: argparse.Namespace, target: TargetConfig, key: Ed25519PrivateKey, third_key: Ed25519PrivateKey | None
) -> Manifest:
    """Return the manifest that is known before the run, without dates and digests.

    Raises CertificationError: a value of the user is invalid; the run has not started.
    """
    alias = options.alias_of and dict(zip(("name", "version"), options.alias_of, strict=True))
    third = None
    if third_key is not None:
        described = sealing.describe_key(third_key, lasting=True)
        third = {"name": options.third_party, "contact": options.third_party_contact, "key": described}
    roles = target.roles
    made = Manifest(
        vendor=options.vendor, product=options.product, product_version=options.product_version,
        contact=options.contact, product_url=options.product_url, licence=options.licence,
        container=options.container, version_command=options.version_command,
        alias_of=alias and {**alias, "reason": options.alias_reason}, self_test=options.self_test,
        party=str(Party.SERVER if options.client_adapter is None else Party.CLIENT),
        profile=options.profile,
        suite={
            "version": __version__,
            "digest": json_report.compute_suite_digest(),
            "ledger": ledger.compute_version(),
        },
        started=PLACEHOLDER_TIME, finished=PLACEHOLDER_TIME, expires=PLACEHOLDER_TIME[:10],
        key=sealing.describe_key(key, lasting=options.sign is not None),
        third_party=third,
        placements=None if roles is None else {role: placement.to_dict() for role, placement in roles.items()},
        limits=target.limits or None,
        packs=[packs.load(name).identity for name in options.target_extension] or None,
        models=_list_models(options, target),
    )  # fmt: skip
    if unfit := manifest.find_invalid_member(made):
        member, meaning = unfit
        raise CertificationError(f"--{member.replace('_', '-')}: this text is invalid or too long. {meaning}")
    return made


def _list_models(options: argparse.Namespace, target: TargetConfig) -> dict[str, Any] | None:
    """Return the judged deployed models with the inputs from the user, for reviewers who judge them again.

    Raises CertificationError: the inputs are too large for a manifest, or JSON cannot represent them.
    """
    tables = config.format_tables(target.models)
    try:
        size = len(json.dumps(tables, indent=1, allow_nan=False))
    except ValueError as error:
        raise CertificationError(f"{options.target_config}: models: no NaN and no infinity can be certified") from error
    if size > MAX_INPUTS_BYTES:
        raise CertificationError(f"{options.target_config}: models: give inputs of less than {MAX_INPUTS_BYTES} bytes")
    return tables or None


def _complete_manifest(made: Manifest, options: argparse.Namespace, report: Report) -> Manifest:
    started, finished = report["started"], report["finished"]
    expires = options.expires or str(manifest.find_last_valid_day(finished))
    standing = profiles.find_standing(made.profile, report, options.conformance_gate)
    return replace(
        made,
        standing=standing or options.conformance_gate or CONFORMANT,
        coverage=profiles.count_met_musts(report) if standing == PARTIAL else None,
        started=started,
        finished=finished,
        expires=expires,
    )


def _expect_matching_label(made: Manifest, options: argparse.Namespace, target: TargetConfig) -> None:
    """Compare the label with the name that the server or client reports, to detect a wrong label before the run.

    Raises CertificationError: the label does not match.
    """
    is_client = options.client_adapter is not None
    found = certify_client.request_name(options) if is_client else _request_server_name(target)
    for problem in manifest.find_label_faults(made, found) if found else ():
        raise CertificationError(problem)


def _request_server_name(target: TargetConfig) -> ReportedProduct | None:
    """Request the name and version of the server; return None if it does not answer, since the run reports that."""
    if REFERENCE in (target.url, target.grpc):
        return ReportedProduct(BUNDLED, "")
    found = DiscoveryResult()
    try:
        settings = target.build_settings(target.url or "", None if target.url else target.grpc)
        with Session(Target(settings)) as session, session.target.limit_silence():
            read_server_metadata(session.target, found, ())
    except (SettingsError, TargetLostError):
        return None
    if found.name is None:
        return None
    return ReportedProduct(*(json_report.format_name(name) or "" for name in (found.name, found.version)))


def _list_problems(made: Manifest, report: Report) -> Sequence[str]:
    is_shown = profiles.is_certifiable(made.standing, made.profile, report)
    found = [] if is_shown else [*report["why"], *profiles.list_unmet_musts(made.profile, report, made.standing)]
    named = report["target"]["name"] is not None  # else the server reported no name, and `found` includes that
    return [*found, *(manifest.find_label_faults(made, manifest.read_reported_product(report)) if named else [])]


def _find_exit_status(made: Manifest, report: Report, problems: Sequence[str]) -> int:
    if not problems:
        return 0
    verdict = Verdict(report["verdict"], interoperable=report["interoperable"])
    return verdict.exit_status(made.standing) or EXIT_STATUS[INCOMPLETE]


def _format_result(made: Manifest, report: Report, problems: Sequence[str], folder: Path) -> str:
    profile = f"{'' if made.certified_as == CONFORMANT else f'as {made.certified_as} '}for the profile {made.profile}"
    if not problems:
        return f"{made.label} is certified {profile}. Check it with: oip-conformance verify {folder}"
    why = join_some(problems, MAX_SHOWN_PROBLEMS, "; ")
    failed = f"{made.label} is not certified {profile}: {why}. See {folder}/report.html."
    return "\n".join(filter(None, (failed, _format_missing_roles(report), _format_hint(made, report))))


def _format_missing_roles(report: Report) -> str:
    """Return the command that exports the roles to deploy so that every MUST is judged; empty if none is missing."""
    deployments = report["coverage"]["deploy"] if "coverage" in report else ()
    roles = " ".join(f"--role {one['role']}" for one in deployments if one["musts"])
    command = f"oip-conformance models export --format FORMAT {roles} DIR"
    return f"To judge every MUST, deploy the models that this command writes: {command}" if roles else ""


def _format_hint(made: Manifest, report: Report) -> str:
    """Return a hint about the weaker certification that the product can get or comes nearest to, or an empty text."""
    if made.standing != CONFORMANT or profiles.is_certifiable(CONFORMANT, made.profile, report):
        return ""
    if profiles.is_certifiable(INTEROPERABLE, made.profile, report):
        return f"It can be certified as interoperable: --conformance-gate={INTEROPERABLE}"
    if report["verdict"] == PARTIAL:
        return "It can be certified as partial, without --conformance-gate"
    if (nearest := profiles.find_nearest(made.profile, report)) is None:
        return ""
    name, unmet = nearest
    if not unmet:
        return f"It meets every MUST of a smaller profile: --profile={name}"
    missing = f"{format_count(len(unmet), 'MUST')}: {join_some(unmet, profiles.MAX_SHOWN)}"
    return f"The nearest profile is {name}, which lacks {missing}"


# --- the run: a separate pytest without the user's settings, plugins and selections -----------------------------------


def _run_suite(options: argparse.Namespace, empty: Path) -> Report:
    """Run the suite in a separate process that ignores the user's settings; return the report.

    Args:
        options: the options of `certify`.
        empty: an empty folder, in which the run writes its report and evidence.

    Raises CertificationError: the run left no report.
    """
    (empty / CHILD_INI).write_text("[pytest]\n", encoding="utf-8")
    arguments = format_arguments(
        {
            "--conformance-profile": "certify",
            # Random, so that nobody can predict which row sends which client name.
            "--conformance-seed": None if options.client_adapter else SystemRandom().randint(0, client_names.MAX_SEED),
            "--conformance-report": empty / REPORT,
            "--conformance-evidence": empty / EVIDENCE,
        }
    )
    workers = ["-p", "xdist", "-n", str(options.workers)] if options.workers else []
    own = [*list_isolation_arguments(str(empty)), *workers, *arguments, *list_arguments(options)]
    done = run_pytest(own, build_child_environment())
    try:
        return _drop_lost_files(read(empty / REPORT), empty)
    except ReportError:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
        errors = [line.removeprefix("ERROR: ") for line in said if "error" in line.lower()] or said
        raise CertificationError(f"the run left no report: {errors[-1]}") from None


def _drop_lost_files(report: Report, folder: Path) -> Report:
    """Remove the commands that name files of the run's folder, which does not outlive the run."""
    for row in report["rows"]:
        if row["failure"] and str(folder) in row["failure"]["repeat"]:
            row["failure"]["repeat"] = ""
    report["footer"]["digest"] = json_report.compute_digest(report)
    return report


def run_pytest(arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run pytest in a separate process with this environment; return its output and exit status.

    The output is captured, but for how long the run will take: the process writes that to our standard error.
    """
    command = [sys.executable, "-m", "pytest", *arguments]
    if os.name != "posix":
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    shown = os.dup(STDERR)
    try:
        variables = {**environment, terminal.DURATION_VARIABLE: str(shown)}
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, pass_fds=(shown,))
    finally:
        os.close(shown)


def list_arguments(options: argparse.Namespace) -> list[str]:
    """Return the pytest options for the server or client, and for the extensions of the profile."""
    is_server = options.client_adapter is None
    judged = profiles.list_extensions(options.profile, grpc=bool(_read_target(options).grpc)) if is_server else []
    return [*list_given_arguments(options, "--target-", "--client-"), *format_arguments({"--target-extension": judged})]
