"""The search by atheris, which sees what code an input reaches: `python -m tests.fuzz.guided NAME ARGUMENTS`.

The arguments are those of libFuzzer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.fuzz.targets import Target

MAX_INPUT_MB: Final = 1024  # memory; an input that takes more is a finding
MAX_INPUT_S: Final = 10  # likewise
# What is watched; libraries are not, which costs time and says nothing of ours.
WATCHED: Final = ["conformance", "reference_server"]


def search_guided(target: Target, limit: str, seed: int, *, keep: bool) -> int:
    """Fuzz in a process of its own, up to a limit of libFuzzer; `keep` puts what reaches new code into the corpus."""
    with TemporaryDirectory(prefix="oip-fuzz-") as folder:
        new, begin = Path(folder, "new"), Path(folder, "begin")
        new.mkdir()
        begin.mkdir()
        for place, data in enumerate(target.inputs()):
            (begin / str(place)).write_bytes(data)
        target.folder.mkdir(parents=True, exist_ok=True)
        limits = [limit, f"-timeout={MAX_INPUT_S}", f"-rss_limit_mb={MAX_INPUT_MB}"]
        limits += [f"-max_len={target.largest}", f"-seed={seed}", f"-artifact_prefix={target.folder}/"]
        status = _run(target.name, seed, str(new), str(begin), *limits)
        if keep and not status:
            known = set(begin.iterdir())
            status = _run(target.name, seed, "-merge=1", str(begin), str(new))
            for path in set(begin.iterdir()) - known:
                target.keep(path.read_bytes())
    return status


def _run(name: str, seed: int, *arguments: str) -> int:
    environment = os.environ | ({"PYTHONHASHSEED": str(seed)} if seed else {})
    command = [sys.executable, "-m", "tests.fuzz.guided", name, *arguments]
    return subprocess.run(command, check=False, env=environment).returncode


def main(name: str, *arguments: str) -> None:
    """Fuzz until libFuzzer's limits end the process."""
    import atheris  # an extra

    with atheris.instrument_imports(include=WATCHED):
        from tests.fuzz.targets import TARGETS  # it is watched from here on
    itself = f"{sys.executable} -m tests.fuzz.guided {name}"  # to merge, libFuzzer starts itself as a process
    atheris.Setup([itself, *arguments], TARGETS[name].holds, internal_libfuzzer=True)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
