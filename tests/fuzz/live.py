"""One process of fuzzing: atheris watches which code an input reaches, and changes those that reach new one.

    python -m tests.fuzz.live FOLDER NAME... -- ARGUMENTS of libFuzzer

An input that breaks a property is left in the folder.

Several names are one target, whose first byte says which of them an input is for: so all can share a short time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import atheris

from tests.fuzz.mutator import mutate
from tests.fuzz.target import make_file_name

# What is watched; libraries are not, which costs time and says nothing of ours.
WATCHED = ["conformance", "reference_server"]


def main(arguments: Sequence[str]) -> None:
    """Fuzz until libFuzzer's limits end it."""
    place = arguments.index("--")
    broken, *names = arguments[:place]
    given = arguments[place + 1 :]
    with atheris.instrument_imports(include=WATCHED):
        from tests.fuzz.targets import TARGETS
    chosen = [TARGETS[name] for name in names]

    def one(data: bytes) -> None:
        target, rest = (chosen[0], data) if len(chosen) == 1 else (chosen[(data or b"\0")[0] % len(chosen)], data[1:])
        try:
            target.holds(rest)
        except Exception:  # libFuzzer's own alarm may end the process before it has written the input
            Path(broken, make_file_name(data)).write_bytes(data)
            raise

    def mutator(data: bytes, largest: int, seed: int) -> bytes:
        kept = b"" if len(chosen) == 1 else data[:1]
        rest = data[len(kept) :]
        return (kept + mutate(rest, seed, lambda part: _by_chance(part, largest)))[:largest]

    atheris.Setup(["fuzz", *given], one, custom_mutator=mutator, internal_libfuzzer=True)
    atheris.Fuzz()


def _by_chance(data: bytes, largest: int) -> bytes:
    changed: Any = atheris.Mutate(data[:largest], largest)
    return bytes(changed)


if __name__ == "__main__":
    main(sys.argv[1:])
