"""The options that only `certify` has: the profile, and the description of the product in the manifest."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from conformance.certification import profiles
from conformance.spec.options import add_command_options

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
    """Add the options to the parser: those of the suite, and the description of the product."""
    add_command_options(parser, "certify")
    parser.add_argument(
        "--profile", choices=profiles.PROFILES, default="full", help="what to certify (default: %(default)s)"
    )
    _add_product_options(parser)
    _add_key_options(parser)
    parser.add_argument(
        "-n", "--workers", metavar="N", type=int, default=0, help="use N processes (pip install pytest-xdist)"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="the folder to write, absent or empty"
    )


def _add_product_options(parser: argparse.ArgumentParser) -> None:
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
