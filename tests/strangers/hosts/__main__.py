"""Judges one honest application behind each HTTP server in hosts.toml, or behind those that are named.

    python -m tests.strangers.hosts gunicorn-sync cheroot

Exit status: 0 each is as hosts.toml says, 1 one is not, 2 a name is not known. `tox -e hosts` installs the servers.
"""

from __future__ import annotations

import shutil
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

from conformance import judge
from conformance.export import export
from tests.strangers.hosts import Host, read_hosts
from tests.support.programs import start_program

HERE = Path(__file__).parent
MAX_START_S = 30


def main(names: Sequence[str]) -> int:
    """Judge the application behind each server and print a line for each; return the exit status."""
    hosts = read_hosts()
    if unknown := [name for name in names if name not in hosts]:
        print(f"no HTTP server {', '.join(unknown)}; there are {', '.join(hosts)}")
        return 2
    surprises = 0
    for name in names or hosts:
        with TemporaryDirectory() as folder, serving(hosts[name], Path(folder)) as url:
            report = judge(url, profile="certify", config=Path(folder) / "target.toml")
        unmet = [found.requirement for found in report.failures]
        surprises += unmet != hosts[name].get("unmet", [])
        print(f"{name}: {report}{': ' if unmet else ''}{', '.join(unmet)}", flush=True)
    return int(surprises > 0)


@contextmanager
def serving(host: Host, folder: Path) -> Iterator[str]:
    """Serve the application in a folder, and yield its URL."""
    export("python", folder)
    for name in ("wsgi.py", "serve.py"):
        shutil.copy(HERE / name, folder)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    programs = Path(sys.executable).parent
    command = [str(programs / host["command"][0]), *(part.format(port=port) for part in host["command"][1:])]
    with start_program(command, cwd=folder, stdout=DEVNULL, stderr=DEVNULL):
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/v2")
        yield url


def wait_for(url: str) -> None:
    """Wait until a server answers.

    Raises:
        TimeoutError: it does not within `MAX_START_S`.
    """
    until = time.monotonic() + MAX_START_S
    while time.monotonic() < until:
        try:
            with urlopen(url, timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError(url)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
