"""The options of the pytest plugin, and what they make: settings of the target, profile, files to write.

What is said in several places is taken from the first of: command line, environment, pytest's ini file, the file of
`--target-config`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.report import formats
from conformance.target import settings
from conformance.target.settings import Settings, SettingsError

if TYPE_CHECKING:
    from conformance.baseline import Baseline
    from conformance.target.config import TargetConfig
    from conformance.target.har import Recording

OVER_HTTP = ("binary_tensor_data", "raw", "classification")
OVER_GRPC = ("classification_grpc",)
EXTENSIONS = (*OVER_HTTP, *OVER_GRPC)
PROFILES = ("certify", "quick", "explore")
REFERENCE = "reference"
DEFAULT_TIMEOUT = 10.0
INSTALL_GRPC = "pip install 'oip-conformance[grpc]'"

# What the environment (in capitals) and pytest's ini file can say, too.
ELSEWHERE = {
    "target_url": "the server to judge",
    "target_grpc": "where it listens for gRPC",
    "target_config": "a file about the target",
    "target_ca": "certificates to verify TLS with",
    "target_timeout": "seconds to wait",
}

OPTIONS: dict[str, dict[str, Any]] = {
    "--target-url": {
        "dest": "target_url",
        "metavar": "URL",
        "help": "judge this server; 'reference' starts the bundled one [env OIP_TARGET_URL, ini oip_target_url]",
    },
    "--target-grpc": {
        "dest": "target_grpc",
        "metavar": "HOST:PORT",
        "help": "judge gRPC here, beside --target-url or alone; grpcs://HOST:PORT for TLS; 'reference' for the bundled "
        "server, whose gRPC --target-url=reference judges, too [env OIP_TARGET_GRPC, ini oip_target_grpc]",
    },
    "--target-config": {
        "dest": "target_config",
        "metavar": "FILE",
        "help": "read URL, headers, TLS, role map and more from this TOML file; `oip-conformance init` writes one "
        "[env OIP_TARGET_CONFIG, ini oip_target_config]",
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
        "help": "seconds to wait for a connection and for the next byte of an answer (default: 10)",
    },
    "--model": {
        "dest": "conformance_models",
        "metavar": "NAME",
        "action": "append",
        "default": [],
        "help": "judge this deployed model by relations alone, whatever it computes (repeatable); no role is needed",
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
    "--conformance-dangerous": {
        "dest": "conformance_dangerous",
        "action": "store_true",
        "help": "send, at the end, requests that are known to have ended servers, too",
    },
    "--conformance-baseline": {
        "dest": "conformance_baseline",
        "metavar": "FILE",
        "help": "failures that this TOML file lists do not fail the run; new ones do, and listed ones that are fixed",
    },
    "--conformance-update-baseline": {
        "dest": "conformance_update_baseline",
        "action": "store_true",
        "help": "write that file anew from this run, and keep its comments",
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
        "help": "write a report (repeatable); by its suffix: .json, .html, .md, .svg (a badge), .shields.json (a badge "
        "that shields.io draws); `oip-conformance report` makes the others of a .json later",
    },
    "--conformance-evidence": {
        "dest": "conformance_evidence",
        "metavar": "DIR",
        "help": "write run.har, a recording of every exchange, and a folder for each check that is not met: bytes, and "
        "programs that send them again",
    },
    "--target-replay": {
        "dest": "target_replay",
        "metavar": "FILE",
        "help": "judge a recording (run.har) instead of a server; the other options have to be those of its run",
    },
}


def add(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("oip-conformance", "Open Inference Protocol conformance")
    for name, details in OPTIONS.items():
        group.addoption(name, **details)
    for name, meaning in ELSEWHERE.items():
        parser.addini(f"oip_{name}", f"{meaning}, where --{name.replace('_', '-')} is not given")


def given(name: str, option: str | None, ini: Callable[[str], Any]) -> str | None:
    """Return what is said of one of `ELSEWHERE`: command line before environment before ini file."""
    return option or os.environ.get(f"OIP_{name.upper()}") or ini(f"oip_{name}") or None


def target_url(options: Any, ini: Callable[[str], Any]) -> str | None:
    """Return the target, empty where gRPC alone is judged, or None where nothing names one.

    Args:
        options: the parsed command line, as a namespace.
        ini: gives a value of pytest's ini file by its name.

    Raises:
        pytest.UsageError: the file about the target cannot be used, or names none.
    """
    if options.target_replay:
        return _recording(options.target_replay).url
    url = given("target_url", options.target_url, ini)
    file = given("target_config", options.target_config, ini)
    if not url and file:
        found = _load(file)
        url = found.url
        if not (url or found.grpc):
            raise pytest.UsageError(f"--target-config {file} has no url: add one, or give --target-url")
    return url or ("" if target_grpc(options, ini) else None)


def target_grpc(options: Any, ini: Callable[[str], Any]) -> str | None:
    """Return where gRPC is to be judged, or None; the arguments are those of `target_url`.

    Raises:
        pytest.UsageError: the file about the target cannot be used.
    """
    if options.target_replay:
        return _recording(options.target_replay).grpc or None
    file = given("target_config", options.target_config, ini)
    return given("target_grpc", options.target_grpc, ini) or (_load(file).grpc if file else None)


def has_grpc() -> bool:
    """Whether the packages that gRPC needs are installed, and fit each other."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        for name in ("grpc", "tritonclient.grpc"):
            import_module(name)
    except Exception:  # packages that do not fit each other raise all kinds
        return False
    return True


def target_config(config: pytest.Config) -> TargetConfig:
    """Return what the file about the target says; nothing, where there is none.

    Raises:
        pytest.UsageError: it cannot be used.
    """
    return _load(given("target_config", config.option.target_config, config.getini))


@cache
def _load(file: str | None) -> TargetConfig:
    from conformance.target import config  # not for every start of pytest where this package is installed

    if file is None:
        return config.TargetConfig()
    try:
        return config.load(Path(file))
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from error


def make_settings(config: pytest.Config, url: str, grpc: str | None = None) -> Settings:
    """Return the settings of the target.

    Args:
        config: of pytest.
        url: of the target, empty where gRPC alone is judged.
        grpc: where gRPC is judged, or None.

    Raises:
        pytest.UsageError: an option cannot be used; one line says which and why.
    """
    file = target_config(config)
    ca_file = given("target_ca", config.option.target_ca, config.getini) or file.ca_file
    if ca_file and not Path(ca_file).is_file():
        raise pytest.UsageError(f"--target-ca {ca_file}: no such file")
    try:
        made = settings.make(
            url,
            _headers(config, file),
            ca_file=ca_file,
            insecure=config.option.target_insecure or file.insecure,
            timeout=_timeout(config, file),
            grpc=grpc,
        )
        made.ssl_context()
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from error
    return made


def _headers(config: pytest.Config, file: TargetConfig) -> list[str]:
    """Return the headers of the command line, and those of the file that it does not replace."""
    told = list(config.option.target_headers)
    names = {text.partition(":")[0].strip().lower() for text in told}
    return [*[text for text in file.headers if text.partition(":")[0].strip().lower() not in names], *told]


def _timeout(config: pytest.Config, file: TargetConfig) -> float:
    if config.option.target_timeout is not None:
        return float(config.option.target_timeout)
    text = given("target_timeout", None, config.getini)
    try:
        return float(text) if text else file.timeout or DEFAULT_TIMEOUT
    except ValueError:
        raise pytest.UsageError(f"OIP_TARGET_TIMEOUT or oip_target_timeout is no number: {text!r}") from None


def require_grpc() -> None:
    """See that gRPC can be spoken.

    Raises:
        pytest.UsageError: its packages are not installed.
    """
    if not has_grpc():
        raise pytest.UsageError(f"--target-grpc needs the extra grpc: {INSTALL_GRPC}")


def extensions(config: pytest.Config) -> list[str]:
    """Return the extensions that are to be judged, offered or not; empty for those that are offered."""
    return list(config.option.conformance_extensions or target_config(config).extensions)


def report_paths(config: pytest.Config) -> list[Path]:
    """Return where to write reports.

    Raises:
        pytest.UsageError: a suffix that is not known, or a folder that does not exist.
    """
    paths = [Path(text) for text in config.getoption("conformance_reports")]
    for path in paths:
        if formats.suffix(path) is None:
            known = ", ".join(formats.FORMATS)
            raise pytest.UsageError(f"--conformance-report {path}: unknown suffix {path.suffix!r}, known are {known}")
        if not path.absolute().parent.is_dir():
            raise pytest.UsageError(f"--conformance-report {path}: no folder {path.absolute().parent}")
    return paths


def recording(config: pytest.Config) -> Recording | None:
    """Return the recording that is judged instead of a server, or None.

    Raises:
        pytest.UsageError: it cannot be read, or the profile sends other requests each time.
    """
    file = config.option.target_replay
    if file and config.option.conformance_profile == "explore":
        raise pytest.UsageError("--target-replay: the requests of --conformance-profile=explore are not the same twice")
    return _recording(file) if file else None


@cache
def _recording(file: str) -> Recording:
    from conformance.target import har

    try:
        return har.load(Path(file))
    except har.HarError as error:
        raise pytest.UsageError(f"--target-replay: {error}") from error


def baseline(config: pytest.Config) -> Baseline | None:
    """Return the failures that are known, or None where no file lists them.

    Raises:
        pytest.UsageError: the file cannot be used.
    """
    from conformance.baseline import Baseline, BaselineError, load

    file, update = config.option.conformance_baseline, config.option.conformance_update_baseline
    if not file and update:
        raise pytest.UsageError("--conformance-update-baseline: give --conformance-baseline FILE, too")
    if not file or (update and not Path(file).exists()):
        return Baseline() if file else None
    try:
        return load(Path(file))
    except BaselineError as error:
        raise pytest.UsageError(str(error)) from error


def evidence_folder(config: pytest.Config) -> Path | None:
    """Return where to write evidence, or None."""
    text = config.getoption("conformance_evidence")
    return Path(text) if text else None
