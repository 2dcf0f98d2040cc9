"""`oip-conformance sources`: what it prints of copies that have changed, and its exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.commands import main, sources
from conformance.commands.sources import compute_digest, render_sentences
from conformance.spec.documents import Document, Sentence, load_documents, load_sentences

FISH = Document("fish", "Fish", "https://fish", copy="fish.md")
BIRDS = Document("birds", "Birds", "https://birds", copy="birds.md")
RULES = Document("rules", "Rules", "https://rules")
KNOWN = (
    Sentence("fish.red", FISH, "Fish", "Red fish", "swim", compute_digest("Red fish swim"), "red ones swim"),
    Sentence(
        "fish.blue", FISH, "Fish", "Blue fish sleep", sha256=compute_digest("Blue fish sleep"), gist="blue ones sleep"
    ),
    Sentence("birds.fly", BIRDS, "Birds", "Birds", "fly", compute_digest("Birds fly"), "birds fly"),
    Sentence("rules.one", RULES, "1 One", anchor="section-1"),
)
TEXTS = {"fish.md": "# Fish\nRed fish\nswim.\n\nBlue fish sleep.", "birds.md": "Birds  fly."}


@pytest.fixture(autouse=True)
def _few_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sources, "load_documents", lambda: {document.key: document for document in (FISH, BIRDS, RULES)}
    )
    monkeypatch.setattr(sources, "load_sentences", lambda: {entry.key: entry for entry in KNOWN})


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ["all 3 sentences were found in their documents"]),
        ({"other.md": "Red fish swim"}, ["all 3 sentences were found in their documents"]),
        (
            {"fish.md": "Red fish never swim. Blue fish sleep, and blue fish sleep."},
            [
                "fish.red: has other words: 'Red fish ... swim' in {folder}/fish.md, with sha256 "
                + compute_digest("Red fish never swim"),
                "fish.blue: occurs several times: 'Blue fish sleep' in {folder}/fish.md",
            ],
        ),
        ({"birds.md": "Bees fly."}, ["birds.fly: is not there: 'Birds ... fly' in {folder}/birds.md"]),
        ({"birds.md": None}, ["birds: cannot read {folder}/birds.md: No such file or directory"]),
        ({"birds.md": "\udcff"}, ["birds: {folder}/birds.md is not UTF-8"]),
    ],
)
def test_check(
    changes: dict[str, str | None], lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in {**TEXTS, **changes}.items():
        if text is not None:
            (tmp_path / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    assert main.main(["sources", "check", str(tmp_path)]) == (not lines[0].startswith("all "))
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [line.format(folder=tmp_path) for line in lines]
    assert printed.err == ""


def test_check_of_no_copies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.md").write_text("Red fish swim")
    for folder, why in (("nowhere", "no such folder"), ("other.md", "no such folder"), (".", "holds none of ")):
        assert main.main(["sources", "check", str(tmp_path / folder)]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("oip-conformance: error: ")
        assert why in printed.err
        assert printed.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["sources"], ["sources", "check"], ["sources", "find"]])
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main.main(arguments)
    assert stopped.value.code == 2
    assert "; see `oip-conformance sources" in capsys.readouterr().err


PAGE = """\
| document | revision | date | sentences | judged | not judged, for a reason | gaps |
|---|---|---|---|---|---|---|
| [Fish](https://fish) | 0123456789ab | 2026-01-02 | 3 | 1 | 1 | 2 |

## Gaps

Demands that the suite should judge, but does not judge yet.

- [fish.blue](https://fish#:~:text=Blue): no check of it.
- [fish.green](https://fish#:~:text=Green): a part.

## Fish

| section | sentence | key | judged by |
|---|---|---|---|
| A | [red \\[1\\]](https://fish#:~:text=Red) | `red` | none: about clients |
| A | [blue](https://fish#:~:text=Blue) | `blue` | gap: no check of it |
| B | [green](https://fish#:~:text=Green) | `green` | OIP-A, OIP-B<br>gap: a part |
"""


def test_page() -> None:
    fish = Document("fish", "Fish", "https://fish", "0123456789abcdef", "2026-01-02", "fish.md")
    made = [
        Sentence("fish.red", fish, "A", "Red", gist="red [1]", unjudged="about clients"),
        Sentence("fish.blue", fish, "A", "Blue", gist="blue", gap="no check of it"),
        Sentence("fish.green", fish, "B", "Green", gist="green", gap="a part"),
    ]
    page = render_sentences(made, {"fish.green": ["OIP-A", "OIP-B"]})
    assert page.startswith("# Sentences\n")
    assert page[page.index("| document |") :] == PAGE


def test_the_command_prints_the_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sources, "load_sentences", load_sentences)
    assert main.main(["sources", "page"]) == 0
    printed = capsys.readouterr().out
    assert [title for title in load_documents() if f"\n## {load_documents()[title].title}\n" not in printed] == []
    assert printed.count("\n| ") > len(load_sentences())
