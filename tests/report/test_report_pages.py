"""Markdown, badges and annotations: what they say, their limits, and that nothing foreign in them is more than text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.commands import main
from conformance.report import badge, formats, github, page_markdown
from conformance.report.json_report import compute_digest
from conformance.report.view import build_view
from conformance.spec.options import expect_report_suffix
from conformance.spec.user_error import UserError
from tests.support.made_reports import (
    ALL,
    ATTACK,
    CONFORMANT,
    CUT_SHORT,
    GATED,
    NONCONFORMANT,
    NOTHING,
    Report,
    check,
    failure,
    report,
)

EVERY = pytest.mark.parametrize("made", ALL.values(), ids=ALL)
ACTIONS = {"GITHUB_ACTIONS": "true"}
UNSAFE = set("\x00\x07\x1b\r\u202e\u2066")


def markdown(made: Report, limit: int = page_markdown.MAX_PAGE_BYTES) -> str:
    return page_markdown.render(build_view(made), limit)


def outside_of_code(page: str) -> str:
    """Return what of a page is not code (CommonMark 4.5 and 6.1): fenced blocks first, then spans."""
    lines: list[str] = []
    fence = ""
    for line in page.splitlines():
        ticks = re.match("`{3,}", line)
        if not fence and ticks:
            fence = ticks[0]
        elif fence and re.fullmatch(f"{fence}`* *", line):
            fence = ""
        elif not fence:
            lines.append(line)
    assert not fence, "a block that does not end"
    return re.sub(r"(?<![`\\])(`+)(?!`)(.*?[^`])\1(?!`)", "", "\n".join(lines))


# --- Markdown --------------------------------------------------------------------------------------------------------


def test_the_head_of_the_markdown_page() -> None:
    lines = markdown(NONCONFORMANT).splitlines()
    assert lines[:3] == [
        "# OIP conformance: `alpha 1.2` is nonconformant",
        "",
        "**nonconformant**: `2 rows failed`. 0 of 3 MUSTs that apply are met, 1 not met, 1 in doubt, 1 not judged.",
    ]
    assert "| rows | 2 failed, 2 blocked, 1 advice, 1 observed, 3 passed, 2 n/a |" in lines
    assert "| Binary tensor data | nonconformant | 3/4 | 1/2 | 0/0 | 2 | 2 | 1 | 1 | 3 | 2 |" in lines
    assert markdown(CONFORMANT).splitlines()[2] == "**conformant**. 2 of 2 MUSTs that apply are met."


@pytest.mark.parametrize(
    ("url", "grpc", "shown", "options"),
    [
        ("http://h:1", "grpc://h:2", "`http://h:1` and `grpc://h:2`", "--target-url=http://h:1 --target-grpc=h:2"),
        ("grpc://h:2", "grpc://h:2", "`grpc://h:2`", "--target-grpc=h:2"),
        ("grpcs://h:2", "grpcs://h:2", "`grpcs://h:2`", "--target-grpc=grpcs://h:2"),
    ],
)
def test_pages_say_where_grpc_was_judged(url: str, grpc: str, shown: str, options: str) -> None:
    made = {**NONCONFORMANT, "target": {**NONCONFORMANT["target"], "url": url, "grpc": grpc}}
    assert f"| target | {shown} |" in markdown(made).splitlines()
    assert f"Rerun     pytest {options} -k ordering" in markdown(made)


def test_models_of_other_names_want_the_file_about_the_target() -> None:
    made = {**NONCONFORMANT, "target": {**NONCONFORMANT["target"], "roles": {"multi": "four"}}}
    assert "Rerun     pytest --target-url=http://127.0.0.1:8000 --target-config=... -k ordering" in markdown(made)
    assert "--target-config" not in markdown(NONCONFORMANT)


@pytest.mark.parametrize("made", [CUT_SHORT, NOTHING], ids=["cut short", "nothing judged"])
def test_a_run_that_is_not_whole_says_so_first(made: Report) -> None:
    assert markdown(made).splitlines()[2].startswith("> **This is not a whole run.**")


def test_a_failure_in_markdown() -> None:
    page = markdown(NONCONFORMANT)
    start = page.index("### `ordering.x [four]`: failed")
    assert page[start:].splitlines()[:20] == [
        "### `ordering.x [four]`: failed",
        "",
        "Bytes follow the JSON.",
        "",
        '`BIN-ORDER-O` MUST: Bytes follow `outputs`. (Document, "S"; `oip-conformance explain BIN-ORDER-O`)',
        "",
        "```text",
        "Sent      POST /v2, 164 bytes",
        "Expected  OUT0 INT32 [2] = [1, 2]",
        "Actual    [3, 4]: element 0 differs",
        '0058  65 22  e"',
        "0060  03 00  ..   <- tensor 0 OUT0 INT32 element 0",
        "Repeat    curl -sS http://h/v2",
        "Rerun     pytest --target-url=http://127.0.0.1:8000 -k ordering.x",
        "```",
        "",
        "<details><summary>1 other row</summary>",
        "",
        "- `ordering.x [five]`: `expected a, got b`",
        "",
    ]
    assert "- `BIN-BODY-LONG` `ordering.advice`: Bytes follow the JSON. `expected a, got b`" in page
    assert "- `BIN-ALL-TRUE-LISTED` `JSON, no inference header` (`ordering.open`)" in page
    assert "- `no model for the role multi`: 1 row" in page


def test_under_a_baseline_the_difference_comes_first() -> None:
    lines = markdown(GATED).splitlines()
    assert lines[4:10] == [
        "**Gate not passed: 1 new, 1 fixed, 1 stale, 1 known**",
        "",
        "- new: `ordering.x [new]`",
        "- fixed: `ordering.x [met]`",
        "- stale: `ordering.gone[*]: names nothing`",
        "",
    ]
    titles = [command.split("::")[1] for command in commands(GATED)]
    assert titles == [
        "error title=oip-conformance baseline",
        "error title=oip-conformance MUST BIN-ORDER-O",  # new
        "error title=oip-conformance MUST BIN-ORDER-O",  # fixed
    ]


def test_a_fault_of_the_suite_is_shown_line_by_line() -> None:
    broken = check(
        "ordering.y", "", "error", message="the suite failed: KeyError: 1\n| Traceback\n|   line 3", failure=None
    )
    page = markdown(report("incomplete", rows=[broken]))
    assert "Because   the suite failed: KeyError: 1\n| Traceback\n|   line 3\nRerun" in page
    assert commands(report("incomplete", rows=[broken]))[1].endswith("the JSON. the suite failed: KeyError: 1")


def many(count: int) -> Report:
    """Return a report with so many failures of 3 kB each, and as much advice."""
    long = failure(actual="x" * 3000)
    checks = [check(f"ordering.x-{number}", "", "fail", failure=long) for number in range(count)]
    advice = [check(f"ordering.a-{number}", "", "advisory", message="y" * 3000) for number in range(count)]
    return report("nonconformant", rows=checks + advice)


@pytest.mark.parametrize("limit", [1024 * 1024, 100_000, 20_000])
def test_the_markdown_page_keeps_its_limit_and_says_what_it_left_out(limit: int) -> None:
    page = markdown(many(500), limit)
    assert limit * 0.5 < len(page.encode()) <= limit
    shown = page.count("### `ordering.x-")
    assert f"\n{500 - shown} more failures are left out, because the size of this page is limited." in page
    advised = page.count("- `BIN-ORDER-O` `ordering.a-")
    assert advised > 0
    assert f"\n{500 - advised} more pieces of advice are left out" in page


@pytest.mark.parametrize(("limit", "length"), [(100, 48), (48, 48), (47, 0), (0, 0), (-5, 0)])
def test_markdown_below_minimum_is_one_line_or_empty(limit: int, length: int) -> None:
    assert len(markdown(NONCONFORMANT, limit)) == length


def test_single_omitted_failure_is_singular() -> None:
    whole = markdown(many(2))
    assert "is left out" not in whole
    assert "1 more failure is left out" in markdown(many(2), 8000)


def test_hostile_text_in_markdown_stands_in_code_or_is_escaped() -> None:
    page = markdown(ATTACK)
    assert not set(page) & UNSAFE
    assert not [line for line in page.splitlines() if line.lstrip().startswith(("::", "##[", "##vso["))]
    bare = outside_of_code(page)
    assert "alert" in bare  # claims and statements are prose
    for attack in ("<script", "<img", "](http", "<http", "://evil", "www.evil"):
        assert attack not in re.sub(r"\\.", "", bare), attack
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows[:6]} == {3}


# --- badges ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "message", "color"),
    [
        (CONFORMANT, "conformant 2/2", "1a7f37"),
        (NONCONFORMANT, "nonconformant 0/3", "cf222e"),
        (CUT_SHORT, "incomplete 0/2", "8a5a00"),
        (NOTHING, "incomplete 0/0", "8a5a00"),
    ],
    ids=["conformant", "nonconformant", "cut short", "nothing judged"],
)
def test_badges(made: Report, message: str, color: str) -> None:
    drawn = ElementTree.fromstring(badge.render_svg(build_view(made)))  # noqa: S314 - our own
    space = "{http://www.w3.org/2000/svg}"
    assert [element.text for element in drawn.iter(f"{space}text")] == ["oip conformance", message]
    assert [element.get("fill") for element in drawn.iter(f"{space}rect")][2] == f"#{color}"
    assert drawn.get("role") == "img"
    title = drawn.find(f"{space}title")
    assert title is not None
    assert drawn.get("aria-labelledby") == title.get("id")
    assert message.partition(" ")[0] in (title.text or "")
    assert json.loads(badge.render_shields(build_view(made))) == {
        "schemaVersion": 1,
        "label": "oip conformance",
        "message": message,
        "color": color,
        "isError": made is not CONFORMANT,
    }


def test_hostile_text_in_a_badge() -> None:
    drawn = badge.render_svg(build_view(ATTACK))
    assert not set(drawn) & UNSAFE
    tree = ElementTree.fromstring(drawn)  # noqa: S314 - our own
    elements = [element.tag.rpartition("}")[2] for element in tree.iter()]
    assert elements == ["svg", "title", "clipPath", "rect", "g", "rect", "rect", "g", "text", "text"]
    assert len(drawn) < 2000


# --- GitHub ----------------------------------------------------------------------------------------------------------


def commands(made: Report) -> list[str]:
    return list(github.build_commands(made, ACTIONS))


def test_annotations() -> None:
    assert commands(NONCONFORMANT) == [
        "::error title=oip-conformance MUST BIN-ORDER-O::ordering.x [four]: Bytes follow the JSON."
        " expected a, got b (and 1 other row)",
        "::error title=oip-conformance MUST BIN-HEADER-O::ordering.stuck [a]: Bytes follow the JSON."
        " m answers no plain request (and 1 other row)",
        "::warning title=oip-conformance SHOULD BIN-BODY-LONG::ordering.advice: Bytes follow the JSON."
        " expected a, got b",
    ]
    assert commands(CONFORMANT) == []
    assert commands(NOTHING) == [
        "::error title=oip-conformance::incomplete: cannot connect to http://127.0.0.1:8000: refused"
    ]


@pytest.mark.parametrize("environment", [{}, {"GITHUB_ACTIONS": "false"}])
def test_annotations_need_github(environment: dict[str, str]) -> None:
    assert list(github.build_commands(NONCONFORMANT, environment)) == []
    assert list(github.build_commands(None, ACTIONS)) == []


def test_annotations_are_limited_to_ten_of_a_kind() -> None:
    kinds = [command.partition(" ")[0] for command in commands(many(50))]
    assert kinds == ["::error"] * 10 + ["::warning"] * 10
    cut = many(50) | {"verdict": "incomplete"}
    assert [command.partition(" ")[0] for command in commands(cut)] == ["::error"] * 10 + ["::warning"] * 10


def test_escapes_of_workflow_commands() -> None:
    assert github.escape_data("50%\r\nnext: a, b") == "50%25%0D%0Anext: a, b"
    assert github.escape_property("50%\r\nnext: a, b") == "50%25%0D%0Anext%3A a%2C b"


def test_hostile_text_in_annotations() -> None:
    lines = commands(ATTACK)
    assert len(lines) == 4
    for line in lines:
        assert not set(line) & (UNSAFE | {"\n"})
        assert re.match("::(error|warning) title=oip-conformance MUST BIN-ORDER-O::", line)
        assert "##[" not in line
        assert len(line) < 2000


def test_the_summary_of_a_step_is_added_to(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    github.summarize(NONCONFORMANT, {"GITHUB_STEP_SUMMARY": str(file)})
    github.summarize(CONFORMANT, {})
    assert file.read_text() == "before\n" + markdown(NONCONFORMANT)


def test_the_summary_of_a_step_keeps_the_limit_of_all_that_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("b" * 1_000_000)
    github.summarize(many(100), {"GITHUB_STEP_SUMMARY": str(file)})
    assert 1_000_000 < file.stat().st_size <= 1024 * 1024
    assert "failures are left out" in file.read_text()


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("r.json", ".json"), ("r.shields.json", ".shields.json"), ("a.b/r.html", ".html"), ("r.md", ".md"),
        ("r.svg", ".svg"), ("shields.json", ".json"),
    ],
)  # fmt: skip
def test_the_suffix_of_a_report_selects_its_format(name: str, suffix: str) -> None:
    assert expect_report_suffix(Path(name)) == suffix


@pytest.mark.parametrize("name", ["r.txt", "r", "r.json.gz"])
def test_an_unknown_suffix_of_a_report_is_an_error(name: str) -> None:
    with pytest.raises(UserError, match=f"^{name}: unknown suffix '.*', known are "):
        expect_report_suffix(Path(name))


@EVERY
def test_all_formats_agree(tmp_path: Path, made: Report) -> None:
    for suffix in formats.FORMATS:
        formats.write(made, tmp_path / f"r{suffix}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"r{suffix}" for suffix in sorted(formats.FORMATS)]
    assert json.loads((tmp_path / "r.json").read_text()) == made
    musts = [entry["verdict"] for entry in made["requirements"] if entry["level"] == "MUST"]
    met, verdict = musts.count("pass"), made["verdict"]
    assert json.loads((tmp_path / "r.shields.json").read_text())["message"] == f"{verdict} {met}/{len(musts)}"
    assert f">{verdict} {met}/{len(musts)}</text>" in (tmp_path / "r.svg").read_text()
    for page in ("r.html", "r.md"):
        text = (tmp_path / page).read_text()
        assert f"{met} of {len(musts)} MUSTs that apply are met" in text
        assert verdict in text
        assert made["footer"]["complete"] is ("This is not a whole run." not in text)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_command_makes_the_same_files_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("now", "later"):
        (tmp_path / folder).mkdir()
    for suffix in formats.FORMATS:
        formats.write(NONCONFORMANT, tmp_path / f"now/r{suffix}")
    outputs = [f"{tmp_path}/later/r{suffix}" for suffix in formats.FORMATS]
    arguments = [part for output in outputs for part in ("-o", output)]
    assert main.main(["report", str(tmp_path / "now/r.json"), *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == [f"wrote {output}" for output in outputs]
    assert files(tmp_path / "now") == files(tmp_path / "later")


def edited(made: Report) -> Report:
    return made | {"verdict": "conformant"}


def without_url(made: Report) -> Report:
    changed = made | {"target": {}}
    return changed | {"footer": made["footer"] | {"digest": compute_digest(changed)}}


@pytest.mark.parametrize(
    ("change", "output", "message"),
    [
        (edited, "r.html", "was edited or cut: its digest does not match its content"),
        (without_url, "r.html", "is not a report of oip-conformance: $.target: "),
        (lambda made: made, "r.txt", "r.txt: unknown suffix '.txt', known are .shields.json, .json, .html, .md, .svg"),
        (lambda made: made, "nowhere/r.md", "nowhere/r.md: No such file or directory"),
    ],
)
def test_the_command_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Report], Report], output: str, message: str
) -> None:
    (tmp_path / "in.json").write_text(json.dumps(change(NONCONFORMANT)))
    assert main.main(["report", str(tmp_path / "in.json"), "-o", str(tmp_path / output)]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert sorted(files(tmp_path)) == ["in.json"]
