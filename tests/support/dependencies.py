"""What an installation pulls in, with licence and size of each: the last part of `docs/dependencies.md`, made anew.

    python -m tests.support.dependencies

All of it is read from what is installed here, without a network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/dependencies.md"
PROJECT = "oip-conformance"
# Those of users; what developers install besides is nobody else's.
EXTRAS = ("completion", "fleet", "grpc", "signing")
HEADING = "## What an installation pulls in\n"
_LONGEST = 60  # characters of a licence's name; what is longer is its text

# What is written in the metadata -> the identifier of SPDX, where it is none.
SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """A package that an installation has.

    Attributes:
        extra: with which it comes; empty where it comes with a plain installation.
        licence: as SPDX has it.
        size: bytes of its files, without what Python compiles of them.
    """

    name: str
    extra: str
    licence: str
    size: int


@cache
def find_installed() -> list[InstalledPackage]:
    """Return everything that a plain installation and one with each extra pulls in, by name.

    Raises:
        PackageNotFoundError: something of it is not installed here.
    """
    extra_of = {name: extra for extra in reversed(EXTRAS) for name in _closure(PROJECT, (extra,))}
    extra_of |= dict.fromkeys(_closure(PROJECT, ()), "")
    return [
        InstalledPackage(name, extra, find_licence(distribution(name)), count_bytes(distribution(name)))
        for name, extra in sorted(extra_of.items())
    ]


@cache
def _closure(name: str, extras: tuple[str, ...]) -> frozenset[str]:
    """Return the names of all that a package needs, and those need, without its own."""
    found: set[tuple[str, tuple[str, ...]]] = set()
    waiting = list(_needs(name, extras))
    while waiting:
        need = waiting.pop()
        if need not in found:
            found.add(need)
            waiting += _needs(need[0], need[1])
    return frozenset(package for package, _ in found)


def _needs(name: str, extras: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what a package needs itself here, with extras."""
    for text in distribution(name).requires or ():
        need = Requirement(text)
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(need.name), tuple(sorted(need.extras))


def find_licence(package: Distribution) -> str:
    """Return the licence that a package's metadata name, empty where they name none."""
    metadata = package.metadata
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    classifiers = [line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier", []) if "License ::" in line]
    named = "".join(metadata.get_all("License", [])[:1])
    if named and len(named) <= _LONGEST:
        return SPDX.get(named, named)
    return " AND ".join(sorted({SPDX.get(name, name) for name in classifiers}))


def count_bytes(package: Distribution) -> int:
    paths = [Path(str(file.locate())) for file in package.files or () if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


def render_part() -> str:
    """Return the part of the page."""
    packages = find_installed()
    lines = [f"| {one.name} | {one.extra} | {one.licence} | {format_size(one.size)} |" for one in packages]
    whole = sum(one.size for one in packages)
    plain = sum(one.size for one in packages if not one.extra)
    return "\n".join(
        [
            HEADING,
            "Made by `python -m tests.support.dependencies` from what is installed; a test compares it.",
            f"A plain installation is {format_size(plain)}, one with every extra {format_size(whole)}.\n",
            "| package | extra | licence | size |\n|---|---|---|---|",
            *lines,
            "",
        ]
    )


def format_size(octets: int) -> str:
    """Return a size in megabytes; it differs a little from one machine and one version to the next."""
    return f"{octets / 1e6:.1f} MB"


def main() -> None:
    head = PAGE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip("\n")
    try:
        PAGE.write_text(f"{head}\n\n{render_part()}", encoding="utf-8")
    except PackageNotFoundError as error:
        sys.exit(f"{error.name} is not installed: pip install -e '.[dev]'")


if __name__ == "__main__":
    main()
