"""Errors of the user, which commands show as one line, without a traceback."""

from __future__ import annotations


class UserError(Exception):
    """The message is one line with the problem and, if known, the remedy.

    Attributes:
        status: the exit status of the command; 2, like usage errors of argparse.
    """

    status = 2
