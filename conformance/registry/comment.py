"""One comment for who hands certifications in, in Markdown: what is taken, and what to do where something is not.

What a stranger wrote stands in it as code: neither a link nor the mention of a person comes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.certification import verifying
from conformance.registry.entries import Entry
from conformance.report import markdown
from conformance.spec.tally import tally_report

MAX_SHOWN_FOLDERS = 20  # reasons of a folder


@dataclass(frozen=True, slots=True)
class FolderCheck:
    """A folder that was handed in, and why it is not taken; nothing where it is."""

    entry: Entry
    problems: tuple[str, ...]

    @property
    def is_taken(self) -> bool:
        """Whether it is."""
        return not self.problems


def render(found: Sequence[FolderCheck]) -> str:
    """Return the comment."""
    refused = sum(not each.is_taken for each in found)
    title = "Certifications: all taken" if not refused else f"Certifications: {refused} of {len(found)} not taken"
    lines = [f"### {title}", ""]
    for each in found:
        lines += _folder(each)
    return "\n".join(lines).rstrip()


def _folder(found: FolderCheck) -> Iterator[str]:
    entry = found.entry
    yield f"**{markdown.code(entry.place)}**: {'taken' if found.is_taken else 'not taken'}"
    yield ""
    for reason in found.problems[:MAX_SHOWN_FOLDERS]:
        yield f"- {markdown.code(reason, 600)}"
    if len(found.problems) > MAX_SHOWN_FOLDERS:
        yield f"- and {len(found.problems) - MAX_SHOWN_FOLDERS} more"
    if found.problems:
        yield ""
    if beside := verifying.describe_label(entry.folder):
        yield markdown.code(beside, 800)
        yield ""
    if not entry.refusals:
        yield from _facts(entry)


def _facts(entry: Entry) -> Iterator[str]:
    """Yield what a reviewer looks at in a folder that is verified."""
    made, report = entry.made, entry.folder.report
    signer = f"key {markdown.code(made.key['id'])}{'' if made.key['lasting'] else ', made for this folder alone'}"
    advice = tally_report(report, "SHOULD")
    third = made.third_party
    rows = [
        ["certification", markdown.code(entry.id)],
        ["product", f"{markdown.code(made.label)} by {markdown.code(made.vendor)}"],
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
