"""Folders that are handed in, checked against a registry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from conformance.registry import entries, policy, rules
from conformance.registry.comment import Checked


def check(given: Sequence[Path], root: Path, day: date) -> list[Checked]:
    """Check folders on a day.

    Args:
        given: the folders; they may be below the root, or elsewhere.
        root: of the registry, whose policy counts, and whose certifications are there already.
        day: on which they are handed in.

    Raises:
        RegistryError: the registry's own files cannot be read.
    """
    demanded, notices = policy.read(root), policy.notices(root)
    known = rules.known(root, given, notices.revoked)
    found = []
    for path in given:
        entry = entries.read(path, root, demanded, notices, day)
        problems = entry.refusals or tuple(rules.problems(entry, demanded, known, day))
        found.append(Checked(entry, problems))
        if not entry.refusals:  # two that are handed in together are held against each other
            known.append(rules.Known(path, entry.made))
    return found
