"""The options of the pytest plugin, and what they make: settings of the target, profile, files to write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from conformance.target import settings
from conformance.target.settings import Settings, SettingsError

EXTENSIONS = ("binary_tensor_data", "raw", "classification")
PROFILES = ("certify", "quick", "explore")
REFERENCE = "reference"


OPTIONS: dict[str, dict[str, Any]] = {
    "--target-url": {
        "dest": "target_url",
        "metavar": "URL",
        "help": "judge this server; 'reference' starts the bundled one [env OIP_TARGET_URL, ini oip_target_url]",
    },
    "--target-header": {
        "dest": "target_headers",
        "metavar": "'NAME: VALUE'",
        "action": "append",
        "default": [],
        "help": "send this header with every request (repeatable); its value is never shown",
    },
    "--target-ca": {"dest": "target_ca", "metavar": "FILE", "help": "verify TLS with these certificates"},
    "--target-insecure": {
        "dest": "target_insecure",
        "action": "store_true",
        "help": "do not verify TLS certificates",
    },
    "--target-timeout": {
        "dest": "target_timeout",
        "metavar": "S",
        "type": float,
        "default": 10.0,
        "help": "seconds to wait for a connection and for the next byte of an answer (default: 10)",
    },
    "--extension": {
        "dest": "conformance_extensions",
        "metavar": "NAME",
        "action": "append",
        "default": [],
        "choices": EXTENSIONS,
        "help": f"judge this extension, offered or not (repeatable): {', '.join(EXTENSIONS)} (default: those offered)",
    },
    "--conformance-profile": {
        "dest": "conformance_profile",
        "choices": PROFILES,
        "default": "certify",
        "help": "certify: every row, the same requests each time (default); quick: without the large and the many "
        "alike; explore: certify, and Hypothesis on top",
    },
    "--conformance-strict": {
        "dest": "conformance_strict",
        "action": "store_true",
        "help": "advice (SHOULD) fails, too",
    },
    "--conformance-report": {
        "dest": "conformance_reports",
        "metavar": "PATH",
        "action": "append",
        "default": [],
        "help": "write a report (repeatable); by its suffix: .json",
    },
    "--conformance-evidence": {
        "dest": "conformance_evidence",
        "metavar": "DIR",
        "help": "write request and answer of each check that is not met into a folder of its own",
    },
}


def add(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("oip-conformance", "Open Inference Protocol conformance")
    for name, details in OPTIONS.items():
        group.addoption(name, **details)
    parser.addini("oip_target_url", "the server to judge, where --target-url is not given")


def target_url(option: str | None, ini: str | None = None) -> str | None:
    """Return the target: command line before environment before ini file."""
    return option or os.environ.get("OIP_TARGET_URL") or ini or None


def make_settings(config: pytest.Config, url: str) -> Settings:
    """Return the settings of the target.

    Raises:
        pytest.UsageError: an option cannot be used; one line says which and why.
    """
    ca_file = config.getoption("target_ca")
    if ca_file and not Path(ca_file).is_file():
        raise pytest.UsageError(f"--target-ca {ca_file}: no such file")
    try:
        made = settings.make(
            url,
            config.getoption("target_headers"),
            ca_file=ca_file,
            insecure=config.getoption("target_insecure"),
            timeout=config.getoption("target_timeout"),
        )
        made.ssl_context()
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from error
    return made


def report_paths(config: pytest.Config) -> list[Path]:
    """Return where to write reports.

    Raises:
        pytest.UsageError: a suffix that is not known, or a folder that does not exist.
    """
    paths = [Path(text) for text in config.getoption("conformance_reports")]
    for path in paths:
        if path.suffix != ".json":
            raise pytest.UsageError(f"--conformance-report {path}: unknown suffix {path.suffix!r}, known is .json")
        if not path.absolute().parent.is_dir():
            raise pytest.UsageError(f"--conformance-report {path}: no folder {path.absolute().parent}")
    return paths


def evidence_folder(config: pytest.Config) -> Path | None:
    """Return where to write evidence, or None."""
    text = config.getoption("conformance_evidence")
    return Path(text) if text else None
