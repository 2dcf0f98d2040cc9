"""Bug reports in Markdown, for maintainers who do not know the suite.

A report has a title that describes the server's behavior (`Requirement.symptom`), a link to the sentence of the
document, commands that reproduce the bug without the suite, the expected and the actual answer, and the versions. Text
from a server is escaped.
"""

from __future__ import annotations

import gzip
import io
import shlex
import tarfile
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import wrap

from conformance.judging.client_name_trials import CLIENT_NAME
from conformance.judging.repeat_command import build_curl_options, has_long_body
from conformance.report.markdown import code, fence_lines, text
from conformance.report.page_markdown import render_prose
from conformance.roles.roles import Role, TensorSpec
from conformance.spec import files, ledger
from conformance.spec.check import Case, format_label
from conformance.spec.extensions import GRPC
from conformance.spec.ledger import Concern, Requirement
from conformance.spec.report import Failure, Pattern
from conformance.spec.result import MessageEvidence
from conformance.spec.text import format_count, join_some
from conformance.wire.request import Message

MAX_ROWS = 10  # failing rows in a bug report
MAX_INLINE_BYTES = 2048  # bytes of a body in a command of one line
MAX_REQUEST_BYTES = 64 * 1024 * 1024
MAX_ARCHIVE_BYTES = 32 * 1024  # bytes of a packed reproduction; trackers limit a text to 64 KiB
_IDENTITY_HEADER = "Accept-Encoding: identity"
# The files of an evidence folder that reproduce a failure.
_PROGRAM_FILES = ("repro.sh", "repro.py", "request.bin", "course")


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A row that does not meet a requirement, from a report or from a folder of evidence.

    Attributes:
        failure: the member `failure` of the row in the JSON report.
        exchanges: the number of requests that the row sent; 0 if unknown.
        folder: the row's folder in `--conformance-evidence`, or None.
        grpc: the gRPC address of the server, as a URL; empty if there is none.
    """

    check: str
    row: str
    url: str
    failure: Failure
    exchanges: int = 0
    folder: Path | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    grpc: str = ""

    @property
    def label(self) -> str:
        """The check and the row, such as `CHECK [ROW]`."""
        return format_label(self.check, self.row)

    @property
    def is_single_request(self) -> bool:
        """Whether one HTTP request reproduces the failure, as far as the report or the evidence shows."""
        if self.folder is not None:
            return not (self.folder / "course").exists() and not self.is_over_grpc
        evidence = self.failure.get("evidence")
        # A line in parentheses names options with which the suite sent the request.
        return not (self.is_over_grpc or (evidence and evidence["request"]["head"][-1].startswith("(")))

    @property
    def is_over_grpc(self) -> bool:
        """Whether the failing request is a gRPC call."""
        return ledger.get_requirement(self.failure["requirement"]).transport == GRPC

    @property
    def length(self) -> int:
        """The length of the request's body; short requests are easy to read."""
        evidence = self.failure.get("evidence")
        return evidence["request"]["length"] if evidence else MAX_ARCHIVE_BYTES


@dataclass(frozen=True, slots=True)
class Bug:
    """A requirement that a server does not meet.

    Attributes:
        server: the name and version of the server; empty if the server reports none.
        rows: the rows that do not meet it, at least one.
        role: the model role of the example; None if the example uses no model, or a deployed model of the server.
        case: the row of the example in this version of the suite, or None.
        same_cause: further unmet requirements whose failing rows all fit a failure pattern that violates this one.
    """

    server: str
    requirement: Requirement
    rows: Sequence[FailedRow]
    suite: str
    role: Role | None = None
    case: Case | None = None
    same_cause: Sequence[str] = ()

    @property
    def symptom(self) -> str:
        """A few words that describe how the server behaves."""
        if not self.example.failure.get("ends_server"):
            return describe_symptom(self.requirement)
        request = "a legal request" if self.requirement.concern is Concern.EXCHANGE else "a request"
        return f"Ends at {request}{' (gRPC)' if self.requirement.transport == GRPC else ''}"

    @property
    def example(self) -> FailedRow:
        """The row that the bug report shows in full."""
        return find_simplest(self.rows)


def merge_same_causes(bugs: Sequence[Bug], patterns: Sequence[Pattern]) -> list[Bug]:
    """Merge a bug into another if a failure pattern explains every row of the first, and violates the second."""
    causes: dict[str, str] = {}
    ids = {bug.requirement.id for bug in bugs}
    for bug in bugs:
        own = bug.requirement.id
        found = (one["requirement"] for one in patterns if one["missed"].get(own) == len(bug.rows))
        cause = next((name for name in found if name != own and name in ids and name not in causes), None)
        if cause is not None and own not in causes.values():
            causes[own] = cause
    return [
        replace(bug, same_cause=[name for name, cause in causes.items() if cause == bug.requirement.id])
        for bug in bugs
        if bug.requirement.id not in causes
    ]


def find_simplest(rows: Iterable[FailedRow]) -> FailedRow:
    """Return the row that is easiest to reproduce: a single, short request."""
    return min(rows, key=lambda row: (not row.is_single_request, row.exchanges, row.length, row.label))


def describe_symptom(requirement: Requirement) -> str:
    """Describe in a few words how a server behaves that does not meet the requirement."""
    symptom = requirement.symptom or f"Does not meet {requirement.id}"
    return f"{symptom} (gRPC)" if requirement.transport == GRPC else symptom


def render(bug: Bug) -> str:
    """Return the bug report as Markdown. Raises ValueError, OSError: the evidence of the example cannot be read."""
    example = bug.example
    sent = example.failure["sent"]
    sections = (
        [f"# {text(bug.server, 100)}{': ' if bug.server else ''}{render_prose(bug.symptom)}"],
        *([[f"Request: {code(sent, 600)}"]] if sent else []),
        ["## Reproduce", "", *_describe_model(bug.role, example.models), *_format_reproduction(example)],
        ["## Expected and actual", "", *fence_lines(_format_difference(example.failure))],
        ["## What the documents say", "", *_format_sources(bug.requirement), *_explain_request(bug)],
        ["## Found with", "", *_list_details(bug)],
    )
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _describe_model(role: Role | None, models: Mapping[str, str]) -> Iterator[str]:
    if role is None:
        return
    name = models.get(role.name, role.name)
    filled = f" in the role {code(role.name)}" if name != role.name else ""
    yield f"Model {code(name)}{filled}: {text(role.purpose)}."
    yield ""
    yield f"- Inputs: {_list_tensors(role.inputs)}"
    yield f"- Outputs: {_list_tensors(role.outputs)}"
    of_pack = f" --target-extension={role.pack}" if role.pack else ""
    export = f"oip-conformance models export --format FORMAT{of_pack} DIR"
    yield f"- {code(export)} writes it for Triton, KServe, MLServer or Dynamo."
    yield ""


def _list_tensors(specs: Iterable[TensorSpec]) -> str:
    return ", ".join(code(f"{spec.name} {spec.datatype} {list(spec.shape)}") for spec in specs)


def _format_difference(failure: Failure) -> Iterator[str]:
    yield f"Expected  {failure['expected']}"
    yield f"Actual    {failure['actual']}"
    if failure.get("answer"):
        yield f"Answer    {failure['answer']}"
    yield from failure["bytes"]


def _format_sources(requirement: Requirement) -> Iterator[str]:
    yield render_prose(requirement.statement)
    yield ""
    for sentence in requirement.sources:
        yield f"- {text(str(sentence), 400)} ([sentence]({sentence.url}))"
    if requirement.note:
        yield ""
        yield render_prose(requirement.note)


def _explain_request(bug: Bug) -> Iterator[str]:
    """Yield what the documents say about a request that ended the server: the requirement of its own row."""
    if bug.case is None or not bug.example.failure.get("ends_server"):
        return
    own, is_legal = bug.case.requirement, bug.requirement.concern is Concern.EXCHANGE
    yield ""
    yield f"The server ended at this request of {code(bug.example.label)}: {render_prose(bug.case.check.claim)}"
    if own.id != bug.requirement.id:
        yield ""
        yield f"The request is legal, because {own.id} says:" if is_legal else f"{own.id} says of the request:"
        yield ""
        yield from _format_sources(own)


def _list_details(bug: Bug) -> Iterator[str]:
    labels = [row.label for row in bug.rows]
    shown = ", ".join(map(code, labels[:MAX_ROWS]))
    more = f" and {len(labels) - MAX_ROWS} more" if len(labels) > MAX_ROWS else ""
    page = f"[{bug.requirement.id}]({bug.requirement.url})" if bug.requirement.url else code(bug.requirement.id)
    yield f"- Server: {text(bug.server, 100) or 'unknown (server metadata give no name)'}"
    yield f"- Requirement: {page} ({bug.requirement.level})"
    if bug.same_cause:
        yield f"- Same cause: {', '.join(map(code, bug.same_cause))}, which only such requests do not meet"
    yield f"- oip-conformance {text(bug.suite)}; {len(labels)} test case{'s' if len(labels) > 1 else ''}: {shown}{more}"


# --- reproduction -----------------------------------------------------------------------------------------------------


def _format_reproduction(row: FailedRow) -> Iterator[str]:
    """Yield Markdown with shell commands: curl for one request, otherwise a Python program from the evidence."""
    if row.is_single_request and (command := _build_curl(row)):
        yield from fence_lines(command, "sh", MAX_ARCHIVE_BYTES)
        if row.folder is None and row.exchanges > 1:
            yield ""
            yield f"The test case sends {row.exchanges} requests; this is the one whose answer is wrong."
            yield "A folder of `--conformance-evidence` has a program that sends all of them."
        return
    if call := _get_call_command(row):
        yield from fence_lines(["# needs: pip install grpcio", call], "sh", MAX_ARCHIVE_BYTES)
        return
    if row.folder is None:
        yield f"The report does not contain all that is needed to send {code(row.failure.get('sent', ''), 600)} again."
        yield "A folder of `--conformance-evidence` has a program that does."
        return
    if not row.is_over_grpc and (requests := _read_requests(row.folder)):
        lines = [request.partition(b"\r\n")[0].decode("latin-1").removesuffix(" HTTP/1.1") for request in requests]
        listed = join_some([code(line, 200) for line in lines], MAX_ROWS)
        yield f"The program sends {format_count(len(lines), 'request')} and prints the answers: {listed}."
        yield "The requests, as Python writes bytes:"
        yield ""
        yield from fence_lines(_format_requests(requests), "python", MAX_ARCHIVE_BYTES)
        yield ""
    yield from _format_unpack_commands(row.folder, _build_run_command(row))


def _build_curl(row: FailedRow) -> list[str]:
    """Return the lines of a curl command with its body; empty if there is no request, or its body is long."""
    evidence, body = row.failure.get("evidence"), _read_body(row)
    if not evidence or body is None or len(body) > MAX_INLINE_BYTES:
        return []
    line, *headers = evidence["request"]["head"]
    method, _, path = line.partition(" ")
    plain = [] if any(header.lower().startswith("accept-encoding:") for header in headers) else [_IDENTITY_HEADER]
    dropped = "(" if row.failure["requirement"] == CLIENT_NAME else ("(", "user-agent:")
    sent = [header for header in (*headers, *plain) if not header.lower().startswith(dropped)]
    # curl sends a header without a value only if it ends with a semicolon.
    options = [part for header in sent for part in ("-H", f"{header[:-2]};" if header.endswith(": ") else header)]
    asked = build_curl_options(Message(path, method=method), path)
    command = shlex.join(["curl", "-sS", "-i", *asked, *options])
    url = shlex.quote(row.url.rstrip("/") + path)
    shown = "" if _is_text(evidence["answer"]) else " | od -A d -t x1z -v"
    if method != "POST" and not body:
        return [f"{command} {url}{shown}"]
    if all(0x20 <= byte < 0x7F for byte in body):
        return [f"{command} \\", f"  {url} \\", f"  --data-binary {shlex.quote(body.decode())}{shown}"]
    encoded = b64encode(body).decode()
    return [f"echo {encoded} | base64 -d |", f"  {command} \\", f"  {url} --data-binary @-{shown}"]


def _get_call_command(row: FailedRow) -> str:
    """Return the command of one line that repeats a gRPC call; empty if it takes several calls, metadata or a file."""
    evidence, body = row.failure.get("evidence"), _read_body(row)
    is_single = row.exchanges <= 1 if row.folder is None else not (row.folder / "course").exists()
    if not (row.is_over_grpc and is_single and evidence) or body is None or has_long_body(Message("", body=body)):
        return ""
    is_plain = all(line.lower().startswith("user-agent:") for line in evidence["request"]["head"][1:])
    return row.failure["repeat"] if is_plain else ""


def _read_body(row: FailedRow) -> bytes | None:
    if row.folder is not None:
        return files.read_bytes(row.folder / "request.bin", MAX_REQUEST_BYTES)
    evidence = row.failure.get("evidence")
    if not evidence:
        return None
    request = evidence["request"]
    if "body_base64" in request:
        return b64decode(request["body_base64"])
    return None if request["length"] else b""


def _is_text(answer: MessageEvidence) -> bool:
    body = b64decode(answer.get("body_base64", ""))
    return all(byte in b"\t\r\n" or 0x20 <= byte < 0x7F for byte in body)


def _build_run_command(row: FailedRow) -> str:
    """Return the command that runs the program in the evidence folder; readers can change the address in it."""
    if row.is_over_grpc:
        return f"ADDRESS={shlex.quote(row.grpc.partition('://')[2])} sh repro.sh  # needs: pip install grpcio"
    evidence = row.failure.get("evidence")
    if row.is_single_request and evidence:
        path = evidence["request"]["head"][0].partition(" ")[2]
        return f"URL={shlex.quote(row.url.rstrip('/') + path)} sh repro.sh"
    return f"URL={shlex.quote(row.url)} sh repro.sh"


def _format_unpack_commands(folder: Path, run: str) -> Iterator[str]:
    """Yield commands that unpack the program in the evidence and run it."""
    packed = _pack_program(folder)
    if len(packed) > MAX_ARCHIVE_BYTES:
        yield f"`sh repro.sh`, in the attached folder {code(folder.name)}."
        return
    encoded = wrap(b64encode(packed).decode(), 120)
    yield from fence_lines(["mkdir repro && cd repro && base64 -d <<'END' | tar xz", *encoded, "END", run], "sh")


def _read_requests(folder: Path) -> list[bytes]:
    """Return the requests of a reproduction with several requests, in order; empty for a single request."""
    paths = sorted(path for path in (folder / "course").glob("*") if path.is_file())
    return [files.read_bytes(path, MAX_REQUEST_BYTES) for path in paths]


def _format_requests(requests: Sequence[bytes]) -> Iterator[str]:
    """Yield each request as Python bytes, a literal for each line; long ones and many are cut."""
    for place, request in enumerate(requests[:MAX_ROWS], 1):
        yield f"# request {place}, {format_count(len(request), 'byte')}{', cut' * (len(request) > MAX_INLINE_BYTES)}"
        yield from map(repr, request[:MAX_INLINE_BYTES].splitlines(keepends=True))


def _pack_program(folder: Path) -> bytes:
    """Return the program in the evidence and its requests as a reproducible tar.gz archive."""
    found = io.BytesIO()
    with gzip.GzipFile(fileobj=found, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name in _PROGRAM_FILES:
            if (folder / name).exists():
                archive.add(folder / name, name, filter=_strip_owner_and_time)
    return found.getvalue()


def _strip_owner_and_time(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info
