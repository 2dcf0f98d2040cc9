"""What a user asks of a run that judges a client, and whether one does."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.plugin import common_options
from conformance.plugin.common_options import CommonOptions
from conformance.plugin.options import OPTIONS, read_setting

MAX_WAIT_S = 600.0  # seconds


@dataclass(frozen=True, slots=True)
class ClientOptions(CommonOptions):
    """Everything that a user asks of a run that judges a client.

    Attributes:
        command: of the adapter, as it was given; `words` are its program and arguments.
        patience: seconds that the adapter has to introduce itself.
    """

    command: str
    words: tuple[str, ...]
    patience: float


def read_options(option: Any, ini: Callable[[str], Any]) -> ClientOptions:
    """Read the options.

    Args:
        option: the parsed command line, as a namespace.
        ini: gives a value of pytest's ini file by its name.

    Raises:
        pytest.UsageError: one cannot be used.
    """
    command = read_setting("client_adapter", option.client_adapter, ini) or ""
    _expect_no_server(option)
    if not 0 < option.client_timeout < MAX_WAIT_S:
        raise pytest.UsageError(f"--client-timeout {option.client_timeout:g}: give seconds up to {MAX_WAIT_S}")
    if option.conformance_profile == "explore":
        raise pytest.UsageError("--conformance-profile explore: nothing of a client is explored, take certify")
    return ClientOptions(
        command=command,
        words=_words(command),
        patience=option.client_timeout,
        **common_options.read_fields(option),
    )


def _words(command: str) -> tuple[str, ...]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise pytest.UsageError(f"--client-adapter {command!r}: {error}") from None
    if not words:
        raise pytest.UsageError("--client-adapter: give a command")
    return tuple(words)


def _expect_no_server(option: Any) -> None:
    """See that nothing is said of a server.

    Raises:
        pytest.UsageError: something is.
    """
    of_servers = {name: details["dest"] for name, details in OPTIONS.items() if name.startswith("--target-")}
    named = [name for name, place in of_servers.items() if getattr(option, place)]
    if named:
        raise pytest.UsageError(f"{named[0]} is about a server, and --client-adapter judges a client: take one of them")
