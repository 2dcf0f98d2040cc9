"""The options of subcommands that connect to a server: URL, headers, TLS and timeout."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from conformance.spec.user_error import UserError
from conformance.transport import settings
from conformance.transport.header_values import expand_headers
from conformance.transport.reference import REFERENCE, ReferenceServer
from conformance.transport.settings import Settings


def add_url_argument(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add the URL of the server, as the first argument or, as in a run, as the option `--target-url`."""
    parser.add_argument("target_url", nargs="?", default=argparse.SUPPRESS, metavar="URL", help=meaning)
    parser.add_argument("--target-url", metavar="URL", help="the same as the argument URL")


def add_header_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for headers, which are sent with every request."""
    parser.add_argument(
        "--target-header", metavar="'NAME: VALUE'", action="append", default=[],
        help="send this header with every request (repeatable); in the value, ${NAME} is an environment variable and "
        "@FILE the content of a file",
    )  # fmt: skip


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for headers and TLS, with the same names as in a run."""
    add_header_option(parser)
    parser.add_argument("--target-ca", metavar="FILE", help="verify TLS with these certificates")
    parser.add_argument("--target-insecure", action="store_true", help="do not verify TLS certificates")


def add_timeout_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for the timeout of an answer."""
    parser.add_argument(
        "--target-timeout", metavar="S", type=float, default=10.0,
        help="seconds to wait for a connection and for the next byte of an answer (default: 10)",
    )  # fmt: skip


def make_settings(options: argparse.Namespace, url: str, grpc: str | None = None) -> Settings:
    """Return the settings that the options of `add_connection_options` and `add_timeout_option` give for a URL.

    Raises:
        SettingsError: the URL, an address, a header or the timeout cannot be used.
    """
    return settings.make_settings(
        url,
        expand_headers(options.target_header),
        ca_file=options.target_ca,
        insecure=options.target_insecure,
        timeout=options.target_timeout,
        grpc=grpc,
    )


@contextmanager
def serve_reference(url: str) -> Iterator[str]:
    """Yield a URL; for `reference`, run the bundled server during the block, and yield the URL of this server.

    Raises:
        UserError: the bundled server does not start.
    """
    if url != REFERENCE:
        yield url
        return
    try:
        server = ReferenceServer()
    except RuntimeError as error:
        raise UserError(str(error)) from error
    try:
        yield server.url
    finally:
        server.stop()
