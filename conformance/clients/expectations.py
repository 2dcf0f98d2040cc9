"""Expectations of a client: the requests that it sends, and the outputs that it returns to its caller."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from conformance.clients.client import Observation
from conformance.clients.inference import Class, ClientOutput
from conformance.clients.intent import find_changed_options, find_differences
from conformance.clients.peer.scenario import ReceivedRequest
from conformance.clients.rules.judging import judge_request
from conformance.clients.rules.rule import Violation
from conformance.expect.class_texts import ClassText, is_same_value, parse
from conformance.expect.difference import Difference, find_difference
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.spec import ledger
from conformance.spec.ledger import Level
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.wire.datatypes import lookup
from conformance.wire.outputs import Output
from conformance.wire.tensor import Tensor, find_first_difference

VALUES = "CLIENT-SENDS-VALUES"
_ORDER: Final = "CLIENT-SENDS-ORDER"
_MISLEADING: Final = (_ORDER, "CLIENT-SENDS-RAW")  # violations of these make other rules look violated
_NOT_MIXED_UP: Final = frozenset({VALUES, _ORDER, "CLIENT-SENDS-OUTPUTS"})


def expect_request(seen: Observation, missing_request: str = VALUES) -> None:
    """Expect that the peer received at least one inference request, and only complete ones.

    `missing_request`: the requirement that fails if no request was received.

    Raises UnmetError: no request was received, because the client refused a valid inference or used a wrong path. Or a
    request is incomplete or invalid HTTP, so that the peer did not send the scripted answer.
    """
    if not seen.requests:
        raise UnmetError("an inference request", _describe_missing_request(seen), requirement=missing_request)
    broken = next((one for one in seen.requests if one.received.trouble), None)
    if broken is not None:
        trouble = escape_text(broken.received.trouble)
        raise UnmetError("a whole request", trouble, Reply(broken.to_exchange()), requirement="CLIENT-SENDS-WHOLE")


def expect_answerable_request(seen: Observation) -> None:
    """Expect that the client sent a complete request, which the peer could answer.

    Other rows judge the content of requests.

    Raises:
        BlockedError: no complete request was received, and the client returned an error.
        UnmetError: no complete request was received, and the client returned outputs.
    """
    try:
        expect_request(seen)
    except UnmetError as unmet:
        if seen.result.error is None:
            unmet.requirement = None
            raise
        raise BlockedError(f"the peer could not answer: expected {unmet.expected}, {unmet.actual}", unmet) from None


def _describe_missing_request(seen: Observation) -> str:
    error = seen.result.error
    outcome = "outputs nevertheless" if error is None else f"an error: {escape_text(error)}"
    return f"none arrived; the client returned {outcome} to its caller"


def expect_correct_requests(seen: Observation, own: Collection[str] = (), missing_request: str = VALUES) -> None:
    """Expect that each request follows the rules for requests, and contains the tensors and options of the caller.

    Reports one violation: the first of a MUST of the row, or else of an advisory requirement of the row, or else of any
    other MUST. A wrong order of the binary data, and a raw request without its header, precede all of these. Ignores
    violations of other advisory requirements, which other rows judge.

    `own`: the requirements of the row, by their HTTP names.
    `missing_request`: the requirement that fails if no request was received.
    """
    expect_request(seen, missing_request)
    for request in seen.requests:
        violations = (*judge_request(request.received).violations, *find_differences(request.received, seen.inference))
        if first := _choose_violation(violations, own):
            raise _build_error(first, request)


def is_evidence_of_mixing(requirement: str) -> bool:
    """Whether a violation that occurs only in concurrent requests shows that the client mixed up their bytes.

    If a request contains bytes of a concurrent request, chance decides which rule it violates first. So callers
    attribute such a violation to `VALUES`. The result is False for requirements about tensors, outputs and the order of
    data: a request that contains another request's tensors violates these requirements directly.
    """
    return requirement.removesuffix(ledger.GRPC_SUFFIX) not in _NOT_MIXED_UP


def expect_same_options(before: Observation, after: Observation) -> None:
    """Expect that two inferences with the same options of the caller lead to requests with the same options.

    Raises UnmetError: the requests differ in an option, other than an id or an output that only the first one has.
    """
    first, last = before.requests[-1], after.requests[-1]
    for fault in find_changed_options(first.received, last.received):
        raise _build_error(Violation("CLIENT-SENDS-OUTPUTS", *fault), last)


def _choose_violation(violations: Sequence[Violation], own: Collection[str]) -> Violation | None:
    """Return the violation to report, or None.

    A wrong order of the binary data comes first, because it makes correct elements look wrong; likewise a raw request
    without its header, which makes a correct body look like invalid JSON.
    """
    misleading = [one for one in violations if one.requirement in _MISLEADING]
    of_row = [one for one in violations if ledger.get_requirement(one.requirement).name in own]
    of_musts = [one for one in violations if ledger.get_requirement(one.requirement).level is Level.MUST]
    return next(iter((*misleading, *(one for one in of_row if one in of_musts), *of_row, *of_musts)), None)


def _build_error(violation: Violation, request: ReceivedRequest) -> UnmetError:
    reply = Reply(request.to_exchange())
    return UnmetError(
        violation.expected, violation.actual, reply, requirement=violation.requirement, offset=violation.offset
    )


OWN: Final = "CLIENT-READS-OWN"
NUMBERS: Final = "CLIENT-READS-NUMBERS"
MIN_DISTINCTIVE_BYTES: Final = 4  # tensors of fewer bytes may be equal by chance
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def find_last_reply(seen: Observation) -> Reply | None:
    """Return the last request of an inference with its answer; None if no request was received."""
    return Reply(seen.requests[-1].to_exchange()) if seen.requests else None


def expect_outputs(seen: Observation, *, through_json: bool = False, unread: str | None = None) -> None:
    """Expect that the client returns the outputs of a correct answer.

    Skips outputs that the client's library cannot read.

    `through_json`: whether the outputs were sent as JSON, so that floats are compared within a tolerance.
    `unread`: the requirement that fails if the client returns an error; None: the requirement of the row.

    Raises:
        BlockedError: no request was sent.
        NotApplicableError: the client's library can read none of the outputs.
    """
    expect_success(seen, unread)
    readable = [expected for expected in seen.outputs if not _find_unreadable(seen, expected.name)]
    for expected in readable:
        _expect_tensor(seen, expected, through_json=through_json)
    if seen.outputs and not readable:
        expect_readable(seen, seen.outputs[0].name)


def _find_unreadable(seen: Observation, name: str) -> str:
    """Return why the client's library cannot read an output; empty if the library can."""
    given = seen.result.output(name)
    return given.cannot if given is not None else ""


def expect_readable(seen: Observation, *names: str) -> None:
    """Expect that the client's library can read these outputs.

    Raises NotApplicableError: the library cannot read one of them.
    """
    for name in names:
        if reason := _find_unreadable(seen, name):
            raise NotApplicableError(f"the client cannot read {escape_text(name, 40)}: {escape_text(reason)}")


def expect_success(seen: Observation, requirement: str | None = None) -> None:
    """Expect that the client returns no error for a correct answer.

    `requirement`: the requirement that fails if the client returns an error; None: the requirement of the row.

    Raises BlockedError: no request was sent.
    """
    expect_answerable_request(seen)
    if seen.result.error is not None:
        outcome = f"an error: {escape_text(seen.result.error)}"
        raise UnmetError("the outputs of the answer", outcome, find_last_reply(seen), requirement=requirement)


def expect_classes(seen: Observation, texts: Sequence[str], *, unread: str | None = None) -> None:
    """Expect that the client returns these classes for the first output, either parsed or as a BYTES tensor.

    `texts`: the classes in the answer, as texts `value:index[:label]`.
    `unread`: see `expect_outputs`.

    Raises:
        BlockedError: no request was sent.
        NotApplicableError: the client's library cannot read the output.
    """
    expect_success(seen, unread)
    expected = seen.outputs[0]
    expect_readable(seen, expected.name)
    given = seen.result.output(expected.name)
    if given is None or given.classes is None:
        _expect_tensor(seen, expected, through_json=False)
        return
    classes = list(map(parse, texts))
    if len(given.classes) != len(classes):
        raise UnmetError(f"{len(classes)} classes", f"{len(given.classes)}", find_last_reply(seen))
    for index, (expected_class, one) in enumerate(zip(classes, given.classes, strict=True)):
        if not is_class(one, expected_class):
            raise UnmetError(
                f"class {index} with {_describe_class(expected_class)}", _describe_class(one), find_last_reply(seen)
            )


def is_class(given: Class, expected: ClassText) -> bool:
    """Whether a class parsed by the client equals a class of the answer.

    Integers are compared exactly, floats within a tolerance. An empty label equals no label.
    """
    value = expected.value
    score = int(value) if _INTEGER.fullmatch(value) else float(value)
    same_place = given.index == expected.index and (given.label or "") == (expected.label or "")
    return same_place and is_same_value(given.value, score)


def _describe_class(one: Class | ClassText) -> str:
    label = "no label" if one.label is None else f"label {escape_text(one.label)!r}"
    return f"value {escape_text(one.value)}, index {one.index}, {label}"


@contextmanager
def attribute_failures_to(requirement: str) -> Iterator[None]:
    """Attribute failures within the block to one requirement.

    Failures that show a tensor of another answer stay attributed to `OWN`.

    Raises UnmetError: an expectation within the block is unmet.
    """
    try:
        yield
    except UnmetError as unmet:
        if unmet.requirement != OWN:
            unmet.requirement = requirement
        raise


def has_foreign_tensor(seen: Observation) -> bool:
    """Whether the client returned a tensor of another answer that is too long to be equal by chance."""
    given = [one.tensor for one in seen.result.outputs or () if one.tensor is not None]
    return any(_is_same_tensor(one, other) for one in given for other in seen.others if _is_distinctive(other, seen))


def _is_distinctive(other: Tensor, seen: Observation) -> bool:
    return other.size >= MIN_DISTINCTIVE_BYTES and not any(_is_same_tensor(other, own) for own in seen.outputs)


def _is_same_tensor(one: Tensor, other: Tensor) -> bool:
    if (one.datatype, one.shape) != (other.datatype, other.shape):
        return False
    return find_first_difference(one.array, other.array, one.datatype) is None


def _expect_tensor(seen: Observation, expected: Tensor, *, through_json: bool) -> None:
    """Expect that the client returns this tensor; attribute a failure to `OWN` if it returned one of another answer."""
    try:
        _expect_equal_output(seen, expected, through_json=through_json)
    except UnmetError as unmet:
        if has_foreign_tensor(seen):
            unmet.requirement = OWN
            unmet.actual += ", which belongs to another answer"
        raise


def _expect_equal_output(seen: Observation, expected: Tensor, *, through_json: bool) -> None:
    given = seen.result.output(expected.name)
    found = None if given is None else _convert_output(given)
    if given is not None and given.trouble:
        wanted = f"{expected.name} {expected.datatype} {list(expected.shape)}"
        raise UnmetError(wanted, f"invalid bytes: {escape_text(given.trouble)}", find_last_reply(seen), tensor=expected)
    if unlike := find_difference(expected, found, b"", through_json=through_json):
        raise UnmetError(unlike.expected, unlike.actual, find_last_reply(seen), tensor=expected)
    if lost := _find_lost_sign(expected, given):
        named = None if any(one.received.is_over_grpc for one in seen.requests) else NUMBERS
        raise UnmetError(lost.expected, lost.actual, find_last_reply(seen), tensor=expected, requirement=named)


def _find_lost_sign(expected: Tensor, given: ClientOutput | None) -> Difference | None:
    """Return the first zero with the wrong sign, or None. Comparisons within a tolerance do not detect it."""
    one = None if given is None else given.tensor
    if one is None or not lookup(expected.datatype).is_float:
        return None
    lost = (expected.array == 0) & (np.signbit(expected.array) != np.signbit(one.array))
    if not lost.any():
        return None
    index = int(np.argmax(lost))
    wanted, actual = (array.reshape(-1)[index] for array in (expected.array, one.array))
    return Difference(f"element {index} of {expected.name} to be {wanted}", str(actual))


def _convert_output(given: ClientOutput) -> Output:
    """Convert an output of the client to a parsed `Output`, which `find_difference` can compare."""
    one = given.tensor
    if one is None:
        return Output(0, given.name, "BYTES", None, False, None, None, None, ())
    return Output(0, given.name, one.datatype, one.shape, True, None, None, one.array, ())
