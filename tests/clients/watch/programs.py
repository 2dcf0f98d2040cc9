"""Clients that a watch runs: each is a program, as somebody's own tests are."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_BARE = """
import contextlib, os, socket, sys
from urllib.parse import urlsplit
from tests.support.bare_requests import JSON_PART, TENSOR, read_to_end
from tests.support.bare_requests import make_request as request
address = urlsplit(os.environ["OIP_TARGET_URL"])
def send(octets):
    with socket.create_connection((address.hostname, address.port), 10) as connection:
        connection.sendall(octets)
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            return read_to_end(connection)
"""
_TRITON = """
import os, numpy, tritonclient.http, tritonclient.grpc
addresses = ((tritonclient.http, os.environ["OIP_TARGET_URL"].removeprefix("http://")),
             (tritonclient.grpc, os.environ["OIP_TARGET_GRPC"]))
for library, address in addresses:
    with library.InferenceServerClient(address) as client:
        texts = numpy.array([b"a", b"\\0", b""], object)
        for datatype, array in (("INT32", numpy.arange(4, dtype=numpy.int32)), ("BYTES", texts)):
            tensor = library.InferInput("INPUT", array.shape, datatype)
            tensor.set_data_from_numpy(array)
            answer = client.infer(f"identity_{datatype.lower()}", [tensor])
            assert (answer.as_numpy("OUTPUT") == array).all()
"""


def make_program(text: str) -> tuple[str, ...]:
    return sys.executable, "-c", text


def make_bare_client(*requests: str, status: int = 0) -> Sequence[str]:
    """Return a client that sends requests, each an expression, and ends with a status."""
    return make_program(_BARE + "".join(f"send({one})\n" for one in requests) + f"sys.exit({status})")


TRITON = make_program(_TRITON)
GOOD = 'request(JSON_PART + TENSOR, "User-Agent: good/1.0")'
WRONG_LENGTH = 'request(JSON_PART + TENSOR, "User-Agent: bad/2.0", "Inference-Header-Content-Length: 7")'
WRONG_TYPE = 'request(JSON_PART + TENSOR, "User-Agent: plain/3.0", "Content-Type: text/plain")'
SECRET = "sesame-open-0123456789"  # noqa: S105 - made up
WITH_SECRETS = (
    f'request(JSON_PART + TENSOR, "Authorization: Bearer {SECRET}", "Cookie: id={SECRET}", "X-Api-Key: {SECRET}", '
    f'"Inference-Header-Content-Length: {SECRET}", path="/v2/models/{SECRET}/infer?token={SECRET}")'
)
BROKEN_WITH_SECRETS = (
    f'request(JSON_PART + TENSOR, "Authorization: Bearer {SECRET}", "X-Api Key: {SECRET}")',
    f'request(JSON_PART + TENSOR, "Authorization : Bearer {SECRET}")',
    f'request(JSON_PART + TENSOR, "Authorization: Bearer {SECRET}", length=100) + b"Authorization: x{SECRET}"',
)
