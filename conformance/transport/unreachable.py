"""No connection: for now, or for good."""

from __future__ import annotations

import ssl


class TargetLostError(Exception):
    """The target takes no connection any more: what is left cannot be judged. The message is one line.

    Attributes:
        has_died: it answered before, and connections are refused since, or a gateway cannot reach it: the server ended.
            Where a network loses its packets or a name is no longer known, nobody can say so.
    """

    def __init__(self, text: str, *, has_died: bool = False) -> None:
        super().__init__(text)
        self.has_died = has_died


class UnreachableError(Exception):
    """No connection could be made.

    Attributes:
        is_untrusted: the server is there, and its certificate is not to be trusted: to try again is in vain.
        is_refused: its machine is there and nothing listens, or a gateway says that nothing is behind it.
    """

    def __init__(self, text: str, *, is_untrusted: bool = False, is_refused: bool = False) -> None:
        super().__init__(text)
        self.is_untrusted = is_untrusted
        self.is_refused = is_refused


def is_about_trust(error: BaseException | None) -> bool:
    """Say whether an error, or one that it came of, is a certificate that could not be verified."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def is_about_refusal(error: BaseException | None) -> bool:
    """Say whether an error, or one that it came of, is a connection that was refused."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError | ConnectionResetError):
            return True
        error = error.__cause__ or error.__context__
    return False
