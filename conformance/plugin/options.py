"""The options of the pytest plugin, as data. `server_options` and `client_run` read their values.

Every pytest process imports this module if the package is installed, so it imports nothing heavy. Every option begins
with `--target-`, `--client-` or `--conformance-`, to avoid conflicts with other plugins.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import pytest

from conformance.spec.environment import WATCHED_VARIABLE
from conformance.spec.extensions import CHOICES
from conformance.spec.outcome import GATES

PROFILES = ("certify", "quick", "explore")
JUNIT_CASES = ("requirements", "rows")

# Options that the environment (in capitals) and pytest's ini file can set as well.
SETTING_OPTIONS = {
    "target_url": "the server to judge",
    "target_grpc": "the gRPC address to judge",
    "target_config": "the target file",
    "target_ca": "the file of certificates that verify TLS",
    "target_timeout": "seconds to wait for a connection and for the next byte",
    "client_adapter": "the adapter of the client to judge",
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
        "help": "judge gRPC at this address, with or without --target-url; grpcs://HOST:PORT for TLS; 'reference' for "
        "the bundled server (--target-url=reference judges its gRPC as well) "
        "[env OIP_TARGET_GRPC, ini oip_target_grpc]",
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
        "help": "send this header with every request (repeatable); reports never show its value; use ${NAME} for an "
        "environment variable or @FILE for the content of a file to keep secrets out of the process list",
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
    "--target-rate": {
        "dest": "target_rate",
        "metavar": "N",
        "type": float,
        "help": "send at most N requests a second; 0.5 is one every two seconds (default: no limit); with -n the limit "
        "holds for each process",
    },
    "--target-model": {
        "dest": "target_models",
        "metavar": "NAME",
        "action": "append",
        "default": [],
        "help": "judge this deployed model by its own answers to plain requests, in addition to the model roles "
        "(repeatable); 'all' is every model that the server lists",
    },
    "--target-extension": {
        "dest": "target_extensions",
        "metavar": "NAME",
        "action": "append",
        "default": [],
        "choices": CHOICES,
        "help": f"judge this extension, offered or not (repeatable): {', '.join(CHOICES)}; protocol is the "
        "base protocol alone (default: those that the server offers)",
    },
    "--client-adapter": {
        "dest": "client_adapter",
        "metavar": "COMMAND",
        "help": "judge a client instead of a server: the command starts a program that makes inferences with the "
        "client, as docs/clients.md explains; the suite starts the command without a shell "
        "[env OIP_CLIENT_ADAPTER, ini oip_client_adapter]",
    },
    "--client-timeout": {
        "dest": "client_timeout",
        "metavar": "S",
        "type": float,
        "default": 10.0,
        "help": "seconds to wait until the adapter has started and named its client (default: 10)",
    },
    "--conformance-profile": {
        "dest": "conformance_profile",
        "choices": PROFILES,
        "default": "certify",
        "help": "certify: every row, the same requests each time (default); quick: the few rows that see most faults; "
        "explore: certify plus tensors that Hypothesis generates",
    },
    "--conformance-seed": {
        "dest": "conformance_seed",
        "metavar": "N",
        "type": int,
        "help": "seed that assigns a User-Agent to each row under certify (default: 0; `oip-conformance certify` "
        "chooses one at random); a User-Agent in --target-header replaces them all",
    },
    "--conformance-dangerous": {
        "dest": "conformance_dangerous",
        "action": "store_true",
        "help": "at the end, also send requests that are known to have crashed servers",
    },
    "--conformance-concurrency": {
        "dest": "conformance_concurrency",
        "metavar": "N",
        "type": int,
        "default": None,
        "help": "use up to N connections at once; verdicts stay the same (default: 1, or up to 16 if the target takes "
        "10 ms or more to answer)",
    },
    "--conformance-robustness": {
        "dest": "conformance_robustness",
        "action": "store_true",
        "help": "at the end, also send hostile requests and report how many the server withstands; they do not affect "
        "the verdict. Use it on your own server only: it may be slow or down afterwards",
    },
    "--conformance-baseline": {
        "dest": "conformance_baseline",
        "metavar": "FILE",
        "help": "ignore the failures that this TOML file lists; new failures fail the run, and so do listed ones that "
        "are fixed",
    },
    "--conformance-update-baseline": {
        "dest": "conformance_update_baseline",
        "action": "store_true",
        "help": "rewrite the baseline from this run; comments are kept",
    },
    "--conformance-strict": {
        "dest": "conformance_strict",
        "action": "store_true",
        "help": "an unmet SHOULD fails the run",
    },
    "--conformance-gate": {
        "dest": "conformance_gate",
        "choices": GATES,
        "default": None,
        "help": "what exit status 0 requires: conformant: every MUST that applies is judged and met; interoperable: "
        "every MUST about exchanges and the transport is met, refusals aside (default: nothing fails, even if some "
        "requirements are not judged)",
    },
    "--conformance-show": {
        "dest": "conformance_show",
        "choices": ("first", "all"),
        "default": "first",
        "help": "first: details of the ten requirements to fix first, others by name and count (default); all: details "
        "of every one",
    },
    "--conformance-report": {
        "dest": "conformance_reports",
        "metavar": "PATH",
        "action": "append",
        "default": [],
        "help": "write a report (repeatable); the suffix chooses the format: .json, .html, .md, .svg (a badge), "
        ".shields.json (a badge for shields.io); `oip-conformance report` converts a .json later",
    },
    "--conformance-junit": {
        "dest": "conformance_junit",
        "choices": JUNIT_CASES,
        "default": "requirements",
        "help": "the test cases of --junitxml: one for each requirement (default) or one for each row",
    },
    "--conformance-evidence": {
        "dest": "conformance_evidence",
        "metavar": "DIR",
        "help": "write run.har.xz, a recording of every exchange, and a folder for each row that fails, with its bytes "
        "and programs that repeat the request",
    },
    "--target-replay": {
        "dest": "target_replay",
        "metavar": "FILE",
        "help": "judge a recording (run.har.xz) instead of a server; use the same other options as in its run",
    },
}


def add_options(parser: pytest.Parser) -> None:
    """Add the options and ini settings to pytest's parser."""
    group = parser.getgroup("oip-conformance", "Open Inference Protocol conformance")
    for name, details in OPTIONS.items():
        group.addoption(name, **details)
    for name, meaning in SETTING_OPTIONS.items():
        parser.addini(f"oip_{name}", f"{meaning}, used without --{name.replace('_', '-')}")


def reject_unknown_options(unknown: Sequence[str]) -> None:
    """Raise an exception if there is an unknown option.

    Args:
        unknown: the arguments that pytest's parser does not know.

    Raises:
        pytest.UsageError: one of the arguments is an option.
    """
    for name in (argument.partition("=")[0] for argument in unknown if argument.startswith("-")):
        from conformance.spec.text import escape_text  # lazy: it imports NumPy

        near = get_close_matches(name, OPTIONS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise pytest.UsageError(
            f"unknown option {escape_text(name, 100)}; {hint}`oip-conformance run --help` lists the options of the "
            "suite, `pytest --help` those of pytest"
        )


def read_setting(name: str, option: str | None, ini: Callable[[str], Any]) -> str | None:
    """Return the value of one of `SETTING_OPTIONS` from the command line, else the environment, else the ini file.

    The environment is ignored if `oip-conformance` watches the clients of this process: it then holds the addresses to
    which these clients send their requests.
    """
    given = None if WATCHED_VARIABLE in os.environ else os.environ.get(f"OIP_{name.upper()}")
    return option or given or ini(f"oip_{name}") or None


def has_target(options: Any, ini: Callable[[str], Any]) -> bool:
    """Return whether there is anything to judge: a server, a target file, a recording, or a client.

    Args:
        options: the parsed command line, as a namespace.
        ini: returns a value of pytest's ini file by name.
    """
    places = ("target_url", "target_grpc", "target_config")
    is_of_server = options.target_replay or any(read_setting(name, getattr(options, name), ini) for name in places)
    return bool(is_of_server or has_client(options, ini))


def has_client(options: Any, ini: Callable[[str], Any]) -> bool:
    """Return whether to judge a client: its adapter is set, and the command line names no server instead.

    Args:
        options: the parsed command line, as a namespace.
        ini: returns a value of pytest's ini file by name.
    """
    places = ("target_url", "target_grpc", "target_config", "target_replay")
    is_of_server = any(getattr(options, name) for name in places) and not options.client_adapter
    return not is_of_server and read_setting("client_adapter", options.client_adapter, ini) is not None


def hide_pytest_failures(option: Any) -> None:
    """Turn off pytest's own output of failures unless the user requests it, because the suite's summary shows them."""
    option.conformance_tb = option.tbstyle
    if option.reportchars in ("fE", ""):
        option.reportchars = "N"
    if option.tbstyle == "auto":
        option.tbstyle = "no"
