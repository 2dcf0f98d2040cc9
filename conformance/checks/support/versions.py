"""Find the default version of a model, which answers requests without a version, and other names of a version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.roles.model import Model
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply

UNLISTED_NUMBER = "4711"  # for servers whose versions are numbers


def read_named_version(reply: Reply) -> object:
    """Return the `model_version` in an answer; None if the answer has no such member."""
    return (reply.answer.document or {}).get("model_version")


def find_default_version(target: AnyTarget, model: Model, listed: Sequence[str]) -> str:
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


def may_be_alias(target: AnyTarget, model: Model, named: object) -> bool:
    """Return whether a listed version whose answers name another listed version may be another name of it.

    An alias leads to a version that names itself, on a server that looks versions up: it refuses unlisted ones.
    """
    if not isinstance(named, str):
        return False
    itself, unlisted = (
        target.send(target.message(target.build_good_requests(replace(model, version=version))[0]), fresh=True)
        for version in (named, UNLISTED_NUMBER)
    )
    return read_named_version(itself) == named and unlisted.is_refusal
