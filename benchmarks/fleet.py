"""How long a fleet takes: many small bundled servers, a dead and a silent one among them (docs/fleet.md).

python -m benchmarks.fleet serve 200 > urls        # until stdin ends
python -m benchmarks.fleet judge urls 25 50        # a table, a line for each size
python -m benchmarks.fleet judge urls 50 --scheduler tcp://127.0.0.1:8786
"""

from __future__ import annotations

import argparse
import json
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL = "identity_int32"
AT_ONCE = 4  # servers that start at the same time
FLEET = f"""\
profile = "quick"
[defaults]
models = ["{MODEL}"]
extensions = ["binary_tensor_data"]
[defaults.limits]
retry_pause = 2
"""
DEAD = "http://127.0.0.1:9"


def main() -> None:
    """Serve, or judge what is served."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="start servers, print their URLs, and end with stdin")
    serve.add_argument("number", type=int)
    judge = commands.add_parser("judge", help="judge the first of these servers, in fleets of several sizes")
    judge.add_argument("urls", type=Path)
    judge.add_argument("sizes", type=int, nargs="+")
    judge.add_argument("--scheduler", help="of a Dask cluster that does the work")
    judge.add_argument("--alone", action="store_true", help="without the dead and the silent target")
    options = parser.parse_args()
    if options.command == "serve":
        _serve(options.number)
    else:
        _judge(options.urls.read_text().split(), options.sizes, options.scheduler, is_alone=options.alone)


def _serve(number: int) -> None:
    command = [sys.executable, "-m", "reference_server", "--port", "0", "--with-stdin", f"--model={MODEL}"]
    servers: list[subprocess.Popen[str]] = []
    for begin in range(0, number, AT_ONCE):
        batch = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(min(AT_ONCE, number - begin))
        ]
        print(*[server.stdout.readline().strip() for server in batch if server.stdout], sep="\n", flush=True)
        servers += batch
    sys.stdin.read()
    for server in servers:
        server.terminate()
    for server in servers:
        server.wait()


def _judge(urls: list[str], sizes: list[int], scheduler: str | None, *, is_alone: bool) -> None:
    print("targets  seconds  s/target  CPU s/target  median s of a target  verdicts")
    for size in sizes:
        with _silent() as silent, tempfile.TemporaryDirectory() as folder:
            others = [] if is_alone else [DEAD, silent]
            print(_line(Path(folder), [*others, *urls[:size]], scheduler), flush=True)


def _line(folder: Path, urls: list[str], scheduler: str | None) -> str:
    """Judge a fleet, and return what it took."""
    path = folder / "fleet.toml"
    path.write_text(f"{FLEET}[discover]\nurls = {json.dumps(urls)}\n")
    program = "import sys; from conformance.commands.main import main; sys.exit(main())"
    there = ["--scheduler", scheduler] if scheduler else []
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [sys.executable, "-c", program, "fleet", str(path), "-o", str(folder / "out"), "-q", *there],
        check=False,
        stdout=subprocess.DEVNULL,
    )
    seconds, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    index = json.loads((folder / "out" / "index.json").read_text())
    median = statistics.median(each["seconds"] for each in index["targets"] if each["status"] == 0)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in index["counts"].items() if count)
    size = len(urls)
    return f"{size:7}  {seconds:7.1f}  {seconds / size:8.2f}  {cpu / size:12.2f}  {median:20.1f}  {verdicts}"


@contextmanager
def _silent() -> Iterator[str]:
    """Listen, and never say a word; yields the URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


if __name__ == "__main__":
    main()
