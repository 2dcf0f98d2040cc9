"""What the options of the pytest plugin say of the target: addresses, settings, roles, or a recording in its place.

What is said in several places is taken from the first of: command line, environment, pytest's ini file, the file of
`--target-config`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.options import given
from conformance.target import settings
from conformance.target.settings import Settings, SettingsError

if TYPE_CHECKING:
    from conformance.target.config import TargetConfig
    from conformance.target.har import Recording

DEFAULT_TIMEOUT = 10.0


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


def extensions(config: pytest.Config) -> list[str]:
    """Return the extensions that are to be judged, offered or not; empty for those that are offered."""
    return list(config.option.conformance_extensions or target_config(config).extensions)


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
