"""Errors for a failed connection: temporary or permanent."""

from __future__ import annotations

import ssl


class TargetLostError(Exception):
    """The target accepts no connections any more, so that nothing else can be judged. The message is one line.

    Attributes:
        has_died: the server ended: it answered before, and now connections are refused, or a gateway cannot reach it.
            False if the cause is unclear, as with lost packets or a failed name lookup.
    """

    def __init__(self, text: str, *, has_died: bool = False) -> None:
        super().__init__(text)
        self.has_died = has_died


class UnreachableError(Exception):
    """A connection failed.

    Attributes:
        is_untrusted: the server answers, but its certificate is not trusted: a retry is useless.
        is_refused: the host is up but nothing listens, or a gateway reports that it reaches no server.
    """

    def __init__(self, text: str, *, is_untrusted: bool = False, is_refused: bool = False) -> None:
        super().__init__(text)
        self.is_untrusted = is_untrusted
        self.is_refused = is_refused


def is_about_trust(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, is a failed verification of a certificate."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def is_about_refusal(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, is a refused or reset connection."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError | ConnectionResetError):
            return True
        error = error.__cause__ or error.__context__
    return False
