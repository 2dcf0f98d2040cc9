"""The command that measures: what it compares, and that what got worse is a warning and no failure."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.ratio import Benchmark, CannotMeasureError, Measured, benchmark


def declared(ours: float, *, more_is_better: bool) -> Benchmark:
    """Return a benchmark that measures so much, against 1."""
    return Benchmark("x", "this", "that", 1.0, lambda: Measured(ours, 1.0), more_is_better)


@pytest.mark.parametrize(
    ("ratio", "kept", "more_is_better", "percent"),
    [
        (2.0, 1.0, False, 100),
        (1.0, 2.0, False, -50),
        (1.0, 2.0, True, 100),
        (2.0, 1.0, True, -50),
        (1.0, 1.0, True, 0),
        (0.004, 0.0, False, 0),
    ],
)
def test_worse_is_more_or_less(ratio: float, kept: float, more_is_better: bool, percent: float) -> None:
    assert benchmarks.worse_by(declared(1.0, more_is_better=more_is_better), ratio, kept) == pytest.approx(percent)


def run(options: list[str], one: Benchmark, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the command with this benchmark alone."""
    monkeypatch.setattr(benchmark, "by_name", {one.name: one})
    monkeypatch.setattr(sys, "argv", ["benchmarks", *options])
    return benchmarks.main()


@pytest.mark.parametrize(("kept", "is_warned"), [(0.5, True), (0.9, False)])
def test_what_got_worse_is_warned_of(
    kept: float, is_warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kept.json"
    file.write_text(json.dumps({"ratios": {"x": kept}}))
    status = run([f"--compare={file}", "--warn-above=30"], declared(1.0, more_is_better=False), monkeypatch)
    said = capsys.readouterr().out
    assert (status, "::warning title=benchmark x::100 % worse" in said) == (0, is_warned)


def test_what_cannot_be_measured_is_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def measure() -> Measured:
        raise CannotMeasureError("start it")

    assert run([], Benchmark("x", "this", "that", 1.0, measure), monkeypatch) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("not measured: start it")


def test_what_was_measured_is_kept_beside_what_was_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, output = tmp_path / "kept.json", tmp_path / "measured.json"
    kept.write_text(json.dumps({"ratios": {"x": 1.0, "y": 2.0}}))
    run([f"--compare={kept}", f"--output={output}"], declared(3.0, more_is_better=False), monkeypatch)
    assert json.loads(output.read_text())["ratios"] == {"x": 3.0, "y": 2.0}
