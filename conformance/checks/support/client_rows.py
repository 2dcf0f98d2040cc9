"""Inferences and scripted answers for rows about clients, and the requirements that such rows judge.

Each row derives its values and the name of its model from its id, so that a stale answer to another row is detected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from zlib import crc32

from conformance.clients.answers import honest, honest_calls
from conformance.clients.answers.honest_calls import CallStyle
from conformance.clients.answers.script import CallScript, HttpScript, Script, Tensors
from conformance.clients.client import Client, Observation
from conformance.clients.expectations import VALUES as SENDS_VALUES
from conformance.clients.expectations import expect_correct_requests, expect_outputs
from conformance.clients.inference import Inference, RequestedOutput
from conformance.expect.unmet import BlockedError, UnmetError, is_met
from conformance.roles.corner_values import BYTE_STRINGS, TEXTS
from conformance.roles.sample_values import make_sample_tensor
from conformance.spec import ledger
from conformance.spec.check import Row
from conformance.wire.datatypes import DATATYPES
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

FORMS: Sequence[Form] = ("binary", "json")
# The call style that encodes outputs in each form over gRPC.
CALLS: Mapping[Form, CallStyle] = {"binary": CallStyle(form="raw"), "json": CallStyle(form="typed")}


def derive_salt(name: str) -> int:
    """Return the salt, 0 .. 255, that the values of a row are derived from."""
    return crc32(name.encode()) % 256


def derive_model_name(name: str) -> str:
    """Return the name of a row's model."""
    return f"model_{crc32(name.encode()):08x}"


def make_tensor(row: str, name: str, datatype: str, shape: Sequence[int]) -> Tensor:
    """Return a tensor whose values are derived from the id of a row."""
    return make_sample_tensor(name, datatype, shape, derive_salt(row + name))


def make_inference(row: str, inputs: Iterable[Tensor], *forms: Form, **options: Any) -> Inference:
    """Return the inference of a row; the form of inputs defaults to binary."""
    return Inference(options.pop("model", derive_model_name(row)), tuple(inputs), forms or ("binary",), **options)


def make_small_inference(row: str, form: Form = "binary", **options: Any) -> Inference:
    """Return an inference with one small input, for rows that judge only how the answer is read."""
    return make_inference(row, [make_tensor(row, "IN0", "INT32", (2,))], form, **options)


def make_script(outputs: Tensors, http: HttpScript = honest.USUAL, grpc: CallScript = honest_calls.USUAL) -> Script:
    """Return a script that answers every request with these outputs; by default in the plain, correct style."""
    return Script(lambda _: outputs, http, grpc)


def make_small_script(inference: Inference) -> Script:
    """Return a script that answers a small INT32 tensor for each requested output, or for OUT0 if none is listed."""
    names = [one.name for one in inference.outputs] if inference.outputs else ["OUT0"]
    return make_script(tuple(make_tensor(inference.model, name, "INT32", (2,)) for name in names))


def to_grpc_row(row: Row) -> Row:
    """Return the row with the gRPC ids of its requirements and the gRPC names of the forms in its id."""
    name = row.id.replace("binary", "raw").replace("json", "typed")
    return replace(row, id=name, answers=tuple(twin for name in row.answers if (twin := ledger.find_grpc_id(name))))


def to_raw_grpc_row(row: Row) -> Row:
    """Return the row over gRPC with inputs in raw contents, for rows that do not judge the form of inputs."""
    inference, *rest = row.values
    return to_grpc_row(replace(row, values=(replace(inference, forms=("binary",)), *rest)))


def is_json(inference: Inference) -> bool:
    """Say whether outputs are requested as JSON (typed contents over gRPC), which rounds floats."""
    return any(one.form == "json" for one in inference.outputs or ())


def get_unread_requirement(client: Client, inference: Inference) -> str | None:
    """Return the requirement to report if the client raises an error; None for the requirement of the row.

    A gRPC client may not support typed contents: then CLIENT-READS-FORM is unmet.
    """
    return "CLIENT-READS-FORM" if client.is_over_grpc and is_json(inference) else None


def expect_like_plain(client: Client, inference: Inference, script: Script, unread: str | None = None) -> None:
    """Expect the client to read the outputs; block the row if the client cannot read a plain answer either.

    Args:
        client: the client under test.
        inference: the inference that it performs.
        script: the scripted answer.
        unread: the requirement to report if the client raises an error; None for the requirement of the row.

    Raises:
        Blocked: the client does not read the outputs of a plain answer.
        Unmet: the client reads the plain answer, but not the scripted answer.
    """
    with block_if_unread(client, inference, script.outputs(inference), unread):
        expect_outputs(client.infer(inference, script), through_json=True, unread=unread)


@contextmanager
def block_if_unread(
    client: Client, inference: Inference, outputs: Tensors, unread: str | None = None, *, apart: bool = False
) -> Iterator[None]:
    """Block the row if an expectation fails and the client does not read these outputs in a plain answer either.

    Rows of CLIENT-READS-VALUES judge plain answers. A failure that is attributed to a requirement other than `unread`
    does not concern reading the outputs, and never blocks. With `apart`, or if the forms of outputs differ, the plain
    answers contain one output each.

    Raises:
        Blocked: the client does not read the plain answer.
        Unmet: an expectation within the block is unmet, and the client reads the plain answer.
    """
    try:
        yield
    except UnmetError as unmet:
        is_mixed = len({one.form for one in inference.outputs or ()}) > 1
        groups = [(one,) for one in outputs] if apart or is_mixed else [outputs] if outputs else []
        if unmet.requirement in (None, unread) and not all(
            is_plain_answer_read(client, inference, own) for own in groups
        ):
            raise BlockedError("the client does not read these outputs in a plain answer either", unmet) from None
        raise


def expect_sent_like_plain(
    client: Client, inference: Inference, own: Collection[str], missing_request: str = SENDS_VALUES
) -> None:
    """Expect the client to send the request of an inference; block the row if it sends no plain request either.

    Args:
        client: the client under test.
        inference: the inference that it makes.
        own: the requirements that the row is about.
        missing_request: the requirement to report if the client sends a plain request, but not this one.

    Raises:
        Blocked: the client sends no plain request in the forms of this one.
        Unmet: the request breaks a requirement, or only this request was not received.
    """
    observation = client.infer(inference, make_small_script(inference))
    with block_if_unsent(client, observation):
        expect_correct_requests(observation, own, missing_request)


@contextmanager
def block_if_unsent(client: Client, observation: Observation) -> Iterator[None]:
    """Block the row if no request was received, and the client sends no plain request in one of its forms either.

    Rows of CLIENT-SENDS-VALUES judge plain requests.

    Raises:
        Blocked: the client sends no plain request.
        Unmet: an expectation within the block is unmet.
    """
    try:
        yield
    except UnmetError as unmet:
        forms = dict.fromkeys(observation.inference.forms)
        if not observation.requests and not all(_is_plain_request_sent(client, observation, form) for form in forms):
            raise BlockedError("the client sends no plain request in this form either", unmet) from None
        raise


def _is_plain_request_sent(client: Client, observation: Observation, form: Form) -> bool:
    plain = make_small_inference(f"plain-{observation.inference.model}-{form}", form)
    return bool(client.reconnect().infer(plain, make_small_script(plain)).requests)


def is_plain_answer_read(client: Client, inference: Inference, outputs: Tensors) -> bool:
    """Say whether the client reads these outputs in a plain answer, in the form of the first requested one."""
    named = {one.name for one in outputs}
    own = inference.outputs and tuple(one for one in inference.outputs if one.name in named)
    plain = make_control_inference(replace(inference, outputs=own))
    script = make_script(outputs)
    return is_met(lambda: expect_outputs(client.reconnect().infer(plain, script), through_json=True))


def make_control_inference(inference: Inference) -> Inference:
    """Return the inference with all outputs in the form of the first, without classes, content codings and id.

    The name of the model keeps its length, so that binary data stay at their offset in the answer: some clients read
    them only at some offsets.
    """
    outputs = inference.outputs and tuple(
        RequestedOutput(one.name, inference.outputs[0].form) for one in inference.outputs
    )
    model = derive_model_name(f"{inference.model}-plain") + inference.model[len(derive_model_name("")) :]
    return replace(inference, model=model, outputs=outputs, accepts=None, id=None)


def choose_plain_form(client: Client) -> Form:
    """Return the form of an input that most clients can send: JSON over HTTP, raw contents over gRPC."""
    return "binary" if client.is_over_grpc else "json"


_WIDE = frozenset(name for name, known in DATATYPES.items() if (known.size or 1) > 1)


def list_owed_requirements(inference: Inference) -> tuple[str, ...]:
    """Return the HTTP ids of the requirements that apply to the tensors of a request."""
    pairs = [(one.datatype, inference.get_form(place)) for place, one in enumerate(inference.inputs)]
    binary = [datatype for datatype, form in pairs if form == "binary"]
    if inference.is_raw:
        return ("CLIENT-SENDS-VALUES", "CLIENT-SENDS-RAW")
    found = {
        "CLIENT-SENDS-VALUES": True,
        "CLIENT-SENDS-LITTLE-ENDIAN": any(datatype in _WIDE for datatype in binary),
        "CLIENT-SENDS-SIZE": bool(binary),
        "CLIENT-SENDS-SIZES-FILL": bool(binary),
        "CLIENT-SENDS-ORDER": len(binary) > 1,
        "CLIENT-SENDS-BYTES": "BYTES" in binary,
        "CLIENT-SENDS-BOOL": "BOOL" in binary,
        "CLIENT-SENDS-DATA": len(binary) < len(pairs),
        "CLIENT-SENDS-ELEMENTS": len(binary) < len(pairs),
        "CLIENT-SENDS-BOOL-JSON": ("BOOL", "json") in pairs,
        "CLIENT-SENDS-FP16": "FP16" in binary,
    }
    return tuple(name for name, is_owed in found.items() if is_owed)


def make_sending_row(name: str, inference: Inference, own: Sequence[str] = ()) -> Row:
    """Return a row that judges a request by `own` and by the requirements that apply to its tensors."""
    requirements = tuple(dict.fromkeys((*own, *list_owed_requirements(inference))))
    return Row(name, (inference, requirements), answers=requirements)


# --- elements of BYTES --------------------------------------------------------------------------------------------------

_LETTERS = ("ascii", "controls", "json-escapes", "two-to-four-byte-letters", "blanks")
# Groups of BYTES elements that are UTF-8, so that JSON can carry them.
STRINGS: Mapping[str, Sequence[bytes]] = {
    "empty": (b"", b"", b"x", b""),
    "nul": TEXTS["nul"],
    "trailing-nuls": (b"a\x00", b"\x00\x00", b"bc\x00\x00", b"\x00"),
    "letters": tuple(element for group in _LETTERS for element in TEXTS[group]),
    "byte-order-marks": (b"\xef\xbb\xbfa", b"\xef\xbb\xbf", b"a\xef\xbb\xbf"),
}
# Groups of BYTES elements that only binary data can carry, or that need no second row in JSON.
BINARY_STRINGS: Mapping[str, Sequence[bytes]] = {
    "octets": tuple(element for group in BYTE_STRINGS.values() for element in group),
    "like-a-prefix": TEXTS["like-a-prefix"],
    "255-256-long": TEXTS["255-256-long"],
    "65535-65536-long": TEXTS["65535-65536-long"],
}


def list_strings() -> Iterator[tuple[str, Form, Tensor]]:
    """Yield the name of a group, a form that can carry it, and an unnamed tensor of its elements."""
    for group, elements in (*STRINGS.items(), *BINARY_STRINGS.items()):
        one = Tensor.from_values("", "BYTES", list(elements))
        yield group, "binary", one
        if group in STRINGS:
            yield group, "json", one
