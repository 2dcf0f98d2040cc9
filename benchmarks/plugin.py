"""What a start of pytest costs: with the suite in it, and with the plugin merely installed."""

from __future__ import annotations

import socket
import statistics
import subprocess
import time

from benchmarks.children import PYTEST, folder, run
from benchmarks.ratio import Measured, benchmark

RUNS = 11


@benchmark("first-request", "from the command to the first request", "`pytest --version`", reach=1.6)
def first_request() -> Measured:
    """A port that takes one connection and says when; 0.3 s more than pytest alone is what is to be reached."""
    pairs = []
    with folder() as into:
        for _ in range(RUNS):
            began = time.perf_counter()
            with socket.create_server(("127.0.0.1", 0)) as port:
                command = [*PYTEST, "-q", f"--target-url=http://127.0.0.1:{port.getsockname()[1]}"]
                with subprocess.Popen(command, cwd=into, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
                    connection, _ = port.accept()
                    came = time.perf_counter() - began
                    connection.close()
                    child.terminate()
            pairs.append((came, run(*PYTEST, "--version", folder=into)[0]))
    ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    return Measured(ours, theirs, remarks=f"{ours - theirs:.2f} s more")


@benchmark("plain-pytest", "plain pytest in a project with the plugin installed", "without it", reach=1.1)
def plain_pytest() -> Measured:
    """0.05 s more is what is to be reached.

    Theirs goes without the plugins of Hypothesis and of anyio, too, which come with the suite's dependencies. The
    remarks say how much of the difference is the suite's own plugin.
    """
    others = ("-p", "no:hypothesispytest", "-p", "no:anyio")
    variants = ((), others, (*others, "-p", "no:oip_conformance"))
    with folder() as into:
        collect = (*PYTEST, "--co", "-q")
        runs = [[run(*collect, *without, folder=into, succeeds=False)[0] for without in variants] for _ in range(RUNS)]
    ours, alone, theirs = (statistics.median(times) for times in zip(*runs, strict=True))
    more = f"{(ours - theirs) * 1000:.0f} ms more, {(alone - theirs) * 1000:.0f} ms of them the suite's own plugin"
    return Measured(ours, theirs, remarks=more)
