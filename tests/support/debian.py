"""Debian's packages, fetched and unpacked into a folder: without root, and the machine stays as it is.

`apt-get` has lists and cache of its own there. What is unpacked is kept, so that it is fetched once.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory


def unpack(cache: Path, package: str, *, needs: str, with_dependencies: bool = False) -> Path:
    """Return the folder in `cache` into which a package is unpacked; it is fetched if need be.

    Args:
        cache: a folder that is kept.
        package: the name in Debian.
        needs: who needs it, for the message.
        with_dependencies: unpack what it depends on, too, as far as the machine does not have it.

    Raises:
        RuntimeError: it cannot be fetched; the message says what to do.
    """
    root = cache / "root"
    if not root.exists():
        with TemporaryDirectory(dir=cache) as folder:
            try:
                fetched = _fetch(Path(folder), package, with_dependencies=with_dependencies)
            except (OSError, subprocess.SubprocessError) as error:
                raise RuntimeError(
                    f"{needs} need {package}, which is neither installed (`apt-get install {package}`) nor could it be "
                    f"fetched from Debian's registry: {getattr(error, 'stderr', '') or error}"
                ) from error
            with suppress(OSError):  # another process of the tests was faster
                fetched.rename(root)
    return root


def _fetch(folder: Path, package: str, *, with_dependencies: bool) -> Path:
    """Download and unpack a package below an empty folder; return where."""
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "archives/partial").mkdir(parents=True)
    apt = ["apt-get", "-qq", "-y"]
    for option in (
        f"Dir::State::lists={folder}/lists", f"Dir::Cache={folder}", "APT::Sandbox::User=", "Debug::NoLocking=1",
        "APT::Install-Recommends=0",
    ):  # fmt: skip
        apt += ["-o", option]
    _run([*apt, "update"], folder)
    fetch = ["install", "--download-only"] if with_dependencies else ["download"]
    _run([*apt, *fetch, package], folder / "archives")
    for path in sorted((folder / "archives").glob("*.deb")):
        _run(["dpkg-deb", "-x", str(path), str(folder / "root")], folder)
    return folder / "root"


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=True)
