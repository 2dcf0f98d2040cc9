"""Honest servers of strangers are conformant over every row; those that are compiled are judged by `tox -e strangers`."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import judge
from tests.strangers.servers import STRANGERS, serving


@pytest.mark.parametrize("name", [name for name, stranger in STRANGERS.items() if not stranger.build])
def test_an_honest_server_is_conformant(name: str, tmp_path: Path) -> None:
    with serving(name, tmp_path) as url:
        report = judge(url)
    assert (report.verdict, report.advice) == ("conformant", ()), str(report)
