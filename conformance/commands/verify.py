"""`oip-conformance verify DIR`: believes nothing of a certification folder, and says what does not hold.

The recording is judged again by this suite, as the server was, and all that the report says is held against that. A
folder that was made up whole, exchanges and all, cannot be told from an honest one: that is what signatures are for.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from conformance import __version__
from conformance.certification import manifest, profiles, rejudge, signature
from conformance.certification.manifest import NOTE, PAGES, RECORDING, REPORT, CertificationError, Manifest
from conformance.report import formats, json_report
from conformance.report.reading import ReportError, read
from conformance.terms.text import safe
from conformance.transport import har

VALID = timedelta(days=365)
SHOWN = 10  # differences


def add(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "verify",
        help="check a folder of `certify` offline, by judging its recording again",
        description="Check a certification folder: digests, completeness, and the verdict, recomputed from the "
        "recording. Exit status 0: it holds; 1: it does not, with the reasons.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="that `certify` made")
    parser.add_argument("--key", type=Path, metavar="KEY", help="demand a signature of this Ed25519 public key (PEM)")


@dataclass(frozen=True)
class Folder:
    """A certification folder; what is in it is read once, when it is first asked for."""

    path: Path

    @cached_property
    def made(self) -> Manifest:
        """The manifest. Raises CertificationError where there is none."""
        return manifest.read(self.path)

    @cached_property
    def report(self) -> Mapping[str, Any]:
        """The report. Raises ReportError where there is none."""
        return read(self.path / REPORT)


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Return what to print and the exit status.

    Raises:
        CertificationError: there is no such folder, or the key cannot be used.
    """
    if not options.folder.is_dir():
        raise CertificationError(f"{options.folder}: no such folder")
    folder = Folder(options.folder)
    reasons = list(_reasons(folder, options.key))
    if reasons:
        more = f"\nrefused: and {len(reasons) - SHOWN} more" if len(reasons) > SHOWN else ""
        return "\n".join(f"refused: {safe(reason, 400)}" for reason in reasons[:SHOWN]) + more, 1
    return _accepted(folder, options.key), 0


def _accepted(folder: Folder, key: Path | None) -> str:
    made = folder.made
    finished = datetime.fromisoformat(folder.report["finished"])
    age = datetime.now(UTC) - finished
    old = f"; older than {VALID.days} days, ask for a new one" if age > VALID else ""
    signed = f"signed with {key}" if key else "self-attested: nobody else has vouched for it"
    return (
        f"verified: {safe(made.product)} {safe(made.product_version)} by {safe(made.vendor)} is conformant under the "
        f"profile {made.profile}, judged on {finished:%Y-%m-%d} by oip-conformance {__version__} ({signed}{old})"
    )


def _reasons(folder: Folder, key: Path | None) -> Iterator[str]:
    """Yield why a folder is refused; each step rests on those before it, so the first that refuses is the last."""
    try:
        made = folder.made
    except CertificationError as error:
        yield str(error)
        return
    steps: Sequence[Callable[[], Iterator[str]]] = (
        lambda: _signature(folder.path, key),
        lambda: _files(folder.path, made),
        lambda: _report(folder.report, made),
        lambda: _pages(folder.path, folder.report),
        lambda: _recording(folder.path, folder.report, made),
    )
    for step in steps:
        try:
            reasons = list(step())
        except ReportError as error:
            reasons = [str(error)]
        yield from reasons
        if reasons:
            return


def _signature(folder: Path, key: Path | None) -> Iterator[str]:
    if key and (fault := signature.fault(folder, key)):
        yield fault


def _files(folder: Path, made: Manifest) -> Iterator[str]:
    expected = {*made.files, manifest.NAME, signature.SIGNATURE}
    yield from (f"{path.name} does not belong here" for path in sorted(folder.iterdir()) if path.name not in expected)
    for name, digest in made.files.items():
        if not (folder / name).is_file():
            yield f"{name} is missing"
        elif manifest.digest(folder / name) != digest:
            yield f"{name} was changed: its digest is not that of the manifest"


def _report(report: Mapping[str, Any], made: Manifest) -> Iterator[str]:
    """Look at the report alone: whole, of this suite, with the options that the profile demands."""
    if report["footer"]["digest"] != json_report.digest(report):
        yield "the report was changed: its footer has another digest"
    if report["suite"]["digest"] != json_report.suite_digest():
        version, digest = report["suite"]["version"], report["suite"]["digest"][:12]
        yield f"the report is of suite {version} ({digest}), this is {__version__}: verify it with that version"
    if not report["footer"]["complete"]:
        yield "the run was not complete"
    yield from _options(report["options"], made)
    if report["seed"] is not None or "gate" in report:
        yield "the run explored, or knew failures from a baseline"
    if report["verdict"] != "conformant":
        yield f"the verdict is {report['verdict']}: {'; '.join(report['why'])}"
    yield from profiles.unmet(made.profile, report)


def _options(options: Mapping[str, Any], made: Manifest) -> Iterator[str]:
    grpc = profiles.OVER_GRPC in options["extensions"]
    demanded = {"profile": "certify", "extensions": profiles.extensions(made.profile, grpc=grpc)}
    neutral = {"dangerous": False, "models": []}
    for name, value in (demanded | neutral).items():
        if options.get(name, neutral.get(name)) != value:
            yield f"the run had another option {name}: {options.get(name)!r} instead of {value!r}"


def _pages(folder: Path, report: Mapping[str, Any]) -> Iterator[str]:
    for name in PAGES:
        page = formats.FORMATS[formats.suffix(folder / name) or ""](report)
        if (folder / name).read_text(encoding="utf-8") != page:
            yield f"{name} is not what the report says"
    if not (folder / NOTE).read_text(encoding="utf-8").strip():
        yield f"{NOTE} is empty"


def _recording(folder: Path, report: Mapping[str, Any], made: Manifest) -> Iterator[str]:
    try:
        recording = har.load(folder / RECORDING)
    except har.HarError as error:
        yield str(error)
        return
    yield from rejudge.differences(recording, report, made)
