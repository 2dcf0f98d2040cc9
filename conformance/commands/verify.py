"""`oip-conformance verify DIR`: verifies a certification folder without trusting it, and reports each error.

This version of the suite judges the recording again, with the options of the original run, and compares the results
with the report. It cannot detect a folder with invented exchanges; only signatures with known keys show who vouches
for them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from conformance.certification import manifest, other_suite, profiles, sealing
from conformance.certification.manifest import NOTE, CertificationError, Manifest
from conformance.certification.verifying import Folder, RequiredSigners, describe_label, find_refusal_reasons
from conformance.spec import files
from conformance.spec.outcome import PARTIAL
from conformance.spec.text import escape_text
from conformance.spec.version import __version__

MAX_SHOWN_REASONS = 10


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "verify",
        help="verify a certification folder offline",
        description="Verify a certification folder: signature, digests, completeness, label, and the verdict, which is "
        "recomputed from the recording. Exit status 0: verified; 1: refused, with the reasons.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that `certify` wrote")
    parser.add_argument("--key", type=Path, metavar="KEY", help="require a signature by this Ed25519 public key (PEM)")
    parser.add_argument(
        "--with-suite",
        action="store_true",
        help="verify with the version of the suite that wrote the folder (uvx or pipx runs it), and with this version",
    )
    parser.add_argument(
        "--third-party-key",
        type=Path,
        metavar="KEY",
        help="require a countersignature by this Ed25519 public key (PEM)",
    )


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Return the text to print and the exit status.

    Raises:
        CertificationError: there is no such folder, a key is unusable, or the folder's suite cannot be run.
        MissingExtraError: the extra for verifying signatures is not installed.
    """
    if not options.folder.is_dir():
        raise CertificationError(f"{options.folder}: no such folder")
    keys = RequiredSigners(
        sealing.read_key_id(options.key) if options.key else None,
        sealing.read_key_id(options.third_party_key, "--third-party-key") if options.third_party_key else None,
    )
    folder = Folder(options.folder)
    if options.with_suite and (version := _find_other_version(options.folder)):
        return _verify_with_suite(folder, version, options)
    if found := list(find_refusal_reasons(folder, keys)):
        return _format_refusal(folder, found), 1
    try:
        return files.convert_errors(lambda: _format_acceptance(folder, options.key)), 0
    except files.UnreadableError as error:
        return _format_refusal(folder, [str(error)]), 1


def _find_other_version(path: Path) -> str | None:
    """Return the version of the suite that made a folder; None if it is this version."""
    version = manifest.read_suite_version(path)
    if version is None:
        raise CertificationError(f"{path}: its manifest names no version of the suite; {NOTE} may name one")
    return None if version == __version__ else version


def _verify_with_suite(folder: Folder, version: str, options: argparse.Namespace) -> tuple[str, int]:
    """Verify a folder with the version of the suite that made the folder, and add the verdict of this version."""
    keys = {"--key": options.key, "--third-party-key": options.third_party_key}
    arguments = [part for name, key in keys.items() if key for part in (name, str(key.resolve()))]
    said = other_suite.verify(folder.path, version, arguments)
    opinion = other_suite.describe_outcome(folder) if said.holds else []
    return "\n".join([*said.lines, *opinion]), 0 if said.holds else 1


def _format_refusal(folder: Folder, found: Sequence[str]) -> str:
    lines = [f"refused: {escape_text(reason, 400)}" for reason in found[:MAX_SHOWN_REASONS]]
    lines += [f"refused: {len(found) - MAX_SHOWN_REASONS} more reasons"] if len(found) > MAX_SHOWN_REASONS else []
    return "\n".join(filter(None, [*lines, describe_label(folder)]))


def _format_acceptance(folder: Folder, key: Path | None) -> str:
    made = folder.manifest
    finished = datetime.fromisoformat(made.finished)
    verified = (
        f"verified: {escape_text(made.label)} by {escape_text(made.vendor)} is {made.certified_as}"
        f" under the profile {made.profile}, "
        f"judged on {finished:%Y-%m-%d} by oip-conformance {__version__}"
    )
    return "\n".join(
        [
            verified,
            *_describe_unmet(folder),
            describe_label(folder),
            *_describe_packs(folder),
            *_describe_signers(made, key),
            _format_validity(made),
        ]
    )


def _describe_unmet(folder: Folder) -> Iterator[str]:
    """Describe the unmet requirements of an interoperable server, or the unjudged parts of a partial one."""
    if folder.manifest.standing == PARTIAL:
        yield f"not everything was judged: {'; '.join(escape_text(reason, 400) for reason in folder.report['why'])}"
    elif found := profiles.list_unmet_musts(folder.manifest.profile, folder.report):
        yield f"every MUST about exchanges and the transport is met; of the others, {'; '.join(found)}"


def _describe_packs(folder: Folder) -> Iterator[str]:
    """Describe the packs that were judged beside the profile; the certification does not depend on them."""
    for pack in folder.report.get("packs", ()):
        yield f"beside it, the pack {pack['name']} {escape_text(pack['version'], 40)} is {pack['verdict']}"


def _describe_signers(made: Manifest, key: Path | None) -> Iterator[str]:
    if key:
        yield f"signed with {key} ({made.key['id']})"
    elif made.key["lasting"]:
        yield f"signed with the key {made.key['id']}: to compare it with the key that the vendor published, use --key"
    else:
        yield f"self-attested: nobody vouches for the key {made.key['id']}, made for this folder alone"
    if third := made.third_party:
        who = f"{escape_text(third['name'])} ({escape_text(third['contact'])})"
        yield f"run and countersigned by {who} with the key {third['key']['id']}"


def _format_validity(made: Manifest) -> str:
    over = manifest.is_expired(made.expires)
    return f"expired on {made.expires}: a new certification is needed" if over else f"valid until {made.expires}"
