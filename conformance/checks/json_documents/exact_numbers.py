"""Exact numbers: JSON data keep every bit of a number on the way to an identity model and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conformance.checks.json_documents.data import make_spelled_request
from conformance.checks.support.datatypes import get_identity_role
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import Form, Message
from conformance.wire.tensor import Tensor

# The text of an element -> its value.
Texts = Mapping[str, float]

_ZEROS: Texts = {"-0.0": -0.0, "0.0": 0.0, "1.0": 1.0}
_SUBNORMAL_FP32: Texts = {"1.40129846e-45": 2.0**-149, "1.17549421e-38": 2.0**-126 - 2.0**-149}
# datatype -> group -> texts. Values without a short decimal form are given as sums of powers of two.
NUMBERS: Mapping[str, Mapping[str, Texts]] = {
    "FP64": {
        "17-digits": {
            "0.10000000000000001": 0x1999999999999A * 2.0**-56,
            "0.30000000000000004": 0x13333333333334 * 2.0**-54,
            "3.1415926535897931": 0x1921FB54442D18 * 2.0**-51,
        },
        "ends": {
            "1.7976931348623157e308": 0x1FFFFFFFFFFFFF * 2.0**971,
            "-1.7976931348623157e+308": -0x1FFFFFFFFFFFFF * 2.0**971,
        },
        "subnormal": {"4.9406564584124654e-324": 2.0**-1074, "2.2250738585072009e-308": 2.0**-1022 - 2.0**-1074},
        "negative-zero": _ZEROS,
    },
    "FP32": {
        "9-digits": {
            "0.100000001": 13421773 * 2.0**-27,
            "0.100000024": 13421776 * 2.0**-27,  # another element in eight digits
            "0.333333343": 11184811 * 2.0**-25,
        },
        # As doubles, these are larger than the largest element, to which they round.
        "ends": {
            "3.40282347e+38": 16777215 * 2.0**104,
            "3.4028235e38": 16777215 * 2.0**104,
            "-3.40282347e+38": -16777215 * 2.0**104,
        },
        "17-digits": {"0.10000000149011612": 13421773 * 2.0**-27, "0.33333334326744080": 11184811 * 2.0**-25},
        "subnormal": _SUBNORMAL_FP32,
        "negative-zero": _ZEROS,
    },
    "FP16": {
        "shortest": {
            "0.1": 1638 * 2.0**-14,
            "0.10004": 1639 * 2.0**-14,  # in four digits the element above
            "6e-08": 2.0**-24,
            "-0.0": -0.0,
        },
        "ends": {"65504.0": 65504.0, "-65504": -65504.0},
        "17-digits": {"0.09997558593750000": 1638 * 2.0**-14, "5.9604644775390625e-08": 2.0**-24},
    },
    "INT64": {
        "ends": {"9223372036854775807": 2**63 - 1, "-9223372036854775808": -(2**63), "9007199254740993": 2**53 + 1}
    },
    "UINT64": {"ends": {"18446744073709551615": 2**64 - 1, "9223372036854775809": 2**63 + 1, "0": 0}},
}
# suffix of a row's id -> the encoding of the request, and of the answer
SIDES: Mapping[str, tuple[Form, Form]] = {
    "": ("json", "json"),
    "-seen-as-binary": ("json", "binary"),
    "-sent-as-binary": ("binary", "json"),
}
# datatype -> plain numbers: if these are wrong as well, the row is blocked
_PLAIN_NUMBERS: Mapping[str, Texts] = {
    "FP64": {"0.5": 0.5, "0.1": 0.1, "-2.25": -2.25},
    **{datatype: {"0.5": 0.5, "-2.25": -2.25} for datatype in ("FP32", "FP16")},
    **{datatype: {"1": 1, "2": 2, "4": 4} for datatype in ("INT64", "UINT64")},
}


def _make_message(model: Model, texts: Texts, send: Form, want: Form) -> Message:
    """Return a request for these numbers, as JSON texts or as binary data."""
    if send == "binary":
        return model.request([model.tensor(list(texts.values()))], send="binary", want=want).message()
    return make_spelled_request(model, list(texts), "binary" if want == "binary" else None)


@check("json.numbers-keep-every-bit", requirements=("OIP-NUMBER-EXACT", "OIP-VALUE"))
@rows(
    *[
        Row(
            f"{datatype}-{group}{side}",
            (texts, *forms),
            role=get_identity_role(datatype),
            needs=BINARY if "binary" in forms else (),
        )
        for datatype, groups in NUMBERS.items()
        for group, texts in groups.items()
        for side, forms in SIDES.items()
    ]
)
def numbers_keep_every_bit(target: Target, model: Model, texts: Texts, send: Form, want: Form) -> None:
    """The server accepts a JSON number that represents an element exactly, and returns every bit of it.

    Raises NotApplicableError: the target also refuses simpler numbers of the datatype, which no document forbids.
    """
    plain = _PLAIN_NUMBERS[model.role.inputs[0].datatype]
    reply = target.send(_make_message(model, texts, send, want), fresh=True)
    has_refused = is_refused(target, model, reply)
    if has_refused and target.send(_make_message(model, plain, send, want), fresh=True).is_refusal:
        raise NotApplicableError(f"the target refuses every number: {escape_text(reply.outcome())}")

    def is_answer_wrong(texts: Texts, send: Form, want: Form) -> bool:
        found = target.send(_make_message(model, texts, send, want), fresh=True)
        return not is_met(lambda: _expect_bits(found, model, list(texts.values())))

    with (
        block_if(lambda: is_answer_wrong(plain, send, want), "the answer to simpler numbers is also wrong"),
        block_if(
            lambda: "binary" in (send, want) and is_answer_wrong(texts, "binary", "binary"),
            "the answer to the same numbers as binary data is also wrong",
        ),
    ):
        if has_refused:
            raise UnmetError(f"an answer to {', '.join(texts)}", escape_text(reply.outcome()), reply)
        _expect_bits(reply, model, list(texts.values()))


def _expect_bits(reply: Reply, model: Model, values: Sequence[Any]) -> None:
    """Expect the output of an identity model to have exactly the bits of these values.

    An infinity in place of a number is another value (OIP-VALUE), not only a less precise one.
    """
    (expected,) = model.expected([model.tensor(values)])
    output, expectation = expect(reply).answered().output(expected.name), expect(reply)
    if output.array is None or output.array.shape != expected.array.shape:
        raise expectation.unmet(f"{len(values)} elements", "elements that cannot be read")
    wrong = np.flatnonzero(_view_bits(expected, output.array) != _view_bits(expected, expected.array))
    if wrong.size:
        lost = wrong[~np.isfinite(output.array[wrong].astype("<f8"))]
        place = int(lost[0] if lost.size else wrong[0])
        raise UnmetError(
            f"element {place} with the bits of {expected.array[place]!s}",
            f"{output.array[place]!s}",
            reply,
            requirement="OIP-VALUE" if lost.size else None,
        )


def _view_bits(tensor: Tensor, array: Any) -> Any:
    """Return the elements of an array as unsigned integers with the same bits."""
    return np.asarray(array, tensor.array.dtype).view(f"u{tensor.array.dtype.itemsize}")
