"""The parts of `certify` for clients: which options are allowed, the client's name, and the pytest options."""

from __future__ import annotations

import argparse
import shlex
from contextlib import closing

from conformance.certification.manifest import CertificationError, ReportedProduct
from conformance.clients.adapter import MAX_INTRODUCTION_S, AdapterError, AdapterProcess

_SERVER_OPTIONS = ("target_url", "target_config", "target_grpc", "target_model", "target_header", "target_ca",
                   "target_timeout")  # fmt: skip


def expect_client_options(options: argparse.Namespace) -> None:
    """Require that no option for servers is combined with `--client-adapter`.

    Raises:
        CertificationError: an option is for servers.
    """
    for name in _SERVER_OPTIONS:
        if getattr(options, name):
            option = f"--{name.replace('_', '-')}"
            raise CertificationError(f"{option} is for servers; it cannot be combined with --client-adapter")
    if options.self_test:
        raise CertificationError("--self-test is for the suite's own server; it excludes --client-adapter")
    if options.workers:
        raise CertificationError("-n is for servers; a client is judged in one process")


def request_name(options: argparse.Namespace) -> ReportedProduct:
    """Return the name and version with which the adapter introduces its client.

    Raises:
        CertificationError: the command cannot be used, or the adapter does not introduce its client.
    """
    try:
        words = shlex.split(options.client_adapter)
    except ValueError as error:
        raise CertificationError(f"--client-adapter: {error}") from None
    if not words:
        raise CertificationError("--client-adapter: give a command")
    introduction_timeout = options.client_timeout or MAX_INTRODUCTION_S
    try:
        with closing(AdapterProcess(words, introduction_timeout=introduction_timeout)) as adapter:
            return ReportedProduct(adapter.introduction.name, adapter.introduction.version)
    except AdapterError as error:
        raise CertificationError("; ".join([f"--client-adapter: {error}", *error.stderr[-1:]])) from None


def list_arguments(options: argparse.Namespace) -> list[str]:
    """Return the pytest options for the client."""
    timeout = [] if options.client_timeout is None else [f"--client-timeout={options.client_timeout}"]
    return [f"--client-adapter={options.client_adapter}", *timeout]
