"""The options of `certify`: the server, the profile, and the description of the product in the manifest."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.certification import profiles
from conformance.commands.connection_options import add_header, add_url
from conformance.spec.outcome import GATES

REQUIRED_OPTIONS: Mapping[str, str] = {
    "vendor": "who certifies",
    "product": "what: the name that the server reports, or see --alias-of",
    "product-version": "which: the version that it reports, or see --alias-of",
    "contact": "whom to ask: an address that somebody reads",
}
# Metavar and help of options that do not affect the verdict, but that a registry may require.
OPTIONAL_OPTIONS: Mapping[str, tuple[str, str]] = {
    "product-url": ("URL", "where the product can be had"),
    "licence": ("TEXT", "its licence, as an SPDX identifier or in a few words"),
    "container": ("IMAGE@sha256:DIGEST", "the image that is judged"),
    "version-command": ("COMMAND", "what prints the product's version; for people, nothing runs it"),
    "expires": ("YYYY-MM-DD", "the last day on which it is valid (default, and at most: a year after the run)"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    _add_server(parser)
    _add_product(parser)
    _add_keys(parser)
    parser.add_argument(
        "-n",
        "--workers",
        metavar="N",
        type=int,
        default=0,
        help="judge in so many processes, with pytest-xdist (default: in one)",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="absent or empty")


def _add_server(parser: argparse.ArgumentParser) -> None:
    add_url(parser, "the server")
    parser.add_argument("--target-config", metavar="FILE", help="or a file about it")
    parser.add_argument("--target-grpc", metavar="HOST:PORT", help="where it listens for gRPC, to certify that, too")
    parser.add_argument(
        "--target-model",
        metavar="NAME",
        action="append",
        default=[],
        help="judge this deployed model, whatever it computes (repeatable); all: every one that the server lists",
    )
    add_header(parser)
    parser.add_argument("--target-ca", metavar="FILE", help="verify TLS with these certificates")
    parser.add_argument("--target-timeout", metavar="S", type=float, help="seconds (default: 10)")


def _add_product(parser: Any) -> None:
    parser.add_argument(
        "--profile", choices=profiles.PROFILES, default="full", help="what to certify (default: %(default)s)"
    )
    parser.add_argument(
        "--conformance-gate",
        choices=GATES,
        help="conformant: certify no server of which some MUST that applies was not judged; interoperable: certify one "
        "that meets every MUST about exchanges and the transport, and not every one about refusals (default: as "
        "conformant, or as partial where nothing failed and not every MUST was judged)",
    )
    for name, what in REQUIRED_OPTIONS.items():
        parser.add_argument(f"--{name}", required=True, metavar="TEXT", help=what)
    parser.add_argument(
        "--alias-of", nargs=2, metavar=("NAME", "VERSION"), help="what the server reports, where the label differs"
    )
    parser.add_argument("--alias-reason", metavar="TEXT", help="why it does")
    parser.add_argument(
        "--self-test", action="store_true", help="of the suite's own server, which is no product: to try it out"
    )
    for name, (metavar, what) in OPTIONAL_OPTIONS.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=what)


def _add_keys(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sign",
        type=Path,
        metavar="KEY",
        help="sign with this Ed25519 private key (PEM); default: with one made for this folder, and thrown away",
    )
    parser.add_argument("--third-party", metavar="NAME", help="who makes this run, where that is not the vendor")
    parser.add_argument("--third-party-contact", metavar="TEXT", help="whom to ask there")
    parser.add_argument(
        "--countersign", type=Path, metavar="KEY", help="their Ed25519 private key (PEM), which signs the folder, too"
    )
