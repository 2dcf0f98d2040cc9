"""Inferences and answers that rows about clients are made of, and which requirements they are about.

Each row has values of its own: they come from its id, as does the name of its model, so that an answer left over from
another row shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

from conformance.clients.answers import honest, honest_calls
from conformance.clients.answers.script import CallScript, HttpScript, Script, Tensors
from conformance.clients.inference import Inference
from conformance.roles.sample_values import sample_tensor
from conformance.terms import ledger
from conformance.terms.check import Row
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
    """Return the same row about the same requirements over gRPC."""
    return replace(row, answers=tuple(twin for name in row.answers if (twin := ledger.over_grpc(name))))


def owed(inference: Inference) -> tuple[str, ...]:
    """Return the requirements that are about the tensors of a request, as they are called over HTTP."""
    pairs = [(one.datatype, inference.form_of(place)) for place, one in enumerate(inference.inputs)]
    binary = [datatype for datatype, form in pairs if form == "binary"]
    if inference.is_raw:
        return ("CLIENT-SENDS-VALUES", "CLIENT-SENDS-RAW")
    found = {
        "CLIENT-SENDS-VALUES": True,
        "CLIENT-SENDS-SIZE": bool(binary),
        "CLIENT-SENDS-SIZES-FILL": bool(binary),
        "CLIENT-SENDS-ORDER": len(binary) > 1,
        "CLIENT-SENDS-BYTES": "BYTES" in binary,
        "CLIENT-SENDS-BOOL": "BOOL" in binary,
        "CLIENT-SENDS-DATA": len(binary) < len(pairs),
        "CLIENT-SENDS-FP16": "FP16" in binary,
    }
    return tuple(name for name, is_owed in found.items() if is_owed)


def sending_row(name: str, inference: Inference, own: Sequence[str] = (), *, thorough: bool = False) -> Row:
    """Return a row in which a request is judged by what it owes, and what else the row is about."""
    requirements = tuple(dict.fromkeys((*own, *owed(inference))))
    return Row(name, (inference, requirements), answers=requirements, thorough=thorough)
