"""What is expected of a client whose answer is an error, is wrong, or never comes whole."""

from __future__ import annotations

from typing import Final

from conformance.clients.client import Seen
from conformance.clients.expectations.reading import reply_of
from conformance.clients.expectations.sending import expect_heard
from conformance.clients.inference import GivenOutput, Result
from conformance.expect.unmet import Unmet
from conformance.terms.text import elements, safe

# Seconds that a client has beside those that its caller gave, before it counts as late: a machine may be busy.
GRACE: Final = 2.0


def expect_error(seen: Seen, why: str) -> None:
    """Expect that the caller has an error and no tensors.

    Args:
        seen: what was seen of one inference.
        why: what is wrong with the answer, as the end of a sentence.

    Raises:
        Unmet: nothing was sent, or the caller has outputs.
    """
    expect_heard(seen)
    if seen.result.error is None:
        raise Unmet(f"an error, since {why}", f"outputs: {shown(seen.result)}", reply_of(seen))


def expect_absent(seen: Seen, name: str) -> None:
    """Expect that the caller has an error, or no output of this name, which the answer does not have.

    Raises:
        Unmet: nothing was sent, or the caller has an output of this name.
    """
    expect_heard(seen)
    given = seen.result.output(name)
    if given is not None:
        raise Unmet(f"no output {name}, since the answer has none", _shown_output(given), reply_of(seen))


def expect_in_time(seen: Seen) -> None:
    """Expect that the caller got what it got within the time that it gave.

    Raises:
        Unmet: it came later.
    """
    if seen.result.elapsed > seen.timeout + GRACE:
        raise Unmet(f"an error within {seen.timeout:g} s", f"one after {seen.result.elapsed:.1f} s", reply_of(seen))


def expect_text(seen: Seen, *texts: str) -> None:
    """Expect that the error holds one of these texts of the server's, or is told apart by it.

    Raises:
        Unmet: it does not.
    """
    said = f"{seen.result.error or ''} {seen.result.status}"
    if not any(text in said for text in texts):
        wanted = " or ".join(f"{safe(text)!r}" for text in texts)
        raise Unmet(f"an error that holds {wanted}", safe(said.strip()) or "none", reply_of(seen))


def shown(result: Result) -> str:
    """Return the outputs that a caller was given, in a few words."""
    return "; ".join(map(_shown_output, result.outputs or ())) or "none at all"


def _shown_output(given: GivenOutput) -> str:
    if given.classes is not None:
        return f"{safe(given.name, 40)} in {len(given.classes)} classes"
    if given.tensor is None:
        return f"{safe(given.name, 40)} with bytes that do not fit"
    one = given.tensor
    return f"{safe(given.name, 40)} {one.datatype} {list(one.shape)} = {elements(one.array)}"
