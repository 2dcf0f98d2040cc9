"""An inference over either transport: read the request, run the model, write the answer, update statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from time import perf_counter_ns
from typing import TypeVar

from reference_server.models import Model
from reference_server.request import InferRequest
from reference_server.tensors import Tensor

Answer = TypeVar("Answer")


def run(
    model: Model, read: Callable[[], InferRequest], write: Callable[[InferRequest, Mapping[str, Tensor]], Answer]
) -> Answer:
    """Call `read` for the request, run the model, and return the answer that `write` makes from the outputs."""
    began = perf_counter_ns()
    try:
        wanted = read()
        was_read = perf_counter_ns()
        produced = model.run(wanted.inputs)
        had_run = perf_counter_ns()
        answer = write(wanted, produced)
    except Exception:
        model.statistics.count_failure(perf_counter_ns() - began)
        raise
    steps = (was_read - began, had_run - was_read, perf_counter_ns() - had_run)
    model.statistics.count_success(find_batch_size(model, wanted), steps)
    return answer


def find_batch_size(model: Model, request: InferRequest) -> int:
    """Return the batch size of a request; 1 for a model without batching."""
    return prod(next(iter(request.inputs.values())).shape[:1]) if model.batching else 1
