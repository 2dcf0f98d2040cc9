"""Sends every valid golden request of fixtures/ with curl, to the address in OIP_TARGET_URL.

    oip-conformance client watch -- python targets/clients/curl_fixtures.py

Exit status 1 where curl fails, or an answer has not the status that its fixture says; what a server may refuse, it may.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

VALID = Path(__file__).resolve().parents[2] / "fixtures" / "valid"
COUNTED_BY_CURL = "content-length"


def command(folder: Path, case: dict[str, Any], url: str) -> list[str]:
    """Return the curl command that sends a case; curl adds no Content-Type where the case has none."""
    given = {name: value for name, value in case["request"]["headers"].items() if name.lower() != COUNTED_BY_CURL}
    headers = [f"{name}: {value}" for name, value in given.items()]
    if "content-type" not in map(str.lower, given):
        headers.append("Content-Type:")
    options = [option for header in headers for option in ("-H", header)]
    body = f"@{folder / 'request.bin'}"
    return ["curl", "-sS", "-o", os.devnull, "-w", "%{http_code}", "--data-binary", body, *options, url]


def sent(folder: Path, url: str) -> str:
    """Send one case; return what went wrong, or nothing."""
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    done = subprocess.run(
        command(folder, case, url + case["request"]["path"]), capture_output=True, text=True, check=False
    )
    answer = case["answer"]
    wanted = [str(answer["status"]), *(["400"] if answer.get("may_refuse") else [])]
    if done.returncode or done.stdout not in wanted:
        return f"{folder.name}: status {done.stdout}, expected {' or '.join(wanted)} {done.stderr.strip()}"
    return ""


def main() -> int:
    """Send all cases and return the exit status."""
    folders = sorted(path.parent for path in VALID.glob("*/case.json"))
    wrong = [line for line in (sent(folder, os.environ["OIP_TARGET_URL"]) for folder in folders) if line]
    print(*wrong, f"{len(folders)} golden requests sent, {len(wrong)} not answered as they should be", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
