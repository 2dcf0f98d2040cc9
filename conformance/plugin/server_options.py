"""Reads the options of a run that judges a server.

The sources of a value, first one first: the command line, the environment, pytest's ini file, the target file
(`--target-config`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conformance.judging.selection import Subjects, select_subjects
from conformance.plugin import common_options
from conformance.plugin.common_options import CommonOptions
from conformance.plugin.options import read_setting
from conformance.spec import extras
from conformance.spec.extensions import OVER_GRPC
from conformance.transport import client_names, settings
from conformance.transport import config as target_files
from conformance.transport import recording as recordings
from conformance.transport.config import TargetConfig
from conformance.transport.grpc_packages import EXTRA, has_grpc
from conformance.transport.har import HarError
from conformance.transport.header_values import expand_headers
from conformance.transport.recording import Recording
from conformance.transport.reference import REFERENCE
from conformance.transport.settings import Settings, SettingsError

DEFAULT_TIMEOUT_S = 10.0
MAX_CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class ServerOptions(CommonOptions):
    """The options of a run that judges a server.

    Attributes:
        url: the URL of the target, or `reference`; empty if only gRPC is judged.
        grpc: the gRPC address as the user wrote it, or None.
        config_file: the path of the target file as the user wrote it; empty if there is none.
        file: the contents of the target file.
        headers: the headers of the command line and the target file, each as "Name: value".
        extensions: the extensions to judge, whether offered or not; empty selects the offered ones.
        subjects: the model roles and deployed models; the model `all` stands for all models that the target lists.
        recording: the recording to judge instead of a server, or None.
        rate: the maximum number of requests per second; None means no limit.
        connections: the number of concurrent connections; None means a number that suits the latency of the target.
        seed: the seed that chooses client names; None uses the default.
    """

    url: str
    grpc: str | None
    config_file: str
    file: TargetConfig
    headers: tuple[str, ...] = field(repr=False)
    ca_file: str | None
    insecure: bool
    timeout: float
    rate: float | None
    extensions: tuple[str, ...]
    subjects: Subjects
    recording: Recording | None
    connections: int | None
    seed: int | None

    @property
    def is_bundled(self) -> bool:
        """Whether to start and judge the bundled server."""
        return REFERENCE in (self.url, self.grpc)

    def settings(self, url: str, grpc: str | None) -> Settings:
        """Return the connection settings for a target.

        Args:
            url: the URL of the target; empty if only gRPC is judged.
            grpc: the gRPC address, or None.

        Raises:
            pytest.UsageError: an option cannot be used; the message is one line.
        """
        if self.ca_file and not Path(self.ca_file).is_file():
            raise pytest.UsageError(f"--target-ca {self.ca_file}: no such file")
        try:
            made = settings.make_settings(
                url,
                self.headers,
                ca_file=self.ca_file,
                insecure=self.insecure,
                timeout=self.timeout,
                grpc=grpc,
                rate=self.rate,
                restart=self.file.restart,
            )
            made.build_ssl_context()
        except SettingsError as error:
            raise pytest.UsageError(str(error)) from error
        return made


def read_options(config: pytest.Config, from_controller: Mapping[str, Any]) -> ServerOptions:
    """Read the options.

    Args:
        config: pytest's configuration.
        from_controller: the addresses from the controller if this process is a worker; otherwise empty.

    Raises:
        pytest.UsageError: an option cannot be used.
    """
    option, ini = config.option, config.getini
    config_file = read_setting("target_config", option.target_config, ini) or ""
    file, recording = _load_target_file(config_file), _load_recording(config)
    url, grpc = _read_addresses(config, config_file, file, recording)
    found = ServerOptions(
        url=from_controller.get("url", url),
        grpc=from_controller.get("grpc", grpc),
        config_file=config_file,
        file=file,
        headers=tuple(_merge_headers(option.target_headers, file)),
        ca_file=read_setting("target_ca", option.target_ca, ini) or file.ca_file,
        insecure=option.target_insecure or file.insecure,
        timeout=_read_timeout(config, file),
        rate=file.rate if option.target_rate is None else option.target_rate,
        extensions=tuple(option.target_extensions or file.extensions),
        subjects=select_subjects(
            from_controller.get("models", option.target_models),
            file.models,
            robustness=_check_robustness(config, recording),
        ),
        recording=recording,
        connections=_validate_connections(option.conformance_concurrency),
        seed=_validate_seed(option.conformance_seed, option.conformance_profile),
        **common_options.read_common_fields(option),
    )
    _check_addresses(found)
    return found


# --- addresses -------------------------------------------------------------------------------------------------------


def _read_addresses(
    config: pytest.Config, config_file: str, file: TargetConfig, recording: Recording | None
) -> tuple[str, str | None]:
    """Return the URL and the gRPC address of the target; the URL is empty if missing, the gRPC address None."""
    if recording is not None:
        return recording.url, recording.grpc or None
    url = read_setting("target_url", config.option.target_url, config.getini) or file.url
    grpc = read_setting("target_grpc", config.option.target_grpc, config.getini) or file.grpc
    if not (url or grpc):
        raise pytest.UsageError(f"--target-config {config_file} has no url: add one, or give --target-url")
    return url or "", grpc


def _check_addresses(options: ServerOptions) -> None:
    """Raise an exception if the addresses cannot be used.

    Raises:
        pytest.UsageError: an address cannot be used.
    """
    url, grpc = options.url, options.grpc
    if grpc:
        if not has_grpc():
            raise pytest.UsageError(extras.describe_missing(EXTRA, "--target-grpc"))
    elif url != REFERENCE and set(options.extensions) & set(OVER_GRPC):
        raise pytest.UsageError("--target-extension classification_grpc needs --target-grpc HOST:PORT")
    if not options.is_bundled:
        options.settings(url, grpc)
    elif url not in ("", REFERENCE):
        raise pytest.UsageError("--target-grpc=reference cannot be combined with the --target-url of another server")


# --- the target ------------------------------------------------------------------------------------------------------


def _load_target_file(config_file: str) -> TargetConfig:
    try:
        return target_files.load(Path(config_file)) if config_file else TargetConfig()
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from error


def _merge_headers(given_headers: list[str], file: TargetConfig) -> list[str]:
    """Merge headers: a header of the command line replaces the headers of the target file with the same name."""
    names = {_parse_header_name(header) for header in given_headers}
    try:
        own = expand_headers(given_headers)
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from error
    return [*[header for header in file.headers if _parse_header_name(header) not in names], *own]


def _parse_header_name(header: str) -> str:
    return header.partition(":")[0].strip().lower()


def _read_timeout(config: pytest.Config, file: TargetConfig) -> float:
    if config.option.target_timeout is not None:
        return float(config.option.target_timeout)
    text = read_setting("target_timeout", None, config.getini)
    try:
        return float(text) if text else file.timeout or DEFAULT_TIMEOUT_S
    except ValueError:
        raise pytest.UsageError(f"OIP_TARGET_TIMEOUT or oip_target_timeout is not a number: {text!r}") from None


def _validate_connections(given: int | None) -> int | None:
    if given is not None and not 1 <= given <= MAX_CONNECTIONS:
        raise pytest.UsageError(f"--conformance-concurrency {given}: give a number from 1 to {MAX_CONNECTIONS}")
    return given


def _validate_seed(given: int | None, profile: str) -> int | None:
    if given is not None and profile != "certify":
        raise pytest.UsageError(f"--conformance-seed needs the profile certify, not {profile}")
    if given is not None and not 0 <= given <= client_names.MAX_SEED:
        raise pytest.UsageError(f"--conformance-seed {given}: give a number from 0 to {client_names.MAX_SEED}")
    return given


def _check_robustness(config: pytest.Config, recording: Recording | None) -> bool:
    """Return whether to send hostile requests.

    Raises:
        pytest.UsageError: the target is a recording, or other processes send requests as well.
    """
    if not config.option.conformance_robustness:
        return False
    if recording is not None:
        raise pytest.UsageError(
            "--conformance-robustness needs a live server; it cannot be combined with --target-replay"
        )
    if getattr(config.option, "dist", "no") != "no":
        raise pytest.UsageError(
            "--conformance-robustness cannot be combined with -n: hostile requests would disturb other rows"
        )
    return True


def _load_recording(config: pytest.Config) -> Recording | None:
    """Load the recording to judge instead of a server, or return None."""
    file = config.option.target_replay
    if not file:
        return None
    if config.option.conformance_profile == "explore":
        raise pytest.UsageError(
            "--target-replay cannot be combined with --conformance-profile=explore, whose requests change"
        )
    try:
        return recordings.load(Path(file))
    except HarError as error:
        raise pytest.UsageError(f"--target-replay: {error}") from error
