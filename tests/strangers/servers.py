"""How each stranger's server is built and started."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, run

from tests.support.programs import read_line, start_program

HERE = Path(__file__).parent
ROLES = HERE.parents[1] / "conformance" / "roles" / "roles.toml"


@dataclass(frozen=True, slots=True)
class Stranger:
    """A server of somebody else.

    Attributes:
        start: the command, in its folder; it takes a free port and prints its URL.
        build: the command before that, for those that are compiled.
        packages: Debian's packages that building and starting need, besides Node and Python.
        advice: the requirements of which it is advised as it is; they say nothing of a bug.
    """

    start: tuple[str, ...]
    build: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


PYTHON = Stranger((sys.executable, "server.py", "--port", "0"))
STRANGERS: Mapping[str, Stranger] = {
    "node": Stranger(("node", "server.js", "--port", "0")),
    "http_server": PYTHON,
    "starlette": PYTHON,
    "go": Stranger(("./server", "-port", "0"), ("go", "build", "-o", "server", "."), ("golang-go",)),
    "java": Stranger(
        ("java", "-cp", "classes", "Server", "--port", "0"),
        ("sh", "-c", "javac -d classes *.java"),
        ("default-jdk-headless",),
        advice=("HTTP-CHUNKED-TRAILER",),
    ),
    "c": Stranger(("./server", "--port", "0"), ("make",), ("gcc", "make", "libmicrohttpd-dev"), advice=("CLS-BOOL",)),
    "elixir": Stranger(
        ("./start", "--port", "0", str(ROLES)),
        (
            "elixir",
            "-e",
            'File.mkdir_p!("ebin"); Kernel.ParallelCompiler.compile_to_path(Path.wildcard("lib/*.ex"), "ebin")',
        ),
        ("elixir",),
        advice=("CLS-BOOL",),
    ),
    "php": Stranger(("php", "server.php", "--port", "0", str(ROLES)), packages=("php-cli",)),
}


@contextmanager
def serving(name: str, folder: Path, change: Callable[[Path], None] = lambda _: None) -> Iterator[str]:
    """Build a stranger's server in a copy below a folder, changed or not, start it, and yield its URL."""
    stranger, own = STRANGERS[name], folder / name
    shutil.copytree(HERE / name, own)
    change(own)
    if stranger.build:
        run(stranger.build, cwd=own, check=True, stdout=DEVNULL)
    with start_program(stranger.start, cwd=own) as process:
        yield read_line(process)
