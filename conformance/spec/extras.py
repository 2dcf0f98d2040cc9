"""The extras of the package: what a plain installation leaves out, because not everybody needs it.

Whatever rests on one asks here first, so that a user reads which to install, and never an ImportError.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from conformance.spec.user_error import UserError

# Extra -> modules that come with it. They are imported, not looked up: packages may be there and not fit each other.
MODULES: Mapping[str, tuple[str, ...]] = {
    "fleet": ("distributed",),
    "grpc": ("grpc", "h2", "tritonclient.grpc"),
    "signing": ("cryptography.hazmat.primitives.asymmetric.ed25519",),
}


class MissingExtraError(UserError):
    """What a user asked for needs an extra that is not installed; the message names it."""

    status = 4


def is_installed(extra: str) -> bool:
    """Whether what an extra brings can be imported."""
    try:
        for name in MODULES[extra]:
            import_module(name)
    except Exception:  # packages that do not fit each other raise all kinds
        return False
    return True


def expect_installed(extra: str, what: str) -> None:
    """See that an extra is there.

    Args:
        extra: a key of `MODULES`.
        what: what needs it, as the user wrote it, for the message.

    Raises:
        MissingExtraError: it is not.
    """
    if not is_installed(extra):
        raise MissingExtraError(describe_missing(extra, what))


def describe_missing(extra: str, what: str) -> str:
    """Return the sentence that says what needs an extra, and how to install it."""
    return f"{what} needs the extra {extra}: {format_install_command(extra)}"


def format_install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'oip-conformance[{extra}]'"
