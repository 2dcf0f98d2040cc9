"""The base class of errors that the user can correct; commands show them as one line, without a traceback."""

from __future__ import annotations


class UserError(Exception):
    """An error that the user can correct; the message is one line with the problem and, if known, the remedy.

    `status`: the exit status of the command; 2, like usage errors of argparse.
    """

    status = 2
