"""Small HTTP servers for runs of the suite: a JSON-only one, one that dies halfway, and how to run pytest on them."""

from __future__ import annotations

import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import uvicorn

from tests.support import warm
from tests.support.programs import start_program

# Options of a reference server with few models: a whole run against it takes seconds, and has rows of every check.
FEW_MODELS = ("--model=identity_int32", "--model=multi", "--model=scores_labelled")
ONE_MODEL = "--model=multi"  # where any whole run will do
MIN_UNSERVED = 4  # connections in a row: one more than the suite takes for a sign that a server has ended
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no")


class JsonOnly(BaseHTTPRequestHandler):
    """An OIP server with one model, identity_int32, that knows no extension."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one write: two would wait for each other (Nagle's algorithm)

    def do_GET(self) -> None:
        known = {
            "/v2": {"name": "json\x1b[31m-only", "version": "1", "extensions": []},
            "/v2/models/identity_int32": {"name": "identity_int32", "inputs": [], "outputs": []},
        }
        self._answer(200 if self.path in known else 404, known.get(self.path, {"error": "unknown"}))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            tensor = json.loads(body)["inputs"][0]
            output = {**tensor, "name": "OUTPUT", "data": tensor["data"]}
        except (ValueError, TypeError, LookupError):
            self._answer(400, {"error": "not an inference request"})
        else:
            self._answer(200, {"model_name": "identity_int32", "outputs": [output]})

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        self._send(status, json.dumps(document).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Stay quiet."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # the suite opens 32 connections at once


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve with a handler; yields the URL."""
    with _run(_Server(("127.0.0.1", 0), handler)) as url:
        yield url


@contextmanager
def _run(server: socketserver.TCPServer) -> Iterator[str]:
    """Run a server of Python's library in a thread; yields the URL."""
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serve_app(config: uvicorn.Config) -> Iterator[str]:
    """Serve an app in a thread; yields the URL."""
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=5)


BUNDLED = ("-m", "reference_server")


@contextmanager
def run_bundled(*options: str, program: tuple[str, ...] = BUNDLED) -> Iterator[str]:
    """Start the reference server, or a variant of it, as a process of its own with these options; yields the URL."""
    with warm.start_program([*program, "--port", "0", *options], _environment()) as output:
        yield output.readline().rstrip("\n")


@contextmanager
def run_with_grpc(*options: str, program: tuple[str, ...] = BUNDLED) -> Iterator[tuple[str, str]]:
    """Start such a server over both transports; yields the URL, and host:port of gRPC."""
    with warm.start_program([*program, "--port", "0", "--grpc-port", "0", *options], _environment()) as output:
        yield output.readline().rstrip("\n"), output.readline().rstrip("\n").removeprefix("grpc ")


@contextmanager
def reserve_closed_port() -> Iterator[int]:
    """Yield a port of 127.0.0.1 that refuses connections, and that no other process can take meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        yield bound.getsockname()[1]


@contextmanager
def run_proxy(upstream: str, connections: int) -> Iterator[str]:
    """Pass so many connections on to a server, and end at the first request on a later one; yields the URL.

    A request is in flight at the end, so that the server has crashed: it was not stopped between two requests.
    """
    host, _, port = upstream.removeprefix("http://").rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        thread = threading.Thread(target=_pass_on, args=(listener, (host, int(port)), connections))
        thread.start()
        try:
            yield f"http://127.0.0.1:{address[1]}"
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _pass_on(listener: socket.socket, upstream: tuple[str, int], connections: int) -> None:
    pairs = []
    with suppress(OSError):
        while True:
            near, _ = listener.accept()
            pairs.append(near)
            if len(pairs) > 2 * connections and _is_written_to(near):
                break
            far = socket.create_connection(upstream)
            pairs.append(far)
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else every answer waits for 40 ms
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=_pump, args=(a, b), daemon=True).start()
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for end in pairs:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def _is_written_to(connection: socket.socket) -> bool:
    with suppress(OSError):
        return connection.recv(1, socket.MSG_PEEK) != b""
    return False


@contextmanager
def run_acceptor(upstream: str, answer: bytes = b"") -> Iterator[str]:
    """Pass connections on to a server; accept them also when it is gone, and then close them after `answer`.

    So do container runtimes, `kubectl port-forward` and gateways. A server that is gone refuses several connections,
    however soon it is started again and however slow the machine is. Yields the URL.
    """
    host, _, port = upstream.removeprefix("http://").rpartition(":")
    unserved = 0

    class Acceptor(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            nonlocal unserved
            try:
                if unserved % MIN_UNSERVED:
                    raise ConnectionRefusedError
                far = socket.create_connection((host, int(port)))
                unserved = 0
            except OSError:
                unserved += 1
                if answer:
                    self.request.recv(65536)
                    self.request.sendall(answer)
                return
            with far, suppress(OSError):
                for end in (self.request, far):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else every answer waits for 40 ms
                threading.Thread(target=_pump, args=(self.request, far), daemon=True).start()
                _pump(far, self.request)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Acceptor)
    server.daemon_threads = True
    with _run(server) as url:
        yield url


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


def judge(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder with these arguments; colours off, nothing of this test run's own environment."""
    return warm.run(warm.pytest_main, folder, [*PYTEST[3:], *arguments], _environment() | environment)


def judge_cached(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest likewise, with its cache of what failed in the folder."""
    return warm.run(warm.pytest_main, folder, ["--color=no", *arguments], _environment())


def judge_afresh(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest likewise, from the start of Python on: for tests of what is imported, and when."""
    return subprocess.run(
        [*PYTEST, *arguments],
        cwd=folder,
        env=_environment() | environment,
        capture_output=True,
        text=True,
        timeout=warm.MAX_RUN_S,
        check=False,
    )


def run_command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `oip-conformance` in a folder with these arguments."""
    return warm.run(warm.command_main, folder, arguments, _environment())


# pytest, which heeds SIGINT although these tests may be a shell's background job, where it is ignored.
PYTEST_WITH_SIGINT = (
    "import signal, sys, pytest; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "sys.exit(pytest.main(sys.argv[1:]))"
)


def judge_and_interrupt(folder: Path, *arguments: str, after: str) -> subprocess.CompletedProcess[str]:
    """Run pytest likewise, and send it SIGINT once its output has a line with the text `after`."""
    words = [sys.executable, "-c", PYTEST_WITH_SIGINT, *PYTEST[3:], *arguments]
    with start_program(words, cwd=folder, env=_environment(), stderr=subprocess.PIPE) as process:
        seen = []
        for line in process.stdout or ():
            seen.append(line)
            if after in line:
                break
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, "".join(seen) + rest, errors)


def _environment() -> dict[str, str]:
    """Return what is no matter of this test run; compiled modules are kept, as by default: each run starts sooner."""
    own = ("PYTEST", "OIP_", "GITHUB_", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}
