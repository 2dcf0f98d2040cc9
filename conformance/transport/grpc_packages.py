"""The packages that gRPC needs: they come with an extra, and may not be there."""

from __future__ import annotations

import os

from conformance.spec import extras

EXTRA = "grpc"
INSTALL_GRPC = extras.format_install_command(EXTRA)


def has_grpc() -> bool:
    """Whether the packages that gRPC needs are installed, and fit each other."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    return extras.is_installed(EXTRA)


def expect_grpc(what: str) -> None:
    """See that gRPC can be spoken.

    Raises:
        MissingExtraError: it cannot; the message says that `what` needs the extra.
    """
    if not has_grpc():
        raise extras.MissingExtraError(extras.describe_missing(EXTRA, what))
