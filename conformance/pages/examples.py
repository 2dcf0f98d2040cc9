"""One readable golden case per requirement: the request, and the required answer.

Strategy: the case that the ledger names, else the smallest case that is mainly about the requirement. Golden cases name
no requirements of clients, so the ledger names a case for each client requirement.
JSON is shown as sent, with long lines folded, and binary data as hexadecimal digits grouped by element. Long content is
truncated and marked.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from conformance.pages.message_lines import (
    SHOWN_BYTES,
    SHOWN_VALUES,
    find_group_width,
    format_bytes,
    format_json,
    format_values,
)
from conformance.roles import golden_calls, golden_requests
from conformance.roles.golden_calls import GrpcCase
from conformance.roles.golden_requests import Case, ExpectedClass, ExpectedOutput, Part
from conformance.spec import ledger
from conformance.spec.data_files import find_folder
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.ledger import Party
from conformance.spec.text import format_element

RAW_CONTENTS = "raw_input_contents"
MAX_LINES = 40
REFUSAL = ("HTTP status 400 to 499", '{"error": "..."}')


@dataclass(frozen=True, slots=True)
class Example:
    """A golden case as lines of text.

    `path`: the path of the case in `fixtures/`.
    """

    path: str
    title: str
    request: tuple[str, ...]
    answer: tuple[str, ...]


@cache
def load() -> Mapping[str, Example]:
    """Return requirement id -> the golden case that shows it; requirements without one are omitted."""
    cases: list[Case | GrpcCase] = [*golden_requests.load_all(), *golden_calls.load_all()]
    chosen = {entry.id: entry.example for entry in ledger.load().values() if isinstance(entry.example, str)}
    naming: dict[str, list[Case | GrpcCase]] = {}
    for case in cases:
        for name in case.requirements:
            naming.setdefault(name, []).append(case)
    # Names of cases are unique only within a transport.
    by_name = {(GRPC if isinstance(case, GrpcCase) else HTTP, case.name): case for case in cases}
    of_clients = {
        entry.id: by_name[entry.transport, chosen[entry.id]]
        for entry in ledger.load_for_party(Party.CLIENT)
        if entry.id in chosen
    }
    return {
        **{name: _build_example(min(own, key=_CaseSortKey(name, chosen.get(name)))) for name, own in naming.items()},
        **{name: _build_example(case) for name, case in of_clients.items()},
    }


@dataclass(frozen=True, slots=True)
class _CaseSortKey:
    """Sort key for the golden cases of a requirement: the case of the ledger first, then clear cases first."""

    requirement: str
    chosen: str | None

    def __call__(self, case: Case | GrpcCase) -> tuple[bool, int, bool, int, int, str]:
        refused = case.refused if isinstance(case, GrpcCase) else not case.valid
        position = case.requirements.index(self.requirement)
        return case.name != self.chosen, position, refused, len(case.requirements), len(case.body), case.name


def _build_example(case: Case | GrpcCase) -> Example:
    if isinstance(case, GrpcCase):
        return Example(
            f"grpc/{case.name}", case.title, tuple(_format_grpc_request(case)), tuple(_format_grpc_answer(case))
        )
    kind = "valid" if case.valid else "invalid"
    return Example(f"{kind}/{case.name}", case.title, tuple(_format_request(case)), tuple(_format_answer(case)))


# --- the request ------------------------------------------------------------------------------------------------------


def _format_request(case: Case) -> Iterator[str]:
    yield f"POST {case.path}"
    yield from (f"{name}: {value}" for name, value in case.headers.items())
    yield ""
    if case.json_length:
        yield from format_json(case.body[: case.json_length])
    end = case.json_length
    for part in case.parts:
        yield from _format_body_part(part, case.body[part.offset : part.offset + part.size])
        end = part.offset + part.size
    if case.body[end:]:
        yield from format_bytes("(part of no tensor)", case.body[end:], 1)


def _format_body_part(part: Part, octets: bytes) -> Iterator[str]:
    yield from format_bytes(
        f"{part.name} {part.datatype} {list(part.shape)}", octets, find_group_width(part.datatype), part.values
    )


def _format_grpc_request(case: GrpcCase) -> Iterator[str]:
    yield "ModelInfer of inference.GRPCInferenceService"
    yield ""
    text = (find_folder("fixtures") / "grpc" / case.name / "request.txtpb").read_text(encoding="utf-8")
    lines = text.splitlines()
    for line in lines[:MAX_LINES]:
        name, colon, value = line.partition(": ")
        yield from (
            format_bytes(name, literal_eval(f"b{value}"), SHOWN_BYTES) if name == RAW_CONTENTS and colon else [line]
        )
    if len(lines) > MAX_LINES:
        yield f"... ({len(lines)} lines)"


# --- the required answer ----------------------------------------------------------------------------------------------


def _format_answer(case: Case) -> Iterator[str]:
    if case.fault is not None:
        yield from REFUSAL
        yield from _format_permitted_answer(case.level, case.outputs, FORMS)
        return
    yield "HTTP status 200"
    if case.inference_header == "required":
        yield "Inference-Header-Content-Length: (the number of bytes of the answer's JSON)"
    if case.id is not None:
        yield f"id: {format_element(case.id.encode())}"
    for output in case.outputs:
        yield from _format_output(output, FORMS)
    if case.may_refuse:
        yield from ("", "or a refusal:", "", *REFUSAL)


def _format_grpc_answer(case: GrpcCase) -> Iterator[str]:
    if case.refused:
        yield "any status except OK; preferably INVALID_ARGUMENT"
        yield from _format_permitted_answer(case.level, case.outputs, FORMS_OVER_GRPC)
        return
    yield "status OK"
    for output in case.outputs:
        yield from _format_output(output, FORMS_OVER_GRPC)


def _format_permitted_answer(level: str, outputs: Iterable[ExpectedOutput], forms: Mapping[str, str]) -> Iterator[str]:
    """Yield the outputs required of a server that answers instead of refusing; nothing if the server must refuse."""
    lines = [line for output in outputs for line in _format_output(output, forms)]
    if lines:
        yield f"({level}; a server that answers nevertheless has to answer with)"
        yield from lines


# Forms of an output; over gRPC the datatype decides, which may allow typed as well as raw contents.
FORMS = {"binary": ", binary data", "json": ", in the JSON", "either": ", in the JSON or as binary data"}
FORMS_OVER_GRPC = {"either": ""}


def _format_output(output: ExpectedOutput, forms: Mapping[str, str]) -> Iterator[str]:
    name = f"{output.name} {output.datatype} {list(output.shape)}{forms[output.form]}"
    if output.classes is not None:
        yield f"<{name}, classes>"
        yield "  " + ", ".join(map(_format_class, output.classes[:SHOWN_VALUES]))
    elif output.form == "json" or output.binary is None:
        yield f"<{name}>"
        yield f"  {format_values(output.values or ())}"
    else:
        yield from format_bytes(name, output.binary, find_group_width(output.datatype), output.values)


def _format_class(expected: ExpectedClass) -> str:
    parts = [
        format_element(expected.value),
        str(expected.index),
        *([expected.label] if expected.label is not None else []),
    ]
    return f'"{":".join(parts)}"'
