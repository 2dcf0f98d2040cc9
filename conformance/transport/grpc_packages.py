"""The packages of the optional extra for gRPC, which may be missing."""

from __future__ import annotations

import os

from conformance.spec import extras

EXTRA = "grpc"
INSTALL_GRPC = extras.format_install_command(EXTRA)


def has_grpc() -> bool:
    """Return whether the packages for gRPC are installed, with compatible versions."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    return extras.is_installed(EXTRA)


def expect_grpc(feature: str) -> None:
    """Raise an error if the packages for gRPC are not installed.

    Raises MissingExtraError: a package is missing; the message says that `feature` needs the extra `grpc`.
    """
    if not has_grpc():
        raise extras.MissingExtraError(extras.describe_missing(EXTRA, feature))
