"""What is in the recording of a run, as plain data with every body at its place, in base64."""

from __future__ import annotations

import json
import lzma
from base64 import b64encode
from pathlib import Path
from typing import Any

from conformance.transport import har
from conformance.transport.har_bodies import BodyReader, Excerpt

Log = dict[str, Any]


def expand_archive(path: Path) -> dict[str, Log]:
    """Return an archive as the earliest recordings were: nothing is written once and named elsewhere."""
    document: dict[str, Log] = json.loads(lzma.decompress(path.read_bytes()))
    bodies = BodyReader()
    for entry in document["log"]["entries"]:
        for members, encoding in har.find_bodies(entry):
            body = bodies.read_body(members, encoding)
            if not isinstance(body, Excerpt):
                members.pop("_sha256", None)
                members |= {"text": b64encode(body).decode(), encoding: "base64"}
    return document


def read_log(path: Path) -> Log:
    """Return what an archive says."""
    return expand_archive(path)["log"]
