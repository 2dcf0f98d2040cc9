"""The optional extras of the package, which a plain installation leaves out.

Code that needs an extra checks for it here first, so that users see an install command, not an ImportError.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from conformance.spec.user_error import UserError

# Extra -> its modules. They are imported, not just located: installed packages may be incompatible.
MODULES: Mapping[str, tuple[str, ...]] = {
    "completion": ("shtab",),
    "fleet": ("distributed",),
    "grpc": ("grpc", "h2", "tritonclient.grpc"),
    "signing": ("cryptography.hazmat.primitives.asymmetric.ed25519",),
}


class MissingExtraError(UserError):
    """An extra is not installed; the message names the extra and the feature that needs it."""

    status = 4


def is_installed(extra: str) -> bool:
    """Return whether the modules of an extra can be imported."""
    try:
        for name in MODULES[extra]:
            import_module(name)
    except Exception:  # incompatible packages raise all kinds of exceptions
        return False
    return True


def expect_installed(extra: str, feature: str) -> None:
    """Raise an error if an extra is not installed.

    Args:
        extra: a key of `MODULES`.
        feature: what needs the extra, for the message; for example the option that the user wrote.

    Raises MissingExtraError: the extra is not installed.
    """
    if not is_installed(extra):
        raise MissingExtraError(describe_missing(extra, feature))


def describe_missing(extra: str, feature: str) -> str:
    """Return a sentence that names the feature, the extra that it needs, and the install command."""
    return f"{feature} needs the extra {extra}: {format_install_command(extra)}"


def format_install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'oip-conformance[{extra}]'"
