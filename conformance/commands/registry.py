"""`oip-conformance registry check` and `build`: checks a repository of certifications and builds its site."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from conformance.certification import manifest
from conformance.registry import checking, static_site
from conformance.registry.entries import Status
from conformance.registry.policy import NOTICES, POLICY, RegistryError


def add(commands: Any) -> None:
    """Add the command and its two subcommands."""
    parser = commands.add_parser(
        "registry",
        help="check certifications that are handed in to a registry, and build its site",
        description="A registry is a repository with certification folders, a policy (registry.toml) and revocations "
        "(revoked.toml); docs/registry is a template of one.",
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    check = parts.add_parser(
        "check",
        help="say whether folders are taken, as one comment in Markdown",
        description="Verify folders, and hold them against the policy of a registry and what it has already. Prints "
        "one comment in Markdown. Exit status 0: all are taken; 1: one is not, with the reasons.",
    )
    check.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="that `certify` made")
    check.add_argument(
        "--root",
        type=Path,
        default=Path(),
        metavar="DIR",
        help=f"the registry, with {POLICY} (default: this folder); of a pull request, the branch that it is for",
    )
    build = parts.add_parser(
        "build",
        help="verify every folder anew, and write the site",
        description="Verify every folder of a registry and write its static site. Exit status 0: all hold; 1: one does "
        "not, and the site says so.",
    )
    build.add_argument("root", type=Path, metavar="ROOT", help=f"the registry, with {POLICY} and perhaps {NOTICES}")
    build.add_argument("-o", "--output", type=Path, required=True, metavar="SITE", help="absent or empty")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Return the text to print and the exit status.

    Raises:
        RegistryError: there is no such folder or registry, or the site cannot be written.
    """
    return _check_folders(options) if options.part == "check" else _build_site(options)


def _check_folders(options: argparse.Namespace) -> tuple[str, int]:
    for folder in options.folders:
        if not folder.is_dir():
            raise RegistryError(f"{folder}: no such folder")
    found = checking.check(options.folders, options.root, manifest.get_today())
    return checking.render_comment(found), 0 if all(each.is_accepted for each in found) else 1


def _build_site(options: argparse.Namespace) -> tuple[str, int]:
    found = static_site.build(options.root, options.output, manifest.get_today())
    counts = {status: sum(entry.status is status for entry in found) for status in Status}
    said = ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "no certifications"
    refusals = [f"{entry.place}: {entry.refusals[0]}" for entry in found if entry.refusals]
    return "\n".join([f"wrote {options.output}/index.html: {said}", *refusals]), 1 if refusals else 0
