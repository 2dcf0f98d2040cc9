"""What a terminal shows of a failing run: ten blocks whole, the rest by name, and what to fix first at the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from conformance.report.blocks import Block, build_blocks
from conformance.report.deployed_models import format_signature
from conformance.report.findings import build_groups
from conformance.report.lines import Line
from conformance.report.terminal_findings import (
    MAX_BLOCKS,
    MAX_LISTED_ROWS,
    format_advice,
    format_blocked_or_error,
    format_failures,
    format_fix_first,
)
from conformance.spec import ledger
from conformance.spec.outcome import Outcome
from tests.support.small_reports import check

REQUIREMENTS = [name for name, entry in ledger.load().items() if entry.level == "MUST"]


def texts(lines: Iterable[Line]) -> list[str]:
    return [line.text for line in lines]


def failing(count: int) -> list[Block]:
    rows = [
        check(f"sizes.x-{name.lower()}", "row", "fail", f"expected a, got {name}", name, requirements=[name])
        for name in REQUIREMENTS[:count]
    ]
    return build_blocks(rows, Outcome.FAIL)


def test_ten_blocks_are_shown_whole_and_the_rest_by_name() -> None:
    found = texts(format_failures(failing(MAX_BLOCKS + 2), "pytest"))
    assert sum("  MUST  not met in 1 of 1 row" in text for text in found) == MAX_BLOCKS
    assert found[-3] == "And 2 more requirements; --conformance-show=all shows them in full:"
    assert [text.split()[0] for text in found[-2:]] == ["11.", "12."]
    assert (
        sum(
            "  MUST  not met in 1 of 1 row" in text
            for text in texts(format_failures(failing(12), "pytest", max_blocks=None))
        )
        == 12
    )


def test_a_block_ends_with_the_rows_of_each_check() -> None:
    name = REQUIREMENTS[0]
    rows = [check("sizes.x", f"r{number}", "fail", "m", name) for number in range(MAX_LISTED_ROWS + 3)]
    blocks = build_blocks([*rows, check("sizes.y", "", "fail", "m", name)], Outcome.FAIL)
    found = texts(format_failures(blocks, "pytest --target-url=http://h"))
    assert f"      Rerun     pytest --target-url=http://h -k {name}" in found
    assert found[-3:-1] == ["      Rows      sizes.x: r0, r1, r2, r3, r4, r5 and 3 more", "                sizes.y"]


def test_what_to_fix_first_is_told_in_a_line_each() -> None:
    *found, others = texts(format_fix_first(failing(7)))
    assert others == f"    and {', '.join(block.requirement for block in failing(7)[5:])}"
    assert [text.split()[0] for text in found] == ["1.", "2.", "3.", "4.", "5."]
    assert all(text.endswith(f"expected a, got {text.split()[1]}") for text in found)
    assert texts(format_fix_first([])) == []


def test_what_is_blocked_is_told_by_its_reason() -> None:
    blocked = [
        check(name, row, "blocked", "they are also wrong") for name, row in (("a.x", "1"), ("a.x", "2"), ("a.y", "1"))
    ]
    groups = build_groups(blocked, Outcome.BLOCKED)
    assert texts(format_blocked_or_error(groups)) == ["blocked  3 rows: a.x (2), a.y [1]", "      they are also wrong"]
    gone = check("a.z", "", "error", "the target is gone", reason={"kind": "target_lost", "subject": "s"})
    assert texts(format_blocked_or_error(build_groups([gone], Outcome.ERROR))) == []


def test_advice_is_told_by_requirement() -> None:
    rows = [check("sizes.x", row, "advisory", "expected a, got b", "BIN-BODY-LONG") for row in ("r1", "r2")]
    found = texts(format_advice(build_blocks(rows, Outcome.ADVISORY)))
    assert found[0].startswith("BIN-BODY-LONG  ")
    assert found[-1] == "      Rows      sizes.x: r1, r2"


@pytest.mark.parametrize(("width", "pieces"), [(None, 1), (60, 2), (200, 1)])
def test_a_line_is_wrapped_on_a_terminal_alone(width: int | None, pieces: int) -> None:
    line = Line("      Expected  " + "word " * 15, hang=16)
    wrapped = line.wrap(width)
    assert len(wrapped) == pieces
    assert all(piece.startswith(" " * 16) for piece in wrapped[1:])
    assert Line("x " * 200, is_whole=True).wrap(60) == ["x " * 200]


def test_tensors_that_nobody_knows_are_called_unknown() -> None:
    nothing: dict[str, list[Any]] = {"sent": [], "inputs": [], "outputs": []}
    assert format_signature(nothing) == "unknown inputs -> unknown outputs"
