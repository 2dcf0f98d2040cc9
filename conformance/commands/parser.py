"""The argument parser of `oip-conformance`: every usage error is one line with the command that explains more."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors are one line.

    `usage_status`: the exit status of usage errors; not 2 for subcommands in which 2 has another meaning.
    """

    usage_status = 2

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Disallow abbreviated options; store the parser (of the chosen subcommand) as the option `parser`."""
        super().__init__(*arguments, **{"allow_abbrev": False, **options})
        self.set_defaults(parser=self)

    def error(self, message: str) -> NoReturn:
        """Print the message with the command that explains the options, and exit."""
        self.exit(self.usage_status, f"{self.prog}: error: {message}; see `{self.prog} --help`\n")

    def reject_unknown_arguments(self, unknown: Sequence[str]) -> None:
        """Exit with an error if there are unknown arguments; do not show values of options, which may be secret."""
        options = [word.partition("=")[0] for word in unknown if word.startswith("-")]
        for name in options:
            near = get_close_matches(name, self._option_string_actions, 1)
            self.error(f"unknown option {name}" + (f", did you mean {near[0]}?" if near else ""))
        for word in unknown:
            self.error(f"one argument too many: {word!r}")
