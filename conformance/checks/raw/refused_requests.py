"""Raw binary requests that have to be refused, as data: models that are not eligible, and bodies that do not fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.checks.support.refusals import Refusal
from conformance.discovery.deployed_model import encode_raw_body
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.fit import ONE_INPUT, SEVERAL_INPUTS
from conformance.wire.request import INFERENCE_HEADER, Message


def _body(body: bytes) -> Callable[[Model], Message]:
    """Return what makes a raw request with this body."""
    return lambda model: model.raw(body)


def _headless(body: bytes) -> Callable[[Model], Message]:
    """Return what makes a request with this body and no inference header."""
    return lambda model: model.raw(body).with_header(INFERENCE_HEADER, None)


_COUNTING = bytes(range(1, 65))

# role and sizes that do not fill its input
MISFITS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("raw_fixed", (0, 4, 12, 15, 17, 20, 32)),
    ("raw_variable", (4, 7, 9, 12)),
    ("raw_middle", (6, 11, 13, 18)),
    ("raw_two_outputs", (2, 6)),
    ("identity_int64", (4, 12)),
    ("identity_fp16", (1, 3)),
    ("raw_batching", (4, 8, 17)),
    ("raw_batching_variable", (6,)),
)

TWO_ITEMS = Refusal("two-items", "RAW-BATCH-OF-ONE", "raw_batching", _body(_COUNTING[:32]))

# Fault, role and body, and what a server may take the body for: split by its lengths, or as one element.
BYTES_BODIES: tuple[tuple[str, str, bytes, tuple[list[bytes], ...]], ...] = (
    ("bytes-2", "raw_bytes_two", b"hello", ()),
    ("bytes-2-prefixed", "raw_bytes_two", b"\1\0\0\0a\1\0\0\0b", ([b"a", b"b"],)),
    ("bytes-2-three-prefixed", "raw_bytes_two", b"\1\0\0\0a\1\0\0\0b\1\0\0\0c", ()),
    ("bytes-variable", "raw_bytes_variable", b"hello", ([b"hello"],)),
    (
        "bytes-variable-prefixed",
        "raw_bytes_variable",
        b"\5\0\0\0hello",
        ([b"hello"], [b"\5\0\0\0hello"]),
    ),
)

REFUSALS: tuple[Refusal, ...] = (
    Refusal("two-inputs-bytes-of-one", "RAW-SEVERAL-INPUTS", "raw_two_inputs", _body(_COUNTING[:8])),
    Refusal("two-inputs-bytes-of-both", "RAW-SEVERAL-INPUTS", "raw_two_inputs", _body(_COUNTING[:16])),
    Refusal("four-inputs", "RAW-SEVERAL-INPUTS", "multi", _body(_COUNTING[:16])),
    Refusal("two-variable-dimensions", "RAW-TWO-VARIABLES", "raw_two_variable", _body(_COUNTING[:16])),
    Refusal("four-variable-dimensions", "RAW-TWO-VARIABLES", "rank4", _body(_COUNTING[:64])),
    *[Refusal(fault, "RAW-BYTES-SHAPE", role, _body(body)) for fault, role, body, _ in BYTES_BODIES],
    *[
        Refusal(f"{role.replace('_', '-')}-{size}-bytes", "RAW-SIZE", role, _body(_COUNTING[:size]))
        for role, sizes in MISFITS
        for size in sizes
    ],
    TWO_ITEMS,
    Refusal(
        "without-its-header",
        "BIN-HEADER-MISSING",
        "raw_fixed",
        _headless(_COUNTING[:16]),
        tensors=lambda model: [model.tensor(np.frombuffer(_COUNTING[:16], "<i4").reshape(2, 2).tolist())],
    ),
    Refusal(
        "bytes-without-its-header",
        "BIN-HEADER-MISSING",
        "raw_bytes_one",
        _headless(b"hello"),
        tensors=lambda model: [model.tensor([b"hello"])],
    ),
)


# --- of any model ---------------------------------------------------------------------------------------------------


def _bytes_of_first(model: Model) -> Message:
    tensors = model.sample()
    if len(tensors) < 2:
        raise NotApplicableError(f"one input of {model.name} is sent, and the others need not be")
    return model.raw(bytes(tensors[0].to_bytes()))


def _several_variable(model: Model) -> Message:
    """Return a raw request to an input that has several variable dimensions beside one that may be the batch."""
    spec, tensor = model.role.inputs[0], model.items()[0]
    if spec.datatype == "BYTES" or spec.shape[1:].count(-1) < 2 or tensor.elements < 2:
        raise NotApplicableError(f"metadata do not show that {model.name} has several variable dimensions")
    return model.raw(encode_raw_body(tensor))


def _own_headless(model: Model) -> Message:
    return model.raw(encode_raw_body(model.items()[0])).with_header(INFERENCE_HEADER, None)


OWN_REFUSALS: tuple[Refusal, ...] = (
    Refusal("own-bytes-of-one", "RAW-SEVERAL-INPUTS", "", _bytes_of_first, fit=SEVERAL_INPUTS),
    Refusal("own", "RAW-TWO-VARIABLES", "", _several_variable, fit=ONE_INPUT),
    Refusal(
        "own-without-its-header",
        "BIN-HEADER-MISSING",
        "",
        _own_headless,
        tensors=lambda model: model.items()[:1],
        fit=ONE_INPUT,
    ),
)
