"""`oip-conformance registry check` and `build`: checks a repository of certifications and builds its site."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from conformance.certification import manifest
from conformance.registry import checking, static_site
from conformance.registry.entries import Status
from conformance.registry.policy import NOTICES, POLICY, RegistryError


def add_subcommand(commands: Any) -> None:
    """Add the command and its two subcommands."""
    parser = commands.add_parser(
        "registry",
        help="check certifications for a registry, and build its site",
        description="A registry is a repository with certification folders, a policy (registry.toml) and revocations "
        "(revoked.toml); docs/registry is a template of one.",
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    check = parts.add_parser(
        "check",
        help="check whether a registry accepts certification folders",
        description="Verify certification folders, and compare them with the policy and the entries of a registry. "
        "Prints the result as a comment in Markdown. Exit status 0: all are accepted; 1: one is not, with the reasons.",
    )
    check.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="a folder that `certify` wrote")
    check.add_argument(
        "--root",
        type=Path,
        default=Path(),
        metavar="DIR",
        help=f"the registry, with {POLICY} (default: this folder); for a pull request, its target branch",
    )
    build = parts.add_parser(
        "build",
        help="verify every folder, and write the site",
        description="Verify every folder of a registry, and write its static site. Exit status 0: all are verified; 1: "
        "one is refused, which the site shows.",
    )
    build.add_argument("root", type=Path, metavar="ROOT", help=f"the registry, with {POLICY}, and optionally {NOTICES}")
    build.add_argument(
        "-o", "--output", type=Path, required=True, metavar="SITE", help="the folder to write, absent or empty"
    )


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Return the text to print and the exit status.

    Raises RegistryError: there is no such folder or registry, or the site cannot be written.
    """
    return _check_folders(options) if options.part == "check" else _build_site(options)


def _check_folders(options: argparse.Namespace) -> tuple[str, int]:
    for folder in options.folders:
        if not folder.is_dir():
            raise RegistryError(f"{folder}: no such folder")
    found = checking.check_folders(options.folders, options.root, manifest.get_today())
    return checking.render_comment(found), 0 if all(each.is_accepted for each in found) else 1


def _build_site(options: argparse.Namespace) -> tuple[str, int]:
    found = static_site.build(options.root, options.output, manifest.get_today())
    counts = {status: sum(entry.status is status for entry in found) for status in Status}
    said = ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "no certifications"
    refusals = [f"{entry.relative_path}: {entry.refusals[0]}" for entry in found if entry.refusals]
    return "\n".join([f"wrote {options.output}/index.html: {said}", *refusals]), 1 if refusals else 0
