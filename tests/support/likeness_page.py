"""Writes docs/likeness.md: how a failed run is likened to known faults, and how well that does.

    python -m tests.support.likeness_page

tries it on made-up runs of every fault (`likeness_trials`), on real ones of some (`likeness_runs`), and on the reports
in docs/results. It takes about a quarter of an hour of two cores.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from conformance.judging.selection import collected_rows
from conformance.likeness import naming, patterns
from conformance.likeness.naming import Least
from conformance.likeness.patterns import Patterns
from conformance.likeness.seen import seen
from conformance.report.reading import read
from conformance.terms.extensions import TRANSPORTS
from tests.support import likeness_trials as trials
from tests.support.likeness_runs import Entries, runs
from tests.support.likeness_trials import PAIRS, SEED, Tally

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "likeness.md"
EXAMPLE = "binary-outputs-in-reverse"
FEW_ROLES = ("identity_int32", "identity_fp32", "identity_bytes", "raw_variable", "scores_labelled")
REAL_ONES, REAL_PAIRS = 80, 30
THRESHOLDS = (
    Least(0.2, 0.3),
    Least(0.3, 0.4),
    Least(0.4, 0.5),
    Least(0.4, 0.6),
    Least(0.5, 0.7),
    Least(0.6, 0.8),
    Least(0.7, 0.9),
)

HEAD = """# What a failure looks like

When a server fails, the report may say which known fault that looks like:

    {example}

The suite is proved by the faults of the bundled reference server ([kill-matrix.md](kill-matrix.md)): servers that are
wrong in one way each. Which rows each of them fails is kept with the suite, and a run that fails is held against all
of these patterns. `oip-conformance explain NAME` says more about a fault, and how to serve it: another server that
fails as yours does, with sources to read. A name is a hint, not a verdict; nothing depends on it. A JSON report has
the names in `looks_like`, each with how many of the rows it explains that fail or are advised against.

* Only rows that were judged count. A deployment with few models is compared by the rows that it has.
* A row that passes speaks against every fault that would have failed it. A row that fails beside a fault's own speaks
  against it where it is of the same check or requirement, and hardly otherwise: servers have several faults.
* A symptom (a check failing on a requirement) weighs the more the fewer faults show it.
* What the best fit explains is left out, and the rest is compared again: up to three names. Where there is room, they
  are followed by faults that no row tells from one of them. Rows that are advised against count like failed ones.
* Where nothing fits clearly, nothing is named: the score, between 0 and 1, has to be {score} at least, and {kept:.0%}
  of what the fault would have failed must have failed, by weight. `conformance/likeness/overlap.py` has the formula.

## How well it does

Written by `python -m tests.support.likeness_page`, from {faults} faults. A trial is *right* where, for each fault that
the server has, it is named or another about the same requirement. A name is *false* where it breaks none of the
requirements that the server breaks. Runs are put together from the patterns; real ones were made, of half of the rows.
Where a run does not show the server's faults at all, it is left out.

"""
COLUMNS = "| | trials | right | named anything | names | false |\n|---|---|---|---|---|---|\n"


def line(title: str, tally: Tally) -> str:
    """Return a line of the table of trials."""
    right, named = tally.right / tally.trials, tally.named / tally.trials
    false = f"{tally.false} ({tally.false / tally.hints:.1%})" if tally.hints else "0"
    return f"| {title} | {tally.trials} | {right:.1%} | {named:.1%} | {tally.hints} | {false} |\n"


def known_faults(known: Patterns) -> Iterator[str]:
    """Yield lines of trials with faults whose patterns are known."""
    half = trials.elsewhere(known, lambda name: trials.half_of_the_rows(known, name))
    yield line("one fault, half of the rows", half)
    cases = collected_rows("certify", transports=TRANSPORTS)
    few = [(check.id, row.id) for check, row in cases if (check.role_of(row) or FEW_ROLES[0]) in FEW_ROLES]
    yield line(f"one fault, {len(FEW_ROLES)} roles", trials.elsewhere(known, lambda _: trials.those_of(few, known)))
    pairs = trials.random_pairs(list(known.of), PAIRS)
    yield line("two faults", trials.two_at_once(known, pairs))


def unknown_faults(known: Patterns) -> Iterator[str]:
    """Yield lines of trials in which the pattern of the server's own fault is left out."""
    (shared, alone), (near, _) = trials.left_out(known, trials.named), trials.left_out(known, trials.nearest)
    yield line("unknown fault; others are about the same requirement", shared)
    yield line("the same, the three nearest whether clear or not", near)
    yield line("unknown fault; none is about the same requirement", alone)


def real_runs(known: Patterns) -> Iterator[str]:
    """Yield lines of trials with real runs."""
    ones = [[name] for name in random.Random(SEED).sample(list(known.of), REAL_ONES)]
    yield line("one fault, half of the roles, real", tally(known, ones, runs(ones, seed=SEED, part_of_roles=0.5)))
    pairs = list(trials.random_pairs(list(known.of), REAL_PAIRS))
    yield line("two faults, real", tally(known, pairs, runs(pairs, seed=SEED, part_of_roles=1)))


def tally(known: Patterns, present: Sequence[Sequence[str]], runs: Sequence[Entries]) -> Tally:
    """Return what is named of real runs, of those that do not meet something."""
    counted = Tally()
    for names, entries in zip(present, runs, strict=True):
        found = naming.looks_like(entries, known)
        if seen(entries, known).symptoms:
            counted.add([known.of[name] for name in names], [known.of[each.fault] for each in found])
    return counted


def thresholds(known: Patterns) -> Iterator[str]:
    """Yield a line for each threshold: what an unknown fault is called, and what is called falsely."""
    for least in THRESHOLDS:
        shared, alone = trials.left_out(known, partial(trials.named, least=least))
        hints, false = shared.hints + alone.hints, shared.false + alone.false
        yield (
            f"| {least.score}, {least.kept:.0%} | {shared.right / shared.trials:.1%} | {hints} "
            f"| {false} ({false / max(1, hints):.1%}) |\n"
        )


def servers() -> Iterator[str]:
    """Yield what its run named of each server that docs/results has."""
    for path in sorted((DOCS / "results").glob("*.json")):
        found = read(path, is_whole=False).get("looks_like", [])
        unmet = found[0]["of"] if found else 0
        said = "<br>".join("`{fault}` ({explains}): {summary}".format_map(each) for each in found) or "nothing"
        yield f"| {path.stem} | {unmet or ''} | {said} |\n"


def confused(known: Patterns) -> Iterator[str]:
    """Yield which requirements an unknown fault is taken for another's of, where the three nearest are asked."""
    near, _ = trials.left_out(known, trials.nearest)
    found: Mapping[tuple[str, str], list[str]] = trials.confusions(known, near.missed)
    for (requirement, other), names in sorted(found.items()):
        yield f"| {requirement} | {other} | {', '.join(f'`{name}`' for name in names)} |\n"


def example(known: Patterns) -> str:
    """Return the line for one fault."""
    pattern = known.of[EXAMPLE]
    found = trials.made_up([pattern], known, trials.every_row(known))
    best = naming.named(found, known, sum(found.symptoms.values()))[0]
    return naming.lines([best.to_dict()])[0]


def page(known: Patterns) -> str:
    """Return the page."""
    head = HEAD.format(example=example(known), score=naming.CLEAR.score, kept=naming.CLEAR.kept, faults=len(known.of))
    parts = [head, "Faults that the suite knows:\n\n", COLUMNS, *known_faults(known), *real_runs(known)]
    parts += ["\nFaults that it does not know (each pattern is left out in turn):\n\n", COLUMNS, *unknown_faults(known)]
    parts += [UNKNOWN, *thresholds(known), SERVERS, *servers(), CONFUSED, *confused(known)]
    return "".join(parts)


UNKNOWN = """
Most unknown faults get no name, and that is meant: their rows are not those of another fault, and the requirement
stands beside each failure anyway. The thresholds were set where few names are false:

| least score, least part failed | right | names | false |
|---|---|---|---|
"""
SERVERS = """
## Real servers

What is named for the servers of [results.md](results.md), with the number of rows that each name explains. What people
found to be the reasons is in `expected.toml` of each folder of [targets](../targets/README.md):

| server | unmet rows | looks like |
|---|---|---|
"""
CONFUSED = """
## Confusions

Where the three nearest faults are all about other requirements than an unknown fault, these are:

| fault about | taken for one about | faults |
|---|---|---|
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(patterns.load()), encoding="utf-8")


if __name__ == "__main__":
    main()
