"""Errors for a failed connection, and for a target that cannot be reached any more."""

from __future__ import annotations

import ssl
from typing import Any

from conformance.spec.extensions import HTTP


class TargetLostError(Exception):
    """The target cannot be reached or is silent, so that nothing else can be judged. The message is one line.

    `has_died`: whether the server has ended. True if the server has answered before, and now connections are refused
    or a gateway cannot reach the server; False if the cause is unclear, such as lost packets.
    """

    def __init__(self, text: str, *, has_died: bool = False) -> None:
        super().__init__(text)
        self.has_died = has_died


class UnreachableError(Exception):
    """A connection failed.

    Attributes:
        is_untrusted: whether the server's certificate is not trusted: a retry is useless.
        is_refused: whether the host refused the connection, or a gateway reports that it cannot reach its server.
        before: what the call returns if the server does not come back: its exchanges on a kept connection, which ended
            before this error; None if there are none.
    """

    def __init__(
        self,
        text: str,
        *,
        is_untrusted: bool = False,
        is_refused: bool = False,
        transport: str = HTTP,
        before: Any | None = None,
    ) -> None:
        super().__init__(text)
        self.transport = transport
        self.is_untrusted = is_untrusted
        self.is_refused = is_refused
        self.before = before


def is_certificate_error(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, is a failed verification of a certificate."""
    return has_cause(error, ssl.SSLCertVerificationError)


def is_refused_or_ended(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, is a connection that the peer refused, or ended at once."""
    return has_cause(error, ConnectionRefusedError, ConnectionResetError, ssl.SSLEOFError)


def describe_missing_tls(error: OSError, scheme: str) -> str:
    """Return a hint for the end of a message if what the peer sends is no TLS; `scheme` is the one without TLS."""
    is_plain = isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER"
    return f"; the server does not speak TLS: try {scheme}://" if is_plain else ""


def has_cause(error: BaseException | None, *kinds: type[BaseException]) -> bool:
    """Return whether an error, or one of its causes, is of one of these kinds."""
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__ or error.__context__
    return False
