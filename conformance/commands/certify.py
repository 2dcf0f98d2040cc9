"""`oip-conformance certify`: one isolated run, and a folder with everything that a reviewer needs.

The run is a pytest of its own, without the user's settings, plugins and selections: what it judges is a function of the
suite, the profile and the target.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from conformance import __version__
from conformance.certification import manifest, profiles, signature
from conformance.certification.manifest import NOTE, PAGES, RECORDING, REPORT, CertificationError, Manifest
from conformance.report import formats
from conformance.report.reading import ReportError, read
from conformance.transport import config
from conformance.transport.settings import SettingsError


def add(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "certify",
        help="run the suite alone and leave a folder for reviewers",
        description="Judge a server in an isolated run and write report, recording, pages and manifest into a folder "
        "that `oip-conformance verify` checks offline. Exit status 0: certified; 1 or 6: not, and the folder says why.",
    )
    parser.add_argument("--target-url", metavar="URL", help="the server")
    parser.add_argument("--target-config", metavar="FILE", help="or a file about it")
    parser.add_argument("--target-grpc", metavar="HOST:PORT", help="where it listens for gRPC, to certify that, too")
    parser.add_argument("--target-header", metavar="'NAME: VALUE'", action="append", default=[], help="repeatable")
    parser.add_argument("--target-ca", metavar="FILE", help="verify TLS with these certificates")
    parser.add_argument("--target-timeout", metavar="S", type=float, help="seconds (default: 10)")
    parser.add_argument(
        "--profile", choices=profiles.PROFILES, default="full", help="what to certify (default: %(default)s)"
    )
    for name, what in (
        ("vendor", "who"),
        ("product", "what"),
        ("product-version", "which"),
        ("contact", "whom to ask"),
    ):
        parser.add_argument(f"--{name}", required=True, metavar="TEXT", help=what)
    parser.add_argument(
        "-n",
        "--workers",
        metavar="N",
        type=int,
        default=0,
        help="judge in so many processes, with pytest-xdist (default: in one)",
    )
    parser.add_argument("--sign", type=Path, metavar="KEY", help="sign with this Ed25519 private key (PEM)")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="absent or empty")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Make the run and the folder; return what to print and the exit status.

    Raises:
        CertificationError: nothing could be run, the key cannot be used, or the folder cannot be written.
    """
    folder: Path = options.output
    if not (options.target_url or options.target_config):
        raise CertificationError("give --target-url or --target-config")
    if options.workers < 0:
        raise CertificationError(f"-n {options.workers}: a number of processes is at least 1")
    if options.workers and find_spec("xdist") is None:
        raise CertificationError(f"-n {options.workers} needs pytest-xdist: pip install pytest-xdist")
    key = signature.private_key(options.sign) if options.sign else None
    _prepare(folder)
    made = _manifest(options)
    done = _judge(options, folder)
    report = _report(folder, done)
    for page in PAGES:
        formats.write(report, folder / page)
    (folder / NOTE).write_text(_note(options, made), encoding="utf-8")
    files = {name: manifest.digest(folder / name) for name in (REPORT, RECORDING, *PAGES, NOTE)}
    (folder / manifest.NAME).write_text(replace(made, files=files).text(), encoding="utf-8")
    manifest.read(folder)  # what a user gave may not fit: better now than at the reviewer's
    if key is not None:
        signature.sign(folder, key)
    return _result(options, report, folder), _status(options, report)


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise CertificationError(f"{folder} is not empty: give a new folder")
    except OSError as error:
        raise CertificationError(f"cannot write {folder}: {error.strerror}") from error


def _manifest(options: argparse.Namespace) -> Manifest:
    """Return who certifies what, and where the roles are."""
    try:
        file = config.load(Path(options.target_config)) if options.target_config else config.TargetConfig()
    except SettingsError as error:
        raise CertificationError(str(error)) from error
    if file.models:  # they would be judged beside the roles, and no reviewer could judge them again
        tables = ", ".join(f"[models.{name}]" for name in file.models)
        raise CertificationError(f"{options.target_config}: roles are certified, not models: take out {tables}")
    roles = file.roles
    placements = None if roles is None else {role: placement.to_dict() for role, placement in roles.items()}
    return Manifest(
        options.vendor, options.product, options.product_version, options.contact, options.profile, placements
    )


def _arguments(options: argparse.Namespace) -> list[str]:
    """Return pytest's options for the target and for what to judge; secrets are not among what is shown."""
    given = {"--target-url": options.target_url, "--target-config": options.target_config}
    given |= {
        "--target-grpc": options.target_grpc,
        "--target-ca": options.target_ca,
        "--target-timeout": options.target_timeout,
    }
    arguments = [f"{name}={value}" for name, value in given.items() if value is not None]
    judged = profiles.extensions(options.profile, grpc=bool(options.target_grpc))
    return [*arguments, *[f"--target-extension={name}" for name in judged]]


def _judge(options: argparse.Namespace, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the suite in a process of its own that reads nothing of the user's."""
    with tempfile.TemporaryDirectory() as empty:
        ini = Path(empty, "pytest.ini")
        ini.write_text("[pytest]\n", encoding="utf-8")
        isolated = ["-c", str(ini), "--rootdir", empty, "-p", "no:cacheprovider", "-p", "conformance.plugin"]
        wanted = ["--conformance-profile=certify", f"--conformance-report={folder / REPORT}"]
        secrets = [f"--target-header={header}" for header in options.target_header]
        recorded = f"--conformance-evidence={empty}/evidence"
        workers = ["-p", "xdist", "-n", str(options.workers)] if options.workers else []
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "OIP_"))}
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                *isolated,
                *workers,
                *_arguments(options),
                *wanted,
                recorded,
                *secrets,
            ],
            env={**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        recording = Path(empty, "evidence", RECORDING)
        if recording.is_file():
            (folder / RECORDING).write_bytes(recording.read_bytes())
    return done


def _report(folder: Path, done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    try:
        return read(folder / REPORT)
    except ReportError:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
        errors = [line.removeprefix("ERROR: ") for line in said if "error" in line.lower()] or said
        raise CertificationError(f"the run left no report: {errors[-1]}") from None


def _note(options: argparse.Namespace, made: Manifest) -> str:
    command = ["oip-conformance", "certify", *_arguments(options)]
    command += [f"--target-header={header.partition(':')[0]}: ..." for header in options.target_header]
    command = [part for part in command if not part.startswith("--target-extension")] + [f"--profile={made.profile}"]
    return _NOTE.format(
        product=made.product,
        product_version=made.product_version,
        vendor=made.vendor,
        contact=made.contact,
        profile=made.profile,
        version=__version__,
        command=shlex.join(
            [*command, "--vendor=...", "--product=...", "--product-version=...", "--contact=...", "-o", "DIR"]
        ),
    )


_NOTE = """\
# {product} {product_version} by {vendor}

Judged by oip-conformance {version} under the profile `{profile}`. Contact: {contact}

## Verify this folder

    pip install oip-conformance=={version}
    oip-conformance verify .

Every exchange of the run is in `run.har`. `verify` judges it again, without the server, and compares.

## Make the run again

Deploy the model roles (`oip-conformance models export`), start the server, and:

    {command}
"""


def _problems(options: argparse.Namespace, report: dict[str, Any]) -> Sequence[str]:
    unmet = profiles.unmet(options.profile, report)
    return [] if report["verdict"] == "conformant" and not unmet else [*report["why"], *unmet]


def _status(options: argparse.Namespace, report: dict[str, Any]) -> int:
    if not _problems(options, report):
        return 0
    return 1 if report["verdict"] == "nonconformant" else 6


def _result(options: argparse.Namespace, report: dict[str, Any], folder: Path) -> str:
    what = f"{options.product} {options.product_version}"
    problems = _problems(options, report)
    if not problems:
        return f"{what} is certified for the profile {options.profile}. Check it with: oip-conformance verify {folder}"
    more = f" and {len(problems) - 12} more" if len(problems) > 12 else ""
    why = "; ".join(problems[:12]) + more
    return f"{what} is not certified for the profile {options.profile}: {why}. See {folder}/report.html"
