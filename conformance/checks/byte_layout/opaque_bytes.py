"""Binary data begin right after the JSON, end the body, and are taken for nothing else."""

from __future__ import annotations

from conformance.checks.support.binary_sides import expect_side
from conformance.checks.support.changed_tensors import LOOKALIKES as OWN_LOOKALIKES
from conformance.checks.support.changed_tensors import WIDE_FLOATS, fill_fractions, fill_lookalike, fill_texts
from conformance.checks.support.control_sides import ask_alone, expect_read, unless_unsteady
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError
from conformance.roles.corner_values import LOOKALIKES
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, SEVERAL_OUTPUTS, TEXTS, Fit
from conformance.transport.target import Target
from conformance.wire.request import RequestedOutput

# --- right after the JSON, and left alone -----------------------------------------------------------------------------

OPAQUE = [Row(name, (octets,), role="identity_uint8") for name, octets in LOOKALIKES.items()]
_OF_FLOATS = Fit(some_input=WIDE_FLOATS)
OWN_STRINGS = "own-strings"


@check("bytes.input-bytes-are-opaque", answers="BIN-BODY-I")
@rows(
    *OPAQUE,
    *[Row(f"own-{name}", (name,), fit=_OF_FLOATS) for name in OWN_LOOKALIKES],
    Row(OWN_STRINGS, (OWN_STRINGS,), fit=TEXTS),
)
def input_bytes_are_opaque(target: Target, model: Model, octets: bytes | str) -> None:
    """The binary data of a request start right after its JSON and are taken for nothing else."""
    if isinstance(octets, bytes):
        expect_side(target, model, [model.tensor(list(octets))], "read")
        return
    plain = model.sample()
    if octets == OWN_STRINGS:
        texts = [text for text in LOOKALIKES.values() if text.isascii()]
        expect_read(target, model, fill_texts(plain, texts), plain, plain, of=("BYTES",))
    else:
        expect_read(target, model, fill_lookalike(plain, octets), plain, fill_fractions(plain), of=WIDE_FLOATS)


@check("bytes.output-bytes-are-opaque", answers="BIN-BODY-O")
@rows(
    *OPAQUE,
    *[Row(f"own-{name}", (name,), fit=_OF_FLOATS) for name in ("closing-braces", "line-end")],
)
def output_bytes_are_opaque(target: Target, model: Model, octets: bytes | str) -> None:
    """The binary data of an answer start right after its JSON, are changed by nothing, and end the body."""
    if isinstance(octets, bytes):
        tensors = [model.tensor(list(octets))]
        reply = target.infer(model.request(tensors, send="json", want="binary"))
        expect(reply).tensors(model.expected(tensors)).free_of("trailing-bytes")
    else:
        _expect_lookalikes_written(target, model, octets)


def _expect_lookalikes_written(target: Target, model: Model, name: str) -> None:
    """Expect outputs right that have the bytes of a lookalike as they come from the inputs.

    Raises:
        NotApplicable: none has.
    """
    tensors = fill_lookalike(model.sample(), name)
    found = [
        right
        for right in model.find_outputs(tensors)
        if right.name not in model.kept_binary
        and bytes(right.to_bytes()).startswith(tuple(OWN_LOOKALIKES[name].values()))
    ]
    if not found:
        raise NotApplicableError(f"no output of {model.name} has the bytes of its input")
    for right in found:
        reply = ask_alone(target, model, tensors, right.name)
        with unless_unsteady(target, found):
            expect(reply).tensors([right]).free_of("trailing-bytes")


@check("bytes.nothing-follows-the-last-tensor", answers="BIN-BODY-O")
@rows(
    Row("four-outputs", (None, None), role="multi"),
    Row("json-output-last", (None, ("OUT_BOOL", "OUT_INT64", "OUT_BYTES")), role="multi"),
    Row("empty-output-last", ([3, 0], ("NUMBERS", "TEXTS")), role="emit"),
    Row("empty-numbers-last", ([0, 3], ("TEXTS", "NUMBERS")), role="emit"),
    Row("no-elements-at-all", ([0, 0], None), role="emit"),
    Row("own", (None, None), fit=ANY),
    Row("own-json-output-last", (None, ()), fit=SEVERAL_OUTPUTS),
)
def nothing_follows_the_last_tensor(
    target: Target, model: Model, values: list[int] | None, listed: tuple[str, ...] | None
) -> None:
    """The body of an answer ends with the last byte of its last binary output."""
    tensors = model.sample() if values is None else [model.tensor(values)]
    if listed == ():
        outputs = _json_output_last(model)
    else:
        names = listed or [spec.name for spec in model.role.outputs]
        outputs = [RequestedOutput(name, name != "OUT_BYTES" or listed is None) for name in names]
    expect(target.infer(model.request(tensors, send=model.sends, outputs=outputs))).free_of("trailing-bytes")


def _json_output_last(model: Model) -> list[RequestedOutput]:
    """Return every output of a deployed model as it is listed: as binary data, but for one in JSON behind them.

    Raises:
        NotApplicable: JSON carries none.
    """
    names = [spec.name for spec in model.role.outputs]
    last = next((name for name in reversed(names) if name not in model.kept_binary), None)
    if last is None:
        raise NotApplicableError(f"JSON carries no output of {model.name}")
    return [*[RequestedOutput(name, True) for name in names if name != last], RequestedOutput(last, False)]
