"""The lines of the adapter protocol, for the adapters in Python: read, answered, and tensors to numpy and back.

`schemas/adapter.schema.json` describes them. An adapter calls `serve` with what makes its client.
"""

from __future__ import annotations

import asyncio
import json
import math
import struct
import sys
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from importlib.metadata import version
from threading import Thread
from typing import Any, Protocol, TypeVar

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Json = dict[str, Any]
Array = NDArray[Any]
T = TypeVar("T")
Status = Callable[[Any], str]  # of an error

DTYPES = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8",
    "INT8": "i1", "INT16": "<i2", "INT32": "<i4", "INT64": "<i8",
    "FP16": "<f2", "FP32": "<f4", "FP64": "<f8", "BF16": ml_dtypes.bfloat16,
}  # fmt: skip


class CannotError(Exception):
    """The library has no way to ask for this."""


class Client(Protocol):
    """A client of the library under judgement, connected to one address."""

    def infer(self, inferences: list[Json], at_once: bool) -> list[Json]:
        """Make inferences, and return a result for each."""


def serve(package: str, transports: list[str], connect: Callable[[str, str, float], Client], name: str = "") -> None:
    """Answer commands until there are no more.

    Args:
        package: of the library, which names the client and says its version.
        transports: those that the client speaks.
        connect: makes a client, from transport, address and timeout in seconds.
        name: of the client, where the package has several.
    """
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries print
    clients: dict[tuple[str, str, float], Client] = {}
    for line in sys.stdin:
        command = json.loads(line)
        if command["command"] == "hello":
            said = {"name": name or package, "version": version(package), "language": "Python"}
            answer: Json = {"client": {**said, "transports": transports}}
        else:
            key = (command["transport"], command["address"], command["timeout_s"])
            client = clients.get(key) or clients.setdefault(key, connect(*key))
            answer = {"results": client.infer(command["inferences"], command["at_once"])}
        print(json.dumps({"seq": command["seq"], **answer}), file=answers, flush=True)


# --- results ---------------------------------------------------------------------------------------------------------


def result(outputs: list[Json], id: str | None) -> Json:  # noqa: A002 - the member's name
    """Return what the library gave its caller."""
    return {"outputs": outputs, **({} if id is None else {"id": id})}


def attempted(make: Callable[[], Json], status: Status = lambda _: "") -> Json:
    """Return the result of an inference, or the error that it ends with; `status` tells that of an error."""
    try:
        return make()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # gevent's Timeout is no Exception
        return failed(error, status)


def failed(error: BaseException, status: Status) -> Json:
    """Return the result of an inference that ends with an error."""
    if isinstance(error, CannotError):
        return {"cannot": str(error)}
    said = status(error)
    return {"error": {"message": str(error) or repr(error), **({"status": said} if said else {})}}


class Loop:
    """The event loop of a client for asyncio.

    It runs in a thread, between commands as well, as it does in a program: otherwise the client does not see that a
    connection has ended.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine to its end."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def infer(
        self, one: Callable[[Json], Awaitable[Json]], inferences: list[Json], at_once: bool, status: Status
    ) -> list[Json]:
        """Make inferences at the same time, or one after the other."""

        async def attempt(inference: Json) -> Json:
            try:
                return await one(inference)
            except Exception as error:
                return failed(error, status)

        async def all_of_them() -> list[Json]:
            if at_once:
                return list(await asyncio.gather(*map(attempt, inferences)))
            return [await attempt(inference) for inference in inferences]

        return self.run(all_of_them())


# --- tensors ---------------------------------------------------------------------------------------------------------


def array_of(tensor: Json) -> Array:
    """Return an input as numpy has it; elements of BYTES are `bytes` objects."""
    octets = b64decode(tensor["data"])
    if tensor["datatype"] != "BYTES":
        return np.frombuffer(octets, DTYPES[tensor["datatype"]]).reshape(tensor["shape"])
    elements = np.empty(math.prod(tensor["shape"]), object)
    elements[:] = list(_elements(octets))
    return elements.reshape(tensor["shape"])


def _elements(octets: bytes) -> Iterator[bytes]:
    place = 0
    while place < len(octets):
        (length,) = struct.unpack_from("<I", octets, place)
        yield octets[place + 4 : place + 4 + length]
        place += 4 + length


def output(name: str, datatype: str, array: Array) -> Json:
    """Return an output as the caller has it: as numpy gives it, under the datatype that the library names."""
    octets = _framed(array) if datatype == "BYTES" else array.tobytes()
    return {"name": name, "datatype": datatype, "shape": list(array.shape), "data": b64encode(octets).decode()}


def _framed(array: Array) -> bytes:
    items = [item if isinstance(item, bytes) else str(item).encode() for item in array.ravel().tolist()]
    return b"".join(struct.pack("<I", len(item)) + item for item in items)


def refuse(inference: Json, **reasons: str) -> None:
    """Say that the library has no way to ask for a member that an inference has.

    Raises:
        CannotError: with the reason given for the member.
    """
    for member, reason in reasons.items():
        if inference.get(member) is not None:
            raise CannotError(reason)
