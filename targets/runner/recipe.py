"""Installs a real server, starts it with the model roles, judges it, and compares the outcome with what is known.

    python targets/runner/recipe.py triton
    python targets/runner/recipe.py triton --version 2.39
    python targets/runner/recipe.py triton -- --conformance-robustness -k robustness

A target is a folder beside this one: recipe.toml says how the server is started, and which versions of it there are;
requirements.txt pins everything that is installed, expected.toml says what is known to be wrong with it. The server
gets an environment of its own, because its packages and those of the suite do not agree; the suite is the one that is
installed for this interpreter.

Exit status: 0 the outcome is the known one, 1 it is another, 2 the server could not be judged.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from known_failures import UNMET, compare
from recipes import RECIPES, TARGETS, Recipe
from server_process import RecipeError, Server, find_free_ports, start

WORK = TARGETS.parent / ".tox" / "targets"
ATTEMPTS = 2
# Models are not named as the roles are, so that the role map is needed.
PREFIX = "role_"
TARGET_OPTIONS = {"http": "--target-url=http://", "grpc": "--target-grpc="}
MAX_JUDGE_S = 1800


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """Where everything is, below one folder."""

    work: Path

    @property
    def python(self) -> Path:
        """The interpreter of the server's environment."""
        return self.work / "venv" / "bin" / "python"

    def fill(self, text: str, ports: Sequence[int] = (0, 0, 0)) -> str:
        """Return a text of recipe.toml with values for the names in braces."""
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        values = {
            "venv": self.work / "venv",
            "site": self.work / "venv" / "lib" / f"python{version}" / "site-packages",
            "version": version,
            "libdir": sysconfig.get_config_var("LIBDIR"),
            "models": self.work / "models",
            **dict(zip(("http_port", "grpc_port", "metrics_port"), ports, strict=True)),
        }
        return text.format_map(values)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one recipe and return the exit status."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], epilog="behind --: options of pytest"
    )
    parser.add_argument("target", choices=sorted({recipe.folder for recipe in RECIPES.values()}))
    parser.add_argument("--version", help="which version of it (default: the newest)")
    parser.add_argument("--work", type=Path, help="the folder to work in (default: .tox/targets/NAME)")
    parser.add_argument("--report", type=Path, help="where to leave the JSON report (default: report.json in there)")
    own, more = split_arguments(sys.argv[1:] if argv is None else argv)
    options = parser.parse_args(own)
    versions = {each.version: each for each in RECIPES.values() if each.folder == options.target}
    recipe = versions.get(options.version) if options.version else RECIPES[options.target]
    if recipe is None:
        parser.error(f"{options.target} has the versions {', '.join(sorted(versions))}")
    place = WorkFolder((options.work or WORK / recipe.name).absolute())
    report = (options.report or place.work / "report.json").absolute()
    try:
        install(recipe, place)
        export(recipe, place)
        with run_server(recipe, place) as server:
            status = judge(recipe, server.addresses, place, report, more)
            if more:
                return status
            if not recipe.ends:
                server.check_alive()
        say("compare", "the outcome with what is known")
        return conclude(recipe, json.loads(report.read_text(encoding="utf-8")), status)
    except RecipeError as error:
        print(f"{recipe.name}: {error}", file=sys.stderr)
        return 2


def split_arguments(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return our own arguments, and behind -- further options of pytest, with which nothing is compared."""
    end = argv.index("--") if "--" in argv else len(argv)
    return argv[:end], argv[end + 1 :]


def say(step: str, what: str) -> None:
    """Announce a step."""
    print(f"== {step}: {what}", flush=True)


# --- the steps -----------------------------------------------------------------------------------------------------


def install(recipe: Recipe, place: WorkFolder) -> None:
    """Make the server's environment, unless one with the same requirements is there."""
    say("install", f"{recipe.title} into {place.python.parent.parent}")
    stamp, wanted = place.work / "installed.txt", recipe.requirements.read_text(encoding="utf-8")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        run(sys.executable, "-m", "venv", "--clear", "--without-pip", place.python.parent.parent)
        pip = (sys.executable, "-m", "pip", "--python", place.python, "--disable-pip-version-check")
        # Everything is pinned, so that nothing is to be resolved.
        run(*pip, "install", "--quiet", "--no-deps", "-r", recipe.requirements)
        stamp.write_text(wanted, encoding="utf-8")
    for target, source in recipe.copies.items():
        Path(place.fill(target)).write_bytes(Path(place.fill(source)).read_bytes())
        Path(place.fill(target)).chmod(0o755)
    if recipe.library:
        check_library(recipe, place)


def check_library(recipe: Recipe, place: WorkFolder) -> None:
    """Find out whether the server's shared library is there.

    Raises:
        RecipeError: it is not.
    """
    name = place.fill(recipe.library)
    load_it = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    command = [str(place.python), "-c", load_it, name]
    if subprocess.run(command, env=make_environment(recipe, place), capture_output=True, check=False).returncode:
        raise RecipeError(f"there is no shared library {name}: {place.fill(recipe.library_hint)}")


def export(recipe: Recipe, place: WorkFolder) -> None:
    """Write the models of the roles, or those of the recipe."""
    folder = place.work / "models"
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    if not recipe.format:
        say("export", f"{' '.join(recipe.models)} by {recipe.prepare}")
        run(place.python, TARGETS / recipe.folder / recipe.prepare, folder)
        return
    say("export", f"the model roles for {recipe.format}")
    command = Path(sys.executable).parent / "oip-conformance"
    without = [f"--without={datatype}" for datatype in recipe.without]
    run(command, "models", "export", "--format", recipe.format, "--prefix", PREFIX, *without, folder)


@contextmanager
def run_server(recipe: Recipe, place: WorkFolder) -> Iterator[Server]:
    """Start the server on free ports of 127.0.0.1, and stop it afterwards.

    Raises:
        RecipeError: it does not become ready.
    """
    for attempt in range(ATTEMPTS):
        ports = find_free_ports(3)
        addresses = {name: f"127.0.0.1:{port}" for name, port in zip(("http", "grpc"), ports, strict=False)}
        addresses = {name: addresses[name] for name in recipe.listens}
        say("start", f"{recipe.title} on {' and '.join(addresses.values())}")
        command = [place.fill(word, ports) for word in recipe.command]
        try:
            server = start(
                command, place.work / "models", make_environment(recipe, place, ports), addresses, place.work
            )
            break
        except RecipeError as error:  # another program may have taken the port meanwhile
            if attempt == ATTEMPTS - 1:
                raise
            print(error, flush=True)
    try:
        yield server
    finally:
        say("stop", f"process {server.process.pid}")
        server.stop()


def make_environment(recipe: Recipe, place: WorkFolder, ports: Sequence[int] = (0, 0, 0)) -> dict[str, str]:
    """Return the environment of the server: little of ours, and what the recipe says."""
    ours = {name: os.environ[name] for name in ("HOME", "LANG", "PATH", "TMPDIR") if name in os.environ}
    recipes = {name: place.fill(value, ports) for name, value in recipe.environment.items()}
    return {**ours, "PYTHONDONTWRITEBYTECODE": "1", **recipes}


def judge(
    recipe: Recipe, addresses: Mapping[str, str], place: WorkFolder, report: Path, more: Sequence[str] = ()
) -> int:
    """Run the suite against the server, over each transport that has an address; return its exit status."""
    options = [TARGET_OPTIONS[transport] + address for transport, address in addresses.items()]
    say("judge", " ".join(options))
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    deployed = [f"--target-model={name}" for name in recipe.models]
    options += ["--target-config=models/target.toml"] if recipe.format else deployed
    options += [f"--target-extension={name}" for name in recipe.extensions]
    options += ["--conformance-profile=certify", f"--conformance-report={report}", *more]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "OIP_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    status = subprocess.run(command, cwd=place.work, env=environment, timeout=MAX_JUDGE_S, check=False).returncode
    if not report.exists():
        raise RecipeError(f"the suite wrote no report and ended with exit status {status}")
    return status


def conclude(recipe: Recipe, report: Mapping[str, Any], status: int) -> int:
    """Print how the outcome differs from the known one, and return the exit status."""
    known = recipe.known
    differences = compare(report, known, recipe.outcome, status)
    for line in differences:
        print(line)
    if differences:
        print(f"{recipe.name}: the outcome is not the known one: {len(differences)} differences")
        return 1
    unmet = Counter(row["outcome"] for row in report["rows"] if row["outcome"] in UNMET)
    counts = "".join(f", {count} rows {outcome}" for outcome, count in unmet.items())
    print(f"{recipe.name}: as known: {report['verdict']}, exit status {status}{counts}")
    return 0


def run(*command: str | Path) -> None:
    """Run a command that has to succeed.

    Raises:
        RecipeError: it did not.
    """
    status = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, check=False).returncode
    if status:
        raise RecipeError(f"exit status {status}: {' '.join(map(str, command))}")


if __name__ == "__main__":
    sys.exit(main())
