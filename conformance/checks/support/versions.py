"""Find the default version of a model: the version that answers requests without a version."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.peer import Peer


def read_named_version(reply: Reply) -> object:
    """Return the `model_version` in an answer; None if the answer has no such member."""
    return (reply.answer.document or {}).get("model_version")


def find_default_version(target: Peer, model: Model, listed: Sequence[str]) -> str:
    """Return the default version of a model; an empty string if that version is unknown.

    Other versions may have another signature or function. The default version is the only version in the metadata, or
    else the version that an answer names.
    """
    if len(listed) == 1:
        return listed[0]
    for request in target.build_good_requests(model) if listed else ():
        reply = target.send(target.message(request), fresh=True)
        if reply.succeeded:
            own = read_named_version(reply)
            return own if isinstance(own, str) and own in listed else ""
    return ""
