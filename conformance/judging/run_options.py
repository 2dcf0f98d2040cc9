"""The options of a run, for servers and for clients: read from a command line, and described in the report."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance.judging import packs
from conformance.judging.baseline import Baseline
from conformance.judging.selection import ROLES, Subjects
from conformance.spec import options
from conformance.spec.extensions import OVER_GRPC
from conformance.spec.report import Options
from conformance.spec.user_error import UserError
from conformance.transport import client_names, config
from conformance.transport import recording as recordings
from conformance.transport.config import TargetConfig
from conformance.transport.grpc_packages import expect_grpc
from conformance.transport.har import HarError
from conformance.transport.recording import Recording
from conformance.transport.reference import REFERENCE
from conformance.transport.settings import DEFAULT_TIMEOUT_S

MAX_CONNECTIONS = 64
MAX_CLIENT_TIMEOUT_S = 600.0
_ANY_URL = "http://127.0.0.1"  # to check the other settings before the bundled server has started

Ini = Callable[[str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of every run.

    Attributes:
        gate: the verdict required for exit status 0, `conformant` or `interoperable`; None requires that nothing fails.
        shows_all: whether the summary shows every unmet requirement in full.
        baseline: the known failures, or None.
        baseline_file: the file that lists the known failures, or None.
        junit: the test cases in pytest's JUnit file: `requirements` or `rows`.
    """

    profile: str = "certify"
    dangerous: bool = False
    strict: bool = False
    gate: str | None = None
    shows_all: bool = False
    reports: tuple[Path, ...] = ()
    evidence: Path | None = None
    baseline: Baseline | None = None
    baseline_file: Path | None = None
    updates_baseline: bool = False
    junit: str = "requirements"

    @property
    def timeout_s(self) -> float:
        """The seconds to wait for an answer, or for the introduction of an adapter."""
        return DEFAULT_TIMEOUT_S

    def to_report(self, headers: Iterable[str] = (), connections: int = 1) -> Options:
        """Return the `options` of the report, which affect the verdict.

        Args:
            headers: the names of the headers that the user has sent with every request; values are secret.
            connections: the number of concurrent connections.
        """
        found: Options = {
            "profile": self.profile,
            "dangerous": self.dangerous,
            "strict": self.strict,
            "extensions": [],
            "timeout_s": self.timeout_s,
            "models": [],
            "headers": list(headers),
        }
        if connections > 1:
            found["connections"] = connections
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions(RunOptions):
    """The options of a run that judges a client.

    Attributes:
        command: the command of the adapter, unchanged.
        arguments: the program and the arguments of the command.
        timeout: the number of seconds within which the adapter must introduce itself.
    """

    command: str
    arguments: tuple[str, ...]
    timeout: float

    @property
    def timeout_s(self) -> float:
        """The seconds to wait for the introduction of the adapter."""
        return self.timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions(RunOptions):
    """The options of a run that judges a server.

    Attributes:
        target: the target: its file, overridden by the other options.
        file: the contents of the target file alone.
        config_file: the path of the target file as the user wrote it; empty if there is none.
        subjects: the model roles and deployed models; the model `all` stands for all models that the target lists.
        recording: the recording to judge instead of a server, or None.
        connections: the number of concurrent connections; None means a number that suits the latency of the target.
        seed: the seed that chooses client names; None uses the default.
    """

    target: TargetConfig
    file: TargetConfig = field(default_factory=TargetConfig)
    config_file: str = ""
    subjects: Subjects = ROLES
    recording: Recording | None = None
    connections: int | None = None
    seed: int | None = None

    @property
    def is_bundled(self) -> bool:
        """Whether to start and judge the bundled server."""
        return REFERENCE in (self.target.url, self.target.grpc)

    @property
    def timeout_s(self) -> float:
        """The seconds to wait for a connection, and for the next byte of an answer."""
        return DEFAULT_TIMEOUT_S if self.target.timeout is None else self.target.timeout

    def to_report(self, headers: Iterable[str] = (), connections: int = 1) -> Options:
        """Return the `options` of the report; see the base class."""
        found = RunOptions.to_report(self, headers, connections)
        found |= {"extensions": list(self.target.extensions), "models": list(self.subjects.models)}
        if self.subjects.robustness:
            found["robustness"] = True
        return found


# --- every run --------------------------------------------------------------------------------------------------------


def read_run_fields(given: Any) -> dict[str, Any]:
    """Return the values of the fields of `RunOptions`, by name.

    Args:
        given: the parsed command line of pytest or of a subcommand, as a namespace.

    Raises:
        UserError: an option cannot be used.
    """
    named = {option.dest.removeprefix("conformance_"): option.get_value(given) for option in options.OPTIONS.values()}
    file, updates = named["baseline"] and Path(named["baseline"]), named["update_baseline"]
    return {
        **{name: named[name] for name in ("profile", "dangerous", "strict", "gate", "junit")},
        "shows_all": named["show"] == "all",
        "reports": tuple(map(_parse_report_path, named["report"])),
        "evidence": Path(named["evidence"]) if named["evidence"] else None,
        "baseline": _load_baseline(file, updates=updates),
        "baseline_file": file,
        "updates_baseline": updates,
    }


def _parse_report_path(text: str) -> Path:
    path = Path(text)
    try:
        options.expect_report_suffix(path)
    except UserError as error:
        raise UserError(f"--conformance-report {error}") from None
    if not path.absolute().parent.is_dir():
        raise UserError(f"--conformance-report {path}: no folder {path.absolute().parent}")
    return path


def _load_baseline(file: Path | None, *, updates: bool) -> Baseline | None:
    """Load the baseline; return None without a file, and an empty baseline if the run creates the file."""
    if file is None:
        if updates:
            raise UserError("--conformance-update-baseline needs --conformance-baseline FILE")
        return None
    if updates and not file.exists():
        return Baseline()
    from conformance.judging import baseline_file  # lazy: few runs need it and its TOML editor

    return baseline_file.load(file)


# --- a client ---------------------------------------------------------------------------------------------------------


def read_client_options(given: Any, ini: Ini) -> ClientOptions:
    """Read the options of a run that judges a client.

    Args:
        given: the parsed command line, as a namespace.
        ini: returns a value of pytest's ini file by name.

    Raises:
        UserError: an option cannot be used.
    """
    if name := options.find_given_option(given, options.TARGET_OPTIONS):
        raise UserError(f"{name} cannot be combined with --client-adapter, which judges a client")
    timeout = DEFAULT_TIMEOUT_S if given.client_timeout is None else given.client_timeout
    if not 0 < timeout < MAX_CLIENT_TIMEOUT_S:
        raise UserError(f"--client-timeout {timeout:g}: give seconds up to {MAX_CLIENT_TIMEOUT_S}")
    if given.conformance_profile == "explore":
        raise UserError("--conformance-profile explore is only for servers: use certify")
    command = options.read_value("--client-adapter", given, ini) or ""
    return ClientOptions(
        command=command, arguments=split_adapter_command(command), timeout=timeout, **read_run_fields(given)
    )


def split_adapter_command(command: str) -> tuple[str, ...]:
    """Return the program and the arguments of an adapter's command.

    Raises:
        UserError: the command is empty, or a quotation in it does not end.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"--client-adapter {command!r}: {error}") from None
    if not words:
        raise UserError("--client-adapter: give a command")
    return tuple(words)


# --- a server ---------------------------------------------------------------------------------------------------------


def read_server_options(given: Any, ini: Ini, from_controller: Mapping[str, Any]) -> ServerOptions:
    """Read the options of a run that judges a server.

    The sources of a value, first one first: the command line, the environment, pytest's ini file, the target file.

    Args:
        given: the parsed command line, as a namespace.
        ini: returns a value of pytest's ini file by name.
        from_controller: addresses and models from the controller if this process is a worker; otherwise empty.

    Raises:
        UserError: an option cannot be used.
    """
    config_file = options.read_value("--target-config", given, ini) or ""
    file = packs.load_target_file(config_file, options.read_target_values(given, ini)["extensions"])
    recording = _load_recording(given)
    chosen = {name: from_controller[name] for name in ("url", "grpc", "models") if name in from_controller}
    target = config.read_options(given, file, ini, chosen)
    if recording is not None:
        target = replace(target, url=recording.url, grpc=recording.grpc or None)
    if not (target.url or target.grpc):
        raise UserError(f"--target-config {config_file} has no url: add one, or give --target-url")
    own, named = packs.split_extensions(target.extensions)
    if named and getattr(given, "dist", "no") != "no":
        raise UserError(f"--target-extension {named[0]} cannot be combined with -n: the rows of a pack run alone")
    target = replace(target, extensions=own)
    robustness = _is_robustness_requested(given, recording)
    subjects = Subjects(tuple(target.models), robustness=robustness, packs=named)
    found = ServerOptions(
        target=target,
        file=file,
        config_file=config_file,
        subjects=subjects,
        recording=recording,
        connections=_validate_connections(given.conformance_concurrency),
        seed=_validate_seed(given.conformance_seed, given.conformance_profile),
        **read_run_fields(given),
    )
    _expect_usable_addresses(found)
    return found


def _expect_usable_addresses(found: ServerOptions) -> None:
    url, grpc = found.target.url or "", found.target.grpc
    if grpc:
        expect_grpc("--target-grpc")
    elif url != REFERENCE and set(found.target.extensions) & set(OVER_GRPC):
        raise UserError("--target-extension classification_grpc needs --target-grpc HOST:PORT")
    if grpc == REFERENCE and url not in ("", REFERENCE):
        raise UserError("--target-grpc=reference cannot be combined with the --target-url of another server")
    found.target.build_settings(_ANY_URL if found.is_bundled else url, None if grpc == REFERENCE else grpc)


def _validate_connections(given: int | None) -> int | None:
    if given is not None and not 1 <= given <= MAX_CONNECTIONS:
        raise UserError(f"--conformance-concurrency {given}: give a number from 1 to {MAX_CONNECTIONS}")
    return given


def _validate_seed(given: int | None, profile: str) -> int | None:
    if given is not None and profile != "certify":
        raise UserError(f"--conformance-seed needs the profile certify, not {profile}")
    if given is not None and not 0 <= given <= client_names.MAX_SEED:
        raise UserError(f"--conformance-seed {given}: give a number from 0 to {client_names.MAX_SEED}")
    return given


def _is_robustness_requested(given: Any, recording: Recording | None) -> bool:
    """Return whether to send hostile requests.

    Raises:
        UserError: the target is a recording, or other processes send requests as well.
    """
    if not given.conformance_robustness:
        return False
    if recording is not None:
        raise UserError("--conformance-robustness needs a live server; it cannot be combined with --target-replay")
    if getattr(given, "dist", "no") != "no":
        raise UserError(
            "--conformance-robustness cannot be combined with -n: hostile requests would disturb other rows"
        )
    return True


def _load_recording(given: Any) -> Recording | None:
    """Load the recording to judge instead of a server, or return None."""
    file = given.target_replay
    if not file:
        return None
    if given.conformance_profile == "explore":
        raise UserError("--target-replay cannot be combined with --conformance-profile=explore, whose requests change")
    try:
        return recordings.load(Path(file))
    except HarError as error:
        raise UserError(f"--target-replay: {error}") from error
