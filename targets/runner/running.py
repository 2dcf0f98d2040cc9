"""Starts a server as a process group of its own on 127.0.0.1, waits until it is ready, and stops it."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

READY = "/v2/health/ready"
START_LIMIT = 180.0
STOP_LIMIT = 30.0
LOG_LINES = 15


class RecipeError(Exception):
    """Why a server could not be judged."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs.

    Attributes:
        process: the leader of its process group.
        log: what it prints.
    """

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def check_alive(self) -> None:
        """Hold that the server still runs.

        Raises:
            RecipeError: it has ended by itself.
        """
        status = self.process.poll()
        if status is not None:
            raise RecipeError(f"the server ended by itself with status {status}:\n{self.last_lines()}")

    def last_lines(self) -> str:
        """Return the end of what the server printed."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
        return "\n".join(f"    {line}" for line in lines)

    def stop(self) -> None:
        """Stop the server and all its processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_LIMIT)
        with suppress(ProcessLookupError):  # what did not listen, and what the leader left behind
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def start(command: Sequence[str], folder: Path, environment: Mapping[str, str], port: int, work: Path) -> Server:
    """Start a server in `folder` and return it when it is ready; its log is server.log in `work`.

    Raises:
        RecipeError: it ended, or is not ready in time; it is stopped then.
    """
    log = work / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(process, port, log)
    try:
        _wait(server)
    except BaseException:
        server.stop()
        raise
    return server


def _wait(server: Server) -> None:
    deadline = time.monotonic() + START_LIMIT
    while not _is_ready(server.port):
        server.check_alive()
        if time.monotonic() > deadline:
            raise RecipeError(f"the server is not ready after {START_LIMIT:.0f} s:\n{server.last_lines()}")
        time.sleep(0.25)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", READY)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
