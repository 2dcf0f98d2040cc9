"""`oip-conformance compare`: reports side by side, whatever a server wrote into them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from conformance import cli
from conformance.report import compare_html, compare_markdown
from conformance.report.compare import compare
from conformance.report.markdown import code, text
from conformance.report.reading import read

RESULTS = Path(__file__).parents[2] / "docs/results"
HOSTILE = "<script>alert(1)</script>|`x`\n# \x1b[31m[go](http://evil) & www.evil \u202e"

Report = dict[str, Any]


def requirement(identity: str, level: str, verdict: str, area: str = "ordering") -> Report:
    return {
        "id": identity, "level": level, "area": area, "extension": "binary_tensor_data", "verdict": verdict,
        "checks": [],
    }  # fmt: skip


def check(identity: str, row: str, outcome: str, message: str = "", unmet: str = "", **more: Any) -> Report:
    failure = dict.fromkeys(("statement", "source", "expected", "actual", "sent", "repeat"), "")
    return {
        "id": identity, "row": row, "claim": "", "area": "ordering", "outcome": outcome, "message": message,
        "requirements": ["BIN-ORD-O"], "observation": "", "duration_s": 0, "exchanges": [],
        "failure": failure | {"requirement": unmet, "level": "MUST", "bytes": []} if unmet else None,
    } | more  # fmt: skip


def report(name: str | None = "alpha", version: str | None = "1", **changes: Any) -> Report:
    listed = {"offered": True, "verdict": "conformant", "counts": {"pass": 1}}
    return {
        "schema": 1,
        "suite": {"name": "oip-conformance", "version": "0.1.0", "digest": "0123456789abcdef" * 4},
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T03:05:05+00:00",
        "options": {"profile": "certify", "strict": False, "extensions": [], "timeout_s": 10, "headers": []},
        "seed": None,
        "target": {
            "url": "http://127.0.0.1:8000", "name": name, "version": version, "extensions_listed": [],
            "extensions_offered": [], "roles": {"multi": "multi"},
        },
        "verdict": "conformant",
        "why": [],
        "extensions": {"binary_tensor_data": listed, "raw": listed | {"offered": False}},
        "requirements": [],
        "checks": [],
        "footer": {"complete": True, "checks": 0, "digest": "0" * 64},
    } | changes  # fmt: skip


def markdown(*reports: Report) -> list[str]:
    page = compare_markdown.render(compare([(f"file{place}", report) for place, report in enumerate(reports)]))
    return page.splitlines()


def section(lines: list[str], heading: str) -> list[str]:
    """Return the lines below a heading, up to the next of its rank."""
    rank = heading.partition(" ")[0] + " "
    rest = lines[lines.index(heading) + 1 :]
    end = next((place for place, line in enumerate(rest) if line.startswith(rank)), len(rest))
    return [line for line in rest[:end] if line]


# --- what the page says ---------------------------------------------------------------------------------------------


def test_facts_stand_on_top() -> None:
    strict = {"profile": "quick", "strict": True, "extensions": ["raw"], "timeout_s": 1, "headers": []}
    met = [requirement("A", "MUST", "pass"), requirement("B", "MUST", "not_applicable")]
    bad = report(
        "beta",
        "2",
        verdict="nonconformant",
        why=["1 check failed"],
        options=strict,
        requirements=[*met, requirement("C", "SHOULD", "advisory")],
        checks=[check("ordering.x", "", "fail", unmet="A")],
    )
    lines = markdown(report(), bad)
    assert lines[4:23] == [
        "|  | alpha 1 | beta 2 |",
        "|---|---|---|",
        "| verdict | conformant | **nonconformant: 1 check failed** |",
        "| plain protocol | not offered | not offered |",
        "| binary_tensor_data | conformant | conformant |",
        "| raw | not offered | not offered |",
        "| classification | not offered | not offered |",
        "| MUST | 0 met | 1 met, 1 not judged |",
        "| SHOULD | 0 met | 0 met, 1 not met |",
        "| checks: FAIL | 0 | 1 |",
        "| roles | 1 | 1 |",
        "| suite | 0.1.0 (01234567) | 0.1.0 (01234567) |",
        "| profile | certify | quick; strict; extensions raw |",
        "| date | 2026-01-02 | 2026-01-02 |",
        "",
        "## Requirements",
        "",
        "| sign | means |",
        "|---|---|",
    ]


def test_requirements_by_servers() -> None:
    one = report(
        requirements=[requirement("BIN-ORD-O", "MUST", "pass"), requirement("NEW", "SHOULD", "advisory", "raw")]
    )
    two = report("beta", requirements=[requirement("BIN-ORD-O", "MUST", "fail")])
    lines = markdown(one, two)
    statement = "The binary data of an answer follow the order in which the answer's own JSON lists the outputs."
    assert section(lines, "### ordering")[2] == f"| `BIN-ORD-O` | MUST | {statement} | pass | **FAIL** |"
    assert section(lines, "### raw")[2] == "| `NEW` | SHOULD |  | advice | - |"
    legend = section(lines, "## Requirements")
    assert "| - | not in this report, which another version of the suite wrote |" in legend
    assert "| blocked | what it rests on fails already |" not in legend


@pytest.mark.parametrize(
    ("servers", "titles"),
    [
        ([("a", "1"), ("b", "1")], ["a 1", "b 1"]),
        ([("a", "1"), ("a", "2")], ["a 1", "a 2"]),
        ([("a", "1"), ("a", "1")], ["a 1 (same)", "a 1 (same) #2"]),
        ([("a", None), (None, None)], ["a", "(same)"]),
    ],
)
def test_columns_have_names_of_their_own(servers: list[tuple[str | None, str | None]], titles: list[str]) -> None:
    assert compare([("same", report(*server)) for server in servers]).titles == titles


def test_rows_that_say_the_same_are_one_line() -> None:
    refused = 'expected 2xx, got HTTP 400: {"error":"no '
    checks = [
        check("ordering.x", "one-two", "fail", "expected [1, 2] for one two, got 3", "BIN-ORD-O"),
        check("ordering.x", "three", "fail", "expected [4] for three, got 5", "BIN-ORD-O"),
        check("ordering.x", "four", "fail", "expected [4] for four, got nothing", "BIN-ORD-O"),
        *[check("ordering.y", f"r{k}", "fail", f'{refused}{k}"}}', "BIN-ORD-I") for k in "abcde"],
        check("ordering.y", "z", "fail", "expected 2xx, got HTTP 500: x", "BIN-ORD-I"),
        check("ordering.y", "w", "advisory", "expected less", "BIN-NEG-EXTRA"),
        check("ordering.z", "", "blocked", "it rests on nothing"),
        check("ordering.z", "e", "error", "the target is gone"),
        check("ordering.p", "", "pass", "never shown"),
    ]
    lines = markdown(report(), report("beta", checks=checks))
    assert section(lines, "## Failures") == [
        "### beta 1",
        r"- `BIN-ORD-O` `ordering.x` (one-two, three): expected \[1, 2\] for one two, got 3",
        r"- `BIN-ORD-O` `ordering.x` (four): expected \[4\] for four, got nothing",
        '- `BIN-ORD-I` `ordering.y` (ra, rb, rc and 2 more): expected 2xx, got HTTP 400: {"error":"no a"}',
        "- `BIN-ORD-I` `ordering.y` (z): expected 2xx, got HTTP 500: x",
    ]
    assert section(lines, "## Advice") == ["### beta 1", "- `BIN-NEG-EXTRA` `ordering.y` (w): expected less"]
    assert section(lines, "## Blocked, or in error") == [
        "### beta 1",
        "- `BIN-ORD-O` `ordering.z` (blocked): it rests on nothing",
        "- `BIN-ORD-O` `ordering.z` (e) (error): the target is gone",
    ]


def test_observations_are_summed_up() -> None:
    def seen(identity: str, *texts: str) -> list[Report]:
        return [check("o.x", str(k), "observed", observation=t, requirements=[identity]) for k, t in enumerate(texts)]

    one = report(checks=[*seen("UNKNOWN", "a"), *seen("BIN-BDO-L", "JSON", "binary data", "JSON")])
    two = report("beta", checks=seen("BIN-BDO-L", "HTTP 400: no", "HTTP 400: never", "1", "2", "3", "4"))
    assert section(markdown(one, two), "## Observations")[1:] == [
        "| requirement | check | alpha 1 | beta 1 |",
        "|---|---|---|---|",
        "| `BIN-BDO-L` | `o.x` | JSON (2)<br>binary data | HTTP 400 (2)<br>1<br>2<br>3<br>and 1 more |",
        "| `UNKNOWN` | `o.x` | a |  |",
    ]


def test_what_nobody_has_is_left_out() -> None:
    headings = [line for line in markdown(report()) if line.startswith("#")]
    assert headings == [
        "# Conformance of model servers, side by side",
        "## Requirements",
        "## Observations",
    ]


# --- what a server wrote --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("identity_int32, 2^32 {a}", "identity_int32, 2^32 {a}"),
        ("a|b\\|", "a\\|b\\\\\\|"),
        ("`x` *y* ~z~ _u_ __v__", "\\`x\\` \\*y\\* \\~z\\~ \\_u\\_ \\_\\_v\\_\\_"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("[go](http://evil) WWW.evil", "\\[go\\](http&#58;//evil) WWW&#46;evil"),
        ("a\r\n# b\x1b\u202e\u2028", "a\\\\r\\\\n\\# b\\\\x1b\\\\u202e\\\\u2028"),
        ("x" * 301, "x" * 300 + "... (301 characters)"),
    ],
)
def test_text_has_no_meaning_in_markdown(foreign: str, shown: str) -> None:
    assert text(foreign) == shown


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [("a.b", "`a.b`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("``a|", "``` ``a\\| ```"), ("\n", "`\\n`"), (" ", "")],
)
def test_code_has_a_fence_of_its_own(foreign: str, shown: str) -> None:
    assert code(foreign) == shown


@pytest.fixture
def hostile() -> Report:
    """Return a report with hostile text in every place that is free text by the schema."""
    checks = [
        check(HOSTILE, HOSTILE, "fail", HOSTILE, HOSTILE),
        check(HOSTILE, HOSTILE, "blocked", HOSTILE, requirements=[HOSTILE]),
        check(HOSTILE, HOSTILE, "observed", observation=HOSTILE, requirements=[HOSTILE]),
    ]
    changed = report(
        HOSTILE, HOSTILE, why=[HOSTILE], checks=checks, requirements=[requirement(HOSTILE, "MUST", "fail")]
    )
    changed["suite"]["version"] = HOSTILE
    changed["suite"]["digest"] = "f" * 64
    return changed


def test_hostile_text_stays_text_in_markdown(hostile: Report) -> None:
    page = compare_markdown.render(compare([(HOSTILE, hostile), (HOSTILE, hostile)]))
    outside_code = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", page)
    assert [line for line in outside_code.splitlines() if "<script" in line or "](" in line.replace("\\](", "")] == []
    assert re.findall(r"://|[^ -~\n]", outside_code) == []
    for line in page.splitlines():
        if line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1
            assert cells in (2, 3, 4, 5), line


class Tags(HTMLParser):
    """Collects the tags of a page, checks that each is closed, and keeps the text."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h3",
        "p",
        "div",
        "ul",
        "li",
        "code",
        "small",
        "br",
    ),
    *("table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd"),
}


def tags(page: str) -> Tags:
    parser = Tags()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def test_hostile_text_stays_text_in_html(hostile: Report) -> None:
    page = tags(compare_html.render(compare([("file", hostile), (HOSTILE, hostile)])))
    assert page.seen <= TAGS
    assert page.attributes <= {"lang", "charset", "name", "content", "http-equiv", "class", "scope"}
    assert "<script>alert(1)</script>|`x`\\n# \\x1b[31m[go](http://evil) & www.evil \\u202e" in page.text
    assert re.findall(r"[^ -~\n]", page.text) == []


def test_html_says_what_markdown_says() -> None:
    one = report(
        requirements=[requirement("BIN-ORD-O", "MUST", "pass"), requirement("OIP-META", "MUST", "fail", "metadata")],
        checks=[check("o.x", str(k), "observed", observation=t) for k, t in enumerate(("JSON", "JSON", "text"))],
    )
    two = report("beta", checks=[check("ordering.y", "r", "fail", "expected less", "BIN-ORD-I")])
    page = tags(compare_html.render(compare([("one", one), ("two", two)])))
    shown = re.sub(r"\s+", " ", page.text)
    assert "br" in page.seen
    for said in (
        "alpha 1beta 1",
        "BIN-ORD-O MUSTThe binary data of an answer follow the order",
        "of strings.FAIL-",
        "BIN-ORD-Oo.xJSON (2)text",
        "Failures beta 1 BIN-ORD-I ordering.y (r): expected less",
    ):
        assert said in shown, said


# --- files ----------------------------------------------------------------------------------------------------------


def test_the_command_prints_or_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(tmp_path / "one.json"), str(tmp_path / "two.json")]
    for file, name in zip(files, ("alpha", "beta"), strict=True):
        Path(file).write_text(json.dumps(report(name)))
    both = compare([("one", report()), ("two", report("beta"))])
    assert cli.main(["compare", *files]) == 0
    assert capsys.readouterr().out == compare_markdown.render(both)
    for suffix, render in ((".md", compare_markdown.render), (".html", compare_html.render)):
        assert cli.main(["compare", *files, "-o", f"{tmp_path}/page{suffix}"]) == 0
        assert capsys.readouterr().out == f"wrote {tmp_path}/page{suffix}\n"
        assert (tmp_path / f"page{suffix}").read_text(encoding="utf-8") == render(both)
    assert {path.name for path in tmp_path.iterdir()} == {"one.json", "two.json", "page.md", "page.html"}


def changed(**changes: Any) -> Callable[[], bytes]:
    return lambda: json.dumps(report() | changes).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot read {file}: No such file or directory"),
        (lambda: b"", "{file} is no report of oip-conformance: Expecting value"),
        (lambda: b"\xff\xfe", "{file} is no report of oip-conformance: "),
        (lambda: b"[" * 100_000, "{file} is no report of oip-conformance: "),
        (lambda: b'{"schema": 1}', "{file} is no report of oip-conformance\n"),
        (lambda: b"[1]", "{file} is no report of oip-conformance\n"),
        (changed(schema=2), "{file} is a report of schema version 2, this version reads 1\n"),
        (changed(verdict="\x1b\nfine"), "{file} is no report of oip-conformance: $.verdict: "),
        (changed(checks=[{}]), "{file} is no report of oip-conformance: $.checks[0]: "),
    ],
    ids=["absent", "empty", "bytes", "nested", "too little", "an array", "version", "member", "check"],
)
def test_what_is_no_report_is_one_line(
    content: Callable[[], bytes] | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.json"
    if content:
        file.write_bytes(content())
    assert cli.main(["compare", str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("oip-conformance: error: " + said.format(file=file))
    assert printed.err.count("\n") == 1
    assert "\x1b" not in printed.err


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("page.pdf", "{file}: unknown suffix '.pdf', known are .md, .html"),
        ("no/page.md", "cannot write {file}: No such file or directory"),
    ],
)
def test_a_page_that_cannot_be_written(
    output: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(report()))
    file = tmp_path / output
    assert cli.main(["compare", str(tmp_path / "x.json"), "-o", str(file)]) == 2
    assert capsys.readouterr().err == f"oip-conformance: error: {said.format(file=file)}\n"


# --- docs/results.md ------------------------------------------------------------------------------------------------


def test_the_page_of_results_is_that_of_the_reports() -> None:
    reports = [(path.stem, read(path)) for path in sorted(RESULTS.glob("*.json"))]
    assert [name for name, _ in reports] == ["kserve", "mlserver", "reference", "triton"]
    page = RESULTS.with_suffix(".md").read_text(encoding="utf-8")
    assert page == compare_markdown.render(compare(reports)), (
        "run: oip-conformance compare docs/results/*.json > docs/results.md"
    )


@pytest.mark.parametrize("name", ["kserve", "mlserver", "reference", "triton"])
def test_reports_hold_no_path_of_the_machine_they_come_from(name: str) -> None:
    found = re.findall(
        r"[^\s\"]*/(?:home|root|tmp|opt|usr|var|work|site-packages)/[^\s\"]*", (RESULTS / f"{name}.json").read_text()
    )
    assert found == []
