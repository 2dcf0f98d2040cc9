"""Validates the arguments of `judge` and collects them in one record; raises `JudgeError` for an unusable argument."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from conformance.judging.selection import Subjects, select_subjects
from conformance.spec import extras
from conformance.spec.extensions import CHOICES, OVER_GRPC
from conformance.spec.user_error import UserError
from conformance.transport import config as target_files
from conformance.transport import settings
from conformance.transport.config import TargetConfig
from conformance.transport.grpc_packages import EXTRA, has_grpc
from conformance.transport.reference import REFERENCE
from conformance.transport.settings import Settings, SettingsError

# An ASGI 3 application: `await app(scope, receive, send)`.
AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]

PROFILES = ("certify", "quick")
DEFAULT_TIMEOUT_S = 10.0
PLACEHOLDER_URL = "http://127.0.0.1"  # for validation, while the URL of the server is not known


class JudgeError(UserError):
    """An argument of `judge` cannot be used, or the app does not start; the message is one line with the reason."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of `judge`, merged with the target file and the defaults.

    Attributes:
        url: the URL of the target, or `reference`; empty if `app` is served, or only gRPC is judged.
        app: the application to serve and judge, or None.
        grpc: the gRPC address as `host:port`, or None.
        headers: the headers of every request, each as "Name: value".
        extensions: the extensions to judge, whether offered or not; empty selects the offered ones.
        subjects: what to judge: model roles, deployed models, robustness.
        file: the contents of the target file.
    """

    url: str
    app: AsgiApp | None
    grpc: str | None
    headers: tuple[str, ...] = field(repr=False)
    extensions: tuple[str, ...]
    subjects: Subjects
    profile: str
    strict: bool
    timeout: float
    file: TargetConfig

    def build_settings(self, url: str) -> Settings:
        """Return the connection settings for the target at this URL.

        Raises:
            JudgeError: an address, a header or the timeout cannot be used.
        """
        try:
            built = settings.make_settings(
                url,
                self.headers,
                ca_file=self.file.ca_file,
                insecure=self.file.insecure,
                timeout=self.timeout,
                grpc=self.grpc,
                rate=self.file.rate,
                restart=self.file.restart,
            )
            built.build_ssl_context()
        except SettingsError as error:
            raise JudgeError(str(error)) from error
        return built


def read_arguments(
    target: str | AsgiApp | None,
    models: Collection[str],
    profile: str,
    extensions: Collection[str],
    grpc: str | None,
    headers: Mapping[str, str] | None,
    timeout: float | None,
    strict: bool,
    config: str | PathLike[str] | None,
    *,
    robustness: bool,
) -> Arguments:
    """Return the arguments of `judge` as one record.

    Raises:
        JudgeError: an argument cannot be used.
    """
    if profile not in PROFILES:
        raise JudgeError(f"profile {profile!r}: give one of {', '.join(PROFILES)}")
    file = _load_file(config)
    app = None if target is None or isinstance(target, str) else _validate_app(target)
    url = target if isinstance(target, str) else ""
    if app is None and not (url or file.url or grpc or file.grpc):
        raise JudgeError("nothing to judge: give a URL, an ASGI app, or grpc")
    arguments = Arguments(
        url=url or (file.url or "" if app is None else ""),
        app=app,
        grpc=grpc or file.grpc,
        headers=_merge_headers(headers or {}, file),
        extensions=_validate_names("extensions", extensions) or file.extensions,
        subjects=select_subjects(_validate_names("models", models), file.models, robustness=robustness),
        profile=profile,
        strict=strict,
        timeout=file.timeout or DEFAULT_TIMEOUT_S if timeout is None else timeout,
        file=file,
    )
    _validate_arguments(arguments)
    return arguments


def _validate_arguments(arguments: Arguments) -> None:
    """Raise an error if an extension is unknown, or cannot be judged at the given addresses.

    Raises:
        JudgeError: an extension, address, header or timeout cannot be used.
    """
    unknown = [name for name in arguments.extensions if name not in CHOICES]
    if unknown:
        raise JudgeError(f"extensions: unknown {unknown[0]!r}; give one of {', '.join(CHOICES)}")
    if arguments.grpc and not has_grpc():
        raise JudgeError(extras.describe_missing(EXTRA, "grpc"))
    if not arguments.grpc and set(arguments.extensions) & set(OVER_GRPC):
        raise JudgeError("extensions: classification_grpc needs grpc='host:port'")
    arguments.build_settings(PLACEHOLDER_URL if arguments.app or arguments.url == REFERENCE else arguments.url)


def _load_file(config: str | PathLike[str] | None) -> TargetConfig:
    try:
        return TargetConfig() if config is None else target_files.load(Path(config))
    except SettingsError as error:
        raise JudgeError(str(error)) from error


def _validate_app(target: Any) -> AsgiApp:
    """Return the application after checking that it accepts the arguments of ASGI 3."""
    try:
        inspect.signature(target).bind("scope", "receive", "send")
    except (TypeError, ValueError):
        kind = type(target).__name__
        raise JudgeError(f"a target is a URL or an ASGI app, called with scope, receive and send; not {kind}") from None
    app: AsgiApp = target
    return app


def _validate_names(argument: str, names: Collection[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise JudgeError(f"{argument}: give a list of names, not {names!r}")
    return tuple(names)


def _merge_headers(headers: Mapping[str, str], file: TargetConfig) -> tuple[str, ...]:
    """Merge headers: those of the caller replace those of the target file with the same name."""
    own: Sequence[str] = [f"{name}: {value}" for name, value in headers.items()]
    replaced = {name.lower() for name in headers}
    return (*(line for line in file.headers if line.partition(":")[0].lower() not in replaced), *own)
