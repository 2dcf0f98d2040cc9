"""Records what became of every row: `python -m tests.support.row_records write FILE` or `compare OLD NEW`.

A record has a row's outcome, requirements, message and a digest of all that was sent. Written before and after a change
of the design, two files show whether a row saw something else than before; a renamed row is found by its digest.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.judging.selection import ROLES, Subjects, list_profile_rows
from conformance.judging.session import Session
from conformance.spec.extensions import GRPC, HTTP
from conformance.transport.exchange import Call
from conformance.transport.settings import make_settings
from conformance.transport.target import Target
from tests.strangers.servers import serving
from tests.support import sightings, unusual_models
from tests.support.sightings import TIMEOUT

Record = dict[str, Any]
DEPLOYED = Subjects(("multi", "add_sub", "identity_bytes", "scores_labelled"), with_roles=False)
UNUSUAL = (
    *(unusual_models.COUNTER, unusual_models.BY_PLACE, unusual_models.NAN, unusual_models.SMALL_TABLE),
    *(unusual_models.THREE_CLASSES, unusual_models.CONSTANT),
)
STRANGERS = ("node", "http_server", "starlette", "java")  # those that need no package of Debian's


@dataclass(frozen=True, slots=True)
class Subject:
    """A server with its models: a context manager that yields its URL and, where gRPC is judged, that address."""

    serve: Callable[[], AbstractContextManager[tuple[str, str | None]]]
    subjects: Subjects = ROLES


@contextmanager
def serve_bundled() -> Iterator[tuple[str, str | None]]:
    """Serve the models of all roles over both transports."""
    with sightings.run_server() as server, sightings.serve_grpc(server) as address:
        yield server.url, address


@contextmanager
def serve_unusual() -> Iterator[tuple[str, str | None]]:
    """Serve models that fill no role."""
    with unusual_models.serve(*UNUSUAL) as url:
        yield url, None


@contextmanager
def serve_stranger(name: str) -> Iterator[tuple[str, str | None]]:
    """Serve an independent server."""
    with TemporaryDirectory() as folder, serving(name, Path(folder)) as url:
        yield url, None


SUBJECTS: dict[str, Subject] = {
    "bundled": Subject(serve_bundled),
    "deployed": Subject(serve_bundled, DEPLOYED),
    "unusual": Subject(serve_unusual, Subjects(tuple(one.name for one in UNUSUAL), with_roles=False)),
    **{name: Subject(lambda name=name: serve_stranger(name)) for name in STRANGERS},  # type: ignore[misc]
}


def record(name: str) -> Iterator[Record]:
    """Judge every row of `certify` on one of `SUBJECTS`; yield its record."""
    subject, sent = SUBJECTS[name], dict[str, Any]()

    def note(call: Call) -> None:
        digest = sent.setdefault(call.scope, sha256())
        for one in call.messages:
            body = one.body.replace(host.encode(), b"HOST")  # a few bodies contain a request of their own
            digest.update(repr((one.method, one.path, one.headers, body)).encode())

    with subject.serve() as (url, grpc):
        host = url.removeprefix("http://")
        target = Target(make_settings(url, timeout=TIMEOUT, grpc=grpc))
        target.journal = note
        with Session(target) as session:
            session.discover((), subject.subjects)
            over = (HTTP, GRPC) if grpc else (HTTP,)
            for case in list_profile_rows("certify", subjects=subject.subjects, transports=over):
                key = case.key
                result = session.judge(case)
                digest = sent.pop(key, None)
                yield {
                    "key": f"{name} {key}",
                    "outcome": str(result.outcome),
                    "requirements": result.requirements,
                    "named": result.failure.requirement if result.failure else None,
                    "message": (result.message or result.observation).replace(url, "URL"),
                    "sent": digest.hexdigest()[:16] if digest else None,
                }


def write(path: Path, *names: str) -> None:
    """Write the records of these subjects, or of all, into a file: a line of JSON for each row."""
    with path.open("w", encoding="utf-8") as file:
        for name in names or SUBJECTS:
            for one in record(name):
                file.write(json.dumps(one) + "\n")


def read(path: Path) -> dict[str, Record]:
    """Return the records of a file by their keys."""
    return {one["key"]: one for one in map(json.loads, path.read_text(encoding="utf-8").splitlines())}


def compare(old: dict[str, Record], new: dict[str, Record]) -> Iterator[str]:
    """Yield a line for each difference; a row that sends what another sent before is taken for that row, renamed."""
    gone = {key: one for key, one in old.items() if key not in new}
    by_sent = {(key.split(" ")[0], one["sent"]): key for key, one in gone.items() if one["sent"]}
    for key, one in new.items():
        before = key if key in old else by_sent.get((key.split(" ")[0], one["sent"]))
        if before is None:
            yield f"gained  {key}: {one['outcome']}"
            continue
        gone.pop(before, None)
        changed = [name for name in one if name != "key" and one[name] != old[before][name]]
        if before != key:
            yield f"renamed {before} -> {key}"
        if changed:
            yield f"changed {key}: " + "; ".join(f"{name} {old[before][name]!r} -> {one[name]!r}" for name in changed)
    yield from (f"lost    {key}: {one['outcome']}" for key, one in gone.items())


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        sys.stdout.writelines(f"{line}\n" for line in compare(read(Path(sys.argv[2])), read(Path(sys.argv[3]))))
    else:
        write(Path(sys.argv[2]), *sys.argv[3:])
