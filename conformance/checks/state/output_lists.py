"""Lists of outputs that requests with the same inputs ask for: some or all of them, in other orders and forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.roles.model import Model
from conformance.spec.check import Row
from conformance.spec.extensions import BINARY, CLASSES
from conformance.spec.fit import SEVERAL_OUTPUTS
from conformance.wire.request import RequestedOutput

OutputList = Sequence[RequestedOutput] | None
# Kind of lists -> the extensions that they need.
_NEEDS: Mapping[str, tuple[str, ...]] = {"lists": (), "forms": BINARY, "classified": CLASSES}
_ROLES = {"lists": ("multi",), "forms": ("add_sub", "raw_two_outputs"), "classified": ("scores_two_outputs",)}


def make_output_list_rows(*values: Any) -> Iterator[Row]:
    """Yield a row for each kind of lists and role, and one for deployed models; its values are the kind and `values`."""
    for kind, roles in _ROLES.items():
        for role in roles:
            yield Row(f"{role}-{kind}", (kind, *values), role=role, needs=_NEEDS[kind])
    yield Row("lists", ("lists", *values), fit=replace(SEVERAL_OUTPUTS, is_json=True))


def list_output_lists(model: Model, kind: str) -> list[OutputList]:
    """Return four lists of outputs; each answer lacks something that the next one needs. None requests all outputs."""
    plain = [model.build_plain_output(spec.name) for spec in model.role.outputs]
    first, *others = plain
    if kind == "classified":
        return [
            [replace(first, classification=1), *others],
            None,
            [*plain[:-1], replace(plain[-1], classification=2)],
            plain,
        ]
    if kind == "forms":
        binary = [replace(output, binary_data=True) for output in plain]
        return [binary[-1:], None, [*others, binary[0]], binary]
    return [plain[-1:], None, plain[:1], plain[::-1]]
