"""Explanations of a requirement, a check or a fault for the terminal: `oip-conformance explain`."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from conformance import checks
from conformance.judging import packs
from conformance.pages import requirement_facts
from conformance.spec import ledger
from conformance.spec.check import Check
from conformance.spec.extensions import EXTENSIONS, GRPC, HTTP, ROBUSTNESS
from conformance.spec.ledger import CONCERNS, Requirement
from conformance.spec.text import join_some
from conformance.spec.user_error import UserError
from conformance.transport import reference_faults
from conformance.transport.reference_faults import Fault

WIDTH = 100
LABEL_WIDTH = 11
MAX_SHOWN_NAMES = 8  # names in a list
UNWRAPPED_LABELS = ("Page", "Run", "Serve", "Judge")  # texts to copy, which are never wrapped
Lines = Iterator[tuple[str, str]]


class UnknownNameError(UserError):
    """No requirement, check or fault has this name; the message suggests similar names."""

    def __init__(self, name: str, similar: Sequence[str]) -> None:
        hint = f"; did you mean {', '.join(similar)}?" if similar else ""
        super().__init__(f"no requirement, check or fault is called {name!r}{hint}")
        self.similar = tuple(similar)


def explain(name: str) -> str:
    """Explain a requirement, a check or a fault, without a trailing newline.

    Raises:
        UnknownNameError: nothing has this name.
        NoFaultsError: the reference server does not list its faults.
    """
    if entry := ledger.load().get(ledger.normalise_id(name)):
        return format_lines(entry.id, describe_requirement(entry))
    known = {check.id: check for check in requirement_facts.list_checks()}
    if check := known.get(name.lower()):
        return format_lines(check.id, describe_check(check))
    if fault := reference_faults.load().get(name.lower()):
        return format_lines(fault.name, describe_fault(fault))
    if pack := packs.load_pack_of_id(name):
        if entry := pack.requirements.get(ledger.normalise_id(name)):
            return format_lines(entry.id, describe_requirement(entry))
        if check := next((check for check in pack.checks if check.id == name.lower()), None):
            return format_lines(check.id, describe_check(check))
    raise UnknownNameError(name, find_similar_names([*ledger.load(), *known, *reference_faults.load()], name))


def find_similar_names(known: Iterable[str], name: str) -> list[str]:
    """Return up to three known names that are similar to a misspelled name, ignoring case."""
    spelled: Mapping[str, str] = {each.lower(): each for each in known}
    return [spelled[match] for match in get_close_matches(name.lower(), spelled, n=3)]


def describe_requirement(entry: Requirement) -> Lines:
    """Yield the label and text of each fact about a requirement."""
    yield "Level", f"{entry.level}, {entry.basis}"
    if entry.concern:
        yield "Concern", f"{entry.concern}: {CONCERNS[entry.concern]}"
    yield "Extension", f"{entry.extension}, {'of a pack' if entry.is_of_pack else f'area {entry.area}'}"
    yield "Statement", entry.statement
    yield from (("Source", text) for source in entry.sources for text in (str(source), source.url))
    if entry.note:
        yield "Note", entry.note
    of_pack = packs.list_checks(entry.extension) if entry.is_of_pack else None
    found = requirement_facts.map_checks(of_pack, entry.party).get(entry.id, ())
    yield from (("Checks", f"{each.check.id} ({requirement_facts.describe_row_count(each)})") for each in found)
    if not found:
        yield "Checks", "none"
    about = () if entry.is_of_pack else requirement_facts.find_faults(entry.id).about
    if about:
        yield "Faults", join_some([fault.name for fault in about], MAX_SHOWN_NAMES)
    if entry.look_alike:
        yield "Spared", f"a valid server that looks wrong: {entry.look_alike}"
    if grpc_id := ledger.find_grpc_id(entry.id):
        yield "Over gRPC", grpc_id
    if entry.url and not entry.is_of_pack:
        yield "Page", entry.url


def describe_check(check: Check) -> Lines:
    """Yield the label and text of each fact about a check."""
    yield "Claim", check.claim
    answers = list(dict.fromkeys(name for case in check.cases for name in case.requirements))
    is_broad = len(answers) > MAX_SHOWN_NAMES
    yield from (("Answers", name) for name in ([", ".join(answers)] if is_broad else map(_format_requirement, answers)))
    names = [row.id for row in check.rows if row.id]
    yield "Rows", f"{len(check.rows)}: {join_some(names, MAX_SHOWN_NAMES)}" if names else "one"
    yield "Over", " and ".join(check.over)
    needs = Counter(
        name for case in check.cases for name in sorted({case.requirement.extension, *case.row.needs} & set(EXTENSIONS))
    )
    if needs:
        rows = len(check.rows)
        yield "Needs", ", ".join(name if count == rows else f"{name} (in some rows)" for name, count in needs.items())
    if roles := dict.fromkeys(role for case in check.cases if (role := case.role)):
        yield ("Roles" if len(roles) > 1 else "Role"), join_some(list(roles), MAX_SHOWN_NAMES)
    yield "Run", " ".join(["pytest", *_list_options(check), "-k", check.id])


def _list_options(check: Check) -> Iterator[str]:
    """Yield the pytest options of a run that judges the check."""
    if check.area in checks.CLIENT_AREAS:
        yield "--client-adapter=COMMAND"
        return
    if HTTP in check.over:
        yield "--target-url=http://HOST:PORT"
    if GRPC in check.over:
        yield "--target-grpc=HOST:PORT"
    if requirement_facts.needs_target_model(check):
        yield "--target-model NAME"
    if packs.list_checks(check.area) is not None:
        yield f"--target-extension={check.area}"
    if check.explores:
        yield "--conformance-profile=explore"
    if check.area == ROBUSTNESS:
        yield "--conformance-robustness"


def describe_fault(fault: Fault) -> Lines:
    """Yield the label and text of each fact about a fault."""
    yield "Fault", fault.summary
    yield from (("Breaks", _format_requirement(name)) for name in fault.breaks)
    if not fault.breaks:
        yield "Breaks", "nearly everything"
    if fault.walks:
        yield "Shows in", f"the area `walk`, in requests of the kind {fault.walks} that combine two features"
    yield "Serve", f"oip-conformance serve --port 8000{_format_grpc_port(fault)} --fault {fault.name}"
    selected = f" -k {fault.breaks[0]}" if fault.breaks else ""
    yield "Judge", f"pytest --target-url=http://127.0.0.1:8000{_format_grpc_address(fault)}{selected}"


def _format_grpc_port(fault: Fault) -> str:
    return " --grpc-port 8001" if fault.is_over_grpc else ""


def _format_grpc_address(fault: Fault) -> str:
    return " --target-grpc=127.0.0.1:8001" if fault.is_over_grpc else ""


def _format_requirement(name: str) -> str:
    entry = ledger.get_requirement(name)
    return f"{name} ({entry.level}): {entry.statement}"


def format_lines(title: str, lines: Iterable[tuple[str, str]]) -> str:
    """Return a title and a wrapped line `label  text` for each pair; a repeated label is printed only once."""
    wrapper = textwrap.TextWrapper(WIDTH, break_on_hyphens=False, break_long_words=False)
    shown, previous = [title], ""
    for label, text in lines:
        wrapper.initial_indent = "  " + ("" if label == previous else label).ljust(LABEL_WIDTH)
        wrapper.subsequent_indent = " " * len(wrapper.initial_indent)
        is_whole = label in UNWRAPPED_LABELS
        shown.append(f"{wrapper.initial_indent}{text}" if is_whole else wrapper.fill(text))
        previous = label
    return "\n".join(shown)
