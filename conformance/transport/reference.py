"""Starts the bundled reference server for a run and stops it afterwards, as a process of its own.

The judge shares no code with the judged, so it is started by name and reached by URL only.
"""

from __future__ import annotations

import subprocess
import sys
import threading

START_COMMAND = (sys.executable, "-m", "reference_server", "--host", "127.0.0.1", "--port", "0", "--with-stdin")
MAX_START_S = 30.0


class ReferenceServer:
    """The bundled server on a free port of 127.0.0.1.

    Attributes:
        url: where it listens.
        grpc: where it listens for gRPC, as host:port; None where that was not asked for.
    """

    def __init__(self, *options: str, grpc: bool = False) -> None:
        """Start the server and wait until it is ready.

        Args:
            options: more of its command line.
            grpc: over gRPC, too, for which the extra has to be installed.

        Raises:
            RuntimeError: it did not start.
        """
        over_grpc = ["--grpc-port", "0"] if grpc else []
        # The output of the server would fill a pipe that nobody reads; its lines come first.
        self._process = subprocess.Popen(
            [*START_COMMAND, *over_grpc, *options],
            stdin=subprocess.PIPE,  # whose end ends the server, however this process comes to its own
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
            raise RuntimeError("the bundled reference server did not start: try `python -m reference_server`")

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
