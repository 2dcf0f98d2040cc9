"""`oip-conformance` as a program, which certifies and verifies by few rows: for the commands of pages."""

from __future__ import annotations

import sys

from conformance.commands.main import main
from tests.support.certify_runs import certify_few_rows

if __name__ == "__main__":
    with certify_few_rows():
        sys.exit(main())
