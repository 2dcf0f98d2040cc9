"""Inferences, scripted answers and requirements for the rows that judge a client.

Each row derives its values and the name of its model from its id, so that a stale answer to another row is detected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, is_met
from conformance.roles.corner_values import BYTE_STRINGS, TEXTS
from conformance.roles.sample_values import make_sample_tensor
from conformance.spec import ledger
from conformance.spec.check import BodyWithRows, Check, Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.wire.datatypes import DATATYPES
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

FORMS: Sequence[Form] = ("binary", "json")
# The call style that encodes outputs in each form over gRPC.
CALLS: Mapping[Form, CallStyle] = {"binary": CallStyle(form="raw"), "json": CallStyle(form="typed")}

USUAL_DATATYPES = ("FP32", "INT64", "BYTES")  # of outputs


def derive_salt(name: str) -> int:
    """Return the number, 0 .. 255, from which the values of a row are derived."""
    return crc32(name.encode()) % 256


def derive_model_name(name: str) -> str:
    """Return the name of the model that a row requests, which contains a checksum of the row's id."""
    return f"model_{crc32(name.encode()):08x}"


def make_tensor(row: str, name: str, datatype: str, shape: Sequence[int]) -> Tensor:
    """Return a tensor whose values are derived from the id of a row."""
    return make_sample_tensor(name, datatype, shape, derive_salt(row + name))


def make_inference(row: str, inputs: Iterable[Tensor], *forms: Form, **options: Any) -> Inference:
    """Return the inference of a row, with these inputs in these forms; the default form is binary."""
    return Inference(options.pop("model", derive_model_name(row)), tuple(inputs), forms or ("binary",), **options)


def make_small_inference(row: str, form: Form = "binary", **options: Any) -> Inference:
    """Return an inference with one small input, for rows that judge only how the answer is read."""
    return make_inference(row, [make_tensor(row, "IN0", "INT32", (2,))], form, **options)


def make_script(outputs: Tensors, http: HttpScript = honest.USUAL, grpc: CallScript = honest_calls.USUAL) -> Script:
    """Return a script that answers every request with these outputs.

    By default, the answers are correct and have no unusual features.
    """
    return Script(lambda _: outputs, http, grpc)


def make_small_script(inference: Inference) -> Script:
    """Return a script that answers with a small INT32 tensor for each requested output, by default OUT0."""
    names = [item.name for item in inference.outputs] if inference.outputs else ["OUT0"]
    return make_script(tuple(make_tensor(inference.model, name, "INT32", (2,)) for name in names))


def client_claim(
    name: str, requirements: str | Sequence[str], over_grpc: Iterable[Any] | Callable[[Row], Row] | None = None
) -> Callable[[BodyWithRows], Check]:
    """Make a check of clients over HTTP, and another over gRPC, whose id and requirements follow from the first.

    `over_grpc` are the rows over gRPC, or a function that makes them of those over HTTP; None: the same rows.
    """
    ids = (requirements,) if isinstance(requirements, str) else tuple(requirements)

    def build_checks(source: BodyWithRows) -> Check:
        calls = map(over_grpc, source.rows) if callable(over_grpc) else over_grpc or source.rows
        over_calls = check(f"client-grpc.{name}", requirements=[f"{each}/grpc" for each in ids], over=(GRPC,))
        return check(f"client.{name}", requirements=ids)(
            replace(source, source=over_calls(rows(*calls)(source.source)))
        )

    return build_checks


def to_grpc_row(row: Row) -> Row:
    """Return the row with the gRPC ids of its requirements and the gRPC names of the forms in its id."""
    name = row.id.replace("binary", "raw").replace("json", "typed")
    return replace(
        row, id=name, requirements=tuple(grpc_id for name in row.requirements if (grpc_id := ledger.find_grpc_id(name)))
    )


def to_raw_grpc_row(row: Row) -> Row:
    """Return the gRPC row with inputs in raw contents; use it for rows that do not judge the form of inputs."""
    inference, *rest = row.values
    return to_grpc_row(replace(row, values=(replace(inference, forms=("binary",)), *rest)))


def has_json_output(inference: Inference) -> bool:
    """Say whether any output is requested as JSON (typed contents over gRPC), which may round floats."""
    return any(item.form == "json" for item in inference.outputs or ())


def get_unread_requirement(client: Client, inference: Inference) -> str | None:
    """Return the requirement to report if the client raises an error; None means the requirement of the row.

    If a gRPC client fails on an output in typed contents, it may not support typed contents: CLIENT-READS-FORM is
    reported.
    """
    return "CLIENT-READS-FORM" if client.is_over_grpc and has_json_output(inference) else None


def expect_scripted_answer_read(
    client: Client, inference: Inference, script: Script, unread: str | None = None
) -> None:
    """Run an inference against a scripted answer, and expect the client to return the outputs of this answer.

    A failure blocks the row if the client cannot read the same outputs in a plain answer either.

    `unread`: the requirement to report if the client raises an error; None for the requirement of the row.

    Raises BlockedError: the client does not read the outputs of a plain answer.
    """
    with block_if_unread(client, inference, script.outputs(inference), unread):
        expect_outputs(client.infer(inference, script), through_json=True, unread=unread)


@contextmanager
def block_if_unread(
    client: Client, inference: Inference, outputs: Tensors, unread: str | None = None, *, one_output_each: bool = False
) -> Iterator[None]:
    """Block the row if an expectation in the `with` block fails and the client cannot read a plain answer either.

    The plain answers have the same outputs and no unusual features; rows of CLIENT-READS-VALUES judge such answers.
    With `one_output_each`, or if the forms of outputs differ, each plain answer contains one output.

    A failure of a requirement other than `unread` is not about reading outputs, and never blocks the row.

    Raises:
        BlockedError: the client does not read the plain answer.
        NotApplicableError: see `require_datatypes`.
        UnmetError: an expectation in the `with` block is unmet, and the client reads the plain answer.
    """
    try:
        yield
    except UnmetError as unmet:
        is_mixed = len({item.form for item in inference.outputs or ()}) > 1
        groups = [(item,) for item in outputs] if one_output_each or is_mixed else [outputs] if outputs else []
        if unmet.requirement in (None, unread) and not all(
            is_plain_answer_read(client, inference, own) for own in groups
        ):
            _require_datatypes(client, outputs)
            raise BlockedError("the client does not read these outputs in a plain answer either", unmet) from None
        raise


@contextmanager
def require_datatypes(client: Client, seen: Observation) -> Iterator[None]:
    """Judge what a client returned in this context; an error is not judged if the client does not know a datatype.

    No document asks a client for every datatype.

    Raises:
        NotApplicableError: the client refuses small outputs of a datatype in every form, and reads another datatype.
        UnmetError: an expectation in the context is unmet.
    """
    try:
        yield
    except UnmetError:
        if seen.result.error is not None:
            _require_datatypes(client, seen.outputs)
        raise


def _require_datatypes(client: Client, outputs: Iterable[Tensor]) -> None:
    datatypes = {one.datatype for one in outputs}
    refused = next((name for name in sorted(datatypes) if not _is_accepted(client, name)), "")
    if refused and any(_is_accepted(client, name) for name in USUAL_DATATYPES if name not in datatypes):
        raise NotApplicableError(f"the client refuses every output of {refused}")


def _is_accepted(client: Client, datatype: str) -> bool:
    """Return whether the client returns no error for a small output of a datatype in one of the forms."""
    outputs = (make_tensor(datatype, "OUT0", datatype, (4,)),)
    for form in FORMS:
        inference = make_small_inference(
            f"{datatype}-{form}", choose_plain_form(client), outputs=(RequestedOutput("OUT0", form),)
        )
        with suppress(NotApplicableError):  # the client cannot ask for this form
            if client.reconnect().infer(inference, make_script(outputs, grpc=CALLS[form])).result.error is None:
                return True
    return False


def expect_request_sent(
    client: Client, inference: Inference, judged: Collection[str], not_received: str = SENDS_VALUES
) -> None:
    """Run an inference and expect the client to send the correct request.

    If no request arrives, the row is blocked if the client sends no plain request in the same forms either.

    `not_received`: the requirement to report if a plain request arrives, but the request of this inference does not.

    Raises BlockedError: the client sends no plain request in the forms of this inference.
    """
    observation = client.infer(inference, make_small_script(inference))
    with block_if_unsent(client, observation):
        expect_correct_requests(observation, judged, not_received)


@contextmanager
def block_if_unsent(client: Client, observation: Observation) -> Iterator[None]:
    """Block the row if no request arrived, and the client also sends no plain request in a form of the inputs.

    Rows of CLIENT-SENDS-VALUES judge plain requests.

    Raises:
        BlockedError: the client sends no plain request.
        UnmetError: an expectation in the `with` block is unmet, and the row is not blocked.
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
    """Say whether the client reads these outputs in a plain answer, where all have the form of the first output."""
    named = {item.name for item in outputs}
    own = inference.outputs and tuple(item for item in inference.outputs if item.name in named)
    plain = make_control_inference(replace(inference, outputs=own))
    script = make_script(outputs)
    return is_met(lambda: expect_outputs(client.reconnect().infer(plain, script), through_json=True))


def make_control_inference(inference: Inference) -> Inference:
    """Return a simpler inference: all outputs in the form of the first, without classes, content codings and id.

    The new model name is as long as the old one, so that the offset of binary data in the answer stays the same: some
    clients read binary data only at some offsets.
    """
    outputs = inference.outputs and tuple(
        RequestedOutput(item.name, inference.outputs[0].form) for item in inference.outputs
    )
    model = derive_model_name(f"{inference.model}-plain") + inference.model[len(derive_model_name("")) :]
    return replace(inference, model=model, outputs=outputs, accepts=None, id=None)


def choose_plain_form(client: Client) -> Form:
    """Return the form of inputs that most clients can send: JSON over HTTP, raw contents over gRPC."""
    return "binary" if client.is_over_grpc else "json"


_SEVERAL_BYTES = frozenset(name for name, known in DATATYPES.items() if (known.size or 1) > 1)


def list_request_requirements(inference: Inference) -> tuple[str, ...]:
    """Return the HTTP ids of the requirements that apply to the inputs of a request: to their forms and datatypes."""
    pairs = [(item.datatype, inference.get_form(place)) for place, item in enumerate(inference.inputs)]
    binary = [datatype for datatype, form in pairs if form == "binary"]
    if inference.is_raw:
        return ("CLIENT-SENDS-VALUES", "CLIENT-SENDS-RAW")
    found = {
        "CLIENT-SENDS-VALUES": True,
        "CLIENT-SENDS-LITTLE-ENDIAN": any(datatype in _SEVERAL_BYTES for datatype in binary),
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
    return tuple(name for name, applies in found.items() if applies)


def make_sending_row(name: str, inference: Inference, judged: Sequence[str] = ()) -> Row:
    """Return a row that judges a request by the requirements `judged` and those of `list_request_requirements`."""
    requirements = tuple(dict.fromkeys((*judged, *list_request_requirements(inference))))
    return Row(name, (inference, requirements), requirements=requirements)


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
    """Yield the name of each group of strings, a form that can carry the group, and a tensor without name."""
    for group, elements in (*STRINGS.items(), *BINARY_STRINGS.items()):
        item = Tensor.from_values("", "BYTES", list(elements))
        yield group, "binary", item
        if group in STRINGS:
            yield group, "json", item
