"""Requests whose body is not in the coding that they name, or not all of it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

from conformance.checks.robustness.survival import expect_still_serving, is_declined
from conformance.expect.content_coding import compress_gzip, compress_zlib
from conformance.expect.expectation import expect
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import RAW
from conformance.transport.target import Target

ELEMENT_COUNT = 200  # elements


def _unwrapped(body: bytes) -> bytes:
    """Return the body compressed as by deflate, but without the zlib format around it, as some clients send it."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


def _cut(code: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda body: code(body)[:-20]


# name -> the coding that is named, and what the body is
FALSE_CODINGS: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "plain-as-gzip": ("gzip", bytes),
    "plain-as-deflate": ("deflate", bytes),
    "zlib-as-gzip": ("gzip", compress_zlib),
    "gzip-cut-short": ("gzip", _cut(compress_gzip)),
    "deflate-cut-short": ("deflate", _cut(compress_zlib)),
    "deflate-without-zlib": ("deflate", _unwrapped),
}


def _rows(name: str) -> tuple[Row, Row]:
    return (
        Row(f"{name}-json", (name, False), role="identity_int32"),
        Row(f"{name}-raw", (name, True), role="identity_uint8", needs=RAW),
    )


@check("robustness.false-coding-alters-no-tensor", answers="ROBUST-CODING", infers=False)
@rows(*[row for name in FALSE_CODINGS for row in _rows(name)])
def false_coding_alters_no_tensor(target: Target, model: Model, name: str, is_raw: bool) -> None:
    """A body that is not in the coding that it names is refused, or answered as it was meant."""
    coding, spoil = FALSE_CODINGS[name]
    tensors = model.salted(ELEMENT_COUNT, 2)
    message = model.raw(bytes(tensors[0].to_bytes())) if is_raw else model.request(tensors, send="json").message()
    with expect_still_serving(target, model):
        reply = target.send(message.with_body(spoil(message.body)).with_header("Content-Encoding", coding), fresh=True)
        if not is_declined(reply):
            expect(reply).tensors(model.expected(tensors))
