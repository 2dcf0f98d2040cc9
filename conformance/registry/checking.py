"""Checks submitted certifications: finds the reasons to refuse them, and renders a comment with the result.

A folder is verified, and compared with the registry's policy and its existing certifications.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from conformance.certification import manifest, verifying
from conformance.certification.manifest import RECORDING, CertificationError, Manifest
from conformance.registry import entries, policy
from conformance.registry.entries import Entry
from conformance.registry.policy import Policy
from conformance.report import markdown
from conformance.spec.outcome import CONFORMANT, INTEROPERABLE, PARTIAL
from conformance.spec.tally import tally_report
from conformance.spec.text import escape_text

# Time before the expiry of a certification from which a new one of the same product and version is accepted.
RENEWAL_PERIOD = timedelta(days=60)
# Demand of a registry -> function that says whether a manifest meets it, and what to do otherwise.
DEMAND_CHECKS: dict[str, tuple[Callable[[Manifest], bool], str]] = {
    "product_url": (lambda made: bool(made.product_url), "say where the product can be had: --product-url"),
    "licence": (lambda made: bool(made.licence), "say its licence: --licence"),
    "provenance": (
        lambda made: bool(made.container or made.version_command),
        "say what was judged: --container or --version-command",
    ),
    "lasting_key": (lambda made: bool(made.key["lasting"]), "sign with a key that you keep: --sign"),
}

MAX_SHOWN_REASONS = 20  # per folder
_NO_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class FolderCheck:
    """A submitted folder and the reasons to refuse it, which are empty if it is accepted."""

    entry: Entry
    problems: tuple[str, ...]

    @property
    def is_accepted(self) -> bool:
        """Whether the folder is accepted."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class ExistingCertification:
    """A certification that is already in a registry."""

    place: Path
    manifest: Manifest
    is_revoked: bool = False


def check(given: Sequence[Path], root: Path, day: date) -> list[FolderCheck]:
    """Check submitted folders.

    Args:
        given: the folders, inside or outside the root.
        root: root of the registry, with its policy and existing certifications.
        day: day of submission.

    Raises:
        RegistryError: the registry's own files cannot be read.
    """
    demanded, notices = policy.read(root), policy.read_notices(root)
    known = find_existing(root, given, notices.revoked)
    found = []
    for path in given:
        entry = entries.read(path, root, demanded, notices, day)
        problems = entry.refusals or tuple(find_problems(entry, demanded, known, day))
        found.append(FolderCheck(entry, problems))
        if not entry.refusals:  # folders submitted together are also compared with each other
            known.append(ExistingCertification(path, entry.manifest))
    return found


def find_problems(entry: Entry, demanded: Policy, others: Sequence[ExistingCertification], day: date) -> list[str]:
    """Return why a verified certification is refused.

    Args:
        entry: the certification.
        demanded: the policy of the registry.
        others: the existing certifications.
        day: day of submission.
    """
    made = entry.manifest
    return [
        *_check_demands(made, demanded),
        *_check_suite(made, demanded),
        *_check_signers(made, demanded),
        *_check_size(entry.folder.path, demanded),
        *_check_expiry(entry, day),
        *_find_duplicates(entry, others, day),
    ]


def find_signer_problems(made: Manifest, demanded: Policy) -> list[str]:
    """Return why an existing certification is invalid: it is a refused self-test, or its signer is not in the policy.

    The policy's other demands are checked only on submission.
    """
    return [*_check_product(made, demanded), *_check_signers(made, demanded)]


def find_existing(root: Path, but: Iterable[Path], revoked: Collection[str]) -> list[ExistingCertification]:
    """Return the certifications below a root, except those in the folders `but`; unreadable ones are skipped."""
    left_out = {path.resolve() for path in but}
    found = []
    for path in entries.find_folders(root):
        if path.resolve() in left_out:
            continue
        try:
            is_revoked = manifest.compute_digest(path / manifest.NAME) in revoked
            found.append(ExistingCertification(path.relative_to(root), manifest.read(path), is_revoked))
        except CertificationError:
            continue
    return found


def _check_product(made: Manifest, demanded: Policy) -> Iterator[str]:
    if made.self_test and not demanded.self_tests:
        yield f"it is a self-test, of the suite's own server {manifest.BUNDLED}, which is not a product"


def _check_demands(made: Manifest, demanded: Policy) -> Iterator[str]:
    yield from _check_product(made, demanded)
    taken = {CONFORMANT: True, INTEROPERABLE: demanded.interoperable, PARTIAL: demanded.partial}
    if not taken[made.standing]:
        yield f"the {made.party} is certified as {made.certified_as}; this registry does not accept such {made.party}s"
    for name in () if made.self_test else demanded.demands:
        is_met, what_to_do = DEMAND_CHECKS[name]
        if not is_met(made):
            yield what_to_do


def _check_suite(made: Manifest, demanded: Policy) -> Iterator[str]:
    version = made.suite["version"]
    if version not in demanded.suites:
        yield f"suite {version} is not taken, but {', '.join(demanded.suites)}: certify with one of these"
        return
    until = demanded.suites[version]
    if until and date.fromisoformat(made.finished[:10]) > until:
        yield f"suite {version} was taken for runs until {until}: certify with a newer one"


def _check_signers(made: Manifest, demanded: Policy) -> Iterator[str]:
    """Yield the differences of the keys from those of the policy; a self-test needs no key."""
    if made.self_test:
        return
    signers = [("vendor", made.vendor, made.key["id"], demanded.vendors)]
    if third := made.third_party:
        signers.append(("third party", third["name"], third["key"]["id"], demanded.third_parties))
    for kind, name, key, known in signers:
        if name not in known:
            yield (
                f"the {kind} {escape_text(name)} is not in the policy: its keepers add it, with the key {key},"
                " once they know who holds that"
            )
        elif key not in known[name]:
            yield f"the key {key} is not one of {escape_text(name)} by the policy"


def _check_size(folder: Path, demanded: Policy) -> Iterator[str]:
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > demanded.most_bytes:
        yield f"the folder has {size} bytes, and may have {demanded.most_bytes}"


def _check_expiry(entry: Entry, day: date) -> Iterator[str]:
    if manifest.is_expired(entry.manifest.expires, day):
        yield f"it expired on {entry.manifest.expires}"
    if entry.notice:
        yield f"it is {entry.status}: {escape_text(entry.notice.reason, 400)}"


def _find_duplicates(entry: Entry, others: Sequence[ExistingCertification], day: date) -> Iterator[str]:
    """Look for a certification of the same product, version and profile, and for the same run with another label."""
    made = entry.manifest
    for existing in others:
        place, other = existing.place, existing.manifest
        if other.files[RECORDING] == made.files[RECORDING]:
            yield (
                f"the run is that of {escape_text(str(place))},"
                f" {escape_text(other.label)} by {escape_text(other.vendor)}"
            )
        elif (
            not existing.is_revoked
            and make_subject_key(other) == make_subject_key(made)
            and not (made.standing == CONFORMANT != other.standing)
            and date.fromisoformat(other.expires) - day > RENEWAL_PERIOD
        ):
            yield (
                f"{escape_text(made.label)} has a certification for {made.profile}: {escape_text(str(place))},"
                f" valid until {other.expires}; the next one is taken in its last {RENEWAL_PERIOD.days} days"
            )


def make_subject_key(made: Manifest) -> tuple[str, ...]:
    """Return the key that duplicates share: normalised vendor, product and version; profile; party."""
    parts = (made.vendor, made.product, made.product_version)
    return (*(_NO_WORD.sub(" ", part.casefold()).strip() for part in parts), made.profile, made.party)


# --- the comment ------------------------------------------------------------------------------------------------------


def render_comment(found: Sequence[FolderCheck]) -> str:
    """Return one comment in Markdown: the accepted folders, and how to fix the others.

    Text from submissions is formatted as code, so that it creates neither links nor mentions.
    """
    refused = sum(not each.is_accepted for each in found)
    title = "Certifications: all taken" if not refused else f"Certifications: {refused} of {len(found)} not taken"
    lines = [f"### {title}", ""]
    for each in found:
        lines += _render_folder(each)
    return "\n".join(lines).rstrip()


def _render_folder(found: FolderCheck) -> Iterator[str]:
    entry = found.entry
    yield f"**{markdown.code(entry.place)}**: {'taken' if found.is_accepted else 'not taken'}"
    yield ""
    for reason in found.problems[:MAX_SHOWN_REASONS]:
        yield f"- {markdown.code(reason, 600)}"
    if len(found.problems) > MAX_SHOWN_REASONS:
        yield f"- and {len(found.problems) - MAX_SHOWN_REASONS} more"
    if found.problems:
        yield ""
    if beside := verifying.describe_label(entry.folder):
        yield markdown.code(beside, 800)
        yield ""
    if not entry.refusals:
        yield from _render_facts(entry)


def _render_facts(entry: Entry) -> Iterator[str]:
    """Yield the facts that a reviewer needs about a verified folder."""
    made, report = entry.manifest, entry.folder.report
    signer = f"key {markdown.code(made.key['id'])}{'' if made.key['lasting'] else ', made for this folder alone'}"
    advice = tally_report(report, "SHOULD")
    third = made.third_party
    rows = [
        ["certification", markdown.code(entry.id)],
        ["product", f"{markdown.code(made.label)} by {markdown.code(made.vendor)}"],
        ["kind", made.party],
        ["certified as", made.certified_as],
        ["profile", f"{made.profile}, suite {made.suite['version']}, requirements {made.suite['ledger']}"],
        ["MUST", tally_report(report).brief],
        ["SHOULD", advice.brief],
        ["judged", f"{made.finished[:10]}, valid until {made.expires}"],
        ["signed", signer],
        *([["run by", f"{markdown.code(third['name'])}, key {markdown.code(third['key']['id'])}"]] if third else []),
        *([["product at", markdown.code(made.product_url, 400)]] if made.product_url else []),
    ]
    yield from markdown.table(["", ""], rows)
    yield ""
