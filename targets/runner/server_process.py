"""Starts a server as a process group of its own on 127.0.0.1, waits until it is ready, and stops it."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

READY = "/v2/health/ready"
READY_CALL = "/inference.GRPCInferenceService/ServerReady"
READY_ANSWER = b"\x08\x01"  # field 1, `ready`, is true
MAX_PROBE_S = 2.0
START_LIMIT = 180.0
MAX_STOP_S = 30.0
MAX_LOG_LINES = 15


class RecipeError(Exception):
    """Why a server could not be judged."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs.

    Attributes:
        process: the leader of its process group.
        addresses: `http` or `grpc` -> host and port where it listens.
        log: what it prints.
    """

    process: subprocess.Popen[bytes]
    addresses: Mapping[str, str]
    log: Path

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
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-MAX_LOG_LINES:]
        return "\n".join(f"    {line}" for line in lines)

    def stop(self) -> None:
        """Stop the server and all its processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(MAX_STOP_S)
        with suppress(ProcessLookupError):  # what did not listen, and what the leader left behind
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def find_free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], addresses: Mapping[str, str], work: Path
) -> Server:
    """Start a server in `folder` and return it when it is ready at each address; its log is server.log in `work`.

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
    server = Server(process, addresses, log)
    try:
        _wait(server)
    except BaseException:
        server.stop()
        raise
    return server


def _wait(server: Server) -> None:
    deadline = time.monotonic() + START_LIMIT
    while not all(PROBES[transport](address) for transport, address in server.addresses.items()):
        server.check_alive()
        if time.monotonic() > deadline:
            raise RecipeError(f"the server is not ready after {START_LIMIT:.0f} s:\n{server.last_lines()}")
        time.sleep(0.25)


def _is_ready_over_http(address: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=MAX_PROBE_S)
    try:
        connection.request("GET", READY)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _is_ready_over_grpc(address: str) -> bool:
    import grpc  # of the suite's extra, which a server with HTTP alone can do without

    with grpc.insecure_channel(address) as channel:
        try:
            return bool(channel.unary_unary(READY_CALL)(b"", timeout=MAX_PROBE_S) == READY_ANSWER)
        except grpc.RpcError as error:  # a server without this method is ready to say so
            return bool(error.code() is grpc.StatusCode.UNIMPLEMENTED)


PROBES: Mapping[str, Callable[[str], bool]] = {"http": _is_ready_over_http, "grpc": _is_ready_over_grpc}
