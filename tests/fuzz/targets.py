"""What is fuzzed: properties that have to hold for any bytes at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import Final

from tests.fuzz.http_input import golden_requests
from tests.fuzz.subjects import adapter, files, grpc_messages, http_heads, http_messages, json_texts, tensors

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """A property and where to begin.

    Attributes:
        name: of the target, and of the folder of its corpus.
        holds: takes an input; raises where the property does not hold, whatever the exception.
        seeds: inputs that are in order, or nearly so, beside those in the corpus.
        largest: bytes of an input.
    """

    name: str
    holds: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]] = tuple
    largest: int = 4096

    @property
    def folder(self) -> Path:
        return CORPUS / self.name

    def inputs(self) -> list[bytes]:
        """Return seeds and corpus, each input once, the small ones first."""
        kept = [path.read_bytes() for path in sorted(self.folder.glob("*"))]
        return sorted({*self.seeds(), *kept}, key=lambda data: (len(data), data))

    def keep(self, data: bytes) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / sha1(data, usedforsecurity=False).hexdigest()[:16]
        path.write_bytes(data)
        return path


TARGETS: Final = {
    target.name: target
    for target in (
        Target("answer", http_messages.answer, http_messages.answers),
        Target("request", http_messages.request_of_a_client, golden_requests),
        Target("both-http-decoders", http_messages.both_http_decoders, golden_requests),
        Target("both-undo-codings", http_messages.both_undo_codings, largest=512),
        Target("json-text", json_texts.reader, json_texts.texts),
        Target("json-structure", json_texts.structure, json_texts.texts, 160),
        Target("binary-tensors", tensors.binary_tensors, tensors.whole_tensors, 512),
        Target("json-tensors", tensors.json_tensors, tensors.whole_json, 512),
        Target("byte-elements", tensors.byte_elements, largest=512),
        Target("call", grpc_messages.call, grpc_messages.calls),
        Target("grpc-answer", grpc_messages.grpc_answers, grpc_messages.answers),
        Target("both-grpc-decoders", grpc_messages.both_grpc_decoders, grpc_messages.calls),
        Target("recording", files.recording),
        Target("client-recording", files.client_recording, files.client_recordings),
        Target("baseline", files.baseline, largest=1024),
        Target("target-config", files.target_config, largest=1024),
        Target("fleet", files.fleet, largest=1024),
        Target("manifest", files.manifests, files.certified, 1024),
        Target("report", files.report, files.reports),
        Target("adapter-lines", adapter.lines, largest=1024),
        Target("server-heads", http_heads.server_heads, http_heads.streams),
        Target("watched-requests", http_heads.watched_requests, http_heads.streams),
    )
}
