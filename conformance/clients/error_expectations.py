"""Expectations of a client's errors: the client returns them to its caller in time, with the server's message."""

from __future__ import annotations

from typing import Final

from conformance.clients.client import Observation
from conformance.clients.expectations import expect_answerable_request, expect_readable, find_last_reply
from conformance.clients.inference import ClientOutput, Result
from conformance.expect.unmet import UnmetError
from conformance.spec.text import escape_text, format_elements
from conformance.transport.grpc_ending import CODES

# Seconds beyond the caller's timeout before a client counts as late: a machine may be busy.
GRACE_S: Final = 2.0


def expect_error(seen: Observation, why: str) -> None:
    """Expect that the client returns an error and no tensors.

    `why`: why the client should return an error; the message inserts this text after "an error, since".

    Raises:
        BlockedError: no request was sent.
        NotApplicableError: the client returned outputs, and its library cannot read one of them.
    """
    expect_answerable_request(seen)
    if seen.result.error is None:
        expect_readable(seen, *(one.name for one in seen.result.outputs or ()))
        raise UnmetError(f"an error, since {why}", f"outputs: {describe_outputs(seen.result)}", find_last_reply(seen))


def expect_no_output(seen: Observation, name: str) -> None:
    """Expect that the client returns no output of this name, which the answer lacks; the client may return an error.

    Raises BlockedError: no request was sent.
    """
    expect_answerable_request(seen)
    given = seen.result.output(name)
    if given is not None:
        raise UnmetError(f"no output {name}, since the answer has none", _describe_output(given), find_last_reply(seen))


def expect_timely_return(seen: Observation) -> None:
    """Expect that the client returned within the caller's timeout plus `GRACE_S`."""
    if seen.result.elapsed > seen.timeout + GRACE_S:
        raise UnmetError(
            f"an error within {seen.timeout:g} s", f"one after {seen.result.elapsed:.1f} s", find_last_reply(seen)
        )


def expect_error_text(seen: Observation, *texts: str) -> None:
    """Expect that the client's error message or status contains one of these texts.

    Libraries spell gRPC codes in several ways. So a text that is the name of a code also matches a status that is the
    number of this code. It also matches the name in other capitals or without underscores.
    """
    error_text = f"{seen.result.error or ''} {seen.result.status}"
    if not any(text in error_text or _has_code(text, seen.result) for text in texts):
        wanted = " or ".join(f"{escape_text(text)!r}" for text in texts)
        raise UnmetError(
            f"an error that contains {wanted}", escape_text(error_text.strip()) or "none", find_last_reply(seen)
        )


def _has_code(text: str, result: Result) -> bool:
    """Whether a text is the name of a gRPC code, and the error contains that code in any spelling."""
    names = [name for name, _ in CODES]
    if text not in names:
        return False
    error_text = f"{result.error or ''} {result.status}".replace("_", "").casefold()
    return result.status == str(names.index(text)) or text.replace("_", "").casefold() in error_text


def describe_outputs(result: Result) -> str:
    """Return one line that lists the outputs of a result: names, datatypes, shapes and first elements."""
    return "; ".join(map(_describe_output, result.outputs or ())) or "none at all"


def _describe_output(given: ClientOutput) -> str:
    if given.classes is not None:
        return f"{escape_text(given.name, 40)} in {len(given.classes)} classes"
    if given.cannot:
        return f"{escape_text(given.name, 40)}, which the client cannot read"
    if given.tensor is None:
        return f"{escape_text(given.name, 40)} with bytes that do not match datatype and shape"
    one = given.tensor
    return f"{escape_text(given.name, 40)} {one.datatype} {list(one.shape)} = {format_elements(one.array)}"
