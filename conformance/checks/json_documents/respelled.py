"""Elements of a deployed model in JSON data, written otherwise: with exponents, with escapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.checks.support.json_writing import escaped, with_json
from conformance.checks.support.telling import draw_telling
from conformance.roles.model import Model
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Respelled:
    """Another way to write elements of some datatypes, for those of a deployed model.

    Attributes:
        write: returns the text of an element of JSON data.
        misread: returns what a reader understands who does not know that way.
    """

    datatypes: frozenset[str]
    write: Callable[[Any], str]
    misread: Callable[[Any], Any]

    def sent(self, model: Model) -> tuple[Message, Sequence[Tensor]]:
        """Return a JSON request, and its inputs, whose answer shows how their elements were read."""
        tensors = draw_telling(model, self._misreading)
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
            message = with_json(message, message.body.replace(mark, text))
        return message

    def _misreading(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        return [
            Tensor.of(t.name, t.datatype, [self.misread(value) for value in t.to_json()], t.shape)
            if t.datatype in self.datatypes
            else t
            for t in tensors
        ]


def _scientific(value: float) -> str:
    """Return a number with an exponent."""
    mantissa, exponent = f"{value:.16e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}E{int(exponent):+}"


WITH_EXPONENTS = Respelled(
    frozenset({"FP32", "FP64"}), _scientific, lambda value: float(_scientific(value).partition("E")[0])
)
ESCAPED = Respelled(frozenset({"BYTES"}), escaped, lambda text: escaped(text)[1:-1])
