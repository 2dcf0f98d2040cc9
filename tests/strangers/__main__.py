"""Judges strangers' servers, all of them or those that are named: `python -m tests.strangers go java`.

Exit status: 0 all are conformant, 1 one is not, 2 a name is not known or a package of Debian's is missing.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance import judge
from tests.strangers.servers import STRANGERS, serving


def main(names: list[str]) -> int:
    """Judge these and print a line for each; return the exit status."""
    unknown = [name for name in names if name not in STRANGERS]
    missing = [name for name in names or STRANGERS if name not in unknown and _lacks_compiler(name)]
    if unknown or missing:
        needs = {package for name in missing for package in STRANGERS[name].packages}
        print("; ".join([*(f"no stranger {name}" for name in unknown), *(f"install {name}" for name in sorted(needs))]))
        return 2
    reports = []
    for name in names or STRANGERS:
        with TemporaryDirectory() as folder, serving(name, Path(folder)) as url:
            reports.append(judge(url))
        print(f"{name}: {reports[-1]}", flush=True)
    return int(any(report.verdict != "conformant" for report in reports))


def _lacks_compiler(name: str) -> bool:
    build = STRANGERS[name].build
    return bool(build) and shutil.which({"sh": "javac"}.get(build[0], build[0])) is None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
