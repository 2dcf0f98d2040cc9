"""The label of a certification, held against what the server says of itself in the recording.

A label is `product` and `product_version` of the manifest. Spelling does not matter: letters in either case, and in a
name what is neither letter nor digit. Where more than that differs, `alias_of` has to say what the server reports, and
why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.certification.manifest import Manifest
from conformance.spec.text import escape_text

BUNDLED = "oip-reference-server"
_NO_PRODUCT = (
    f"the server is the suite's own, {BUNDLED}, which is no product: --self-test tries certification out on it"
)
_NO_SELF_TEST = "a self-test is of the suite's own server, and this is another one"
_NO_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class ReportedServer:
    """What a server calls itself in its metadata; empty where it does not say."""

    name: str
    version: str

    @property
    def text(self) -> str:
        """Both, for people."""
        return f"{self.name or '(no name)'} {self.version or '(no version)'}"

    @property
    def is_bundled(self) -> bool:
        """Whether it is the suite's own server."""
        return _word(self.name) == _word(BUNDLED)


def read_reported_server(report: Mapping[str, Any]) -> ReportedServer:
    """Return what the server of a report calls itself."""
    target = report["target"]
    return ReportedServer(target["name"] or "", target["version"] or "")


def find_label_faults(made: Manifest, found: ReportedServer) -> Iterator[str]:
    """Yield why the label of a manifest is not one of a server that calls itself so."""
    if made.self_test != found.is_bundled:
        yield _NO_SELF_TEST if made.self_test else _NO_PRODUCT
    elif not made.self_test:
        yield from _of_a_product(made, found)


def _of_a_product(made: Manifest, found: ReportedServer) -> Iterator[str]:
    alias = made.alias_of
    if alias and (alias["name"], alias["version"]) != (found.name, found.version):
        given = ReportedServer(alias["name"], alias["version"])
        yield (
            f"the certification is an alias of {escape_text(given.text)},"
            f" and the server reports {escape_text(found.text)}"
        )
    elif not alias and not is_same(made, found):
        yield (
            f"the label is {escape_text(made.label)}, and the server reports {escape_text(found.text)}:"
            " where both are right, give --alias-of NAME VERSION as it reports them, and --alias-reason"
        )


def is_same(made: Manifest, found: ReportedServer) -> bool:
    """Say whether a label is what a server reports, but for spelling."""
    versions = (_version(made.product_version), _version(found.version))
    return _word(made.product) == _word(found.name) and versions[0] == versions[1]


def _word(name: str) -> str:
    return _NO_WORD.sub("", name.casefold())


def _version(version: str) -> str:
    return version.strip().casefold().removeprefix("v")
