"""Classes are the same over gRPC as over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from conformance.checks.support.classes import (
    DESCENDING,
    DOCUMENTED,
    ITEMS,
    SCORES,
    SQUARES,
    ClassifiedAnswer,
    describe_classes,
    find_scored_output,
    read_texts,
)
from conformance.checks.support.ranked_inputs import choose_inputs
from conformance.expect import class_texts
from conformance.expect.class_texts import ClassText
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import CLASSES, GRPC, HTTP
from conformance.spec.fit import SCORED
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.tensor import Tensor

# Roles whose outputs can be classified: not those of BYTES, BOOL and 16-bit floats.
_SAME: tuple[tuple[str, Any], ...] = (
    ("scores", SCORES),
    ("scores_labelled", SCORES),
    ("scores_some_labels", SCORES),
    ("scores_odd_labels", SCORES),
    ("scores_batching", ITEMS),
    ("scores_batching_labelled", ITEMS),
    ("scores_rank2", ((1, 3, 2), (6, 4, 5))),
    ("scores_batching_rank2", SQUARES),
    ("scores_two_outputs", SCORES),
    ("documented_scores", DOCUMENTED),
    ("documented_scores_labelled", DOCUMENTED),
    ("rank3", (((1, 3), (2, 6)), ((4, 5), (8, 7)))),
    *[(f"identity_{kind}", (5, 3, 9)) for kind in ("uint8", "uint16", "uint32", "uint64")],
    *[(f"identity_{kind}", DESCENDING) for kind in ("int8", "int16", "int32", "int64", "fp32", "fp64")],
)


@check("grpc.classes-are-those-of-http", answers="GRPC-CLS-SAME-AS-HTTP", over=(GRPC, HTTP))
@rows(
    *[Row(role, (values,), role=role, needs=CLASSES) for role, values in _SAME],
    Row("own", (None,), fit=SCORED, needs=CLASSES),
)
def classes_are_those_of_http(target: GrpcTarget, model: Model, values: Any) -> None:
    """The same request for classes gives the same classes over gRPC as over HTTP."""
    name = find_scored_output(model)
    tensors, right = choose_inputs(model, name, values)
    if np.unique(right.array).size < right.elements:
        raise NotApplicableError(f"some scores of {name} are equal, and have no order")
    over_http = ClassifiedAnswer.of(target.over_http, model, values, 2).reply
    over_grpc = ClassifiedAnswer.of(target, model, values, 2, send=model.plain_send).reply
    usual, found = (_understood(read_texts(reply, name)) for reply in (over_http, over_grpc))
    if usual != found:
        with block_if(lambda: not _is_plain_right(target, model, tensors), "the plain output is wrong, too"):
            _expect_alike(usual, found, over_grpc)


def _is_plain_right(target: GrpcTarget, model: Model, tensors: Sequence[Tensor]) -> bool:
    plain = target.infer(model.request(tensors, send=model.plain_send))
    return is_met(lambda: expect(plain).tensors(model.find_outputs(tensors), through_json=False))


def _expect_alike(usual: Sequence[ClassText], found: Sequence[ClassText], over_grpc: Reply) -> None:
    if len(usual) != len(found) or not all(map(class_texts.is_same, usual, found)):
        raise UnmetError(
            f"{escape_text(describe_classes(usual), 300)}, as over HTTP",
            escape_text(describe_classes(found), 300),
            over_grpc,
        )


def _understood(listed: Sequence[str]) -> list[ClassText]:
    return [entry for text in listed if (entry := class_texts.parse_leniently(text)) is not None]
