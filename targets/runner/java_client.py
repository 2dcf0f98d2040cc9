"""Builds targets/clients/java: the adapter, and Triton's client of which it is an adapter.

The client is in no package of Debian. Its source is fetched with git at a fixed commit; what it is built with are
Debian's packages libhttpasyncclient-java, libjackson2-databind-java, libguava-java and libcommons-io-java.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

REPOSITORY: Final = os.environ.get("TRITON_CLIENT_REPOSITORY", "https://github.com/triton-inference-server/client")
COMMIT: Final = "58a44caa0dce77303115302e6dbdf64626b2b093"
PACKAGE: Final = "src/java/src/main/java/triton"
# Folders of the jars, separated like a path.
JARS: Final = os.environ.get("TRITON_CLIENT_JARS", "/usr/share/java")
NAMES: Final = (
    *("httpasyncclient", "httpclient", "httpcore", "httpcore-nio", "commons-codec", "commons-logging", "commons-io"),
    *("jackson-annotations", "jackson-core", "jackson-databind", "guava"),
)
# Debian's Jackson declares that writeValueAsString throws IOException, the original a subclass of it.
OLD_CLAUSE: Final = "String toJson(Object obj) throws JsonProcessingException"
NEW_CLAUSE: Final = "String toJson(Object obj) throws java.io.IOException"


def build(sources: Path, home: Path) -> list[str]:
    """Return the command that starts the adapter, which is built below the folder `home`.

    Raises:
        OSError: a program or a jar is not there.
        subprocess.CalledProcessError: one of them failed.
    """
    shutil.rmtree(home, ignore_errors=True)
    client, classes = home / "client", home / "classes"
    classes.mkdir(parents=True)
    path = os.pathsep.join(map(str, find_jars()))
    fetch(client)
    util = client / PACKAGE / "client" / "Util.java"
    util.write_text(util.read_text(encoding="utf-8").replace(OLD_CLAUSE, NEW_CLAUSE), encoding="utf-8")
    of_client = [file for file in (client / PACKAGE).rglob("*.java") if "examples" not in file.parts]
    files = map(str, sorted([*of_client, *sources.glob("*.java")]))
    run("javac", "-nowarn", "-encoding", "UTF-8", "-cp", path, "-d", str(classes), *files)
    return ["java", "-cp", os.pathsep.join([str(classes), path]), "Adapter"]


def find_jars() -> Sequence[Path]:
    """Return the jars that the client needs.

    Raises:
        FileNotFoundError: one of them is not there.
    """
    folders = [Path(folder) for folder in JARS.split(os.pathsep)]
    found = [next((file for folder in folders if (file := folder / f"{name}.jar").exists()), None) for name in NAMES]
    missing = [name for name, file in zip(NAMES, found, strict=True) if file is None]
    if missing:
        raise FileNotFoundError(f"no {', '.join(missing)} in {JARS}")
    return [file for file in found if file is not None]


def fetch(folder: Path) -> None:
    """Fetch the source of the client into a folder."""
    git = ("git", "-C", str(folder))
    run("git", "init", "--quiet", str(folder))
    run(*git, "fetch", "--quiet", "--depth=1", REPOSITORY, COMMIT)
    run(*git, "checkout", "--quiet", "FETCH_HEAD", "--", PACKAGE)


def run(*command: str) -> None:
    """Run a command that has to succeed."""
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
