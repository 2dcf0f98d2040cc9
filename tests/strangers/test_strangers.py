"""Honest servers of strangers are conformant, by a row for each thing that a check says.

`tox -e strangers` judges them over every row, and those that are compiled.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import judge
from tests.strangers.servers import STRANGERS, serving
from tests.support.few_rows import with_few_rows


@pytest.mark.parametrize("name", [name for name, stranger in STRANGERS.items() if not stranger.build])
def test_an_honest_server_is_conformant(name: str, tmp_path: Path) -> None:
    with serving(name, tmp_path) as url, with_few_rows():
        report = judge(url)
    assert (report.verdict, report.advice) == ("conformant", ()), str(report)
