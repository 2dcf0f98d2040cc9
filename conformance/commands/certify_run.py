"""The run of `certify`: a pytest of its own, without the user's settings, plugins and selections."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from random import SystemRandom
from typing import Any

from conformance.certification import profiles
from conformance.certification.manifest import CertificationError
from conformance.report.report_file import ReportError, read
from conformance.transport import client_names

# Variables of the environment by which a user's own runs are shaped; others may hold what a header is made of.
USER_VARIABLE_PREFIXES = ("PYTEST", "OIP_TARGET_", "OIP_CLIENT_")
REPORT, EVIDENCE = "report.json", "evidence"


def judge(options: argparse.Namespace, empty: Path) -> dict[str, Any]:
    """Run the suite in a process of its own that reads nothing of the user's; return the report.

    Args:
        options: of `certify`.
        empty: a folder, in which report and evidence are left.

    Raises:
        CertificationError: the run left no report.
    """
    ini = empty / "pytest.ini"
    ini.write_text("[pytest]\n", encoding="utf-8")
    isolated = ["-c", str(ini), "--rootdir", str(empty), "-p", "no:cacheprovider", "-p", "conformance.plugin"]
    left = [f"--conformance-report={empty / REPORT}", f"--conformance-evidence={empty / EVIDENCE}"]
    secrets = [f"--target-header={header}" for header in options.target_header]
    workers = ["-p", "xdist", "-n", str(options.workers)] if options.workers else []
    # Drawn for this run, so that nobody knows beforehand which row names which client.
    seed = f"--conformance-seed={SystemRandom().randint(0, client_names.MAX_SEED)}"
    arguments = [*isolated, *workers, "--conformance-profile=certify", seed, *_arguments(options), *left, *secrets]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(USER_VARIABLE_PREFIXES)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        env={**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return read(empty / REPORT)
    except ReportError:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
        errors = [line.removeprefix("ERROR: ") for line in said if "error" in line.lower()] or said
        raise CertificationError(f"the run left no report: {errors[-1]}") from None


def _arguments(options: argparse.Namespace) -> list[str]:
    """Return pytest's options for the target and for what to judge, but for secrets."""
    given = {
        "--target-url": options.target_url,
        "--target-config": options.target_config,
        "--target-grpc": options.target_grpc,
        "--target-ca": options.target_ca,
        "--target-timeout": options.target_timeout,
    }
    arguments = [f"{name}={value}" for name, value in given.items() if value is not None]
    judged = profiles.list_extensions(options.profile, grpc=bool(options.target_grpc))
    models = [f"--target-model={name}" for name in options.target_model]
    return [*arguments, *models, *[f"--target-extension={name}" for name in judged]]
