"""Valid servers that compute floats with errors in the last bit, as a GPU or a threaded BLAS does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from starlette.responses import Response

from reference_server import app
from reference_server.faults import Fault, steps
from reference_server.faults import fault as variation
from reference_server.faults.families import Step, combine
from reference_server.models import Model
from reference_server.request import InferRequest
from reference_server.tensors import Tensor

MOVING = ("identity", "documented_raw")  # models that move floats and compute none
FLOATS = ("FP16", "BF16", "FP32", "FP64")

OVERLAPPING_TURNS = 8  # of the event loop, in which requests that were sent together arrive

# Takes the model and its request; returns how many units in the last place the first element is off.
ChooseOffset = Callable[[Model, InferRequest], int]


def shift(tensor: Tensor, offset: int) -> Tensor:
    """Return floats whose elements are one unit in the last place too low, right, and too high, in turn."""
    if tensor.datatype not in FLOATS:
        return tensor
    bits = tensor.elements.view(f"<i{tensor.elements.itemsize}")
    moved = (bits + (np.arange(bits.size) + offset) % 3 - 1).astype(bits.dtype).view(tensor.elements.dtype)
    with np.errstate(invalid="ignore"):
        is_kept = (tensor.elements == 0) | ~np.isfinite(tensor.elements) | ~np.isfinite(moved)
    return replace(tensor, elements=np.where(is_kept, tensor.elements, moved))


def vary(step: Step, choose: ChooseOffset, how: str) -> Fault:
    """Return a server that adds an error of one unit in the last place to the floats that its models compute."""

    def change(produced: Mapping[str, Tensor], model: Model, request: InferRequest) -> dict[str, Tensor]:
        offset = choose(model, request)
        return {name: shift(tensor, offset) for name, tensor in produced.items()}

    varied = step.before((), produced=change, when=lambda model: model.compute not in MOVING)
    return varied.says(f"The last bit of each float that the server computes {how}.")


_requests = count()


def _count_requests(_: Model, __: InferRequest) -> int:
    return next(_requests)


def _get_batch_size(_: Model, request: InferRequest) -> int:
    return sum(next(iter(request.inputs.values())).shape[:1])


def _is_binary(_: Model, request: InferRequest) -> int:
    return int(any(output.binary for output in request.outputs))


computed_floats_vary_by_request = vary(steps.BUILD, _count_requests, "varies from request to request")
computed_floats_vary_by_batch_size = vary(steps.BUILD, _get_batch_size, "depends on the size of the batch")
computed_floats_vary_by_form = vary(steps.BUILD, _is_binary, "depends on the form of the outputs")
grpc_computed_floats_vary_by_request = vary(steps.BUILD_RESPONSE, _count_requests, "varies from request to request")
grpc_computed_floats_vary_by_batch_size = vary(
    steps.BUILD_RESPONSE, _get_batch_size, "depends on the size of the batch"
)
grpc_computed_floats_vary_by_form = vary(steps.BUILD_RESPONSE, _is_binary, "depends on the form of the outputs")

_in_flight = [0]


@variation(steps.INFER)
async def _count_requests_in_flight(original: Any, service: app.Service, http: Any) -> Response:
    _in_flight[0] += 1
    try:
        await http.body()
        for _ in range(OVERLAPPING_TURNS):
            await asyncio.sleep(0)
        found: Response = await original(service, http)
        return found
    finally:
        _in_flight[0] -= 1


def _is_beside_others(_: Model, __: InferRequest) -> int:
    return int(_in_flight[0] > 1)


_varied = vary(steps.BUILD, _is_beside_others, "depends on whether it computes another request meanwhile")
computed_floats_vary_beside_other_requests = combine((), _count_requests_in_flight, _varied).says(_varied.summary)
