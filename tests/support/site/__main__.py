"""Build the site, strictly: a link that leads nowhere, or a page that the navigation leaves out, is an error.

    python -m tests.support.site [FOLDER]

The folder is build/site unless another is named.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tests.support.site import generated, links, searching, shrinking, staging


def main() -> int:
    if find_spec("mkdocs") is None or find_spec("material") is None:
        print("MkDocs is not installed: run `tox -e docs`", file=sys.stderr)
        return 4
    for fault in (faults := list(links.find_broken_links())):
        print(fault, file=sys.stderr)
    if faults:
        return 1
    site = Path(sys.argv[1] if len(sys.argv) > 1 else generated.ROOT / "build/site").resolve()
    with tempfile.TemporaryDirectory() as folder:
        config = staging.stage(Path(folder))
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "-f", str(config), "-d", str(site)]
        status = subprocess.run(command, check=False).returncode
    if status == 0:
        searching.mend_worker(site)
        shrinking.shrink(site)
        size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
        print(f"the site is in {site} ({size / 1e6:.1f} MB): python -m http.server -d {site} shows it")
    return status


if __name__ == "__main__":
    sys.exit(main())
