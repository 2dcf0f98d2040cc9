"""Requests whose body is not in the coding that they name, or not all of it.

A server that does not look at the coding takes a body that is in none for what it is, and gets the right tensors.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

from conformance.checks.state.three_forms import AnyForm, answered, form_row, salted
from conformance.expect.content_coding import gzipped, zlibbed
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive, is_refused
from conformance.roles.model import Model
from conformance.terms.check import check, rows
from conformance.transport.target import Target

LENGTH = 200  # elements


@check("state.body-in-another-coding-is-refused", answers=("HTTP-CODING-FALSE", "HTTP-CODING-I"))
@rows(
    form_row("json-as-gzip", "json", "gzip"),
    form_row("binary-as-gzip", "binary", "gzip"),
    form_row("raw-as-gzip", "raw", "gzip"),
    form_row("json-as-deflate", "json", "deflate"),
    form_row("raw-as-deflate", "raw", "deflate"),
)
def body_in_another_coding_is_refused(target: Target, model: Model, form: AnyForm, coding: str) -> None:
    """A request that names a coding in which its body is not is refused, and at the least reads no tensor wrong."""
    answered(target, model, form, LENGTH)
    message, tensors = salted(model, form, LENGTH, 2)  # which no answer is kept for
    reply = target.send(message.with_header("Content-Encoding", coding), fresh=True)
    if reply.succeeded:
        expect(reply, "HTTP-CODING-I").tensors(model.expected(tensors))
    expect(reply).refused(f"a body that is not in the coding {coding}")
    expect_alive(target, model)


def _unwrapped(body: bytes) -> bytes:
    """Return the body compressed as by deflate, but without the zlib format around it, as some clients send it."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


def _cut(code: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda body: code(body)[:-20]


# name -> the coding that is named, and what the body is
SPOILED: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip-cut-short": ("gzip", _cut(gzipped)),
    "deflate-cut-short": ("deflate", _cut(zlibbed)),
    "zlib-as-gzip": ("gzip", zlibbed),
    "deflate-without-zlib": ("deflate", _unwrapped),
}


@check("state.spoiled-coding-alters-no-tensor", answers="HTTP-CODING-I")
@rows(*[form_row(f"{name}-{form}", form, name) for name in SPOILED for form in ("json", "raw")])
def spoiled_coding_alters_no_tensor(target: Target, model: Model, form: AnyForm, name: str) -> str:
    """A coded body that is cut short, or in the format of another coding, is refused, or decoded whole."""
    message, expected = answered(target, model, form, LENGTH)
    coding, spoil = SPOILED[name]
    spoiled = message.with_body(spoil(message.body)).with_header("Content-Encoding", coding)
    reply = target.send(spoiled, fresh=True)
    if is_refused(target, model, reply):
        return f"refused with {reply.status}"
    expect(reply, "HTTP-CODING-I").tensors(expected)
    return "decoded"
