"""Whether a request asks for the outputs, forms and classes of its caller, and has the caller's id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from conformance.clients.inference import Inference, RequestedOutput
from conformance.clients.rules.members import CLASSIFICATION, is_count
from conformance.clients.rules.rule import Fault
from conformance.wire.finding import format_name, format_value
from conformance.wire.grpc_request import Pb
from conformance.wire.request import Form


class OutputOptions(NamedTuple):
    """What a request asks for of one output.

    Attributes:
        forms: in which it may come by what the request says; more than one where that has more than one reading.
        classes: the count, as written; None asks for the tensor.
    """

    forms: frozenset[Form]
    classes: Any = None


class RequestOptions(NamedTuple):
    """What a request asks for: the listed outputs by their names, the forms of outputs that are not listed, the id.

    What the rules say of the list is not said again: without `has_names` it is not compared.
    """

    outputs: Mapping[str, OutputOptions]
    rest: frozenset[Form]
    id: Any
    has_names: bool = True


_EITHER_FORM: frozenset[Form] = frozenset(("binary", "json"))


def read_request_options(document: Mapping[str, Any]) -> RequestOptions:
    """Return what the JSON of a request asks for, by the parameters that stand where a document defines them."""
    rest = _form_of(_parameters(document).get("binary_data_output"))
    # Whether `binary_data_output` speaks for a listed output without a parameter of its own has two readings.
    unsaid: frozenset[Form] = _EITHER_FORM if "binary" in rest else rest
    listed = document.get("outputs") or []
    named = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    named = [item for item in named if isinstance(item.get("name"), str)]
    outputs: dict[str, OutputOptions] = {}
    for item in named:
        given = _parameters(item)
        own = given.get("binary_data")
        outputs[item["name"]] = OutputOptions(unsaid if own is None else _form_of(own), given.get(CLASSIFICATION))
    has_names = isinstance(listed, list) and len(named) == len(listed)
    return RequestOptions(outputs, rest, document.get("id"), has_names)


def read_call_options(message: Pb) -> RequestOptions:
    """Return what a call asks for; the server chooses the form of its contents."""
    outputs = {
        entry.name: OutputOptions(_EITHER_FORM, _value(entry.parameters[CLASSIFICATION]))
        if CLASSIFICATION in entry.parameters
        else OutputOptions(_EITHER_FORM)
        for entry in message.outputs
    }
    return RequestOptions(outputs, _EITHER_FORM, message.id, all(outputs))


def _value(parameter: Pb) -> Any:
    """Return the value of a parameter, of whatever kind; no text without any, which is no count."""
    return getattr(parameter, parameter.WhichOneof("parameter_choice") or "", "")


def _parameters(owner: Mapping[str, Any]) -> Mapping[str, Any]:
    given = owner.get("parameters")
    return given if isinstance(given, dict) else {}


def _form_of(value: Any) -> frozenset[Form]:
    """Return the form that a parameter asks for; of another type than it should be, it may mean either."""
    if value is None or value is False:
        return frozenset(("json",))
    return frozenset(("binary",)) if value is True else _EITHER_FORM


def find_output_faults(asks: RequestOptions, inference: Inference) -> Iterator[Fault]:
    """Yield how what a request asks for differs from what its caller asks for.

    An id that is no string and classes that are no count are left to the rules, which say so.
    """
    if inference.id is not None and asks.id != inference.id and isinstance(asks.id, str | None):
        yield Fault(f"the id {format_value(inference.id)}", "none" if asks.id is None else format_value(asks.id))
    if not asks.has_names:
        return
    if inference.outputs:
        yield from _of_names(asks, inference.outputs)
        for output in inference.outputs:
            if output.name in asks.outputs:
                form = output.form or inference.all_outputs
                yield from _of_one(output.name, asks, form, output.classes)
        return
    for name in asks.outputs:
        yield from _of_one(name, asks, inference.all_outputs, None)
    if not asks.outputs and inference.all_outputs is not None and inference.all_outputs not in asks.rest:
        yield Fault(f"all outputs as {inference.all_outputs}", f"as {'/'.join(sorted(asks.rest))}")


def _of_names(asks: RequestOptions, outputs: tuple[RequestedOutput, ...]) -> Iterator[Fault]:
    wanted = {output.name for output in outputs}
    for name in sorted(wanted - asks.outputs.keys()):
        yield Fault(f"the output {format_name(name)}", "it is not asked for")
    for name in sorted(asks.outputs.keys() - wanted):
        yield Fault("the outputs of the caller alone", f"{format_name(name)} asked for")


def _of_one(name: str, asks: RequestOptions, form: Form | None, classes: int | None) -> Iterator[Fault]:
    asked = asks.outputs[name]
    if asked.classes != classes and (asked.classes is None or is_count(asked.classes)):
        wanted = "the tensor" if classes is None else f"{classes} classes"
        yield Fault(
            f"{wanted} of {format_name(name)}", "the tensor" if asked.classes is None else format_value(asked.classes)
        )
    if form is not None and form not in asked.forms:
        yield Fault(f"{format_name(name)} as {form}", f"as {'/'.join(sorted(asked.forms))}")
