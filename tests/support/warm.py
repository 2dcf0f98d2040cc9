"""Starts the suite or a server as a process of its own, forked from one that has imported it already.

What a user starts does all that such a process does, after Python's start and the imports: tests of those, of signals
and of what is installed start their processes themselves.
"""

from __future__ import annotations

import atexit
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from tempfile import TemporaryDirectory
from typing import TextIO

from tests.support.programs import MAX_PROGRAM_S

Main = Callable[[list[str]], int]
MAX_RUN_S = 300.0  # seconds


def pytest_main(arguments: list[str]) -> int:
    """Run pytest as `python -m pytest` does."""
    import pytest

    sys.path.insert(0, os.getcwd())
    # pytest warns of an installed plugin that is imported already, as ours is: its assertions cannot be rewritten.
    return int(pytest.main(["-W", "ignore::pytest.PytestAssertRewriteWarning", *arguments]))


def command_main(arguments: list[str]) -> int:
    from conformance.commands.main import main

    return main(arguments)


def run(main: Main, folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> CompletedProcess[str]:
    """Run one of the two in a folder, with this environment alone, and return what it said and its exit status.

    Raises:
        TimeoutExpired: where it does not end within PATIENCE; it is killed then.
    """
    assert os.environ.keys() >= {name for name in environment if name.startswith("PYTHON")}, "start this one afresh"
    with TemporaryDirectory() as kept:
        said = [Path(kept, name) for name in ("stdout", "stderr")]
        process = _context().Process(
            target=_run_forked,
            args=(main, str(folder), list(arguments), dict(environment), [str(path) for path in said]),
        )
        process.start()
        process.join(MAX_RUN_S)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutExpired(list(arguments), MAX_RUN_S, said[0].read_bytes(), said[1].read_bytes())
        out, errors = (path.read_text(encoding="utf-8") for path in said)
        return CompletedProcess(list(arguments), process.exitcode, out, errors)


@contextmanager
def start_program(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[TextIO]:
    """Start a program of Python that goes on until SIGTERM, in this folder; yields what it prints.

    Args:
        command: `-m` and a module, or a file; then its arguments.
        environment: that of the program.

    Raises:
        TimeoutExpired: it does not end within MAX_PROGRAM_S of SIGTERM; it is killed then.
    """
    reader, writer = _context().Pipe(duplex=False)
    process = _context().Process(
        target=_run_program_forked, args=(os.getcwd(), list(command), dict(environment), writer)
    )
    with reader, open(reader.fileno(), encoding="utf-8", closefd=False) as output:
        process.start()
        writer.close()
        try:
            yield output
        finally:
            process.terminate()
            process.join(MAX_PROGRAM_S)
            if process.exitcode is None:
                process.kill()
                raise TimeoutExpired(list(command), MAX_PROGRAM_S)


@cache
def _context() -> ForkServerContext:
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.warm_imports"])
    return context


def _run_forked(main: Main, folder: str, arguments: list[str], environment: dict[str, str], said: list[str]) -> None:
    for number, path in zip((1, 2), said, strict=True):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    _run_and_exit(main, folder, arguments, environment)


def _run_program_forked(folder: str, command: list[str], environment: dict[str, str], output: Connection) -> None:
    os.dup2(output.fileno(), 1)
    output.close()
    _run_and_exit(_program_main, folder, command, environment)


def _program_main(command: list[str]) -> int:
    is_module = command[0] == "-m"
    sys.argv = command[is_module:]
    try:
        if is_module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _run_and_exit(main: Main, folder: str, arguments: list[str], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    status = 1
    try:
        status = main(arguments)
    finally:
        atexit._run_exitfuncs()  # a forked process of multiprocessing ends without them
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
