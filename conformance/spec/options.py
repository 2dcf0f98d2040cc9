"""The options of the suite. Each is defined here once; command lines, environment and child processes follow from it.

Every pytest process imports this module if the package is installed, so it imports nothing heavy. Every option begins
with `--target-`, `--client-` or `--conformance-`, to avoid conflicts with other plugins of pytest.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from conformance.spec.extensions import CHOICES
from conformance.spec.outcome import GATES
from conformance.spec.user_error import UserError

PROFILES: Final = ("certify", "quick", "explore")
JUNIT_CASES: Final = ("requirements", "rows")
# `.shields.json` must come before `.json`, its own suffix.
REPORT_SUFFIXES: Final = (".shields.json", ".json", ".html", ".md", ".svg")

# Set for a command whose clients `client watch` watches: the addresses in its environment are meant for these clients.
# Without this variable, a pytest run inside the command would judge the server at these addresses.
WATCHED_VARIABLE: Final = "OIP_WATCHED"

CHILD_INI: Final = "pytest.ini"  # empty, so that the user's configuration does not affect the run

_ACTIONS: Final[Mapping[type, Mapping[str, Any]]] = {
    bool: {"action": "store_true", "default": False},
    list: {"action": "append", "default": []},
}
_URL: Final = "the base URL of the server, without /v2"


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the suite.

    Attributes:
        kind: the type of its value; `bool` for a switch, `list` for an option that may be given several times.
        choices: the values that it can have; empty if they are not limited.
        default: its value on a command line that lacks it; None also if another source can set the option.
        setting: what the option sets in pytest's ini file and the environment; empty if only a command line sets it.
        key: the key in the target file, with dots between tables, and the field of `TargetConfig`, with underscores;
            empty if the file does not set the option.
        commands: the subcommands with this option, besides `run` and `client run`, which have all; each with the help
            of the option in this subcommand, or nothing if it is the same.
    """

    name: str
    help: str
    metavar: str | None = None
    kind: type = str
    choices: tuple[str, ...] = ()
    default: Any = None
    setting: str = ""
    key: str = ""
    commands: Mapping[str, str] = field(default_factory=dict)

    @property
    def dest(self) -> str:
        """The attribute of a parsed command line."""
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable, if there is a setting."""
        return f"OIP_{self.dest.upper()}"

    @property
    def ini(self) -> str:
        """The name in pytest's ini file, if there is a setting."""
        return f"oip_{self.dest}"

    def build_details(self, command: str = "") -> dict[str, Any]:
        """Return the arguments of `add_argument`, for a subcommand or, without one, for a run."""
        sources = f" [env {self.variable}, ini {self.ini}]" if self.setting and not command else ""
        details = {"metavar": self.metavar, "choices": self.choices, "default": self.default, "dest": self.dest}
        return {
            **{name: value for name, value in details.items() if is_given(value)},
            **_ACTIONS.get(self.kind, {"type": self.kind}),
            "help": (self.commands.get(command) or self.help) + sources,
        }

    def get_value(self, given: Any) -> Any:
        """Return the value on a parsed command line; the default if the command does not have the option."""
        return getattr(given, self.dest, _ACTIONS.get(self.kind, {}).get("default", self.default))


def _in(*same: str, **own: str) -> dict[str, str]:
    """Return the subcommands with an option: those with the same help, and those with a help of their own."""
    return {**dict.fromkeys(same, ""), **own}


_DEFINITIONS: Final = (
    Option(
        "--target-url",
        "judge this server; 'reference' starts the bundled one",
        "URL",
        setting="the server to judge",
        key="url",
        commands=_in(
            doctor=f"{_URL}; 'reference' is the bundled one",
            init=f"{_URL}; without it, the file is an empty template",
            replay=f"{_URL} (default: the one that was judged)",
            certify=f"{_URL}; 'reference' is the bundled one, with --self-test",
        ),
    ),
    Option(
        "--target-grpc",
        "judge gRPC at this address, with or without --target-url; grpcs://HOST:PORT for TLS; 'reference' for the "
        "bundled server (--target-url=reference judges its gRPC as well)",
        "HOST:PORT",
        setting="the gRPC address to judge",
        key="grpc",
        commands=_in(
            doctor="the gRPC address of the server",
            init="the gRPC address of the server",
            replay="its gRPC address (default: the one that was judged)",
            certify="certify gRPC at this address as well; without a URL, with --profile=grpc-alone",
        ),
    ),
    Option(
        "--target-config",
        "read URL, headers, TLS, role map and more from this TOML file; `oip-conformance init` writes one",
        "FILE",
        setting="the target file",
        commands=_in("certify"),
    ),
    Option(
        "--target-header",
        "send this header with every request (repeatable); reports never show its value; use ${NAME} for an "
        "environment variable or @FILE for the content of a file to keep secrets out of the process list",
        "'NAME: VALUE'",
        kind=list,
        key="headers",
        commands=_in("certify", "doctor", "init", "replay"),
    ),
    Option(
        "--target-ca",
        "verify TLS with these certificates",
        "FILE",
        setting="the file of certificates that verify TLS",
        key="tls.ca",
        commands=_in("certify", "doctor", "init", "replay"),
    ),
    Option(
        "--target-insecure",
        "do not verify TLS certificates",
        kind=bool,
        key="tls.insecure",
        commands=_in("doctor", "init", "replay"),
    ),
    Option(
        "--target-timeout",
        "seconds to wait for a connection and for the next byte of an answer (default: 10)",
        "S",
        kind=float,
        setting="seconds to wait for a connection and for the next byte",
        key="timeout",
        commands=_in("certify", "doctor", "init", "replay"),
    ),
    Option(
        "--target-rate",
        "send at most N requests a second; 0.5 is one every two seconds (default: no limit); with -n the limit holds "
        "for each process",
        "N",
        kind=float,
        key="rate",
    ),
    Option(
        "--target-model",
        "judge this deployed model by its own answers to plain requests, in addition to the model roles (repeatable); "
        "'all' is every model that the server lists",
        "NAME",
        kind=list,
        key="models",
        commands=_in(
            "certify",
            doctor="show whether this deployed model answers, with which inputs, and which extensions work on it "
            "(repeatable); 'all' is every model that the server lists",
            init="also try this model, which the server does not list (repeatable)",
        ),
    ),
    Option(
        "--target-extension",
        f"judge this extension, offered or not (repeatable): {', '.join(CHOICES)}; protocol is the base protocol alone "
        "(default: those that the server offers). The name of an installed pack adds the pack to any of these",
        "NAME",
        kind=list,
        key="extensions",
        commands=_in(
            certify="judge this installed pack as well (repeatable); its verdict is beside the certified one",
            roles="print the roles of this installed pack as well (repeatable)",
            export="write the roles of this installed pack as well (repeatable)",
        ),
    ),
    Option(
        "--client-adapter",
        "judge a client instead of a server: the command starts a program that makes inferences with the client, as "
        "docs/clients.md explains; the suite starts the command without a shell",
        "COMMAND",
        setting="the adapter of the client to judge",
        commands=_in(
            certify="certify the client of this adapter (docs/clients.md), not a server",
            replay="the adapter, if a client was judged",
        ),
    ),
    Option(
        "--client-timeout",
        "seconds to wait until the adapter has started and named its client (default: 10)",
        "S",
        kind=float,
        commands=_in("certify"),
    ),
    Option(
        "--conformance-profile",
        "certify: every row, the same requests each time (default); quick: the few rows that see most faults; explore: "
        "certify plus tensors that Hypothesis generates",
        choices=PROFILES,
        default="certify",
    ),
    Option(
        "--conformance-seed",
        "seed that assigns a User-Agent to each row under certify (default: 0; `oip-conformance certify` chooses one "
        "at random); a User-Agent in --target-header replaces them all",
        "N",
        kind=int,
    ),
    Option(
        "--conformance-dangerous", "at the end, also send requests that are known to have crashed servers", kind=bool
    ),
    Option(
        "--conformance-concurrency",
        "judge in N processes at once; verdicts stay the same (default: what suits the cores of this machine, up to 16 "
        "if the target takes 10 ms or more to answer, and 1 if it serves few connections)",
        "N",
        kind=int,
    ),
    Option(
        "--conformance-robustness",
        "at the end, also send hostile requests and report how many the server withstands; they do not affect the "
        "verdict. Use it on your own server only: it may be slow or down afterwards",
        kind=bool,
    ),
    Option(
        "--conformance-baseline",
        "ignore the failures that this TOML file lists; new failures fail the run, and so do listed ones that are "
        "fixed",
        "FILE",
        commands=_in("watch"),
    ),
    Option(
        "--conformance-update-baseline",
        "rewrite the baseline from this run; comments are kept",
        kind=bool,
        commands=_in("watch"),
    ),
    Option("--conformance-strict", "an unmet SHOULD fails the run", kind=bool, commands=_in("watch")),
    Option(
        "--conformance-gate",
        "what exit status 0 requires: conformant: every MUST that applies is judged and met; interoperable: every MUST "
        "about exchanges and the transport is met, refusals aside (default: nothing fails, even if some requirements "
        "are not judged)",
        choices=GATES,
        commands=_in(
            "watch",
            "replay",
            certify="what a certification requires: conformant: every MUST that applies is judged and met; "
            "interoperable: every MUST about exchanges and the transport is met, refusals aside (default: nothing "
            "fails; the server is certified as partial if some MUSTs are not judged)",
        ),
    ),
    Option(
        "--conformance-show",
        "first: details of the ten requirements to fix first, others by name and count (default); all: details of "
        "every one",
        choices=("first", "all"),
        default="first",
        commands=_in("watch"),
    ),
    Option(
        "--conformance-report",
        "write a report (repeatable); the suffix chooses the format: .json, .html, .md, .svg (a badge), .shields.json "
        "(a badge for shields.io); `oip-conformance report` converts a .json later",
        "PATH",
        kind=list,
        commands=_in("watch"),
    ),
    Option(
        "--conformance-junit",
        "the test cases of --junitxml: one for each requirement (default) or one for each row",
        choices=JUNIT_CASES,
        default="requirements",
    ),
    Option(
        "--conformance-evidence",
        "write run.har.xz, a recording of every exchange, and a folder for each row that fails, with its bytes and "
        "programs that repeat the request",
        "DIR",
        commands=_in(
            watch="write run.har.xz, a recording of every request, and a folder for each requirement that is not met"
        ),
    ),
    Option(
        "--target-replay",
        "judge a recording (run.har.xz) instead of a server; use the same other options as in its run",
        "FILE",
    ),
)
OPTIONS: Final[Mapping[str, Option]] = {option.name: option for option in _DEFINITIONS}
SETTINGS: Final = tuple(option for option in _DEFINITIONS if option.setting)
TARGET_OPTIONS: Final = tuple(name for name in OPTIONS if name.startswith("--target-"))
# Options that name what is judged; without one, the pytest plugin does nothing.
SERVER_ADDRESSES: Final = ("--target-url", "--target-grpc", "--target-config", "--target-replay")


# --- command lines ----------------------------------------------------------------------------------------------------


def add_run_options(add: Callable[..., Any], without: tuple[str, ...] = ()) -> None:
    """Add all options by calling `add` like `add_argument`, except those that begin with one of the prefixes."""
    for option in _DEFINITIONS:
        if not option.name.startswith(without):
            add(option.name, **option.build_details())


def add_command_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of a subcommand; the URL of the server can also be its first argument."""
    for option in _DEFINITIONS:
        if command not in option.commands:
            continue
        details = option.build_details(command)
        if option.name == "--target-url":
            parser.add_argument("target_url", nargs="?", default=argparse.SUPPRESS, metavar="URL", help=details["help"])
            details["help"] = "the same as the argument URL"
        parser.add_argument(option.name, **details)


def list_given_arguments(given: Any, *prefixes: str) -> list[str]:
    """Return the options of a parsed command line that begin with one of the prefixes, as arguments of a run."""
    return format_arguments({name: OPTIONS[name].get_value(given) for name in OPTIONS if name.startswith(prefixes)})


def format_arguments(values: Mapping[str, Any]) -> list[str]:
    """Return a command line: an argument for each option that is given, or one for each of its values."""
    return list(_format_arguments(values))


def _format_arguments(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if value is True:
            yield name
        elif isinstance(value, list | tuple):
            yield from (f"{name}={each}" for each in value)
        elif is_given(value):
            yield f"{name}={value}"


def is_given(value: Any) -> bool:
    """Return whether a value is that of an option that was given; 0 is, False is not."""
    return value is not False and value not in (None, "", [], ())


# --- values -----------------------------------------------------------------------------------------------------------


def read_value(name: str, given: Any, ini: Callable[[str], Any] | None = None) -> Any:
    """Return the value of an option from a parsed command line, else the environment, else pytest's ini file.

    The environment is ignored if `oip-conformance` watches the clients of this process: it then holds the addresses to
    which these clients send their requests.

    `given`: the parsed command line, as a namespace.
    `ini`: returns a value of pytest's ini file by name; None if only the command line counts.

    Raises UserError: the environment or the ini file has a text that is not a number.
    """
    option = OPTIONS[name]
    value = option.get_value(given)
    if is_given(value) or ini is None or not option.setting:
        return value
    text = None if WATCHED_VARIABLE in os.environ else os.environ.get(option.variable)
    text = text or ini(option.ini)
    try:
        return option.kind(text) if text else None
    except ValueError:
        raise UserError(f"{option.variable} or {option.ini} is not a number: {text!r}") from None


def read_target_values(given: Any, ini: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """Return the values of the options that a target file can set as well, by field of `TargetConfig`.

    Raises UserError: see `read_value`.
    """
    return {option.key.replace(".", "_"): read_value(option.name, given, ini) for option in _DEFINITIONS if option.key}


def find_given_option(given: Any, names: Iterable[str]) -> str | None:
    """Return the first of the options that a parsed command line has, or None."""
    return next((name for name in names if is_given(OPTIONS[name].get_value(given))), None)


def expect_report_suffix(path: Path) -> str:
    """Return the suffix that selects the format of a report. Raises UserError: the suffix is unknown."""
    for known in REPORT_SUFFIXES:
        if path.name.endswith(known):
            return known
    raise UserError(f"{path}: unknown suffix {path.suffix!r}, known are {', '.join(REPORT_SUFFIXES)}")


# --- child processes --------------------------------------------------------------------------------------------------


def list_isolation_arguments(folder: str) -> list[str]:
    """Return the arguments of a pytest run that is not affected by the user's settings, plugins and cache.

    `folder`: a folder with an empty `CHILD_INI`.
    """
    ini = os.path.join(folder, CHILD_INI)
    return ["-q", "-c", ini, f"--rootdir={folder}", "-p", "no:cacheprovider", "-p", "conformance.plugin"]


def build_child_environment() -> dict[str, str]:
    """Return the environment of such a run: all variables that set no option, since headers may refer to them."""
    dropped = {option.variable for option in SETTINGS}
    kept = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith("PYTEST")}
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
