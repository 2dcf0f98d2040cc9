"""Reads the arguments of `judge` into the options of a run; raises `JudgeError` for an unusable argument."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any

from conformance.judging import packs
from conformance.judging.run_options import ServerOptions
from conformance.judging.selection import Subjects
from conformance.spec.extensions import OVER_GRPC
from conformance.spec.user_error import UserError
from conformance.transport.config import TargetConfig
from conformance.transport.grpc_packages import expect_grpc
from conformance.transport.reference import REFERENCE

# An ASGI 3 application: `await app(scope, receive, send)`.
AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]

PROFILES = ("certify", "quick")
PLACEHOLDER_URL = "http://127.0.0.1"  # for validation, while the URL of the server is not known


class JudgeError(UserError):
    """An argument of `judge` cannot be used, or the app does not start; the message is one line with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments(ServerOptions):
    """The arguments of `judge` as the options of a run.

    Attributes:
        app: the application to serve and judge, or None.
    """

    app: AsgiApp | None


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
    app = None if target is None or isinstance(target, str) else _validate_app(target)
    values = {
        "url": target if isinstance(target, str) else None,
        "grpc": grpc,
        "headers": [f"{name}: {value}" for name, value in (headers or {}).items()],
        "timeout": timeout,
        "models": _validate_names("models", models),
        "extensions": _validate_names("extensions", extensions),
    }
    try:
        made = packs.load_target_file(None if config is None else fspath(config)).override(values)
        own, named = packs.split_extensions(made.extensions, "extensions")
        made = replace(made, extensions=own)
        _expect_usable(made, app)
    except UserError as error:
        raise JudgeError(str(error)) from error
    subjects = Subjects(tuple(made.models), robustness=robustness, packs=named)
    return Arguments(target=made, app=app, subjects=subjects, profile=profile, strict=strict)


def _expect_usable(made: TargetConfig, app: AsgiApp | None) -> None:
    """Raise an error if there is nothing to judge, or an extension or address cannot be judged.

    Raises:
        UserError: the settings cannot be used.
    """
    if app is None and not (made.url or made.grpc):
        raise JudgeError("nothing to judge: give a URL, an ASGI app, or grpc")
    if made.grpc:
        expect_grpc("grpc")
    elif set(made.extensions) & set(OVER_GRPC):
        raise JudgeError("extensions: classification_grpc needs grpc='host:port'")
    made.build_settings(PLACEHOLDER_URL if app or made.url == REFERENCE else made.url or "", made.grpc)


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
