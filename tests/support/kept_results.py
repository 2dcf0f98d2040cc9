"""What the suite saw of each fault and valid server, kept in a file, so that tests run only those that have changed.

Each result is kept with a digest of what decides it: the texts of the fault's module and of the modules of the checks
that it meets, each with all that they import, and the ids of the rows. What every run executes (the server, the judge,
the code of the wire, the runner of the matrix) and the data files of the suite have a digest of their own; where this
one differs, no result holds. Python, packages and the machine are in no digest, nor is what chance decides:
`tox -e matrix` and `pytest --whole` run everything, whatever is kept.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

from reference_server.faults import Fault
from tests.support.samples import SEEN_BY
from tests.support.sightings import Sighting, UnmetRow
from tests.support.step_tracing import Rows

ROOT = Path(__file__).parents[2]
FILE = SEEN_BY.with_name("kept_results.json")
OWN_PACKAGES = ("conformance", "reference_server", "tests")
# Folders with files that runs read beside modules; that of `judging`, the rows of quick, no sample is of.
DATA_FOLDERS = (
    *(f"conformance/{name}" for name in ("spec", "wire", "roles", "transport", "expect", "discovery", "checks")),
    *("fixtures", "reference_server", "schemas"),
)
RUNNER = "tests.support.matrix"
# The packages that are loaded by the names of their files.
CHECKS, FAULTS, VALID_SERVERS = "conformance.checks", "reference_server.faults", "tests.support.valid_servers"
DIGEST_LENGTH = 16  # hexadecimal digits


# --- digests of what is imported --------------------------------------------------------------------------------------


def find_file(module: str) -> Path | None:
    """Return the file of a module of this project, or None if there is no such module."""
    path = ROOT / module.replace(".", "/")
    found = (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())
    return next(found, None) if module.partition(".")[0] in OWN_PACKAGES else None


@cache
def list_modules(package: str) -> frozenset[str]:
    """Return the names of all modules below a package."""
    files = (ROOT / package.replace(".", "/")).rglob("*.py")
    return frozenset(".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files)


@cache
def list_imports(module: str) -> frozenset[str]:
    """Return the modules of this project that one imports anywhere in its text, with the packages around them."""
    file = find_file(module)
    assert file is not None, module
    found = set[str]()
    for node in ast.walk(ast.parse(file.read_bytes())):
        for name in _list_imported_names(node):
            parts = name.split(".")
            found |= {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return frozenset(name for name in found if find_file(name))


def _list_imported_names(node: ast.AST) -> Iterable[str]:
    """Return what a node may import: a name of `from` is a module, or something in one."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), names=names):
            return [f"{module}.{alias.name}" for alias in names]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="checks"), attr="import_modules")):
            return list_modules(CHECKS)  # rows that are made of those of every area
        case _:
            return []


@cache
def list_closure(module: str) -> frozenset[str]:
    """Return a module, and all that it imports at first or second hand."""
    found, left = set[str](), {module}
    while left:
        found |= left
        left = {name for one in left for name in list_imports(one)} - found
    return frozenset(found)


def digest_modules(modules: Iterable[str], *parts: str) -> str:
    """Return a digest of the texts of modules and all that they import, and of some parts."""
    closure = frozenset[str]().union(*map(list_closure, modules))
    files = [file for name in sorted(closure) if (file := find_file(name))]
    return _digest_texts([*map(digest_file, files), *parts])


@cache
def digest_file(file: Path) -> str:
    return _digest_texts([str(file.relative_to(ROOT)), sha256(file.read_bytes()).hexdigest()])


def _digest_texts(texts: Iterable[str]) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()[:DIGEST_LENGTH]


def _digest_data() -> Iterator[str]:
    for folder in DATA_FOLDERS:
        files = (ROOT / folder).rglob("*")
        yield from (
            digest_file(file) for file in sorted(files) if file.is_file() and file.suffix not in (".py", ".pyc")
        )


@cache
def digest_runner() -> str:
    """Return the digest of what every run executes, and of the data files of the suite."""
    return digest_modules([RUNNER], *_digest_data())


@cache
def digest_everything() -> str:
    """Return the digest of all that decides any result; where it is as before, no fault need be looked at."""
    modules = frozenset[str]().union(*map(list_modules, (CHECKS, FAULTS, VALID_SERVERS)))
    return digest_modules(modules, digest_runner(), digest_file(SEEN_BY))


def digest_fault(fault: Fault, rows: Rows) -> str:
    """Return the digest of a fault and of the rows that decide what is seen of it."""
    modules = {fault.body.__module__, *(case.check.body.__module__ for case in rows)}
    return digest_modules(modules, fault.name, *sorted(f"{check} {row}" for check, row in (case.ids for case in rows)))


# --- the file ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class KeptResults:
    """Results by the names of faults and valid servers, with their digests.

    Attributes:
        runner: the digest of what every run executes.
        everything: the digest of all that decides any result.
        digests: of each fault and the rows that it meets; empty where a sample of these raised a doubt.
        misses: what was not passed; of rows of one check and requirement with one outcome the first.
    """

    runner: str
    everything: str
    digests: dict[str, str] = field(default_factory=dict)
    misses: dict[str, list[UnmetRow]] = field(default_factory=dict)

    def holds(self, name: str) -> bool:
        """Whether nothing has changed since a fault was run."""
        return name in self.digests and self.everything == digest_everything()

    def get_digest(self, name: str) -> str:
        """Return the digest of the fault and its rows that was kept; empty if something else has changed."""
        return self.digests.get(name, "") if self.runner == digest_runner() else ""

    def get_sighting(self, name: str) -> Sighting:
        """Return the kept result of a fault, without the messages."""
        return Sighting(name, touched=True, misses=self.misses[name])

    def keep(self, sighting: Sighting, digest: str, *, is_right: bool) -> None:
        """Keep a result if it is as it should be, and forget the one before."""
        first = {(miss.check, miss.outcome, miss.requirement): miss for miss in reversed(sighting.misses)}
        self.digests.pop(sighting.name, None)
        if is_right:
            self.digests[sighting.name] = "" if sighting.doubted else digest
            self.misses[sighting.name] = list(reversed(first.values()))

    def renew(self, names: Collection[str]) -> None:
        """Say that everything else is as it is today, and forget what is not among these names."""
        self.runner, self.everything = digest_runner(), digest_everything()
        self.digests = {name: digest for name, digest in self.digests.items() if name in names}


def read() -> KeptResults:
    """Return what is kept; nothing that holds if there is no file."""
    if not FILE.exists():
        return KeptResults("", "")
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    results = kept["results"]
    return KeptResults(
        kept["runner"],
        kept["everything"],
        {name: digest for name, (digest, _) in results.items()},
        {
            name: [UnmetRow(check, row, outcome, named, "") for check, row, outcome, named in misses]
            for name, (_, misses) in results.items()
        },
    )


def write(kept: KeptResults) -> None:
    """Write results, a line for each."""
    lines = [
        f"{json.dumps(name)}: {json.dumps([digest, [_list_fields(miss) for miss in kept.misses[name]]])}"
        for name, digest in sorted(kept.digests.items())
    ]
    head = f'{{\n"runner": "{kept.runner}",\n"everything": "{kept.everything}",\n"results": {{\n'
    FILE.write_text(head + ",\n".join(lines) + "\n}\n}\n", encoding="utf-8")


def _list_fields(miss: UnmetRow) -> list[str]:
    return [miss.check, miss.row, miss.outcome, miss.requirement]
