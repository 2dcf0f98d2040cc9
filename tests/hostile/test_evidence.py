"""Recordings are bounded, whoever writes them: what is long, what repeats, what unpacks to more, what is missing."""

from __future__ import annotations

import json
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.judging.evidence import write_body
from conformance.spec import packed_files
from conformance.transport import har_bodies, journal, recording
from conformance.transport.exchange import Call, Exchange
from conformance.transport.har import NAME, PLAIN_NAME, HarError
from conformance.transport.har_bodies import JUDGED_LIMIT, BodyReader, BodyWriter, Excerpt
from conformance.transport.journal import Journal, JournalError
from conformance.transport.replay import NotRecordedError, PartlyRecordedError, ReplayTarget
from conformance.transport.settings import Settings
from conformance.wire.request import Message
from tests.support.run_archives import read_log

SETTINGS = Settings("http://h")
MIB = 1024 * 1024
LONG = bytes(range(256)) * (JUDGED_LIMIT.whole // 256) + b"end"


def call(index: int, sent: bytes, came: bytes, scope: str = "scope") -> Call:
    message = Message("/v2", body=sent)
    return Call(scope, index, (message,), (Exchange(0, message, "http://h/v2", 200, (), came),))


def recorded(folder: Path, *calls: Call) -> Path:
    write = Journal(folder, "", SETTINGS)
    for one in calls:
        write(one)
    journal.merge(folder, "http://h", {"scope": 0})
    return folder / NAME


def replayed(file: Path) -> ReplayTarget:
    return ReplayTarget(SETTINGS, recording.load(file).calls)


def test_of_a_long_answer_head_tail_length_and_digest_are_kept(tmp_path: Path) -> None:
    file = recorded(tmp_path, call(0, b"", LONG))
    (entry,) = read_log(file)["entries"]
    assert entry["response"]["content"].keys() == {"size", "mimeType", "_length", "_sha256", "_head", "_tail"}
    (found,) = recording.load(file).calls.values()
    body = found.exchanges[0].body
    assert isinstance(body, Excerpt)
    assert body == LONG[: JUDGED_LIMIT.head] + LONG[-JUDGED_LIMIT.tail :]
    assert body.is_excerpt_of(LONG)
    assert not body.is_excerpt_of(LONG[:-1] + b"D")


def test_such_an_answer_is_not_judged_again(tmp_path: Path) -> None:
    target = replayed(recorded(tmp_path, call(0, b"", LONG)))
    with (
        target.scope("scope"),
        pytest.raises(PartlyRecordedError, match="the recording has only 5120 of 8388611 bytes"),
    ):
        target.send(Message("/v2"))


def test_a_long_request_is_told_from_another_by_its_digest(tmp_path: Path) -> None:
    file = recorded(tmp_path, call(0, LONG, b"answer"))
    assert file.stat().st_size < 2000
    target = replayed(file)
    with target.scope("scope"):
        assert target.send(Message("/v2", body=LONG)).body == b"answer"
    with target.scope("scope"), pytest.raises(NotRecordedError, match="another body"):
        target.send(Message("/v2", body=LONG[:-1] + b"D"))


def test_a_body_that_repeats_is_kept_once_and_read_each_time(tmp_path: Path) -> None:
    body = b"0123456789" * 100_000
    file = recorded(tmp_path, *[call(index, b"", body) for index in range(3)])
    assert lzma.decompress(file.read_bytes()).count(b"0123456789" * 100) == 1000
    assert [one.exchanges[0].body for one in recording.load(file).calls.values()] == [body] * 3


def test_an_answer_that_repeats_a_long_request_is_kept_whole(tmp_path: Path) -> None:
    body = b"0123456789" * 1000
    file = recorded(tmp_path, call(0, body, body), call(1, body, b""))
    assert [one.exchanges[0].body for one in recording.load(file).calls.values()] == [body, b""]


@pytest.mark.parametrize("body", [b"", b"text\r\n", "\u00e9".encode(), b"\0\xff", b"{" * 200_000, b"\x7f", b'"\\/'])
def test_every_body_comes_back_as_it_was(body: bytes) -> None:
    members = json.loads(json.dumps(BodyWriter().build_members(body, "encoding")))
    assert BodyReader().read_body(members, "encoding") == body


def test_all_bodies_together_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MAX_TOTAL_BYTES", 10_000)
    file = recorded(tmp_path, *[call(index, b"", b"%d" % index * 4000) for index in range(4)])
    kinds = [type(one.exchanges[0].body) for one in recording.load(file).calls.values()]
    assert kinds == [bytes, bytes, Excerpt, Excerpt]


def test_memory_does_not_grow_with_what_is_recorded(tmp_path: Path) -> None:
    write = Journal(tmp_path, "", SETTINGS)
    tracemalloc.start()
    try:
        for index in range(24):
            write(call(index, b"", index.to_bytes(1, "big") * MIB))
        journal.merge(tmp_path, "http://h", {})
        assert tracemalloc.get_traced_memory()[1] < 20 * MIB
    finally:
        tracemalloc.stop()


def test_parts_of_several_processes_are_one_recording_in_the_order_of_the_suite(tmp_path: Path) -> None:
    body = b"0123456789" * 1000
    for process, scopes in (("gw0", ("c", "a")), ("gw1", ("b", "other"))):
        write = Journal(tmp_path, process, SETTINGS)
        for scope in scopes:
            write(call(0, b"", body, scope))
    journal.merge(tmp_path, "http://h", {"a": 0, "b": 1, "c": 2})
    log = read_log(tmp_path / NAME)
    assert [entry["_scope"] for entry in log["entries"]] == ["other", "a", "b", "c"]
    assert {one.exchanges[0].body for one in recording.load(tmp_path / NAME).calls.values()} == {body}
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("name", [journal.PART_NAME, journal.BODIES_NAME])
def test_truncated_journal_is_refused(tmp_path: Path, name: str) -> None:
    Journal(tmp_path, "", SETTINGS)(call(0, b"", b"body"))
    left = tmp_path / name
    left.write_bytes(left.read_bytes()[:-2])
    with pytest.raises(JournalError, match="the journal of a process is incomplete"):
        journal.merge(tmp_path, "http://h", {})
    assert {path.name for path in tmp_path.iterdir()} == {journal.PART_NAME, journal.BODIES_NAME}


# --- recordings from strangers ---------------------------------------------------------------------------------------


def repacked(edit: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """Change the first entry of a recording."""

    def change(octets: bytes) -> bytes:
        lines = lzma.decompress(octets).split(b"\n")
        entry = json.loads(lines[1].removesuffix(b","))
        edit(entry["response"]["content"])
        return lzma.compress(b"\n".join([lines[0], json.dumps(entry).encode(), *lines[2:]]))

    return change


LARGE_WINDOW = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 28}]


def bomb(_: bytes) -> bytes:
    return lzma.compress((b" " * MIB + b"\n") * 9, preset=0)


def flipped(octets: bytes) -> bytes:
    return octets[:60] + bytes([octets[60] ^ 1]) + octets[61:]


STRANGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "bomb": (bomb, "decompresses to more than 8388608 bytes"),
    "long-line": (lambda _: lzma.compress(b"[" + b" " * 5 * MIB, preset=0), "a line of more than 4194304 bytes"),
    "many-arrays": (lambda _: lzma.compress(b"[" * 1_000_001, preset=0), "more than 1000000 arrays and objects"),
    "large-window": (lambda _: lzma.compress(b"[", filters=LARGE_WINDOW), "cannot be decompressed"),
    "cut": (lambda octets: octets[:-40], "is cut short"),
    "flipped": (flipped, "cannot be decompressed: "),
    "more": (lambda octets: octets + b"more", "has data after the end of its compressed data"),
    "twice": (lzma.compress, "is packed twice"),
    "other-body": (repacked(lambda body: body.update(text="b" * 5000)), "a body does not match its digest"),
    "no-body": (repacked(lambda body: body.pop("text")), "a body is missing"),
    "no-digest": (repacked(lambda body: body.update(text=1, _sha256=1)), "is not a recording of this suite"),
    "head-alone": (repacked(lambda body: body.update(_length=1)), "is not a recording of this suite"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_invalid_recording_is_refused_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(packed_files, "MAX_RUN_FILE_BYTES", 8 * MIB)
    monkeypatch.setattr(packed_files, "MAX_LINE_BYTES", 4 * MIB)
    edit, said = STRANGE[name]
    file = recorded(tmp_path, call(0, b"", b"a" * 5000))
    file.write_bytes(edit(file.read_bytes()))
    with pytest.raises(HarError, match=said) as refused:
        recording.load(file)
    assert "\n" not in str(refused.value)


def test_body_after_truncated_body_is_refused(tmp_path: Path) -> None:
    write = Journal(tmp_path, "", SETTINGS)
    write(call(0, b"", b"first"))
    stored = tmp_path / journal.BODIES_NAME
    stored.write_bytes(stored.read_bytes()[:-2])
    write(call(1, b"", b"other"))
    with pytest.raises(JournalError, match="the journal of a process is incomplete"):
        journal.merge(tmp_path, "http://h", {})


def test_a_recording_of_an_earlier_suite_is_read(tmp_path: Path) -> None:
    body = b"0123456789" * 1000
    file = recorded(tmp_path, call(0, b"sent", body))
    plain = tmp_path / PLAIN_NAME
    for text in (json.dumps({"log": read_log(file)}), json.dumps({"log": read_log(file)}, indent=1)):
        plain.write_text(text)
        (found,) = recording.load(plain).calls.values()
        assert (found.messages[0].body, found.exchanges[0].body) == (b"sent", body)


def test_the_folder_of_a_failed_check_has_head_and_tail_of_a_long_answer(tmp_path: Path) -> None:
    write_body(tmp_path, "response", LONG)
    assert (tmp_path / "response.head.bin").read_bytes() == LONG[: JUDGED_LIMIT.head]
    assert (tmp_path / "response.tail.bin").read_bytes() == LONG[-JUDGED_LIMIT.tail :]
    about = json.loads((tmp_path / "response.json").read_text())
    assert about == {"length": len(LONG), "sha256": har_bodies.compute_digest(LONG)}
    assert not (tmp_path / "response.bin").exists()


def test_a_digest_is_that_of_the_body() -> None:
    assert har_bodies.compute_digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
