"""What a user asked for cannot be done: every such error is shown as one line, never as a traceback."""

from __future__ import annotations


class UserError(Exception):
    """The message is one line that says what is wrong, and what to do where that is known.

    Attributes:
        status: with which a command ends that raised it; 2, as argparse has it for a usage error.
    """

    status = 2
