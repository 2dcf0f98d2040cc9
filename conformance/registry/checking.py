"""Folders that are handed in, checked against a registry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from conformance.registry import entries, policy, rules
from conformance.registry.comment import FolderCheck


def check(given: Sequence[Path], root: Path, day: date) -> list[FolderCheck]:
    """Check folders on a day.

    Args:
        given: the folders; they may be below the root, or elsewhere.
        root: of the registry, whose policy counts, and whose certifications are there already.
        day: on which they are handed in.

    Raises:
        RegistryError: the registry's own files cannot be read.
    """
    demanded, notices = policy.read(root), policy.read_notices(root)
    known = rules.find_existing(root, given, notices.revoked)
    found = []
    for path in given:
        entry = entries.read(path, root, demanded, notices, day)
        problems = entry.refusals or tuple(rules.find_problems(entry, demanded, known, day))
        found.append(FolderCheck(entry, problems))
        if not entry.refusals:  # two that are handed in together are held against each other
            known.append(rules.ExistingCertification(path, entry.made))
    return found
