"""`python -m tests.clients.honest [--fault NAME] [--variation NAME]`: the adapter of the honest client."""

from __future__ import annotations

import argparse
import sys

from tests.clients import alterations
from tests.clients.honest import lines


def main() -> None:
    """Answer the lines of the suite, as the client that the options name."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients.honest")
    parser.add_argument("--fault", metavar="NAME", choices=alterations.load("faults"))
    parser.add_argument("--variation", metavar="NAME", choices=alterations.load("variations"))
    parser.add_argument("--list", action="store_true", help="print the names of faults and variations")
    options = parser.parse_args()
    if options.list:
        print(*alterations.load("faults"), *alterations.load("variations"), sep="\n")  # noqa: T201
        return
    chosen = [("faults", options.fault), ("variations", options.variation)]
    with alterations.apply(*(alterations.load(kind)[name] for kind, name in chosen if name)):
        lines.serve(sys.stdin, sys.stdout)


if __name__ == "__main__":
    main()
