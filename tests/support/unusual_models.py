"""Deployed models that fill no role, served by the reference server's code in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any
from unittest import mock

import numpy as np
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from reference_server import app, compute, faults, metadata, models
from reference_server.errors import InferenceError
from reference_server.framing import HEADER
from reference_server.http_protocol import OipHttpProtocol
from reference_server.models import Model
from reference_server.tensors import Tensor, TensorSpec, make_objects
from tests.support import valid_servers
from tests.support.servers import serve_app

Inputs = Mapping[str, Tensor]
Compute = Callable[[Model, Inputs], list[Tensor]]
OVERLAPPING_TURNS = 8  # of the event loop, in which requests that were sent together arrive
Specs = Sequence[tuple[str, str, tuple[int, ...]]]


@contextmanager
def serve(*extra: Model, fault: str | None = None) -> Iterator[str]:
    """Serve the models of all roles and these, as the fault or variation of this name does; yields the URL."""
    CallCounter.number, StaleInputs.before = 0, None
    with faults.switch_on((faults.load() | valid_servers.load())[fault]) if fault else nullcontext():
        served = app.create(models.load() | {model.name: model for model in extra})
        config = uvicorn.Config(
            RequestCounter(served) if extra else served,
            http=OipHttpProtocol,
            ws="none",
            lifespan="off",
            log_level="critical",
            access_log=False,
        )
        with serve_app(config) as url, mock.patch.dict(compute.FUNCTIONS, ODD):
            yield url


def model(name: str, inputs: Specs, outputs: Specs, *, batching: bool = False) -> Model:
    """Return a model that computes what the function of its name says."""
    given, made = (tuple(TensorSpec(*spec) for spec in specs) for specs in (inputs, outputs))
    return Model(name, given, made, name, batching, {}, ())


# --- what they compute ------------------------------------------------------------------------------------------------


class CallCounter:
    """Counts inferences, so that a model can be different from one to the next."""

    number = 0

    @classmethod
    def count(cls) -> int:
        """Return the number of this one, from 1."""
        cls.number += 1
        return cls.number


class RequestCounter:
    """An app that counts the requests in flight, and lets those that arrive together overlap.

    `is_binary` says whether the request that is computed has an inference header, as one of another form has not.
    """

    number = 0
    is_binary = ContextVar("is_binary", default=False)

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on once the requests that arrived with it are counted."""
        RequestCounter.number += 1
        RequestCounter.is_binary.set(HEADER.lower().encode() in dict(scope.get("headers", ())))
        try:
            for _ in range(OVERLAPPING_TURNS):
                await asyncio.sleep(0)
            await self._inner(scope, receive, send)
        finally:
            RequestCounter.number -= 1


def _counter(_: Model, inputs: Inputs) -> list[Tensor]:
    return [Tensor("INT32", (1,), np.array([CallCounter.count()], "<i4")), inputs["X"]]


def _rarely(_: Model, inputs: Inputs) -> list[Tensor]:
    """Once in eleven calls something else comes."""
    return [Tensor("FP32", inputs["X"].shape, inputs["X"].elements + np.float32(CallCounter.count() % 11 == 0))]


def _last_digit(_: Model, inputs: Inputs) -> list[Tensor]:
    """The last bit of each element depends on how many others are computed meanwhile."""
    factor = np.float32(1 + (CallCounter.count() % 4 == 3) * 2.0**-23)
    return [Tensor("FP32", inputs["X"].shape, inputs["X"].elements * factor)]


def _add_noise(elements: np.ndarray[Any, Any], amplitude: float) -> Tensor:
    """Return FP32 elements; beside other requests with noise, relative to the largest element, as batching has it."""
    if RequestCounter.number > 1:
        noise = np.random.default_rng(CallCounter.count()).uniform(-amplitude, amplitude, elements.shape)
        elements = elements + noise * np.abs(elements).max(initial=0)
    return Tensor("FP32", elements.shape, elements.astype("<f4").reshape(-1))


def _noisy(found: Model, inputs: Inputs) -> list[Tensor]:
    """Differences of neighbours: some are near 0, where a relative tolerance permits nothing."""
    x = inputs["X"].elements.astype("<f8")
    return [_add_noise(x - np.roll(x, 1), NOISE[found.name])]


def _rounded_by_form(_: Model, inputs: Inputs) -> list[Tensor]:
    """Differences of neighbours, that are added in another order if the request has binary data."""
    x = inputs["X"].elements.astype("<f8")
    found = (x - np.roll(x, 1)).astype("<f4")
    room = np.float32(2.0**-23) * np.abs(found).max(initial=0) * RequestCounter.is_binary.get()
    return [Tensor("FP32", found.shape, found + np.where(np.isfinite(room), room, 0))]


def _noisy_classes(_: Model, inputs: Inputs) -> list[Tensor]:
    """A product with fixed weights, accumulated in FP16: the scores of three classes for each item of a batch."""
    weights = np.random.default_rng(7).normal(size=(4, 3))
    return [_add_noise(inputs["X"].elements.astype("<f8").reshape(-1, 4) @ weights, 1e-3)]


def _one_item(_: Model, inputs: Inputs) -> list[Tensor]:
    """The scores of three classes for a batch of one, which the metadata do not say."""
    rows = inputs["X"].elements.astype("<f8").reshape(-1, 4)
    if len(rows) > 1:
        raise InferenceError("one item at a time")
    scores = rows @ np.random.default_rng(7).normal(size=(4, 3))
    return [Tensor("FP32", scores.shape, scores.astype("<f4").reshape(-1))]


def _one_score(_: Model, inputs: Inputs) -> list[Tensor]:
    return [Tensor("FP32", (), inputs["X"].elements.sum(keepdims=True))]


def _sum_of_any(_: Model, inputs: Inputs) -> list[Tensor]:
    """The only input is optional, which metadata cannot say."""
    return [Tensor("FP32", (1,), sum((one.elements for one in inputs.values()), np.zeros(1, "<f4")).sum(keepdims=True))]


def parse_any_inputs(original: Any, found: Model, request: Mapping[str, Any], rest: Any) -> Any:
    """Take an empty array of inputs for `SUM_OF_ANY`, in place of `request.parse_inputs`."""
    is_empty = found.name == SUM_OF_ANY.name and request.get("inputs") == []
    return {} if is_empty else original(found, request, rest)


def _three_classes(_: Model, inputs: Inputs) -> list[Tensor]:
    """The label of each item: that of all small features is 0."""
    sums = inputs["X"].elements.reshape(-1, 4).sum(axis=1)
    return [Tensor("INT64", sums.shape, np.select([sums > 40, sums < -8], [1, 2], 0).astype("<i8"))]


def _constant(_: Model, inputs: Inputs) -> list[Tensor]:
    return [Tensor("FP32", (1,), np.array([inputs["X"].elements.size > 0], "<f4"))]


class StaleInputs:
    """The inputs of the request before, and a seed that decides which answers are computed from them."""

    seed = 0
    before: Inputs | None = None


def _stale(_: Model, inputs: Inputs) -> list[Tensor]:
    """One of ten answers is computed from the inputs of the request before."""
    is_stale = np.random.default_rng((StaleInputs.seed, CallCounter.count())).random() < 0.1
    read, StaleInputs.before = StaleInputs.before if is_stale and StaleInputs.before else inputs, inputs
    return [Tensor("FP32", read["X"].shape, read["X"].elements * np.float32(3))]


def _by_place(_: Model, inputs: Inputs) -> list[Tensor]:
    """The inputs are taken in the order of the request, not by their names."""
    first, second = inputs.values()
    return [Tensor("FP32", first.shape, first.elements - second.elements)]


def _nan(_: Model, inputs: Inputs) -> list[Tensor]:
    x = inputs["X"]
    return [Tensor("FP32", x.shape, x.elements * np.float32("nan")), Tensor("FP32", x.shape, x.elements * 2)]


def _octets(_: Model, inputs: Inputs) -> list[Tensor]:
    return [Tensor("BYTES", (1,), make_objects([b"\xff\xd8" + inputs["X"].elements.tobytes()]))]


def _picky(_: Model, inputs: Inputs) -> list[Tensor]:
    if inputs["X"].elements.tolist() != [7.5, 8.25]:
        raise InferenceError("give me 7.5 and 8.25")
    return [Tensor("FP32", (2,), inputs["X"].elements[::-1].copy())]


def _small_table(_: Model, inputs: Inputs) -> list[Tensor]:
    """An embedding: integers are places in a table of two rows; a batch is needed, and a length of at least sixteen."""
    ids = inputs["IDS"]
    if len(ids.shape) != 2 or ids.shape[1] < 16 or ids.elements.max() > 1:
        raise InferenceError("wrong shape, or no such row")
    return [Tensor("FP32", (*ids.shape, 2), np.eye(2, dtype="<f4")[ids.elements].reshape(-1))]


def _structured(_: Model, inputs: Inputs) -> list[Tensor]:
    """A string is taken for a JSON object."""
    if inputs["X"].elements.tolist() != [b"{}"]:
        raise InferenceError("no JSON object")
    return [Tensor("BYTES", (1,), make_objects([b'{"ok": true}']))]


def _never(_: Model, _inputs: Inputs) -> list[Tensor]:
    raise InferenceError("not in the mood")


NOISE = {"noisy_fp32": 1e-7, "noisy_fp16": 1e-3}
ODD: dict[str, Compute] = {
    "counter": _counter,
    "rarely": _rarely,
    "last_digit": _last_digit,
    "noisy_fp32": _noisy,
    "noisy_fp16": _noisy,
    "noisy_classes": _noisy_classes,
    "rounded_by_form": _rounded_by_form,
    "stale": _stale,
    "one_item": _one_item,
    "sum_of_any": _sum_of_any,
    "one_score": _one_score,
    "three_classes": _three_classes,
    "constant": _constant,
    "by_place": _by_place,
    "nan": _nan,
    "octets": _octets,
    "picky": _picky,
    "small_table": _small_table,
    "structured": _structured,
    "never": _never,
}
_X = [("X", "FP32", (-1,))]

COUNTER = model("counter", [("X", "INT32", (-1,))], [("COUNT", "INT32", (1,)), ("SAME", "INT32", (-1,))])
RARELY = model("rarely", _X, [("Y", "FP32", (-1,))])
LAST_DIGIT = model("last_digit", _X, [("Y", "FP32", (-1,))])
STALE = model("stale", _X, [("Y", "FP32", (-1,))])
THREE_CLASSES = model("three_classes", [("X", "FP32", (-1, 4))], [("LABEL", "INT64", (-1,))])
CONSTANT = model("constant", _X, [("Y", "FP32", (1,))])
BY_PLACE = model("by_place", [("A", "FP32", (-1,)), ("B", "FP32", (-1,))], [("Y", "FP32", (-1,))])
NAN = model("nan", _X, [("Y", "FP32", (-1,)), ("TWICE", "FP32", (-1,))])
OCTETS = model("octets", [("X", "UINT8", (-1,))], [("Y", "BYTES", (1,))])
PICKY = model("picky", [("X", "FP32", (2,))], [("Y", "FP32", (2,))])
SMALL_TABLE = model("small_table", [("IDS", "INT64", (-1, -1))], [("ROWS", "FP32", (-1, -1, 2))])
STRUCTURED = model("structured", [("X", "BYTES", (1,))], [("Y", "BYTES", (1,))])
NOISY_FP32, NOISY_FP16 = (model(name, _X, [("Y", "FP32", (-1,))]) for name in NOISE)
NOISY_CLASSES = model("noisy_classes", [("X", "FP32", (-1, 4))], [("SCORES", "FP32", (-1, 3))])
ONE_ITEM = model("one_item", [("X", "FP32", (-1, 4))], [("SCORES", "FP32", (-1, 3))])
SUM_OF_ANY = model("sum_of_any", _X, [("Y", "FP32", (1,))])
ONE_SCORE = model("one_score", _X, [("SCORE", "FP32", ())])
ROUNDED_BY_FORM = model("rounded_by_form", _X, [("Y", "FP32", (-1,))])
NEVER = model("never", _X, [("Y", "FP32", (-1,))])


@contextmanager
def describe_as(other: Model) -> Iterator[None]:
    """Have the metadata of a model describe another one, of the same name."""
    honest = metadata.describe_model

    def describe(found: Model) -> dict[str, Any]:
        return honest(other if found.name == other.name else found)

    with mock.patch.object(metadata, "describe_model", describe):
        yield
