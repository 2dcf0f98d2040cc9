"""Classes under `binary_data_output`: a classified output is always a listed one."""

from __future__ import annotations

from typing import Any

from conformance.checks.support.class_forms import UNWRITTEN, are_written, expect_texts
from conformance.checks.support.classes import ITEMS, SCORES, ask, find_scored_output, read_texts, request_classes
from conformance.expect.expectation import expect
from conformance.expect.unmet import block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import CLASSES
from conformance.transport.target import Target
from conformance.wire.request import RequestedOutput


@check("overrides.classes-under-binary-data-output", answers="BIN-ALL-TRUE-LISTED")
@rows(
    Row("scores", (SCORES,), role="scores", needs=CLASSES),
    Row("batch", (ITEMS,), role="scores_batching_labelled", needs=CLASSES),
)
def classes_under_binary_data_output(target: Target, model: Model, values: Any) -> str:
    """Under binary_data_output true, classes without binary_data come in one of the two forms."""
    name, tensors = find_scored_output(model), [model.tensor(values)]
    wanted = [RequestedOutput(name, classification=2)]
    reply = request_classes(target, model.request(tensors, send="json", outputs=wanted, binary_data_output=True))
    right = read_texts(ask(target, model, tensors, *wanted), name)
    with block_if(lambda: not are_written(target, right, reply.answer.output(name)), UNWRITTEN):
        expect_texts(reply, name, right, "CLS-BINARY")
    return "binary data" if expect(reply).output(name).binary else "JSON"
