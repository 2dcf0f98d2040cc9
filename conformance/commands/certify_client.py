"""The parts of `certify` for clients: which options are allowed, the client's name, and the pytest options."""

from __future__ import annotations

import argparse
from contextlib import closing

from conformance.certification.manifest import CertificationError, ReportedProduct
from conformance.clients.adapter import MAX_INTRODUCTION_S, AdapterError, AdapterProcess
from conformance.judging.run_options import split_adapter_command
from conformance.spec.options import TARGET_OPTIONS, find_given_option


def expect_client_options(options: argparse.Namespace) -> None:
    """Require that no option for servers is combined with `--client-adapter`.

    Raises CertificationError: an option is for servers.
    """
    if option := find_given_option(options, TARGET_OPTIONS):
        raise CertificationError(f"{option} is for servers; it cannot be combined with --client-adapter")
    if options.self_test:
        raise CertificationError("--self-test is for the suite's own server; it excludes --client-adapter")
    if options.workers:
        raise CertificationError("-n is for servers; a client is judged in one process")


def request_name(options: argparse.Namespace) -> ReportedProduct:
    """Return the name and version with which the adapter introduces its client.

    Raises CertificationError: the command cannot be used, or the adapter does not introduce its client.
    """
    words = split_adapter_command(options.client_adapter)
    introduction_timeout = options.client_timeout or MAX_INTRODUCTION_S
    try:
        with closing(AdapterProcess(words, introduction_timeout=introduction_timeout)) as adapter:
            return ReportedProduct(adapter.introduction.name, adapter.introduction.version)
    except AdapterError as error:
        raise CertificationError("; ".join([f"--client-adapter: {error}", *error.stderr[-1:]])) from None
