"""The options of `certify`: the server or client, the profile, and the description of the product in the manifest."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.certification import profiles
from conformance.commands.connection_options import add_header_option, add_url_argument
from conformance.spec.outcome import GATES

REQUIRED_OPTIONS: Mapping[str, str] = {
    "vendor": "the name of the vendor",
    "product": "the name that the server or client reports; for another one, use --alias-of",
    "product-version": "the version that the server or client reports; for another one, use --alias-of",
    "contact": "a contact address that somebody reads",
}
# Metavar and help of options that do not affect the verdict, but that a registry may require.
OPTIONAL_OPTIONS: Mapping[str, tuple[str, str]] = {
    "product-url": ("URL", "a page about the product"),
    "licence": ("TEXT", "the licence of the product, as an SPDX identifier or in a few words"),
    "container": ("IMAGE@sha256:DIGEST", "the container image of the judged server"),
    "version-command": ("COMMAND", "a command that prints the version of the product, for readers; it is not run"),
    "expires": ("YYYY-MM-DD", "the last day of the certification (default and latest: a year after the run)"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    _add_server_options(parser)
    parser.add_argument(
        "--client-adapter", metavar="COMMAND", help="certify the client of this adapter (docs/clients.md), not a server"
    )
    parser.add_argument(
        "--client-timeout",
        metavar="S",
        type=float,
        help="seconds that the adapter has to introduce itself (default: 10)",
    )
    _add_product_options(parser)
    _add_key_options(parser)
    parser.add_argument(
        "-n",
        "--workers",
        metavar="N",
        type=int,
        default=0,
        help="use N processes (pip install pytest-xdist)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="the folder to write, absent or empty"
    )


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    add_url_argument(
        parser, "the base URL of the server, without /v2; 'reference' is the bundled one, with --self-test"
    )
    parser.add_argument(
        "--target-config", metavar="FILE", help="read URL, headers, TLS, role map and more from this TOML file"
    )
    parser.add_argument("--target-grpc", metavar="HOST:PORT", help="certify gRPC at this address as well")
    parser.add_argument(
        "--target-model",
        metavar="NAME",
        action="append",
        default=[],
        help="judge this deployed model as well (repeatable); 'all' is every model that the server lists",
    )
    add_header_option(parser)
    parser.add_argument("--target-ca", metavar="FILE", help="verify TLS with these certificates")
    parser.add_argument("--target-timeout", metavar="S", type=float, help="seconds to wait for an answer (default: 10)")


def _add_product_options(parser: Any) -> None:
    parser.add_argument(
        "--profile", choices=profiles.PROFILES, default="full", help="what to certify (default: %(default)s)"
    )
    parser.add_argument(
        "--conformance-gate",
        choices=GATES,
        help="what a certification requires: conformant: every MUST that applies is judged and met; interoperable: "
        "every MUST about exchanges and the transport is met, refusals aside (default: nothing fails; the server is "
        "certified as partial if some MUSTs are not judged)",
    )
    for name, what in REQUIRED_OPTIONS.items():
        parser.add_argument(f"--{name}", required=True, metavar="TEXT", help=what)
    parser.add_argument(
        "--alias-of",
        nargs=2,
        metavar=("NAME", "VERSION"),
        help="name and version that the server or client reports, if they are not --product and --product-version",
    )
    parser.add_argument("--alias-reason", metavar="TEXT", help="why they differ")
    parser.add_argument("--self-test", action="store_true", help="certify the bundled server, to try this command")
    for name, (metavar, what) in OPTIONAL_OPTIONS.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=what)


def _add_key_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sign",
        type=Path,
        metavar="KEY",
        help="sign with this Ed25519 private key (PEM); default: a new key, which is thrown away afterwards",
    )
    parser.add_argument("--third-party", metavar="NAME", help="who makes this run, if it is not the vendor")
    parser.add_argument("--third-party-contact", metavar="TEXT", help="an address of the third party")
    parser.add_argument(
        "--countersign",
        type=Path,
        metavar="KEY",
        help="also sign with this Ed25519 private key (PEM) of the third party",
    )
