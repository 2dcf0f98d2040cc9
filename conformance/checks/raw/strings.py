"""Raw binary requests to a model of BYTES. Checks of the area `raw`.

The documents say that such a body is the one element; whether it has its length in front is a reading of them.
"""

from __future__ import annotations

from conformance.checks.raw.deployed_models import STRINGS, expect_own_values
from conformance.checks.raw.raw_answers import expect_agreement
from conformance.checks.support.changed_tensors import fill_texts
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.target import Target

PREFIX = 4  # bytes of a length
ROLE = "raw_bytes_one"
CONTENTS = (
    Row("text", (b"hello",), role=ROLE),
    Row("nul", (b"a\x00b\x00",), role=ROLE),
    Row("not-utf-8", (b"\xff\x00\xfe",), role=ROLE),
    Row("json", (b'{"inputs":[]}',), role=ROLE),
    Row("an-empty-line", (b"\r\n\r\n",), role=ROLE),
    Row("gzip-magic", (b"\x1f\x8b\x08\x00",), role=ROLE),
    Row("255-bytes", (b"x" * 255,), role=ROLE),
    Row("256-bytes", (b"x" * 256,), role=ROLE),
    Row("64-kib", (b"0123456789abcdef" * 4096,), role=ROLE, thorough=True),
)


@check("raw.bytes-of-one-element-are-served", answers="RAW-BYTES")
@rows(
    *CONTENTS,
    Row("own", (None,), fit=STRINGS),
    Row("own-nul", (None, b"a\x00b\x00"), fit=STRINGS),
    Row("own-256-bytes", (None, b"x" * 256), fit=STRINGS),
)
def bytes_of_one_element_are_served(target: Target, model: Model, content: bytes | None, own: bytes = b"") -> None:
    """A raw request to a BYTES input of shape [1] is answered with the bytes it brings."""
    if content is None:
        expect_own_values(target, model, lambda tensors: fill_texts(tensors, [own]) if own else list(tensors))
    else:
        _expect_served(target, model, content)


def _expect_served(target: Target, model: Model, content: bytes) -> None:
    # With its prefix, the body is right for both readings of RAW-BYTES-BODY: as a whole, or as prefix and content.
    prefixed = len(content).to_bytes(4, "little") + content
    readings = [model.tensor([element], (1,)) for element in (prefixed, content)]
    expect_agreement(target, model, target.infer(model.raw(prefixed)), *readings)


@check("raw.bytes-body-has-no-prefix", answers=("RAW-BYTES-BODY", "RAW-BYTES"), role=ROLE)
@rows(
    *CONTENTS,
    ("three-bytes", b"abc"),
    ("looks-prefixed", b"\x05\x00\x00\x00hello"),
    ("looks-wrongly-prefixed", b"\xff\xff\xff\xffhello"),
)
def bytes_body_has_no_prefix(target: Target, model: Model, body: bytes) -> str:
    """The raw body of a BYTES input is the element itself, or a length and the element; in either reading, all of it."""
    reply = target.infer(model.raw(body))
    if is_refused(target, model, reply):
        return "refused: a length is wanted in front"
    whole = model.tensor([body], (1,))
    if not is_met(lambda: expect_agreement(target, model, reply, whole)):
        read = model.tensor([body[PREFIX:]], (1,))
        is_prefixed = int.from_bytes(body[:PREFIX], "little") == len(body) - PREFIX
        expect_agreement(target, model, reply, *([read] if is_prefixed else []), whole, requirement="RAW-BYTES")
        return "the element behind its length"
    return "the element itself"
