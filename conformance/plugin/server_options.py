"""What the user asks of a run, read once from the options, the environment, the ini file and the file about the target.

What is said in several places is taken from the first of: command line, environment, pytest's ini file, the file of
`--target-config`.
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
from conformance.plugin.options import REFERENCE, read_setting
from conformance.spec import extras
from conformance.spec.extensions import OVER_GRPC
from conformance.transport import client_names, settings
from conformance.transport import config as target_files
from conformance.transport import recording as recordings
from conformance.transport.config import TargetConfig
from conformance.transport.grpc_packages import EXTRA, has_grpc
from conformance.transport.har import HarError
from conformance.transport.header_values import from_command_line
from conformance.transport.recording import Recording
from conformance.transport.settings import Settings, SettingsError

DEFAULT_TIMEOUT_S = 10.0
MAX_CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class ServerOptions(CommonOptions):
    """Everything that a user asks of a run that judges a server.

    Attributes:
        url: of the target, or `reference`; empty where gRPC alone is judged.
        grpc: where gRPC is judged, as it was given, or None.
        config_file: the file about the target, as it was given; empty where there is none.
        file: what it says.
        headers: of the command line and of the file, each as "Name: value".
        extensions: what is to be judged, offered or not; empty for what is offered.
        subjects: the model roles, and deployed models beside them; the model `all` stands for every one that the target
            lists.
        recording: what is judged instead of a server, or None.
        rate: at most so many requests a second; None: as fast as the target answers.
        connections: on how many the target is asked at once; None chooses by its latency.
        seed: by which rows name clients; None: the usual one.
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
        """Whether the bundled server is to be started and judged."""
        return REFERENCE in (self.url, self.grpc)

    def settings(self, url: str, grpc: str | None) -> Settings:
        """Return how to reach a target.

        Args:
            url: of the target, empty where gRPC alone is judged.
            grpc: where gRPC is judged, or None.

        Raises:
            pytest.UsageError: an option cannot be used; one line says which and why.
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
            )
            made.ssl_context()
        except SettingsError as error:
            raise pytest.UsageError(str(error)) from error
        return made


def read_options(config: pytest.Config, from_controller: Mapping[str, Any]) -> ServerOptions:
    """Read the options.

    Args:
        config: of pytest.
        from_controller: where this process is a worker, the addresses that its controller judges; else empty.

    Raises:
        pytest.UsageError: one cannot be used.
    """
    option, ini = config.option, config.getini
    config_file = read_setting("target_config", option.target_config, ini) or ""
    file, recording = _target_file(config_file), _recording(config)
    url, grpc = _addresses(config, config_file, file, recording)
    found = ServerOptions(
        url=from_controller.get("url", url),
        grpc=from_controller.get("grpc", grpc),
        config_file=config_file,
        file=file,
        headers=tuple(_headers(option.target_headers, file)),
        ca_file=read_setting("target_ca", option.target_ca, ini) or file.ca_file,
        insecure=option.target_insecure or file.insecure,
        timeout=_timeout(config, file),
        rate=file.rate if option.target_rate is None else option.target_rate,
        extensions=tuple(option.target_extensions or file.extensions),
        subjects=select_subjects(
            from_controller.get("models", option.target_models),
            file.models,
            robustness=_robustness(config, recording),
        ),
        recording=recording,
        connections=_connections(option.conformance_concurrency),
        seed=_seed(option.conformance_seed, option.conformance_profile),
        **common_options.read_fields(option),
    )
    _check_addresses(found)
    return found


# --- addresses -------------------------------------------------------------------------------------------------------


def _addresses(
    config: pytest.Config, config_file: str, file: TargetConfig, recording: Recording | None
) -> tuple[str, str | None]:
    """Return the target's URL, empty where gRPC alone is judged, and where gRPC is, or None."""
    if recording is not None:
        return recording.url, recording.grpc or None
    url = read_setting("target_url", config.option.target_url, config.getini) or file.url
    grpc = read_setting("target_grpc", config.option.target_grpc, config.getini) or file.grpc
    if not (url or grpc):
        raise pytest.UsageError(f"--target-config {config_file} has no url: add one, or give --target-url")
    return url or "", grpc


def _check_addresses(options: ServerOptions) -> None:
    """See that the addresses can be used.

    Raises:
        pytest.UsageError: one cannot.
    """
    url, grpc = options.url, options.grpc
    if grpc:
        if not has_grpc():
            raise pytest.UsageError(extras.describe_missing(EXTRA, "--target-grpc"))
    elif url != REFERENCE and set(options.extensions) & set(OVER_GRPC):
        raise pytest.UsageError("--target-extension classification_grpc: say where with --target-grpc HOST:PORT")
    if not options.is_bundled:
        options.settings(url, grpc)
    elif url not in ("", REFERENCE):
        raise pytest.UsageError("--target-grpc=reference: the bundled server is not the one of --target-url")


# --- the target ------------------------------------------------------------------------------------------------------


def _target_file(config_file: str) -> TargetConfig:
    try:
        return target_files.load(Path(config_file)) if config_file else TargetConfig()
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from error


def _headers(given_headers: list[str], file: TargetConfig) -> list[str]:
    """Return the headers of the command line, and those of the file that it does not replace."""
    names = {_name(header) for header in given_headers}
    try:
        own = from_command_line(given_headers)
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from error
    return [*[header for header in file.headers if _name(header) not in names], *own]


def _name(header: str) -> str:
    return header.partition(":")[0].strip().lower()


def _timeout(config: pytest.Config, file: TargetConfig) -> float:
    if config.option.target_timeout is not None:
        return float(config.option.target_timeout)
    text = read_setting("target_timeout", None, config.getini)
    try:
        return float(text) if text else file.timeout or DEFAULT_TIMEOUT_S
    except ValueError:
        raise pytest.UsageError(f"OIP_TARGET_TIMEOUT or oip_target_timeout is no number: {text!r}") from None


def _connections(given: int | None) -> int | None:
    if given is not None and not 1 <= given <= MAX_CONNECTIONS:
        raise pytest.UsageError(f"--conformance-concurrency {given}: give a number from 1 to {MAX_CONNECTIONS}")
    return given


def _seed(given: int | None, profile: str) -> int | None:
    if given is not None and profile != "certify":
        raise pytest.UsageError(f"--conformance-seed: rows name other clients under the profile certify, not {profile}")
    if given is not None and not 0 <= given <= client_names.MAX_SEED:
        raise pytest.UsageError(f"--conformance-seed {given}: give a number from 0 to {client_names.MAX_SEED}")
    return given


def _robustness(config: pytest.Config, recording: Recording | None) -> bool:
    """Say whether hostile requests are to be sent.

    Raises:
        pytest.UsageError: they cannot be: to a recording, or beside the requests of other processes.
    """
    if not config.option.conformance_robustness:
        return False
    if recording is not None:
        raise pytest.UsageError(
            "--conformance-robustness needs a live server; it cannot be combined with --target-replay"
        )
    if getattr(config.option, "dist", "no") != "no":
        raise pytest.UsageError("--conformance-robustness: not with -n, where other rows would suffer from it")
    return True


def _recording(config: pytest.Config) -> Recording | None:
    """Return the recording that is judged instead of a server, or None."""
    file = config.option.target_replay
    if not file:
        return None
    if config.option.conformance_profile == "explore":
        raise pytest.UsageError("--target-replay: the requests of --conformance-profile=explore are not the same twice")
    try:
        return recordings.load(Path(file))
    except HarError as error:
        raise pytest.UsageError(f"--target-replay: {error}") from error
