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
# Demand of a registry -> whether a manifest meets it, and the instruction if not.
DEMAND_CHECKS: dict[str, tuple[Callable[[Manifest], bool], str]] = {
    "product_url": (lambda made: bool(made.product_url), "give the URL of the product: --product-url"),
    "licence": (lambda made: bool(made.licence), "give the licence of the product: --licence"),
    "provenance": (
        lambda made: bool(made.container or made.version_command),
        "name the image or the version that was judged: --container or --version-command",
    ),
    "lasting_key": (lambda made: bool(made.key["lasting"]), "sign with a long-lived key: --sign"),
}

MAX_SHOWN_REASONS = 20  # per folder
_NO_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class FolderCheck:
    """A submitted folder and the reasons to refuse it; there are none if the folder is accepted."""

    entry: Entry
    problems: tuple[str, ...]

    @property
    def is_accepted(self) -> bool:
        """Whether the folder is accepted."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class ExistingCertification:
    """A certification that is already in a registry."""

    path: Path
    manifest: Manifest
    is_revoked: bool = False


def check_folders(folders: Sequence[Path], root: Path, day: date) -> list[FolderCheck]:
    """Return for each submitted folder the reasons to refuse it.

    `folders`: the folders, inside or outside the root.
    `root`: root of the registry, with its policy and existing certifications.

    Raises RegistryError: the registry's own files cannot be read.
    """
    registry_policy, notices = policy.read(root), policy.read_notices(root)
    known = find_existing(root, folders, notices.revoked)
    found = []
    for path in folders:
        entry = entries.read(path, root, registry_policy, notices, day)
        problems = entry.refusals or tuple(find_problems(entry, registry_policy, known, day))
        found.append(FolderCheck(entry, problems))
        if not entry.refusals:  # folders submitted together are also compared with each other
            known.append(ExistingCertification(path, entry.manifest))
    return found


def find_problems(
    entry: Entry, registry_policy: Policy, existing: Sequence[ExistingCertification], day: date
) -> list[str]:
    """Return the reasons to refuse a verified certification; empty if it is accepted.

    `existing`: the certifications in the registry, and those submitted with this one.
    """
    made = entry.manifest
    return [
        *_check_demands(made, registry_policy),
        *_check_suite(made, registry_policy),
        *_check_signers(made, registry_policy),
        *_check_size(entry.folder.path, registry_policy),
        *_check_status(entry, day),
        *_find_duplicates(entry, existing, day),
    ]


def find_signer_problems(made: Manifest, registry_policy: Policy) -> list[str]:
    """Return why an existing certification is invalid: its signer is unknown, or the registry accepts no self-tests.

    The other demands of the policy are checked only when a certification is submitted.
    """
    return [*_check_product(made, registry_policy), *_check_signers(made, registry_policy)]


def find_existing(root: Path, excluded: Iterable[Path], revoked: Collection[str]) -> list[ExistingCertification]:
    """Return the certifications below a root, except the `excluded` folders; unreadable certifications are skipped."""
    left_out = {path.resolve() for path in excluded}
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


def _check_product(made: Manifest, registry_policy: Policy) -> Iterator[str]:
    if made.self_test and not registry_policy.self_tests:
        yield f"the certified product is {manifest.BUNDLED}, the suite's own server; the policy accepts no self-tests"


def _check_demands(made: Manifest, registry_policy: Policy) -> Iterator[str]:
    yield from _check_product(made, registry_policy)
    accepted = {CONFORMANT: True, INTEROPERABLE: registry_policy.interoperable, PARTIAL: registry_policy.partial}
    if not accepted[made.standing]:
        yield f"the {made.party} is certified as {made.certified_as}; this registry does not accept such {made.party}s"
    for name in () if made.self_test else registry_policy.demands:
        is_met, what_to_do = DEMAND_CHECKS[name]
        if not is_met(made):
            yield what_to_do


def _check_suite(made: Manifest, registry_policy: Policy) -> Iterator[str]:
    version = made.suite["version"]
    if version not in registry_policy.suites:
        yield f"this registry does not accept suite {version}: certify with one of {', '.join(registry_policy.suites)}"
        return
    until = registry_policy.suites[version]
    if until and date.fromisoformat(made.finished[:10]) > until:
        yield f"this registry accepts suite {version} for runs until {until}: certify with a newer version"


def _check_signers(made: Manifest, registry_policy: Policy) -> Iterator[str]:
    """Yield the signers and keys that the policy does not list; a self-test needs no signer."""
    if made.self_test:
        return
    signers = [("vendor", made.vendor, made.key["id"], registry_policy.vendors)]
    if third := made.third_party:
        signers.append(("third party", third["name"], third["key"]["id"], registry_policy.third_parties))
    for kind, name, key, known in signers:
        if name not in known:
            yield (
                f"the {kind} {escape_text(name)} is not in the policy: the maintainers add it with the key {key},"
                " once they know the owner of the key"
            )
        elif key not in known[name]:
            yield f"the policy does not list the key {key} for {escape_text(name)}"


def _check_size(folder: Path, registry_policy: Policy) -> Iterator[str]:
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > registry_policy.max_bytes:
        yield f"the folder has {size} bytes; the maximum is {registry_policy.max_bytes}"


def _check_status(entry: Entry, day: date) -> Iterator[str]:
    if manifest.is_expired(entry.manifest.expires, day):
        yield f"the certification expired on {entry.manifest.expires}"
    if entry.notice:
        yield f"the certification is {entry.status}: {escape_text(entry.notice.reason, 400)}"


def _find_duplicates(entry: Entry, existing: Sequence[ExistingCertification], day: date) -> Iterator[str]:
    """Yield a message for each existing certification of the same run, or of the same product, version and profile."""
    made = entry.manifest
    for certification in existing:
        path, other = certification.path, certification.manifest
        if other.files[RECORDING] == made.files[RECORDING]:
            yield (
                f"{escape_text(str(path))} certifies the same run,"
                f" as {escape_text(other.label)} by {escape_text(other.vendor)}"
            )
        elif (
            not certification.is_revoked
            and make_subject_key(other) == make_subject_key(made)
            and not (made.standing == CONFORMANT != other.standing)
            and date.fromisoformat(other.expires) - day > RENEWAL_PERIOD
        ):
            yield (
                f"{escape_text(made.label)} already has a certification for {made.profile}: {escape_text(str(path))},"
                f" valid until {other.expires}; submit the next one in its last {RENEWAL_PERIOD.days} days"
            )


def make_subject_key(made: Manifest) -> tuple[str, ...]:
    """Return the key that duplicates share: normalized vendor, product and version; profile; server or client."""
    parts = (made.vendor, made.product, made.product_version)
    return (*(_NO_WORD.sub(" ", part.casefold()).strip() for part in parts), made.profile, made.party)


# --- the comment ------------------------------------------------------------------------------------------------------


def render_comment(checks: Sequence[FolderCheck]) -> str:
    """Return one comment in Markdown: the accepted folders, and how to fix the others.

    Text from submissions is formatted as code, so that it creates neither links nor mentions.
    """
    refused = sum(not each.is_accepted for each in checks)
    title = (
        "Certifications: all accepted" if not refused else f"Certifications: {refused} of {len(checks)} not accepted"
    )
    lines = [f"### {title}", ""]
    for each in checks:
        lines += _render_folder(each)
    return "\n".join(lines).rstrip()


def _render_folder(folder_check: FolderCheck) -> Iterator[str]:
    entry = folder_check.entry
    yield f"**{markdown.code(entry.relative_path)}**: {'accepted' if folder_check.is_accepted else 'not accepted'}"
    yield ""
    for reason in folder_check.problems[:MAX_SHOWN_REASONS]:
        yield f"- {markdown.code(reason, 600)}"
    if len(folder_check.problems) > MAX_SHOWN_REASONS:
        yield f"- and {len(folder_check.problems) - MAX_SHOWN_REASONS} more"
    if folder_check.problems:
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
