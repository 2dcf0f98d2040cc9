"""Starts the bundled reference server as a subprocess for a run, and stops it afterwards.

The suite shares no code with the server that it judges: it starts the server by name and reaches it by URL.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from conformance.spec.user_error import UserError

REFERENCE: Final = "reference"  # stands for the URL of the bundled server
START_COMMAND = (sys.executable, "-m", "reference_server", "--host", "127.0.0.1", "--port", "0", "--with-stdin")
MAX_START_S = 30.0


class ReferenceServer:
    """The bundled server on a free port of 127.0.0.1.

    Attributes:
        url: its HTTP address.
        grpc: its gRPC address as host:port; None if gRPC was not requested.
    """

    def __init__(self, *options: str, packs: Sequence[str] = (), grpc: bool = False) -> None:
        """Start the server and wait until it is ready.

        `grpc`: serve gRPC as well, which requires the extra.

        Raises UserError: the server did not start.
        """
        over_grpc = ["--grpc-port", "0"] if grpc else []
        # The addresses are its first lines of output. Further output would fill an unread pipe.
        self._process = subprocess.Popen(
            [*START_COMMAND, *over_grpc, *(f"--pack={name}" for name in packs), *options],
            stdin=subprocess.PIPE,  # the server exits when this pipe closes, however this process ends
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        watchdog = threading.Timer(MAX_START_S, self._process.kill)
        watchdog.start()
        try:
            assert self._process.stdout is not None  # noqa: S101 - for the type checker
            self.url = self._process.stdout.readline().strip()
            self.grpc = self._process.stdout.readline().strip().removeprefix("grpc ") if grpc else None
        finally:
            watchdog.cancel()
        if not self.url.startswith("http://"):
            self.stop()
            raise UserError("the bundled reference server did not start: try `oip-conformance serve`")

    def stop(self) -> None:
        """Stop the server."""
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def serve_reference(url: str, packs: Sequence[str] = ()) -> Iterator[str]:
    """Yield a URL; for `reference`, run the bundled server during the block, and yield the URL of this server.

    `packs` are the installed packs whose roles it serves as well.

    Raises UserError: the bundled server does not start.
    """
    if url != REFERENCE:
        yield url
        return
    server = ReferenceServer(packs=packs)
    try:
        yield server.url
    finally:
        server.stop()
