"""Terminal and report output about deployed models: their tensors, and why rows did not apply to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.discovery.deployed_model import describe_nondeterminism
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.report import ModelEntry
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text

MAX_TEXT_CHARS = 160  # characters of a list of tensors
MAX_REASONS = 12  # shown reasons; the report has the reason of every row
# Reasons that other parts of the summary show: extensions, and roles to deploy.
_REPORTED_ELSEWHERE = (ReasonKind.NOT_OFFERED, ReasonKind.NO_MODEL)


def format_header(discovery_result: DiscoveryResult) -> Iterator[str]:
    """Yield a line for each model with its input and output tensors, and a line for each problem with a model."""
    for number, (name, model) in enumerate(discovery_result.models.items()):
        yield f"{'models' if number == 0 else '':12}{escape_text(name, 60)}: {format_signature(model)}"
        if model["unsteady"]:
            yield f"{'':12}{describe_nondeterministic_model(model)}; not compared"
        if model["trouble"]:
            yield f"{'':12}{escape_text(model['trouble'], 800)}"


def format_signature(model: Mapping[str, Any]) -> str:
    """Return the input tensors that the suite sends to a model, and the names of the model's outputs."""
    outputs = ", ".join(tensor["name"] for tensor in model["outputs"])
    inputs = _format_tensors(model["sent"] or model["inputs"]) or "unknown inputs"
    return f"{inputs} -> {escape_text(outputs, MAX_TEXT_CHARS) or 'unknown outputs'}"


def describe_nondeterministic_model(model: Mapping[str, Any]) -> str:
    """Return the message that a model is not deterministic."""
    return escape_text(f"{model['name']}: {describe_nondeterminism(model['unsteady'])}")


def _format_tensors(tensors: Sequence[Mapping[str, Any]]) -> str:
    return escape_text(", ".join(f"{t['name']} {t['datatype']} {t['shape']}" for t in tensors), MAX_TEXT_CHARS)


def format_unjudged(results: Sequence[CheckResult], discovery_result: DiscoveryResult) -> Iterator[str]:
    """Yield a line for each reason why rows do not apply to deployed models, most frequent first."""
    if not discovery_result.models:
        return
    rows: dict[str, list[CheckResult]] = {}
    for result in results:
        if result.outcome is Outcome.NOT_APPLICABLE and not any(map(result.has_reason, _REPORTED_ELSEWHERE)):
            rows.setdefault(result.message, []).append(result)
    reasons = sorted(rows.items(), key=lambda item: -len(item[1]))
    for reason, found in reasons[:MAX_REASONS]:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield f"{escape_text(reason, MAX_TEXT_CHARS)}  ({found[0].label}{more})"
    if count := sum(len(found) for _, found in reasons[MAX_REASONS:]):
        yield f"and {count} rows for {len(reasons) - MAX_REASONS} other reasons"


def describe_models(discovery_result: DiscoveryResult) -> dict[str, ModelEntry]:
    """Return model name -> its entry in the report: outputs, and inputs with the sent shapes but without elements."""
    return {
        name: {
            "inputs": [
                {"name": tensor["name"], "datatype": tensor["datatype"], "shape": tensor["shape"]}
                for tensor in model["sent"]
            ],
            "outputs": [output["name"] for output in model["outputs"]],
            "not_deterministic": model["unsteady"],
        }
        for name, model in discovery_result.models.items()
    }
