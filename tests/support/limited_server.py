"""The reference server as a product that refuses large batches: `python limited_server.py MOST STATUS [OPTION...]`."""

from __future__ import annotations

import sys
from typing import Any

from reference_server import __main__ as program
from reference_server import metadata
from reference_server.errors import InferenceError
from reference_server.models import Model
from tests.support import product_server

check_shape = Model.check_shape


def refuse_large_batches(most: int, status: int) -> None:
    """Let every model refuse a batch of more items with a status, over gRPC with INVALID_ARGUMENT."""

    def check(model: Model, spec: Any, shape: tuple[int, ...]) -> None:
        check_shape(model, spec, shape)
        if model.batching and shape[0] > most:
            raise InferenceError(f"a batch of {shape[0]}", status=status)

    Model.check_shape = check  # type: ignore[assignment]


if __name__ == "__main__":
    metadata.describe_server = product_server.server
    refuse_large_batches(*map(int, sys.argv[1:3]))
    del sys.argv[1:3]
    program.main()
