"""The options of the suite in pytest: adds them to its parser, and finds out whether they name something to judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import pytest

from conformance.spec.options import OPTIONS, SERVER_ADDRESSES, SETTINGS, add_run_options, find_given_option, read_value


def add_options(parser: pytest.Parser) -> None:
    """Add the options and ini settings to pytest's parser."""
    group = parser.getgroup("oip-conformance", "Open Inference Protocol conformance")
    add_run_options(group.addoption)
    for option in SETTINGS:
        parser.addini(option.ini, f"{option.setting}, used without {option.name}")


def reject_unknown_options(unknown: Sequence[str]) -> None:
    """Raise an exception if there is an unknown option.

    `unknown`: the arguments that pytest's parser does not know.

    Raises pytest.UsageError: one of the arguments is an option.
    """
    for name in (argument.partition("=")[0] for argument in unknown if argument.startswith("-")):
        from conformance.spec.text import escape_text  # lazy: it imports NumPy

        near = get_close_matches(name, OPTIONS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise pytest.UsageError(
            f"unknown option {escape_text(name, 100)}; {hint}`oip-conformance run --help` lists the options of the "
            "suite, `pytest --help` those of pytest"
        )


def has_target(given: Any, ini: Callable[[str], Any]) -> bool:
    """Return whether there is anything to judge: a server, a target file, a recording, or a client.

    Args:
        given: the parsed command line, as a namespace.
        ini: returns a value of pytest's ini file by name.
    """
    return any(read_value(name, given, ini) for name in SERVER_ADDRESSES) or has_client(given, ini)


def has_client(given: Any, ini: Callable[[str], Any]) -> bool:
    """Return whether to judge a client: its adapter is set, and the command line names no server instead.

    Args:
        given: the parsed command line, as a namespace.
        ini: returns a value of pytest's ini file by name.
    """
    is_of_server = find_given_option(given, SERVER_ADDRESSES) is not None and not given.client_adapter
    return not is_of_server and read_value("--client-adapter", given, ini) is not None


def hide_pytest_failures(option: Any) -> None:
    """Turn off pytest's own output of failures unless the user requests it, because the suite's summary shows them."""
    option.conformance_tb = option.tbstyle
    if option.reportchars in ("fE", ""):
        option.reportchars = "N"
    if option.tbstyle == "auto":
        option.tbstyle = "no"
