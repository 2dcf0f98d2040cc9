"""The parser of `oip-conformance` and of its subcommands, whose usage errors end with the status of the subcommand."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """As argparse has it, but for the exit status of a usage error.

    Attributes:
        usage_status: that one; another than argparse's where 2 means something else.
    """

    usage_status = 2

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, and end."""
        self.print_usage(sys.stderr)
        self.exit(self.usage_status, f"{self.prog}: error: {message}\n")
