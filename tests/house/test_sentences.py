"""The sentences of the documents: form, keys, links, and that each stands in its place where copies are at hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conformance.commands.sources import (
    SentenceMismatch,
    compute_digest,
    find_matches,
    find_mismatch,
    group_requirements_by_sentence,
    squeeze_whitespace,
)
from conformance.spec import data_files, ledger
from conformance.spec.documents import (
    FILES,
    SENTENCES_FOLDER,
    Document,
    Sentence,
    get_sentence,
    load_documents,
    load_sentences,
)
from conformance.spec.schemas import load_schema
from tests.support.tables import on_each

ROOT = Path(__file__).parents[2]
SCHEMA = Draft202012Validator(load_schema("sentences"))

MADE_UP = Document("made-up", "Made Up", "https://example.org/page", copy="made-up.md")
TEXT = "One fish, two fish.\nRed fish, blue   fish. A\tfish has\nfins; BLUE whales have fins, too."
RED = Sentence(
    "made-up.red", MADE_UP, "Fish", "Red fish", "blue fish", compute_digest("Red fish, blue fish"), "fish have colours"
)


def _copies(folder: str) -> dict[str, str]:
    """Return the text of each document of which the folder has a copy, by the document's key."""
    paths = {key: ROOT / folder / document.copy for key, document in load_documents().items() if document.copy}
    return {key: squeeze_whitespace(path.read_text(encoding="utf-8")) for key, path in paths.items() if path.is_file()}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Look up a made-up sentence, and every sentence of each document of which a copy is at hand."""
    texts = _copies(metafunc.config.option.copies)
    if "at_hand" in metafunc.fixturenames:
        metafunc.parametrize("at_hand", [set(texts)], ids=["-and-".join(texts) or "none"])
    if "located" in metafunc.fixturenames:
        found = [
            (entry, texts[entry.document.key]) for entry in load_sentences().values() if entry.document.key in texts
        ]
        cases = [(RED, squeeze_whitespace(TEXT)), *found]
        metafunc.parametrize("located", cases, ids=[entry.key for entry, _ in cases])


def test_a_sentence_stands_in_its_place(located: tuple[Sentence, str]) -> None:
    entry, text = located
    assert find_mismatch(text, entry) is None


def test_copies_at_hand_are_all_or_none(at_hand: set[str]) -> None:
    """Its name in the run says which; a folder that lost one copy would leave a document unchecked without a word."""
    assert at_hand in (set(), {key for key, document in load_documents().items() if document.copy})


def test_sentences_stand_in_the_order_of_their_document(pytestconfig: pytest.Config) -> None:
    for key, text in _copies(pytestconfig.option.copies).items():
        found = [find_matches(text, entry)[0][0] for entry in load_sentences().values() if entry.document.key == key]
        assert found == sorted(found)
    assert find_matches(squeeze_whitespace(TEXT), RED) == [(20, 39)]


# --- form ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_files_keep_their_schema(name: str) -> None:
    errors = SCHEMA.iter_errors(data_files.load_toml(f"{SENTENCES_FOLDER}/{name}.toml"))
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


def test_every_file_is_read() -> None:
    assert sorted(path.stem for path in (data_files.PACKAGE_FOLDER / SENTENCES_FOLDER).iterdir()) == sorted(FILES)


def test_a_document_stands_in_one_file() -> None:
    tables = [key for name in FILES for key in data_files.load_toml(f"{SENTENCES_FOLDER}/{name}.toml")]
    assert tables == list(load_documents())
    assert len(load_sentences()) == sum(
        len(data_files.load_toml(f"{SENTENCES_FOLDER}/{n}.toml")[k]["sentences"])
        for n in FILES
        for k in data_files.load_toml(f"{SENTENCES_FOLDER}/{n}.toml")
    )


def _file(**changes: Any) -> dict[str, Any]:
    entry = {"section": "A", "first": "one two", "last": "three", "sha256": "0" * 64, "gist": "counts"}
    entry = {key: value for key, value in {**entry, **changes}.items() if value is not None}
    return {"a-b": {"title": "A", "url": "https://a/b", "copy": "a.md", "sentences": {"one": entry}}}


@pytest.mark.parametrize("changes", [{}, {"last": None}, {"unjudged": "about clients"}, {"gap": "no check of it"}])
def test_schema_accepts(changes: dict[str, Any]) -> None:
    assert SCHEMA.is_valid(_file(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"first": None},
        {"first": " one"},
        {"first": "`one`"},
        {"first": "one" * 21},
        {"sha256": "0"},
        {"sha256": None},
        {"gist": None},
        {"gist": "Counts."},
        {"gist": "one; two"},
        {"anchor": "section-1"},
        {"unjudged": ""},
        {"unjudged": "about clients", "gap": "no check of it"},
        {"note": "x"},
    ],
)
def test_schema_refuses(changes: dict[str, Any]) -> None:
    assert not SCHEMA.is_valid(_file(**changes))


def test_schema_takes_a_standard_by_sections_alone() -> None:
    rfc = {"title": "RFC", "url": "https://rfc", "sentences": {"one": {"section": "1 One", "anchor": "section-1"}}}
    assert SCHEMA.is_valid({"rfc1": rfc})
    assert not SCHEMA.is_valid({"rfc1": {**rfc, "copy": "rfc.txt"}})


# --- what cites what -------------------------------------------------------------------------------------------------


def test_every_source_of_the_ledger_is_a_sentence() -> None:
    cited = {key for entry in ledger.load().values() for key in entry.cited}
    assert len(cited) > 150
    assert sorted(cited - set(load_sentences())) == []


def test_every_sentence_is_judged_or_says_why_not() -> None:
    cited = group_requirements_by_sentence(ledger.load().values())
    silent = [key for key, entry in load_sentences().items() if key not in cited and not (entry.unjudged or entry.gap)]
    contradicted = [key for key, entry in load_sentences().items() if key in cited and entry.unjudged]
    assert (silent, contradicted) == ([], [])


def test_reasons_name_only_known_sentences_and_requirements() -> None:
    reasons = " ".join(entry.unjudged + " " + entry.gap for entry in load_sentences().values())
    keys = set(re.findall(r"`((?:" + "|".join(load_documents()) + r")\.[a-z0-9-]+)`", reasons))
    prefixes = "|".join({key.partition("-")[0] for key in ledger.load()})
    ids = set(re.findall(rf"\b(?:{prefixes})(?:-[A-Z0-9]+)+(?:/grpc)?\b", reasons))
    assert len(keys) > 5
    assert sorted(keys - set(load_sentences())) == []
    assert sorted(ids - set(ledger.load())) == []


def test_a_sentence_that_another_says_is_said_by_one_that_is_judged() -> None:
    cited = group_requirements_by_sentence(ledger.load().values())
    said = {
        key: re.findall(r"said (?:in full )?by `([^`]+)`", entry.unjudged) for key, entry in load_sentences().items()
    }
    assert [(key, other) for key, others in said.items() for other in others if other not in cited] == []


# --- links -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "last", "fragment"),
    [
        ("Red fish", "blue fish", "Red%20fish,blue%20fish"),
        ("Red fish", "", "Red%20fish"),
        ("Content-Length: <xx>", "a, b & c", "Content%2DLength%3A%20%3Cxx%3E,a%2C%20b%20%26%20c"),
        ("“count”", "[ 2, 1 ]", "%E2%80%9Ccount%E2%80%9D,%5B%202%2C%201%20%5D"),
        ("50%", "(typically 400)", "50%25,%28typically%20400%29"),
    ],
)
def test_a_link_has_a_text_fragment(first: str, last: str, fragment: str) -> None:
    entry = Sentence("made-up.a", MADE_UP, "Fish", first, last)
    assert entry.url == f"https://example.org/page#:~:text={fragment}"


def test_a_link_to_a_standard_has_an_anchor() -> None:
    assert get_sentence("rfc9112.persistence").url == "https://www.rfc-editor.org/rfc/rfc9112.html#section-9.3"


@on_each(load_sentences())
def test_a_link_is_whole_wherever_it_is_written(key: str) -> None:
    """No character of it ends a link in Markdown, in a terminal or in HTML."""
    assert re.fullmatch(r"https://[A-Za-z0-9/._#:~=,%-]+", get_sentence(key).url)


@pytest.mark.parametrize(
    ("entry", "text"),
    [(RED, 'Made Up, "Fish": fish have colours'), (get_sentence("rfc9110.field-names"), 'RFC 9110, "5.1 Field Names"')],
)
def test_a_sentence_as_text(entry: Sentence, text: str) -> None:
    assert str(entry) == text


def test_unknown_sentence() -> None:
    with pytest.raises(KeyError, match=r"unknown sentence 'triton-binary\.paragraph-5'"):
        get_sentence("triton-binary.paragraph-5")


# --- the locator on made-up documents --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, None),
        ("A page of its own.\n\n" + TEXT, None),
        (TEXT.replace("Red fish", "Red\n\n   fish"), None),
        (TEXT.replace("Red fish", "A fish"), SentenceMismatch.NOT_THERE),
        (TEXT.replace("blue   fish", "blue whale"), SentenceMismatch.NOT_THERE),
        (TEXT.replace("Red fish", "Bored fish"), SentenceMismatch.NOT_THERE),
        ("Blue fish. One red fish.", SentenceMismatch.NOT_THERE),
        ("", SentenceMismatch.NOT_THERE),
        (f"{TEXT} {TEXT}", SentenceMismatch.SEVERAL),
        (TEXT + " A red fish is rarer than blue fish.", SentenceMismatch.SEVERAL),
        (TEXT.replace("Red fish, blue", "Red fish or blue"), SentenceMismatch.CHANGED),
        (TEXT.replace("Red fish, blue", "Red fish, no blue"), SentenceMismatch.CHANGED),
        (TEXT.replace("Red", "RED"), SentenceMismatch.CHANGED),
    ],
)
def test_trouble(text: str, expected: SentenceMismatch | None) -> None:
    assert find_mismatch(squeeze_whitespace(text), RED) is expected


def test_a_place_ends_with_the_nearest_last_words() -> None:
    entry = Sentence("made-up.fins", MADE_UP, "Fish", "fish has", "fins")
    text = squeeze_whitespace(TEXT)
    assert [text[begin:end] for begin, end in find_matches(text, entry)] == ["fish has fins"]


def test_first_words_can_be_the_whole() -> None:
    entry = Sentence("made-up.fins", MADE_UP, "Fish", "A fish has fins", sha256=compute_digest("A fish has fins"))
    assert find_mismatch(squeeze_whitespace(TEXT), entry) is None


def test_words_need_no_letters_at_their_ends() -> None:
    text = 'in "a" : [ 1, 2 ] and { "b" : 3 }'
    entry = Sentence("made-up.a", MADE_UP, "Fish", '"a" : [', "]", compute_digest('"a" : [ 1, 2 ]'))
    assert find_mismatch(text, entry) is None
