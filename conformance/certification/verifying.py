"""Verifies a folder: trusts nothing in it, judges the recording again with this suite, and yields reasons to refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

from conformance.certification import client_rejudge, manifest, note, profiles, rejudge, sealing
from conformance.certification.manifest import (
    NOTE,
    PAGES,
    RECORDING,
    REPORT,
    CertificationError,
    Manifest,
    ReportedProduct,
)
from conformance.clients.recording import calls
from conformance.judging import packs
from conformance.judging.run_start import ALL_MODELS
from conformance.report import formats, json_report
from conformance.report.report_file import MAX_REPORT_BYTES, ReportError, read
from conformance.report.scope import describe_report_verdict
from conformance.spec import files, ledger
from conformance.spec.ledger import Party
from conformance.spec.options import expect_report_suffix
from conformance.spec.outcome import CONFORMANT, INTEROPERABLE, PARTIAL
from conformance.spec.report import Options, Report, find_party
from conformance.spec.text import escape_text
from conformance.spec.version import __version__
from conformance.transport import recording as recordings
from conformance.transport.har import HarError


@dataclass(frozen=True)
class Folder:
    """A certification folder; its contents are read once, on first access."""

    path: Path

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest. Raises CertificationError if it is missing or invalid."""
        return manifest.read(self.path)

    @cached_property
    def report(self) -> Report:
        """The report. Raises ReportError if it is missing or invalid."""
        return read(self.path / REPORT)

    @property
    def reported(self) -> ReportedProduct | None:
        """Name and version of the product according to the report; None if the report is unreadable."""
        try:
            return manifest.read_reported_product(self.report)
        except ReportError:
            return None


@dataclass(frozen=True, slots=True)
class RequiredSigners:
    """Ids of the keys that must have signed; None accepts the key that the manifest names."""

    vendor: str | None = None
    third_party: str | None = None


def find_refusal_reasons(folder: Folder, keys: RequiredSigners) -> Iterator[str]:
    """Yield the reasons to refuse a folder; stop after the first failing step, since steps rely on earlier ones."""
    try:
        made = folder.manifest
    except CertificationError as error:
        yield str(error)
        return
    steps: Sequence[Callable[[], Iterator[str]]] = (
        lambda: _check_files(folder.path, made),
        lambda: _check_signatures(folder.path, made, keys),
        lambda: _check_packs(folder.report, made),
        lambda: _check_report(folder.report, made),
        lambda: _check_manifest(folder.report, made),
        lambda: _check_pages(folder.path, folder.report, made),
        lambda: _check_recording(folder.path, folder.report, made),
    )
    for step in steps:
        found = _run_step(step)
        yield from found
        if found:
            return


def _run_step(step: Callable[[], Iterator[str]]) -> list[str]:
    """Return why a step refuses a folder; errors that the step raises count as reasons."""
    try:
        return files.convert_errors(lambda: list(step()), "statements in the folder contradict each other: ")
    except (ReportError, files.UnreadableError) as error:
        return [str(error)]


def _check_signatures(folder: Path, made: Manifest, keys: RequiredSigners) -> Iterator[str]:
    if problem := sealing.find_signature_fault(folder, made.key):
        yield problem
    if keys.vendor and keys.vendor != made.key["id"]:
        yield f"the folder is signed with the key {made.key['id'][:16]}, not with {keys.vendor[:16]}"
    third = made.third_party
    if third and (problem := sealing.find_signature_fault(folder, third["key"], sealing.COUNTERSIGNATURE)):
        yield problem
    if third and third["key"]["id"] == made.key["id"]:
        yield "signature and countersignature are of the same key"
    if keys.third_party and (third is None or third["key"]["id"] != keys.third_party):
        yield f"the folder is not countersigned with the key {keys.third_party[:16]}"


def _check_files(folder: Path, made: Manifest) -> Iterator[str]:
    expected = {*made.files, manifest.NAME, sealing.SIGNATURE}
    expected |= {sealing.COUNTERSIGNATURE} if made.third_party else set()
    names = sorted(path.name for path in folder.iterdir() if path.name not in expected)
    yield from (f"{name} does not belong in this folder" for name in names)
    for name, digest in made.files.items():
        if (folder / name).is_symlink() or not (folder / name).is_file():
            yield f"{name} is missing, or no regular file of this folder"
        elif (folder / name).stat().st_size > files.MAX_RUN_FILE_BYTES:
            yield f"{name} is larger than {files.MAX_RUN_FILE_BYTES} bytes"
        elif manifest.compute_digest(folder / name) != digest:
            yield f"{name} was changed: its digest is not that of the manifest"


def _check_packs(report: Report, made: Manifest) -> Iterator[str]:
    """Check that the packs of the manifest are those of the report, and that the same ones are installed here."""
    named = list(made.packs or ())
    judged = [{key: pack[key] for key in ("name", "version", "digest")} for pack in report.get("packs", ())]
    if named != judged:
        yield "the manifest names other packs than the report"
        return
    for pack in named:
        wanted = f"{pack['name']} {escape_text(pack['version'], 40)} ({pack['digest'][:12]})"
        try:
            here = packs.load(pack["name"], "the pack").identity
        except packs.PackError as error:
            yield f"verification needs the pack {wanted}: {error}"
            continue
        if here != pack:
            yield f"verification needs the pack {wanted}; {here['version']} ({here['digest'][:12]}) is installed"


def _check_report(report: Report, made: Manifest) -> Iterator[str]:
    """Check that the report is complete, of this version of the suite, and of a run with the profile's options."""
    if report["footer"]["digest"] != json_report.compute_digest(report):
        yield "the report was changed: its footer has another digest"
    if report["suite"]["digest"] != json_report.compute_suite_digest():
        suite = f"{report['suite']['version']} ({report['suite']['digest'][:12]})"
        yield f"the report is of suite {suite}, this is {__version__}: verify it with that version (--with-suite)"
    if not report["footer"]["complete"]:
        yield "the run was not complete"
    yield from _check_options(report["options"], made)
    if find_party(report) != made.party:
        yield f"the report is of a {find_party(report)}, the manifest of a {made.party}"
    elif report["seed"] is None and made.party == Party.SERVER:
        yield "the run has no seed: every row named the same client"
    if "gate" in report:
        yield "the run used a baseline of known failures"
    yield from _check_standing(report, made)


def _check_standing(report: Report, made: Manifest) -> Iterator[str]:
    """Check that the report supports exactly the certified standing."""
    verdict, is_interoperable = report["verdict"], report["interoperable"]
    shown = is_interoperable if made.standing == INTEROPERABLE else verdict == made.standing
    if not shown and (made.standing, verdict) != (PARTIAL, CONFORMANT):
        yield f"the verdict is {describe_report_verdict(report)}: {'; '.join(report['why'])}"
    elif made.standing != profiles.find_standing(made.profile, report) == CONFORMANT:
        yield f"the manifest says {made.standing}, but the report is conformant"
    if made.standing != PARTIAL:
        yield from profiles.list_unmet_musts(made.profile, report, made.standing)
    if made.coverage != (profiles.count_met_musts(report) if made.standing == PARTIAL else None):
        yield "the manifest and the report differ in the number of judged MUSTs"


def _check_options(options: Options, made: Manifest) -> Iterator[str]:
    grpc = profiles.OVER_GRPC in options["extensions"]
    is_client = made.party == Party.CLIENT  # its run judges every extension
    extensions = [] if is_client else profiles.list_extensions(made.profile, grpc=grpc)
    demanded: dict[str, object] = {"profile": "certify", "extensions": extensions}
    if ALL_MODELS not in (models := list(made.models or ())):  # otherwise the recording decides which models are listed
        demanded["models"] = models
    if is_client and made.profile == profiles.GRPC_ALONE:
        yield f"the profile {made.profile} is for servers"
    neutral: dict[str, object] = {"dangerous": False}
    given = neutral | {**options}
    for name, value in (neutral | demanded).items():
        if given.get(name) != value:
            yield f"the run had another option {name}: {given.get(name)!r} instead of {value!r}"


def _check_manifest(report: Report, made: Manifest) -> Iterator[str]:
    """Compare the manifest's statements about the run with the report."""
    yield from manifest.find_label_faults(made, manifest.read_reported_product(report))
    ours, theirs = report["suite"], made.suite
    is_same = (ours["version"], ours["digest"]) == (theirs["version"], theirs["digest"])
    if not is_same or theirs["ledger"] != ledger.compute_version():
        yield "the manifest names another suite than the report"
    started, finished = (made.started, report["started"]), (made.finished, report["finished"])
    for name, (said, reported) in (("started", started), ("finished", finished)):
        if said != reported:
            yield f"the manifest says that the run {name} at {said}, the report {reported}"
    last = manifest.find_last_valid_day(report["finished"])
    if not date.fromisoformat(report["finished"][:10]) <= date.fromisoformat(made.expires) <= last:
        yield f"the certification expires on {made.expires}: that has to be after the run, and at the latest on {last}"


def _check_pages(folder: Path, report: Report, made: Manifest) -> Iterator[str]:
    for name in PAGES:
        page = formats.FORMATS[expect_report_suffix(folder / name)](report)
        if files.read_text(folder / name, MAX_REPORT_BYTES) != page:
            yield f"{name} is not what the report says"
    if files.read_text(folder / NOTE) != note.render(made, report):
        yield f"{NOTE} is not what manifest and report say"


def _check_recording(folder: Path, report: Report, made: Manifest) -> Iterator[str]:
    try:
        if made.party == Party.CLIENT:
            yield from client_rejudge.find_differences(calls.load(folder / RECORDING), report)
        else:
            yield from rejudge.find_differences(recordings.load(folder / RECORDING), report, made)
    except HarError as error:
        yield str(error)


def describe_label(folder: Folder) -> str:
    """Return one line with the label and the name that the product reports; empty without a valid manifest."""
    try:
        made = folder.manifest
    except CertificationError:
        return ""
    found = folder.reported
    said = (
        f"the {made.party} reports {escape_text(found.text)}"
        if found
        else f"there is no report of what the {made.party} says"
    )
    alias = f"; alias because: {escape_text(made.alias_of['reason'])}" if made.alias_of else ""
    return f"label: {escape_text(made.label)}; {said}{'; a self-test' if made.self_test else ''}{alias}"
