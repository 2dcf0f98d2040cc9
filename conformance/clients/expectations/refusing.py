"""What is expected of a client whose answer is an error, is wrong, or never comes whole."""

from __future__ import annotations

from typing import Final

from conformance.clients.client import Observation
from conformance.clients.expectations.reading import find_last_reply
from conformance.clients.expectations.sending import expect_request
from conformance.clients.inference import ClientOutput, Result
from conformance.expect.unmet import UnmetError
from conformance.spec.text import escape_text, format_elements

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
