"""A subprocess that answers each line on standard input with one line on standard output, within a time limit.

One thread writes the line and reads standard output and standard error, without blocking, until the answer is complete
or the time limit is over. The program runs in a process group of its own, which is killed with its child processes.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from conformance.spec.text import escape_text


class AdapterError(Exception):
    """The adapter exited, hung, or violated the adapter protocol. The message is one line of escaped text.

    `stderr`: the last lines of the adapter's standard error, escaped.
    """

    def __init__(self, message: str, stderr: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.stderr = tuple(stderr)


class AdapterHangsError(AdapterError):
    """The adapter is still running, but has not answered in time."""


class AdapterLostError(AdapterError):
    """The adapter is not used any more, because the adapter failed or its client hung too often in a row."""


MAX_LINE_BYTES = 512 * 1024 * 1024  # bytes
CHUNK = 1024 * 1024
POLL_INTERVAL_S = 0.5  # seconds between two checks that a silent program still runs
GRACE_S = 2.0  # seconds for the program to exit once its standard input is closed
TAIL_BYTES, TAIL_LINES, MAX_TAIL_CHARS = 8192, 12, 300  # of standard error


class LineProcess:
    """A running program that answers line by line. Its owner must call `stop`."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start the program without a shell. Raises AdapterError: the program cannot be started."""
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise AdapterError(f"the adapter cannot be started: {escape_text(command[0])}: {why}") from None
        self._in, self._out, self._err = (_get_pipe(self._process, name) for name in ("stdin", "stdout", "stderr"))
        self._unsent = memoryview(b"")
        self._received = bytearray()
        self._tail = b""
        self._selector = selectors.DefaultSelector()
        for file in (self._in, self._out, self._err):
            os.set_blocking(file.fileno(), False)
        self._selector.register(self._out, selectors.EVENT_READ)
        self._selector.register(self._err, selectors.EVENT_READ)

    def exchange_line(self, line: bytes, seconds: float) -> bytes:
        """Write a line to standard input, and return the answer line without its newline.

        Raises:
            AdapterHangsError: the program is still running, but has not answered within the time limit.
            AdapterError: the program has exited, has answered too early, or its answer is too long.
        """
        if self._unsent:
            raise AdapterError("the adapter answered a line before it had read the whole line")
        self._unsent = memoryview(line)
        self._selector.register(self._in, selectors.EVENT_WRITE)
        deadline, searched = time.monotonic() + seconds, 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > MAX_LINE_BYTES:
                raise AdapterError(f"a line of the adapter is longer than {MAX_LINE_BYTES} bytes")
            self._exchange_bytes(deadline, seconds)
        answer = bytes(self._received[:end])
        del self._received[: end + 1]
        return answer

    @property
    def last_error_lines(self) -> list[str]:
        """The last lines of the program's standard error, escaped."""
        self._drain_errors()
        lines = self._tail.decode("utf-8", "replace").splitlines()
        return [escape_text(line, MAX_TAIL_CHARS) for line in lines[-TAIL_LINES:]]

    def stop(self, *, grace: float = GRACE_S) -> None:
        """Close standard input, wait up to `grace` seconds, and kill the process group."""
        self._unregister(self._in)
        with suppress(OSError):
            self._in.close()
        deadline = time.monotonic() + grace
        with suppress(AdapterError):
            while grace:
                self._received.clear()
                self._exchange_bytes(deadline, grace)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._selector.close()
        self._out.close()
        self._err.close()

    # --- non-blocking reads and writes ---

    def _exchange_bytes(self, deadline: float, seconds: float) -> None:
        """Wait until a pipe is ready, then read and write without blocking.

        Raises:
            AdapterHangsError: the deadline has passed.
            AdapterError: the program has exited or closed its standard output.
        """
        left = deadline - time.monotonic()
        if left <= 0:
            raise AdapterHangsError(f"the adapter has not answered in {seconds:g} s")
        ready = {key.fileobj for key, _ in self._selector.select(min(left, POLL_INTERVAL_S))}
        if not ready and self._process.poll() is not None:
            raise self._build_exit_error()
        if self._in in ready:
            self._write_input()
        if self._err in ready:
            self._drain_errors()
        if self._out in ready:
            self._read_output()

    def _write_input(self) -> None:
        try:
            count = os.write(self._in.fileno(), self._unsent[:CHUNK])
        except BlockingIOError:
            return
        except OSError:  # the pipe is closed; its output and exit status can still be read
            self._unregister(self._in)
            return
        self._unsent = self._unsent[count:]
        if not self._unsent:
            self._unregister(self._in)

    def _read_output(self) -> None:
        data = _read_available(self._out)
        if data == b"":
            raise self._build_exit_error()
        self._received += data or b""

    def _drain_errors(self) -> None:
        while data := _read_available(self._err):
            self._tail = (self._tail + data)[-TAIL_BYTES:]
        if data == b"":
            self._unregister(self._err)

    def _unregister(self, file: IO[bytes]) -> None:
        if file in self._selector.get_map():
            self._selector.unregister(file)

    def _build_exit_error(self) -> AdapterError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(POLL_INTERVAL_S)
        status = self._process.returncode
        if status is None:
            return AdapterError("the adapter has closed its standard output")
        if status < 0:
            return AdapterError(f"the adapter was killed by {signal.Signals(-status).name}")
        return AdapterError(f"the adapter exited with status {status}")


def _get_pipe(process: subprocess.Popen[bytes], name: str) -> IO[bytes]:
    file: IO[bytes] | None = getattr(process, name)
    if file is None:
        raise RuntimeError(f"{name} is not a pipe")
    return file


def _read_available(file: IO[bytes]) -> bytes | None:
    """Read the bytes available in a pipe: empty if the other end is closed, None if no bytes are available."""
    try:
        return os.read(file.fileno(), CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""
