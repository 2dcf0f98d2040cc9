"""The path of an inference request: which model it names, and which version."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

# What RFC 3986 lets stand in a segment of a path; the rest is percent-encoded.
_SEGMENT: Final = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+"
_INFER: Final = re.compile(rf"/v2/models/(?P<model>{_SEGMENT})(?:/versions/(?P<version>{_SEGMENT}))?/infer")


class ModelPath(NamedTuple):
    """A model, and its version where the path has one: decoded, as the bytes that were encoded."""

    model: bytes
    version: bytes | None


def parse_path(path: str) -> ModelPath | None:
    """Return the model that a path names, whatever stands before `/v2` and in the query; None for any other path."""
    plain = path.partition("?")[0]
    start = plain.find("/v2/models/")
    while start >= 0:
        found = _INFER.fullmatch(plain, start)
        if found:
            version = found["version"]
            return ModelPath(unquote_to_bytes(found["model"]), None if version is None else unquote_to_bytes(version))
        start = plain.find("/v2/models/", start + 1)
    return None
