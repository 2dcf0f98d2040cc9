"""The packages that gRPC needs: they come with an extra, and may not be there."""

from __future__ import annotations

import os
from importlib import import_module

INSTALL_GRPC = "pip install 'oip-conformance[grpc]'"


def has_grpc() -> bool:
    """Whether the packages that gRPC needs are installed, and fit each other."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        for name in ("grpc", "h2", "tritonclient.grpc"):
            import_module(name)
    except Exception:  # packages that do not fit each other raise all kinds
        return False
    return True
