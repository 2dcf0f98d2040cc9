"""Requests: each binary input takes the bytes that its size declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.checks.support.binary_sides import is_right_alone, takes_several
from conformance.checks.support.deployed_models import is_read_alone, is_right_sorted, require_several
from conformance.expect.expectation import expect
from conformance.expect.unmet import block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import SEVERAL_INPUTS
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

# No other place of the requests in which they travel reads like this.
BOOLEANS = Tensor.of("IN_BOOL", "BOOL", [True, False, True, True, False])


EIGHT_BYTES = (
    Tensor.of("IN_INT64", "INT64", [0x0101010101010101]),
    Tensor.of("IN_BOOL", "BOOL", [True, False, True, True, False, False, True, False]),
    Tensor.of("IN_FP32", "FP32", [1.5, -2.25]),
)


# --- requests ----------------------------------------------------------------------------------------------------


@check("sizes.input-takes-the-bytes-it-declares", answers="BIN-SIZE-I")
@rows(
    Row("behind-numbers", (("IN_INT64", "IN_FP32", "IN_BOOL"), 3), role="multi"),
    Row("behind-strings", (("IN_BYTES", "IN_BOOL"), 3), role="multi"),
    Row("behind-long-strings", (("IN_BYTES", "IN_BOOL"), 300), role="multi"),
    Row("before-strings", (("IN_BOOL", "IN_BYTES"), 3), role="multi"),
    Row("every-input", ((), 0), fit=SEVERAL_INPUTS),
    Row("every-long-input", ((), 300), fit=SEVERAL_INPUTS),
)
def input_takes_the_bytes_it_declares(target: Target, model: Model, binary: tuple[str, ...], count: int) -> None:
    """Each binary input takes as many bytes as its binary_data_size says, so that the next one begins right."""
    if model.is_own_oracle:
        _expect_all_taken(target, model, model.salted(count, model.salt) if count else require_several(model))
        return
    strings = Tensor.of("IN_BYTES", "BYTES", [b"s" * (k % 7) for k in range(count)])
    sample = {tensor.name: tensor for tensor in model.sample()} | {"IN_BYTES": strings, "IN_BOOL": BOOLEANS}

    def is_wrong_elsewhere() -> bool:
        alone = (sample[name] for name in binary)
        return not (
            takes_several(target)
            and all(is_right_alone(target, tensor, "read") for tensor in alone)
            and _are_kept_apart(target, model, binary)
        )

    with block_if(is_wrong_elsewhere, "one of them alone, or two of eight bytes each, are wrong too"):
        _expect_bools(target, model, sample, binary)


def _expect_all_taken(target: Target, model: Model, tensors: Sequence[Tensor]) -> None:
    """Expect the right outputs where all inputs are binary data, in the declared order."""
    right = model.expected(tensors)

    def is_wrong_otherwise() -> bool:
        alone = all(is_read_alone(target, model, tensors, tensor.name) for tensor in tensors)
        return not alone or is_right_sorted(target, model, tensors)

    with block_if(is_wrong_otherwise, "one as the only binary data is wrong, too, or they are right in another order"):
        expect(target.infer(model.request(tensors, outputs=model.listed()))).tensors(right)


def _expect_bools(target: Target, multi: Model, sample: Mapping[str, Tensor], binary: Sequence[str]) -> None:
    """Expect the right BOOL elements where these inputs are binary data, in this order and before all others."""
    tensors = [sample[name] for name in (*binary, *[name for name in sample if name not in binary])]
    reply = target.infer(multi.request(tensors, send=binary))
    expect(reply).tensors([tensor for tensor in multi.expected(tensors) if tensor.name == "OUT_BOOL"])


def _are_kept_apart(target: Target, multi: Model, binary: Sequence[str]) -> bool:
    """Say whether BOOL elements come right among inputs of eight bytes; numbers stand for strings."""
    order = [name if name != "IN_BYTES" else "IN_FP32" for name in binary]
    sample = {tensor.name: tensor for tensor in (*multi.sample(), *EIGHT_BYTES)}
    return is_met(lambda: _expect_bools(target, multi, sample, order))
