"""Writes docs/likeness.md: how a failed run is likened to known faults, and how well that does.

    python -m tests.support.fault_hints_page

tries it on made-up runs of every fault (`likeness_trials`), on real ones of some (`likeness_runs`), and on the reports
in docs/results. It takes about a quarter of an hour of two cores.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from conformance.fault_hints import hint_selection, patterns
from conformance.fault_hints.hint_selection import FitThreshold
from conformance.fault_hints.observed_rows import sort_rows
from conformance.fault_hints.patterns import Patterns
from conformance.judging.selection import collected_rows
from conformance.report.report_file import read
from conformance.spec.extensions import TRANSPORTS
from tests.support import fault_hints_trials as trials
from tests.support.fault_hints_runs import Entries, judge_cases
from tests.support.fault_hints_trials import PAIRS, SEED, Tally

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "likeness.md"
EXAMPLE = "binary-outputs-in-reverse"
FEW_ROLES = ("identity_int32", "identity_fp32", "identity_bytes", "raw_variable", "scores_labelled")
REAL_ONES, REAL_PAIRS = 80, 30
THRESHOLDS = (
    FitThreshold(0.2, 0.3),
    FitThreshold(0.3, 0.4),
    FitThreshold(0.4, 0.5),
    FitThreshold(0.4, 0.6),
    FitThreshold(0.5, 0.7),
    FitThreshold(0.6, 0.8),
    FitThreshold(0.7, 0.9),
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
  of what the fault would have failed must have failed, by weight. `conformance/fault_hints/overlap.py` has the formula.

## How well it does

Written by `python -m tests.support.fault_hints_page`, from {faults} faults. A trial is *right* where, for each
fault that the server has, it is named or another about the same requirement. A name is *false* where it breaks none of
the requirements that the server breaks. Runs are put together from the patterns; real ones were made, of half of the
rows.
Where a run does not show the server's faults at all, it is left out.

"""
COLUMNS = "| | trials | right | named anything | names | false |\n|---|---|---|---|---|---|\n"


def format_line(title: str, tally: Tally) -> str:
    """Return a line of the table of trials."""
    right, named = tally.right / tally.trials, tally.named / tally.trials
    false = f"{tally.false} ({tally.false / tally.hints:.1%})" if tally.hints else "0"
    return f"| {title} | {tally.trials} | {right:.1%} | {named:.1%} | {tally.hints} | {false} |\n"


def render_known_faults(known: Patterns) -> Iterator[str]:
    """Yield lines of trials with faults whose patterns are known."""
    half = trials.try_other_rows(known, lambda name: trials.select_half(known, name))
    yield format_line("one fault, half of the rows", half)
    cases = collected_rows("certify", transports=TRANSPORTS)
    few = [(check.id, row.id) for check, row in cases if (check.find_role(row) or FEW_ROLES[0]) in FEW_ROLES]
    yield format_line(
        f"one fault, {len(FEW_ROLES)} roles", trials.try_other_rows(known, lambda _: trials.select_rows(few, known))
    )
    pairs = trials.draw_pairs(list(known.of), PAIRS)
    yield format_line("two faults", trials.try_pairs(known, pairs))


def render_unknown_faults(known: Patterns) -> Iterator[str]:
    """Yield lines of trials in which the pattern of the server's own fault is left out."""
    (shared, alone), (near, _) = (
        trials.try_left_out(known, trials.find_named),
        trials.try_left_out(known, trials.find_nearest),
    )
    yield format_line("unknown fault; others are about the same requirement", shared)
    yield format_line("the same, the three nearest whether clear or not", near)
    yield format_line("unknown fault; none is about the same requirement", alone)


def render_real_runs(known: Patterns) -> Iterator[str]:
    """Yield lines of trials with real runs."""
    ones = [[name] for name in random.Random(SEED).sample(list(known.of), REAL_ONES)]
    yield format_line(
        "one fault, half of the roles, real", count_named(known, ones, judge_cases(ones, seed=SEED, part_of_roles=0.5))
    )
    pairs = list(trials.draw_pairs(list(known.of), REAL_PAIRS))
    yield format_line("two faults, real", count_named(known, pairs, judge_cases(pairs, seed=SEED, part_of_roles=1)))


def count_named(known: Patterns, present: Sequence[Sequence[str]], runs: Sequence[Entries]) -> Tally:
    """Return what is named of real runs, of those that do not meet something."""
    counted = Tally()
    for names, entries in zip(present, runs, strict=True):
        found = hint_selection.find_fault_hints(entries, known)
        if sort_rows(entries, known).symptoms:
            counted.add([known.of[name] for name in names], [known.of[each.fault] for each in found])
    return counted


def render_thresholds(known: Patterns) -> Iterator[str]:
    """Yield a line for each threshold: what an unknown fault is called, and what is called falsely."""
    for least in THRESHOLDS:
        shared, alone = trials.try_left_out(known, partial(trials.find_named, least=least))
        hints, false = shared.hints + alone.hints, shared.false + alone.false
        yield (
            f"| {least.score}, {least.kept:.0%} | {shared.right / shared.trials:.1%} | {hints} "
            f"| {false} ({false / max(1, hints):.1%}) |\n"
        )


def render_servers() -> Iterator[str]:
    """Yield what its run named of each server that docs/results has."""
    for path in sorted((DOCS / "results").glob("*.json")):
        found = read(path, is_whole=False).get("looks_like", [])
        unmet = found[0]["of"] if found else 0
        said = "<br>".join("`{fault}` ({explains}): {summary}".format_map(each) for each in found) or "nothing"
        yield f"| {path.stem} | {unmet or ''} | {said} |\n"


def render_confusions(known: Patterns) -> Iterator[str]:
    """Yield which requirements an unknown fault is taken for another's of, where the three nearest are asked."""
    near, _ = trials.try_left_out(known, trials.find_nearest)
    found: Mapping[tuple[str, str], list[str]] = trials.find_confusions(known, near.missed)
    for (requirement, other), names in sorted(found.items()):
        yield f"| {requirement} | {other} | {', '.join(f'`{name}`' for name in names)} |\n"


def render_example(known: Patterns) -> str:
    """Return the line for one fault."""
    pattern = known.of[EXAMPLE]
    found = trials.make_run([pattern], known, trials.select_all_rows(known))
    best = hint_selection.select_hints(found, known, sum(found.symptoms.values()))[0]
    return hint_selection.format_hints([best.to_dict()])[0]


def render_page(known: Patterns) -> str:
    """Return the page."""
    head = HEAD.format(
        example=render_example(known),
        score=hint_selection.CLEAR_FIT.score,
        kept=hint_selection.CLEAR_FIT.kept,
        faults=len(known.of),
    )
    parts = [head, "Faults that the suite knows:\n\n", COLUMNS, *render_known_faults(known), *render_real_runs(known)]
    parts += [
        "\nFaults that it does not know (each pattern is left out in turn):\n\n",
        COLUMNS,
        *render_unknown_faults(known),
    ]
    parts += [UNKNOWN, *render_thresholds(known), SERVERS, *render_servers(), CONFUSED, *render_confusions(known)]
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
    PAGE.write_text(render_page(patterns.load()), encoding="utf-8")


if __name__ == "__main__":
    main()
