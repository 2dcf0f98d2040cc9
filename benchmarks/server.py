"""The bundled server under load: binary requests to an identity model, by wrk, beside other servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from socket import create_server

import httpcore
import numpy as np

from benchmarks.children import bundled
from benchmarks.ratio import CannotMeasureError, Measured, benchmark, in_turns
from conformance.roles.model import Model
from conformance.roles.roles import load
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

SECONDS, CONNECTIONS, ROUNDS = 2, 8, 5
LARGE = 64 << 20
# Servers that somebody has started, with the model identity_fp32: TRITON_URL=http://127.0.0.1:8000 python -m benchmarks
PEERS = {"triton": "TRITON_URL", "kserve": "KSERVE_URL"}
ECHO = """
async def app(scope, receive, send):
    body = []
    while True:
        event = await receive()
        body.append(event.get("body", b""))
        if not event.get("more_body"):
            break
    answer = b"".join(body)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]})
    await send({"type": "http.response.body", "body": answer})
"""


def identity(elements: int) -> Message:
    """Return a binary request of so many elements to the identity model of FP32."""
    values = np.arange(elements, dtype=np.float32)
    model = Model(load()["identity_fp32"], "identity_fp32")
    return model.request([Tensor("INPUT", "FP32", values.shape, values)], want="binary").message()


def _rate(url: str, message: Message) -> float:
    """Return the requests per second that a server answers with 200, as wrk measures them."""
    wrk = which("wrk")
    if wrk is None:
        raise CannotMeasureError("wrk is not here: apt-get install wrk")
    with tempfile.TemporaryDirectory() as name:
        script, body = Path(name, "load.lua"), Path(name, "body")
        body.write_bytes(message.body)
        headers = "".join(f'wrk.headers["{key}"] = "{value}"\n' for key, value in message.headers)
        script.write_text(f'wrk.method = "POST"\nwrk.body = io.open("{body}", "rb"):read("*a")\n{headers}')
        command = [wrk, "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", str(script), url + message.path]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in printed:
        raise CannotMeasureError(f"{url} does not answer with 200")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", printed)[1])  # type: ignore[index]


def _against(peer: str) -> Measured:
    url = os.environ.get(PEERS[peer])
    if url is None:
        raise CannotMeasureError(f"start it, and say where in {PEERS[peer]}")
    message = identity(16)
    with bundled() as server:
        _rate(server.url, message)  # warm
        pairs = [(_rate(server.url, message), _rate(url, message)) for _ in range(ROUNDS)]
    ours, theirs = (max(rates) for rates in zip(*pairs, strict=True))
    return Measured(ours, theirs, "1/s")


@benchmark("server-triton", "the bundled server, small binary identity", "Triton", reach=0.9, more_is_better=True)
def against_triton() -> Measured:
    """One process each."""
    return _against("triton")


@benchmark("server-kserve", "the bundled server, small binary identity", "KServe", reach=3, more_is_better=True)
def against_kserve() -> Measured:
    """One process each."""
    return _against("kserve")


@benchmark(
    "server-64MiB", "a bare uvicorn echo of 64 MiB", "the bundled server's identity", reach=0.6, more_is_better=True
)
def large() -> Measured:
    """The ratio is the part of the echo's speed that the bundled server has."""
    message = identity(LARGE // 4)
    with bundled(f"--max-body={2 * LARGE}") as server, _echo() as echo:
        return in_turns(lambda: _post(echo, message), lambda: _post(server.url, message))


def _post(url: str, message: Message) -> None:
    with httpcore.ConnectionPool() as pool:
        answer = pool.request("POST", url + message.path, headers=dict(message.headers), content=message.body)
    assert answer.status == 200
    assert len(answer.content) >= LARGE


@contextmanager
def _echo() -> Iterator[str]:
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as name:
        Path(name, "echo.py").write_text(ECHO)
        command = [sys.executable, "-m", "uvicorn", "echo:app", f"--port={port}", "--log-level=error"]
        child = subprocess.Popen(command, cwd=name)
        try:
            _wait(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            child.terminate()
            child.wait()


def _wait(port: int) -> None:
    """Wait until somebody listens.

    Raises:
        httpcore.ConnectError: nobody does, after ten seconds.
    """
    until = time.monotonic() + 10
    while True:
        try:
            httpcore.request("POST", f"http://127.0.0.1:{port}/")
        except httpcore.ConnectError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
