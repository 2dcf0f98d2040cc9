"""Known vulnerabilities of what an installation with every extra pulls in, in the versions that are installed here.

    python -m tests.support.audit

pip-audit asks an index over the network. Where that has no answer it skips the package and ends with 0, as if all were
well; here that is a failure. Exit status 1: there are vulnerabilities; 2: of some packages it cannot be said.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

from tests.support import dependencies

OPTIONS = ("--no-deps", "--disable-pip", "--format=json", "--progress-spinner=off", "--timeout=20")
VULNERABLE, UNKNOWN = 1, 2


class AuditResult(NamedTuple):
    """What is said, and the exit status."""

    text: str
    status: int


def judge_packages(packages: Sequence[Mapping[str, Any]], count: int) -> AuditResult:
    """Return what pip-audit's findings say of so many packages."""
    known = [one for one in packages if "skip_reason" not in one]
    vulnerable = [
        f"{one['name']} {one['version']}: {found['id']}, mended in {', '.join(found['fix_versions']) or 'no version'}"
        for one in known
        for found in one["vulns"]
    ]
    if vulnerable:
        return AuditResult("\n".join(vulnerable), VULNERABLE)
    if len(known) < count:
        missing = count - len(known)
        return AuditResult(f"the index of vulnerabilities has no answer for {missing} of {count} packages", UNKNOWN)
    return AuditResult(f"no known vulnerability in {count} packages", 0)


def main() -> int:
    names = [package.name for package in dependencies.find_installed()]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="ascii") as file:
        file.writelines(f"{name}=={version(name)}\n" for name in names)
        file.flush()
        command = [sys.executable, "-m", "pip_audit", "--requirement", file.name, *OPTIONS]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found = judge_packages(json.loads(asked.stdout)["dependencies"], len(names))
    except (ValueError, LookupError):  # it says why on standard error, at length
        found = AuditResult("the index of vulnerabilities cannot be reached", UNKNOWN)
    print(found.text, file=sys.stderr if found.status else sys.stdout)
    return found.status


if __name__ == "__main__":
    sys.exit(main())
