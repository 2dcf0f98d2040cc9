"""Renders docs/results-gateways.md: which gateway breaks what, and the setting that mends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from conformance.report.exchange_changes import ChangeKind
from conformance.report.through import SLIGHT, Effect, ThroughComparison
from conformance.spec.text import join_some

HEAD = """# What gateways change

`oip-conformance run URL --through OTHER_URL` judges a server directly and through a gateway, and prints what the way
between changes. This page shows that for common gateways in front of the bundled server, which meets every
requirement. `python targets/runner/gateways.py` starts the gateways, judges with the profile `{profile}`, and writes
this page, last in {month}; it is not edited by hand. The settings are in
[targets/gateways](../targets/gateways/README.md).

## Which gateway breaks what

*Breaks* are requirements that are met directly and not through the gateway: a MUST, or advice in italics. *Refuses*
counts rows that the suite cannot judge through the gateway: it refuses large requests, or a simpler request is answered
wrongly as well. A gateway has a second line if there are settings that mend what it breaks.
"""
CHANGES = """
## What else they change

Clients have to cope with all of this: names of headers are case-insensitive, and a gateway may add headers. A client
that compares names exactly, or expects headers in lower case, works directly and fails behind such a gateway.
"""
EVIDENCE = """
## What came directly, and through the gateway

The first row of each requirement that a gateway breaks, with its settings as they come.
"""
AS_IT_COMES, NOTHING = "as it comes", "-"
MAX_NAMES, MAX_EVIDENCE, MAX_SETTINGS = 6, 4, 3
LINK = "those of [{0}](../targets/gateways/{0})"
SHOWN = (Effect.BROKEN, Effect.ADVISED)


@dataclass(frozen=True, slots=True)
class Variant:
    """A gateway with some settings, and what it changes.

    Attributes:
        title: its name and version.
        note: why it does that, in a sentence.
        mending: the settings that it has beside those as it comes.
        file: the file with its settings.
    """

    title: str
    note: str
    found: ThroughComparison
    mending: Sequence[str] = ()
    file: str = ""


def render_page(variants: Sequence[Variant], profile: str) -> str:
    """Return the page."""
    lines = [
        HEAD.format(profile=profile, month=f"{date.today():%B %Y}"),
        "| gateway | settings | breaks | refuses |",
        "|---|---|---|---|",
    ]
    lines += map(_render_row, variants)
    lines += [CHANGES, "| gateway | headers in another case | headers added | other changes |", "|---|---|---|---|"]
    lines += [_render_changes(each) for each in variants if not each.mending]
    lines += [EVIDENCE, *(line for each in variants if not each.mending for line in _render_evidence(each))]
    return "\n".join(lines) + "\n"


def _render_row(variant: Variant) -> str:
    found = variant.found
    names = [f"`{name}`" for name in found.select(Effect.BROKEN)]
    names += [f"*{name}*" for name in found.select(Effect.ADVISED)]
    names = [join_some(names, MAX_NAMES)] if names else []
    rows = sum(map(len, found.select(Effect.UNJUDGED).values()))
    lines = list(dict.fromkeys(variant.mending))
    settings = "<br>".join(f"`{line}`" for line in lines) if len(lines) < MAX_SETTINGS else LINK.format(variant.file)
    settings = settings or AS_IT_COMES
    cells = (variant.title, settings, ", ".join(names) or NOTHING, f"{rows} rows" if rows else NOTHING)
    return f"| {' | '.join(cells)} |"


def _render_changes(variant: Variant) -> str:
    cells = [variant.title, *(_list_names(variant, kind) for kind in (ChangeKind.HEADER_CASE, ChangeKind.HEADER_ADDED))]
    others = [each for each in variant.found.changes if each.kind not in SLIGHT[:2]]
    names = {kind: [each.name for each in others if each.kind is kind] for kind in ChangeKind}
    words = [f"{kind}: {join_some(own, MAX_NAMES)}".removesuffix(": ") for kind, own in names.items() if own]
    return f"| {' | '.join([*cells, _escape('; '.join(words)) or NOTHING])} |"


def _list_names(variant: Variant, kind: ChangeKind) -> str:
    return ", ".join(each.name for each in variant.found.changes if each.kind is kind) or NOTHING


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _render_evidence(variant: Variant) -> Iterator[str]:
    """Yield the text about one gateway; the note alone if it breaks nothing."""
    yield f"### {variant.title}\n\n{variant.note}"
    shown = [each for effect in SHOWN for each in variant.found.select(effect).items()]
    if shown:
        yield "\n```text"
        yield from (line for each in shown[:MAX_EVIDENCE] for line in variant.found.format_rows(*each))
        yield from [f"... and {len(shown) - MAX_EVIDENCE} more"] if len(shown) > MAX_EVIDENCE else []
        yield "```"
    yield ""
