"""What can be expected of a client: of what it sends, of what it gives its caller, and of what it refuses to give."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from conformance.clients.client import Observation
from conformance.clients.inference import Class, ClientOutput, Result
from conformance.clients.intent import find_differences
from conformance.clients.peer.scenario import ReceivedRequest
from conformance.clients.rules.judging import judge_request
from conformance.clients.rules.rule import Violation
from conformance.expect.class_texts import ClassText, is_same_value, parse
from conformance.expect.difference import find_difference
from conformance.expect.unmet import UnmetError
from conformance.spec import ledger
from conformance.spec.ledger import Level
from conformance.spec.text import escape_text, format_elements
from conformance.transport.exchange import Reply
from conformance.wire.outputs import Output
from conformance.wire.tensor import Tensor, find_first_difference

VALUES = "CLIENT-SENDS-VALUES"


def expect_request(seen: Observation, unheard: str = VALUES) -> None:
    """Expect that an inference request came at all.

    Args:
        seen: what was seen of one inference.
        unheard: the requirement that is not met where none came.

    Raises:
        Unmet: none came: the client refused what the protocol allows, or sent its request to where none is awaited; or
            one came that is not whole, so that nothing is known of how the client reads an answer.
    """
    if not seen.heard:
        said = (
            f"an error: {escape_text(seen.result.error)}" if seen.result.error is not None else "outputs nevertheless"
        )
        raise UnmetError("an inference request", f"none came; the client gives its caller {said}", requirement=unheard)
    broken = next((one for one in seen.heard if one.received.trouble), None)
    if broken is not None:
        trouble = escape_text(broken.received.trouble)
        raise UnmetError("a whole request", trouble, Reply(broken.exchange()), requirement="CLIENT-SENDS-WHOLE")


def expect_sent(seen: Observation, own: Collection[str] = (), unheard: str = VALUES) -> None:
    """Expect that each request keeps the rules and says what the caller meant.

    What is not met of the requirements that a row is about comes first, and of these what the documents demand; then
    any other that they demand. What they only advise is left to the rows that are about it.

    Args:
        seen: what was seen of one inference.
        own: the requirements that the row is about, as they are called over HTTP.
        unheard: the requirement that is not met where no request came.

    Raises:
        Unmet: a request misses a requirement, or none came.
    """
    expect_request(seen, unheard)
    for heard in seen.heard:
        misses = (*judge_request(heard.received).misses, *find_differences(heard.received, seen.inference))
        if first := _first(misses, own):
            raise _unmet(first, heard)


def _first(misses: Sequence[Violation], own: Collection[str]) -> Violation | None:
    of_row = [miss for miss in misses if ledger.get_requirement(miss.requirement).name in own]
    demanded = [miss for miss in misses if ledger.get_requirement(miss.requirement).level is Level.MUST]
    return next(iter((*(miss for miss in of_row if miss in demanded), *of_row, *demanded)), None)


def _unmet(miss: Violation, heard: ReceivedRequest) -> UnmetError:
    reply = Reply(heard.exchange())
    return UnmetError(miss.expected, miss.actual, reply, requirement=miss.requirement, offset=miss.offset)


OWN: Final = "CLIENT-READS-OWN"
MIN_TELLING_BYTES: Final = 4  # bytes of a tensor that no other one has by chance
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def find_last_reply(seen: Observation) -> Reply | None:
    """Return the last request of an inference with its answer, where there is one."""
    return Reply(seen.heard[-1].exchange()) if seen.heard else None


def expect_outputs(seen: Observation, *, through_json: bool = False, unread: str | None = None) -> None:
    """Expect that the caller is given the outputs of the answer, which is honest.

    Args:
        seen: what was seen of one inference.
        through_json: decimal numbers travelled as JSON, so that a near one is right.
        unread: the requirement that is not met where the caller has an error; None stands for that of the row.

    Raises:
        Unmet: nothing was sent; the caller has an error; an output is missing or another.
    """
    expect_success(seen, unread)
    for expected in seen.outputs:
        _expect_tensor(seen, expected, through_json=through_json)


def expect_success(seen: Observation, requirement: str | None = None) -> None:
    """Expect that the caller has no error, since the answer is honest; else the requirement is not met.

    Raises:
        Unmet: nothing was sent, or the caller has an error.
    """
    expect_request(seen)
    if seen.result.error is not None:
        said = f"an error: {escape_text(seen.result.error)}"
        raise UnmetError("the outputs of the answer", said, find_last_reply(seen), requirement=requirement)


def expect_classes(seen: Observation, texts: Sequence[str], *, unread: str | None = None) -> None:
    """Expect that the caller is given these classes of the first output, divided or as BYTES elements.

    Args:
        seen: what was seen of one inference.
        texts: the classes as the answer has them.
        unread: see `expect_outputs`.

    Raises:
        Unmet: nothing was sent; the caller has an error; the classes are others.
    """
    expect_success(seen, unread)
    expected = seen.outputs[0]
    given = seen.result.output(expected.name)
    if given is None or given.classes is None:
        _expect_tensor(seen, expected, through_json=False)
        return
    classes = list(map(parse, texts))
    if len(given.classes) != len(classes):
        raise UnmetError(f"{len(classes)} classes", f"{len(given.classes)}", find_last_reply(seen))
    for place, (expected_class, one) in enumerate(zip(classes, given.classes, strict=True)):
        if not is_class(one, expected_class):
            raise UnmetError(f"class {place} with {_shown(expected_class)}", _shown(one), find_last_reply(seen))


def is_class(given: Class, expected: ClassText) -> bool:
    """Whether a client divided a class rightly: integers exactly, decimal numbers nearly, no label as an empty one."""
    value = expected.value
    score = int(value) if _INTEGER.fullmatch(value) else float(value)
    same_place = given.index == expected.index and (given.label or "") == (expected.label or "")
    return same_place and is_same_value(given.value, score)


def _shown(one: Class | ClassText) -> str:
    label = "no label" if one.label is None else f"label {escape_text(one.label)!r}"
    return f"value {escape_text(one.value)}, index {one.index}, {label}"


@contextmanager
def attribute_values_to(requirement: str) -> Iterator[None]:
    """Judge what is inside by one requirement, unless the caller was given tensors of another answer.

    Raises:
        Unmet: what stands inside is unmet.
    """
    try:
        yield
    except UnmetError as unmet:
        if unmet.requirement != OWN:
            unmet.requirement = requirement
        raise


def has_foreign_tensor(seen: Observation) -> bool:
    """Whether the caller was given a tensor of another answer, which is too long to be like its own by chance."""
    given = [one.tensor for one in seen.result.outputs or () if one.tensor is not None]
    return any(_is_same(one, other) for one in given for other in seen.others if _is_telling(other, seen))


def _is_telling(other: Tensor, seen: Observation) -> bool:
    return other.size >= MIN_TELLING_BYTES and not any(_is_same(other, own) for own in seen.outputs)


def _is_same(one: Tensor, other: Tensor) -> bool:
    if (one.datatype, one.shape) != (other.datatype, other.shape):
        return False
    return find_first_difference(one.array, other.array, one.datatype) is None


def _expect_tensor(seen: Observation, expected: Tensor, *, through_json: bool) -> None:
    """Expect one output; a tensor of another answer in its place is that client's not keeping answers apart."""
    try:
        _expect_same(seen, expected, through_json=through_json)
    except UnmetError as unmet:
        if has_foreign_tensor(seen):
            unmet.requirement = OWN
            unmet.actual += ", which is of another answer"
        raise


def _expect_same(seen: Observation, expected: Tensor, *, through_json: bool) -> None:
    given = seen.result.output(expected.name)
    found = None if given is None else _output(given)
    if given is not None and given.trouble:
        wanted = f"{expected.name} {expected.datatype} {list(expected.shape)}"
        raise UnmetError(
            wanted, f"bytes that do not fit: {escape_text(given.trouble)}", find_last_reply(seen), tensor=expected
        )
    if unlike := find_difference(expected, found, b"", through_json=through_json):
        raise UnmetError(unlike.expected, unlike.actual, find_last_reply(seen), tensor=expected)


def _output(given: ClientOutput) -> Output:
    """Return what the caller was given as an output of an answer, to be compared with one."""
    one = given.tensor
    if one is None:
        return Output(0, given.name, "BYTES", None, False, None, None, None, ())
    return Output(0, given.name, one.datatype, one.shape, True, None, None, one.array, ())


# Seconds that a client has beside those that its caller gave, before it counts as late: a machine may be busy.
GRACE: Final = 2.0


def expect_error(seen: Observation, why: str) -> None:
    """Expect that the caller has an error and no tensors.

    Args:
        seen: what was seen of one inference.
        why: what is wrong with the answer, as the end of a sentence.

    Raises:
        Unmet: nothing was sent, or the caller has outputs.
    """
    expect_request(seen)
    if seen.result.error is None:
        raise UnmetError(f"an error, since {why}", f"outputs: {describe_outputs(seen.result)}", find_last_reply(seen))


def expect_absent(seen: Observation, name: str) -> None:
    """Expect that the caller has an error, or no output of this name, which the answer does not have.

    Raises:
        Unmet: nothing was sent, or the caller has an output of this name.
    """
    expect_request(seen)
    given = seen.result.output(name)
    if given is not None:
        raise UnmetError(f"no output {name}, since the answer has none", _shown_output(given), find_last_reply(seen))


def expect_in_time(seen: Observation) -> None:
    """Expect that the caller got what it got within the time that it gave.

    Raises:
        Unmet: it came later.
    """
    if seen.result.elapsed > seen.timeout + GRACE:
        raise UnmetError(
            f"an error within {seen.timeout:g} s", f"one after {seen.result.elapsed:.1f} s", find_last_reply(seen)
        )


def expect_text(seen: Observation, *texts: str) -> None:
    """Expect that the error holds one of these texts of the server's, or is told apart by it.

    Raises:
        Unmet: it does not.
    """
    said = f"{seen.result.error or ''} {seen.result.status}"
    if not any(text in said for text in texts):
        wanted = " or ".join(f"{escape_text(text)!r}" for text in texts)
        raise UnmetError(f"an error that holds {wanted}", escape_text(said.strip()) or "none", find_last_reply(seen))


def describe_outputs(result: Result) -> str:
    """Return the outputs that a caller was given, in a few words."""
    return "; ".join(map(_shown_output, result.outputs or ())) or "none at all"


def _shown_output(given: ClientOutput) -> str:
    if given.classes is not None:
        return f"{escape_text(given.name, 40)} in {len(given.classes)} classes"
    if given.tensor is None:
        return f"{escape_text(given.name, 40)} with bytes that do not fit"
    one = given.tensor
    return f"{escape_text(given.name, 40)} {one.datatype} {list(one.shape)} = {format_elements(one.array)}"
