"""Raw binary requests that have to be refused, as data: models that are not eligible, and bodies that do not fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.checks.support.refusals import Refusal
from conformance.roles.model import Model
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

REFUSALS: tuple[Refusal, ...] = (
    Refusal("two-inputs-bytes-of-one", "RAW-ONE-INPUT", "raw_two_inputs", _body(_COUNTING[:8])),
    Refusal("two-inputs-bytes-of-both", "RAW-ONE-INPUT", "raw_two_inputs", _body(_COUNTING[:16])),
    Refusal("four-inputs", "RAW-ONE-INPUT", "multi", _body(_COUNTING[:16])),
    Refusal("two-variable-dimensions", "RAW-TWO-VARIABLES", "raw_two_variable", _body(_COUNTING[:16])),
    Refusal("two-variable-dimensions-one-element", "RAW-TWO-VARIABLES", "raw_two_variable", _body(_COUNTING[:4])),
    Refusal("four-variable-dimensions", "RAW-TWO-VARIABLES", "rank4", _body(_COUNTING[:64])),
    Refusal("bytes-2", "RAW-BYTES-SHAPE", "raw_bytes_two", _body(b"hello")),
    Refusal("bytes-2-prefixed", "RAW-BYTES-SHAPE", "raw_bytes_two", _body(b"\1\0\0\0a\1\0\0\0b")),
    Refusal("bytes-variable", "RAW-BYTES-SHAPE", "raw_bytes_variable", _body(b"hello")),
    Refusal("bytes-variable-prefixed", "RAW-BYTES-SHAPE", "raw_bytes_variable", _body(b"\5\0\0\0hello")),
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
