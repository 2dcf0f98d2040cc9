"""nginx from Debian in front of a server: found or fetched, and run in a folder of its own, without root."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import debian
from tests.support.programs import start_program
from tests.support.scripts import find_free_port

MAX_START_S = 10.0

# The folders that nginx would otherwise want below /var/lib.
SCRATCH = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")

CONFIGURATION = """daemon off;
master_process off;
pid nginx.pid;
events {{ worker_connections 512; }}
http {{
  access_log access.log;
  {scratch}
  upstream kept {{ server {upstream}; keepalive 4; }}
  {servers}
}}
"""


def find_nginx(cache: Path) -> Path:
    """Return nginx: the one that is installed, or else Debian's, unpacked in the folder `cache`.

    Raises:
        RuntimeError: it can be neither found nor fetched; the message says what to do.
    """
    installed = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin")
    if installed:
        return Path(installed)
    return debian.unpack(cache, "nginx", needs="the tests of gateways") / "usr/sbin/nginx"


@dataclass(frozen=True)
class Gateway:
    """An nginx that is running.

    Attributes:
        port: of 127.0.0.1.
        log: one line for each request that came through.
    """

    port: int
    log: Path


@contextmanager
def run_nginx(nginx: Path, folder: Path, upstream: str, servers: str) -> Iterator[Gateway]:
    """Run nginx and stop it afterwards.

    Args:
        nginx: the program.
        folder: an empty one for configuration, logs and scratch files.
        upstream: URL of the server behind it; also to be had as http://kept, over connections that are kept.
        servers: `server` blocks of nginx; LISTEN stands for its address, UPSTREAM for the URL of the server behind it.

    Raises:
        RuntimeError: it does not start; the message has its own.
    """
    port = int(find_free_port())
    scratch = " ".join(f"{name}_temp_path {name};" for name in SCRATCH)
    servers = servers.replace("LISTEN", f"127.0.0.1:{port}").replace("UPSTREAM", upstream)
    text = CONFIGURATION.format(scratch=scratch, upstream=upstream.removeprefix("http://"), servers=servers)
    (folder / "nginx.conf").write_text(text)
    command = [str(nginx), "-e", "error.log", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with start_program(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _wait(process, port, folder / "error.log")
        yield Gateway(port, folder / "access.log")


def _wait(process: subprocess.Popen[str], port: int, log: Path) -> None:
    until = time.monotonic() + MAX_START_S
    while process.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError(f"nginx does not start: {log.read_text() if log.exists() else 'it left no log'}")
