"""What each command writes and whom it talks to: the files and addresses that were named, and nothing else.

An audit hook of Python sees every file that is opened and every address that is connected to, in the command and in
each process that it starts. What a library in C does by itself it does not see.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import httpcore
import pytest

from tests.support.registries import make_certification, make_registry

# Put in front of every program: Python imports this module by itself, before anything else.
HOOK = """
import json, os, sys

LOG = os.open(os.environ["TOUCHED"], os.O_WRONLY | os.O_APPEND)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
MADE = {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.truncate"}

def note(kind, what):
    os.write(LOG, json.dumps([kind, what]).encode() + b"\\n")

def hook(event, arguments):
    if event == "open" and not isinstance(arguments[0], int) and arguments[2] & WRITES:
        note("file", os.path.abspath(os.fsdecode(arguments[0])))
    elif event in MADE:
        for path in arguments[:2] if event == "os.rename" else arguments[:1]:
            if not isinstance(path, int):
                note("file", os.path.abspath(os.fsdecode(path)))
    elif event in ("socket.connect", "socket.sendto"):
        note("address", str(arguments[1][0]) if isinstance(arguments[1], tuple) else str(arguments[1]))
    elif event == "socket.getaddrinfo":
        note("address", str(arguments[0]))

sys.addaudithook(hook)
"""
PROGRAM = ("-c", "import sys; from conformance.commands.main import main; sys.exit(main())")
NOBODY = "http://127.0.0.1:9"  # listens there: the folder has the same files, and there is little to judge
LOCAL = {"127.0.0.1", "localhost"}
WHO = ("--vendor=V", "--product=P", "--product-version=1", "--contact=c")


class OutsideEffects(NamedTuple):
    """What a command wrote, without what Python compiled, and whom it talked to."""

    files: set[Path]
    addresses: set[str]


class Place:
    """A folder to work in, one for temporary files, and an empty home."""

    def __init__(self, folder: Path) -> None:
        self.work, self.temporary, self._home, self._hook = (folder / name for name in ("work", "tmp", "home", "hook"))
        for made in (self.work, self.temporary, self._home, self._hook):
            made.mkdir()
        (self._hook / "sitecustomize.py").write_text(HOOK)
        self._log = folder / "touched"

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a program of the suite with a log of its own."""
        self._log.write_text("")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "OIP_", "XDG_"))}
        environment = kept | {
            "PYTHONPATH": str(self._hook), "TOUCHED": str(self._log),
            "TMPDIR": str(self.temporary), "HOME": str(self._home),
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, *command], cwd=self.work, env=environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def touched(self) -> OutsideEffects:
        """Return what was touched outside the folder for temporary files, as far as it is in none of Python's own."""
        notes = [json.loads(line) for line in self._log.read_text().splitlines()]
        files = {Path(what) for kind, what in notes if kind == "file"}
        kept = {
            path
            for path in files
            if "__pycache__" not in path.parts and path != Path(os.devnull) and not path.is_relative_to(self.temporary)
        }
        return OutsideEffects(kept, {what for kind, what in notes if kind == "address"})

    def run(self, *command: str) -> tuple[OutsideEffects, str]:
        """Run a program to its end; return what it touched, and what it printed."""
        with self.start(*command) as process:
            said, _ = process.communicate(timeout=300)
        assert list(self.temporary.iterdir()) == [], "what was temporary is gone"
        assert list(self._home.iterdir()) == []
        return self.touched(), said


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def below(folder: Path, touched: OutsideEffects) -> set[str]:
    """Return what was written, by its first name in a folder that is there, or in full where it is outside."""
    return {
        path.relative_to(folder).parts[0] if path.is_relative_to(folder) else str(path)
        for path in touched.files - {folder}
    }


def test_a_run_writes_what_was_named_and_what_pytest_keeps(place: Place) -> None:
    named = ("--conformance-report=r.json", "--conformance-evidence=evidence", "--junitxml=j.xml")
    few = ("-k", "drawn-inputs-are-read and UINT8", "--conformance-profile=explore")  # Hypothesis keeps notes, too
    touched, said = place.run(*PROGRAM, "run", "reference", "-q", *few, *named)
    assert " passed" in said
    written = {name for name in below(place.work, touched) if not name.startswith((".pytest_cache", "pytest-cache-"))}
    assert written == {"r.json", "r.json.partial", "evidence", "j.xml"}
    assert touched.addresses <= LOCAL


def test_certify_and_verify_write_the_folder_that_was_named(place: Place) -> None:
    certify = (*PROGRAM, "certify", f"--target-url={NOBODY}", "--profile=classification", *WHO, "-o", "certified")
    touched, said = place.run(*certify)
    assert below(place.work, touched) == {"certified"}, said
    assert touched.addresses <= LOCAL
    touched, said = place.run(*PROGRAM, "verify", "certified")
    assert said
    assert touched == OutsideEffects(set(), set())


def test_a_registry_writes_its_site(place: Place) -> None:
    root = make_registry(place.work / "registry")
    make_certification(root / "c")
    touched, said = place.run(*PROGRAM, "registry", "check", "registry/c", "--root", "registry")
    assert "not accepted" in said
    assert touched == OutsideEffects(set(), set())
    touched, said = place.run(*PROGRAM, "registry", "build", "registry", "-o", "site")
    assert "1 not verified" in said
    assert below(place.work, touched) == {"site"}
    assert touched.addresses == set()


def test_a_fleet_writes_the_folder_that_was_named(place: Place) -> None:
    limits = "[defaults]\ntimeout = 0.2\n[defaults.limits]\nretries = 0\n"
    (place.work / "fleet.toml").write_text(f'{limits}[targets.a]\nurl = "{NOBODY}"\n')
    touched, said = place.run(*PROGRAM, "fleet", "fleet.toml", "-o", "fleet")
    assert "1 target: 1 incomplete" in said
    assert below(place.work, touched) == {"fleet"}, said
    assert touched.addresses <= LOCAL


def test_doctor_writes_nothing(place: Place, small: str) -> None:
    touched, said = place.run(*PROGRAM, "doctor", small)
    assert small in said
    assert touched.files == set()
    assert touched.addresses <= LOCAL


def test_explain_touches_nothing(place: Place) -> None:
    touched, said = place.run(*PROGRAM, "explain", "BIN-ORDER-O")
    assert "BIN-ORDER-O" in said
    assert touched == OutsideEffects(set(), set())


def test_serve_touches_nothing(place: Place) -> None:
    with place.start(*PROGRAM, "serve", "--port=0") as serving:
        assert serving.stdout is not None
        url = serving.stdout.readline().split()[-1]
        assert httpcore.request("GET", f"{url}/v2").status == HTTPStatus.OK
        serving.send_signal(signal.SIGTERM)
    assert place.touched() == OutsideEffects(set(), set())


def test_a_file_and_an_address_that_nobody_named_show(place: Place) -> None:
    program = "import socket; open('here', 'w'); socket.socket().connect_ex(('127.0.0.2', 9))"
    touched, _ = place.run("-c", program)
    assert touched == OutsideEffects({place.work / "here"}, {"127.0.0.2"})
