"""Puts gateways between the suite and the bundled server, and writes docs/results-gateways.md from what they change.

    python targets/runner/gateways.py                # every gateway, and the page
    python targets/runner/gateways.py nginx envoy    # these alone; prints what they change
    python targets/runner/gateways.py --page         # the page alone, from the runs that are kept

Each gateway is started as it comes, and with the settings that mend it, if its file in targets/gateways has any:
gateways.toml there says how. nginx, HAProxy, Apache and Varnish have to be installed (apt-get install nginx haproxy
apache2 varnish), the others are installed from PyPI and npm.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import recipe
from gateways_page import Variant, render_page
from recipes import RECIPES
from server_process import RecipeError, Server, find_free_ports, start

from conformance.commands.run_through import REPORT, judge
from conformance.report.exchange_changes import pair_calls
from conformance.report.report_file import read
from conformance.report.through import compare
from conformance.roles import roles
from conformance.spec.report import Report
from conformance.transport.recording import Recording, find_recording, load

TARGETS = Path(__file__).resolve().parent.parent
SETTINGS = TARGETS / "gateways"
PAGE = TARGETS.parent / "docs" / "results-gateways.md"
WORK = TARGETS.parent / ".tox" / "targets" / "gateways"
ENSEMBLES = "triton-ensembles"
ENSEMBLES_NOTE = (
    "An ensemble of one step in the place of each model of Triton, judged beside the models themselves. It runs the "
    "version that its configuration names, whichever version a request names, and adds parameters to answers."
)
KSERVE = TARGETS / "kserve" / "requirements.txt"
VENV = ((sys.executable, "-m", "venv", "."),)
PIP = ("bin/pip", "install", "--quiet", "--disable-pip-version-check")
NPM = ("npm", "install", "--silent", "--no-audit", "--no-fund")
COMMENT = r"(?://|#) "
ONLY_MENDED = re.compile(rf"^(\s*){COMMENT}\+ ", re.MULTILINE)
ONLY_PLAIN = re.compile(rf"^.*{COMMENT}-$\n", re.MULTILINE)
MARK_OF_PLAIN = re.compile(rf" *{COMMENT}-$", re.MULTILINE)
MENDING_LINE = re.compile(rf"^\s*{COMMENT}\+ (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Gateway:
    """What gateways.toml says of a gateway.

    Attributes:
        command: starts it in the foreground; `{folder}` has its settings, `{port}` is where it listens.
        version: prints its version.
        files: its settings, in targets/gateways.
        grpc: whether it passes gRPC on.
        note: what operators should know of it, in a sentence or two.
    """

    name: str
    title: str
    command: Sequence[str]
    version: Sequence[str]
    files: Sequence[str]
    note: str
    grpc: bool = False

    @property
    def settings(self) -> str:
        """The text of its settings."""
        return "".join((SETTINGS / name).read_text(encoding="utf-8") for name in self.files)

    @property
    def mending(self) -> Sequence[str]:
        """The lines that mend it."""
        return MENDING_LINE.findall(self.settings)

    def list_variants(self, work: Path) -> Sequence[tuple[bool, Path]]:
        """Return whether the settings mend, and the folder, of each variant."""
        plain = (False, work / self.name)
        return (plain, (True, work / f"{self.name}-mended")) if self.mending else (plain,)

    def find_direct(self, work: Path) -> Path:
        """Return the folder of the run without a gateway, over the transports that the gateway passes on."""
        return work / ("direct-grpc" if self.grpc else "direct")


def main(argv: Sequence[str] | None = None) -> int:
    """Judge the bundled server directly and through the gateways, and return the exit status."""
    known: Mapping[str, Gateway | None] = {**read_gateways(), ENSEMBLES: None}
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("gateways", nargs="*", metavar="GATEWAY", help=f"these alone: {', '.join(known)}")
    parser.add_argument("--page", action="store_true", help="write the page from the runs that are kept; run nothing")
    parser.add_argument("--profile", default="quick", help="the profile of the runs (default: quick)")
    parser.add_argument("--work", type=Path, default=WORK, help="the folder to work in, which keeps the runs")
    options = parser.parse_args(argv)
    names, work = options.gateways or list(known), options.work.absolute()
    chosen = [gateway for name in names if (gateway := known[name])]
    try:
        if not options.page and chosen:
            install(work)
            judge_all(chosen, work, options.profile)
        if not options.page and ENSEMBLES in names:
            judge_ensembles(work / ENSEMBLES, options.profile)
        variants = [*compare_runs(chosen, work), *(compare_ensembles(work) if ENSEMBLES in names else ())]
    except RecipeError as error:
        print(error, file=sys.stderr)
        return 2
    if options.gateways:
        print("\n".join(line for each in variants for line in (f"== {each.title}", *each.found.format_lines())))
    else:
        PAGE.write_text(render_page(variants, options.profile), encoding="utf-8")
    return 0


def read_gateways() -> Mapping[str, Gateway]:
    """Return the gateways of gateways.toml."""
    found = tomllib.loads((SETTINGS / "gateways.toml").read_text(encoding="utf-8"))
    return {name: Gateway(name, **own) for name, own in found.items()}


def install(work: Path) -> None:
    """Install what is on PyPI and npm, unless it is there."""
    work.mkdir(parents=True, exist_ok=True)
    for source, folder, commands in (
        (SETTINGS / "requirements.txt", work / "venv", (*VENV, (*PIP, "-r", "requirements.txt"))),
        (KSERVE, work / "kserve", (*VENV, (*PIP, "--no-deps", "-r", "requirements.txt"))),
        (SETTINGS / "package.json", work, (NPM,)),
    ):
        folder.mkdir(exist_ok=True)
        stamp, wanted = folder / source.name, source.read_text(encoding="utf-8")
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            continue
        for command in commands:
            stamp.write_text(wanted, encoding="utf-8")
            if subprocess.run(command, cwd=folder, check=False).returncode:
                stamp.unlink()
                raise RecipeError(f"failed in {folder}: {' '.join(command)}")


def judge_all(gateways: Sequence[Gateway], work: Path, profile: str) -> None:
    """Judge the bundled server directly, then through each gateway as it comes and with its mending settings."""
    ports = find_free_ports(2)
    upstream = dict(zip(("http", "grpc"), (f"127.0.0.1:{port}" for port in ports), strict=True))
    command = [sys.executable, "-m", "reference_server", f"--port={ports[0]}", f"--grpc-port={ports[1]}"]
    with run_server(command, upstream, work / "server"):
        for folder, gateway in {gateway.find_direct(work): gateway for gateway in gateways}.items():
            run_suite(folder, upstream if gateway.grpc else {"http": upstream["http"]}, profile)
        for gateway in gateways:
            for mended, folder in gateway.list_variants(work):
                with run_gateway(gateway, work, folder, upstream, mended=mended) as addresses:
                    run_suite(folder / "run", addresses, profile)


def compare_runs(gateways: Sequence[Gateway], work: Path) -> Iterator[Variant]:
    """Compare the runs that are kept; a gateway without runs is left out."""
    kept = [(gateway, *each) for gateway in gateways for each in gateway.list_variants(work)]
    direct = cache(read_run)
    for gateway, mended, folder in kept:
        if find_recording(folder / "run").exists():
            (before, recorded), (after, recording) = direct(gateway.find_direct(work)), read_run(folder / "run")
            found = compare(before, after, pair_calls(recorded, recording))
            yield Variant(
                find_title(gateway, work), gateway.note, found, gateway.mending if mended else (), gateway.files[0]
            )


def judge_ensembles(work: Path, profile: str) -> None:
    """Judge the models of Triton, and an ensemble in the place of each of them."""
    triton, place = RECIPES["triton"], recipe.WorkFolder(work)
    recipe.install(triton, place)
    recipe.export(triton, place)
    models = work / "models"
    recipe.run(sys.executable, SETTINGS / "triton_ensembles.py", models)
    with recipe.run_server(triton, place) as server:
        for name, config in (("direct", "target.toml"), ("run", "ensembles.toml")):
            run_suite(work / name, server.addresses, profile, f"--target-config={models / config}")


def compare_ensembles(work: Path) -> Iterator[Variant]:
    """Compare the runs of Triton that are kept."""
    folder = work / ENSEMBLES
    if find_recording(folder / "run").exists():
        (before, recorded), (after, recording) = read_run(folder / "direct"), read_run(folder / "run")
        title = f"{RECIPES['triton'].title}, ensembles"
        yield Variant(title, ENSEMBLES_NOTE, compare(before, after, pair_calls(recorded, recording)))


def read_run(folder: Path) -> tuple[Report, Recording]:
    """Return the report and the recording of a run."""
    return read(folder / REPORT), load(find_recording(folder))


@contextmanager
def run_gateway(
    gateway: Gateway, work: Path, folder: Path, upstream: Mapping[str, str], *, mended: bool
) -> Iterator[Mapping[str, str]]:
    """Start a gateway in front of the server, yield its addresses, and stop it afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ports = find_free_ports(2)
    values = {"FOLDER": folder, "PORT": ports[0], "GRPC_PORT": ports[1], "MODELS": " ".join(roles.load())}
    for name, address in upstream.items():
        host, _, port = address.rpartition(":")
        values |= {name.upper(): address, f"{name.upper()}_SERVER": host, f"{name.upper()}_SERVER_PORT": port}
    for name in gateway.files:
        text = choose_settings((SETTINGS / name).read_text(encoding="utf-8"), mended=mended)
        for key, value in values.items():
            text = text.replace(f"@{key}@", str(value))
        (folder / name).write_text(text, encoding="utf-8")
    addresses = {name: f"127.0.0.1:{port}" for name, port in zip(("http", "grpc"), ports, strict=True)}
    addresses = addresses if gateway.grpc else {"http": addresses["http"]}
    command = [fill(word, work, folder, ports[0], upstream["http"]) for word in gateway.command]
    with run_server(command, addresses, folder):
        yield addresses


def choose_settings(text: str, *, mended: bool) -> str:
    """Return the settings as they come, or those that mend."""
    if mended:
        return ONLY_MENDED.sub(r"\1", ONLY_PLAIN.sub("", text))
    return MARK_OF_PLAIN.sub("", text)


def fill(word: str, work: Path, folder: Path = Path(), port: int = 0, http: str = "") -> str:
    """Return a word of a command with values for the names in braces."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    site = work / "venv" / "lib" / f"python{version}" / "site-packages"
    return word.format(
        work=work, venv=work / "venv", kserve=work / "kserve", site=site, folder=folder, port=port, http=http
    )


@contextmanager
def run_server(command: Sequence[str], addresses: Mapping[str, str], folder: Path) -> Iterator[Server]:
    """Run a program in a folder, and stop it afterwards.

    Raises:
        RecipeError: it is not installed, or does not become ready.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    program = shutil.which(command[0], path=environment["PATH"])
    if program is None:
        raise RecipeError(f"{command[0]} is not installed")
    server = start([program, *command[1:]], folder, environment, addresses, folder)
    try:
        yield server
    finally:
        server.stop()


def run_suite(folder: Path, addresses: Mapping[str, str], profile: str, *more: str) -> None:
    """Judge what listens at these addresses; the folder keeps the run."""
    shutil.rmtree(folder, ignore_errors=True)
    options = [f"--target-url=http://{addresses['http']}", f"--conformance-profile={profile}", *more]
    options += [f"--target-grpc={addresses['grpc']}"] if "grpc" in addresses else []
    print(f"== {folder}: {' '.join(options)}", flush=True)
    judge(folder, [*options, "-p", "no:cacheprovider"])


def find_title(gateway: Gateway, work: Path) -> str:
    """Return the name of a gateway with its version."""
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    command = [fill(word, work) for word in gateway.version]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = re.search(r"\d+\.\d+\.\d+", done.stdout + done.stderr)
    return f"{gateway.title} {found[0]}" if found else gateway.title


if __name__ == "__main__":
    sys.exit(main())
