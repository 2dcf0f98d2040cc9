"""Inferences and answers that rows about clients are made of, and which requirements they are about.

Each row has values of its own: they come from its id, as does the name of its model, so that an answer left over from
another row shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

from conformance.clients.answers import honest, honest_calls
from conformance.clients.answers.script import CallScript, HttpScript, Script, Tensors
from conformance.clients.client import Client
from conformance.clients.expectations.reading import expect_outputs
from conformance.clients.inference import Inference
from conformance.expect.unmet import Unmet, about
from conformance.roles.corner_values import OCTETS, TEXTS
from conformance.roles.sample_values import sample_tensor
from conformance.terms import ledger
from conformance.terms.check import Row
from conformance.wire.datatypes import DATATYPES
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor


def salt_of(name: str) -> int:
    """Return the salt of a row's values, 0 .. 255."""
    return crc32(name.encode()) % 256


def model_of(name: str) -> str:
    """Return the name of a row's model."""
    return f"model_{crc32(name.encode()):08x}"


def tensor(row: str, name: str, datatype: str, shape: Sequence[int]) -> Tensor:
    """Return a tensor with the values of a row."""
    return sample_tensor(name, datatype, shape, salt_of(row + name))


def asking(row: str, inputs: Iterable[Tensor], *forms: Form, **options: Any) -> Inference:
    """Return the inference of a row; without forms, all inputs are binary."""
    return Inference(options.pop("model", model_of(row)), tuple(inputs), forms or ("binary",), **options)


def small(row: str, form: Form = "binary", **options: Any) -> Inference:
    """Return an inference of which nothing but the answer matters: one small input in a form."""
    return asking(row, [tensor(row, "IN0", "INT32", (2,))], form, **options)


def answering(outputs: Tensors, http: HttpScript = honest.USUAL, grpc: CallScript = honest_calls.USUAL) -> Script:
    """Return a script with these outputs, whatever is asked; honest and plain unless said otherwise."""
    return Script(lambda _: outputs, http, grpc)


def small_answer(inference: Inference) -> Script:
    """Return an honest script that gives each output that the inference asks for, or one, as a small INT32 tensor."""
    names = [one.name for one in inference.outputs] if inference.outputs else ["OUT0"]
    return answering(tuple(tensor(inference.model, name, "INT32", (2,)) for name in names))


def over_grpc(row: Row) -> Row:
    """Return the same row about the same requirements over gRPC, where the forms have other names."""
    name = row.id.replace("binary", "raw").replace("json", "typed")
    return replace(row, id=name, answers=tuple(twin for name in row.answers if (twin := ledger.over_grpc(name))))


def over_grpc_raw(row: Row) -> Row:
    """Return the same over gRPC with inputs in raw contents, where their form is not what the row is about."""
    inference, *rest = row.values
    return over_grpc(replace(row, values=(replace(inference, forms=("binary",)), *rest)))


def is_json(inference: Inference) -> bool:
    """Whether outputs come as JSON, in which a decimal number need only be near; over gRPC in typed contents."""
    return any(one.form == "json" for one in inference.outputs or ())


def unread_form(client: Client, inference: Inference) -> str | None:
    """Return what is not met where a caller has an error instead of outputs: a client may read no typed contents."""
    return "CLIENT-READS-FORM" if client.is_over_grpc and is_json(inference) else None


def expect_like_plain(client: Client, inference: Inference, script: Script, unread: str | None = None) -> None:
    """Expect that outputs are read however they come; what is as wrong when plain is no matter of how.

    Args:
        client: who is judged.
        inference: what it is asked for.
        script: the answer.
        unread: the requirement that is not met where the caller has an error; None stands for that of the row.

    Raises:
        Unmet: they are not; the plain answer's being read wrongly is about the values alone.
    """
    try:
        expect_outputs(client.infer(inference, script), through_json=True, unread=unread)
    except Unmet as unmet:
        if unmet.requirement in (None, unread) and script.outputs(inference):
            plain = plain_twin(inference)
            with about("CLIENT-READS-VALUES"):
                expect_outputs(client.anew().infer(plain, answering(script.outputs(inference))), through_json=True)
        raise


def plain_twin(inference: Inference) -> Inference:
    """Return the inference with outputs in one form, that of the first, and without codings."""
    outputs = inference.outputs and tuple(replace(one, form=inference.outputs[0].form) for one in inference.outputs)
    return replace(inference, model=f"{inference.model}_plain", outputs=outputs, accepts=None)


def plain_form(client: Client) -> Form:
    """Return the form of an input that most clients can send: JSON over HTTP, raw contents over gRPC."""
    return "binary" if client.is_over_grpc else "json"


_WIDE = frozenset(name for name, known in DATATYPES.items() if (known.size or 1) > 1)


def owed(inference: Inference) -> tuple[str, ...]:
    """Return the requirements that are about the tensors of a request, as they are called over HTTP."""
    pairs = [(one.datatype, inference.form_of(place)) for place, one in enumerate(inference.inputs)]
    binary = [datatype for datatype, form in pairs if form == "binary"]
    if inference.is_raw:
        return ("CLIENT-SENDS-VALUES", "CLIENT-SENDS-RAW")
    found = {
        "CLIENT-SENDS-VALUES": True,
        "CLIENT-SENDS-LITTLE-ENDIAN": any(datatype in _WIDE for datatype in binary),
        "CLIENT-SENDS-SIZE": bool(binary),
        "CLIENT-SENDS-SIZES-FILL": bool(binary),
        "CLIENT-SENDS-ORDER": len(binary) > 1,
        "CLIENT-SENDS-BYTES": "BYTES" in binary,
        "CLIENT-SENDS-BOOL": "BOOL" in binary,
        "CLIENT-SENDS-DATA": len(binary) < len(pairs),
        "CLIENT-SENDS-ELEMENTS": len(binary) < len(pairs),
        "CLIENT-SENDS-BOOL-JSON": ("BOOL", "json") in pairs,
        "CLIENT-SENDS-FP16": "FP16" in binary,
    }
    return tuple(name for name, is_owed in found.items() if is_owed)


def sending_row(name: str, inference: Inference, own: Sequence[str] = (), *, thorough: bool = False) -> Row:
    """Return a row in which a request is judged by what it owes, and what else the row is about."""
    requirements = tuple(dict.fromkeys((*own, *owed(inference))))
    return Row(name, (inference, requirements), answers=requirements, thorough=thorough)


# --- elements of BYTES --------------------------------------------------------------------------------------------------

_LETTERS = ("ascii", "controls", "json-escapes", "two-to-four-byte-letters", "blanks")
# Groups of BYTES elements that are UTF-8, so that JSON can carry them.
STRINGS: Mapping[str, Sequence[bytes]] = {
    "empty": (b"", b"", b"x", b""),
    "nul": TEXTS["nul"],
    "trailing-nuls": (b"a\x00", b"\x00\x00", b"bc\x00\x00", b"\x00"),
    "letters": tuple(element for group in _LETTERS for element in TEXTS[group]),
}
# Groups that binary data alone carry, or that need not be seen in JSON once more.
BINARY_STRINGS: Mapping[str, Sequence[bytes]] = {
    "octets": tuple(element for group in OCTETS.values() for element in group),
    "like-a-prefix": TEXTS["like-a-prefix"],
    "255-256-long": TEXTS["255-256-long"],
    "65535-65536-long": TEXTS["65535-65536-long"],
}


def strings() -> Iterator[tuple[str, Form, Tensor]]:
    """Yield the name of a group, a form that carries it, and the tensor of its elements, without a name."""
    for group, elements in (*STRINGS.items(), *BINARY_STRINGS.items()):
        one = Tensor.of("", "BYTES", list(elements))
        yield group, "binary", one
        if group in STRINGS:
            yield group, "json", one
