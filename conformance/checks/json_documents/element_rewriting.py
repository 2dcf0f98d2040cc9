"""Elements of a deployed model in JSON data, written otherwise: with exponents, with escapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformance.checks.support.telling_inputs import draw_telling
from conformance.roles.model import Model
from conformance.wire.json_writing import write_escaped
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor


@dataclass(frozen=True, slots=True)
class ElementRewriting:
    """Another way to write elements of some datatypes, for those of a deployed model.

    Attributes:
        write: returns the text of an element of JSON data.
        misread: returns what a reader understands who does not know that way; None where he refuses it.
        adapt: returns the elements of a tensor as they can be written so.
    """

    datatypes: frozenset[str]
    write: Callable[[Any], str]
    misread: Callable[[Any], Any] | None
    adapt: Callable[[Tensor], Tensor] = lambda tensor: tensor

    def sent(self, model: Model) -> tuple[Message, Sequence[Tensor]]:
        """Return a JSON request, and its inputs, whose answer shows how their elements were read."""
        drawn = model.sample() if self.misread is None else draw_telling(model, self._misreading)
        tensors = [self.adapt(tensor) if tensor.datatype in self.datatypes else tensor for tensor in drawn]
        return self._message(model, tensors), tensors

    def _message(self, model: Model, tensors: Sequence[Tensor]) -> Message:
        texts: list[tuple[bytes, bytes]] = []

        def edit(document: dict[str, Any]) -> None:
            for entry in document["inputs"]:
                if entry["datatype"] in self.datatypes:
                    mark = f"@elements-{len(texts)}@"
                    texts.append((json.dumps(mark).encode(), f"[{','.join(map(self.write, entry['data']))}]".encode()))
                    entry["data"] = mark

        message = model.request(tensors, send="json").edited(edit)
        for mark, text in texts:
            message = message.with_json(message.body.replace(mark, text))
        return message

    def _misreading(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        return [self._misread(tensor) if tensor.datatype in self.datatypes else tensor for tensor in tensors]

    def _misread(self, tensor: Tensor) -> Tensor:
        values = [self.misread(value) if self.misread else value for value in tensor.to_json()]
        return Tensor.of(tensor.name, tensor.datatype, values, tensor.shape)


def _scientific(value: float) -> str:
    """Return a number with an exponent."""
    mantissa, exponent = f"{value:.16e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}E{int(exponent):+}"


WITH_EXPONENTS = ElementRewriting(
    frozenset({"FP32", "FP64"}), _scientific, lambda value: float(_scientific(value).partition("E")[0])
)
AS_INTEGERS = ElementRewriting(
    frozenset({"FP32", "FP64"}), lambda value: str(int(value)), None, lambda t: replace(t, array=np.round(t.array))
)
ESCAPED = ElementRewriting(frozenset({"BYTES"}), write_escaped, lambda text: write_escaped(text)[1:-1])
