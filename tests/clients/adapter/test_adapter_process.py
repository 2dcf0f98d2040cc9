"""An adapter is a program that may do anything: whatever it does, there is an answer or one clear sentence, in time."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from conformance.clients import adapter, line_process
from conformance.clients.adapter import AdapterError, AdapterHangsError, AdapterLostError, AdapterProcess
from conformance.clients.inference import Inference, Introduction
from conformance.wire.tensor import Tensor
from tests.clients.adapter.programs import HELLO, make_answering_command

NUMBERS = Tensor("IN", "INT32", (2,), np.array([1, 2], "<i4"))
ONE = Inference("m", (NUMBERS,))
ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    said = {"client": {"name": "echo", "version": "2", "language": "Python", "transports": ["http", "http"]}}
    if asked["command"] == "infer":
        said = {"results": [{"outputs": one["inputs"], "id": one["id"]} for one in asked["inferences"]]}
    print(json.dumps({"seq": asked["seq"], **said}), flush=True)
"""


@pytest.fixture(autouse=True)
def _is_in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "MARGIN_S", 0.3)
    monkeypatch.setattr(adapter, "GRACE_S", 0.2)


def asked(process: AdapterProcess, *inferences: Inference, timeout: float = 20.0) -> object:
    return process.infer("http", "http://127.0.0.1:1", inferences or (ONE,), at_once=False, timeout=timeout)


def error_of(command: Sequence[str], *, introduction_timeout: float = 5.0) -> AdapterError:
    with (
        closing(AdapterProcess(command, introduction_timeout=introduction_timeout)) as process,
        pytest.raises(AdapterError) as caught,
    ):
        asked(process)
    return caught.value


@pytest.fixture
def echo() -> Iterator[AdapterProcess]:
    with closing(AdapterProcess((sys.executable, "-c", ECHO))) as process:
        yield process


def test_an_adapter_introduces_its_client(echo: AdapterProcess) -> None:
    assert echo.introduction == Introduction("echo", "2", "Python", ("http",))


def test_results_come_in_the_order_of_the_inferences(echo: AdapterProcess) -> None:
    found = echo.infer(
        "http", "x", [Inference("a", (NUMBERS,), id="1"), Inference("b", (), id="2")], at_once=True, timeout=20
    )
    assert [result.id for result in found] == ["1", "2"]
    (output,) = found[0].outputs or ()
    assert output.tensor is not None
    assert output.tensor.array.tolist() == [1, 2]
    assert found[0].elapsed > 0


def test_lines_are_longer_than_any_pipe(echo: AdapterProcess) -> None:
    large = Tensor("IN", "UINT8", (3_000_000,), np.arange(3_000_000, dtype="u1"))
    (found,) = echo.infer("http", "x", [Inference("m", (large,), id="1")], at_once=False, timeout=20)
    assert found.outputs is not None
    assert found.outputs[0].tensor is not None
    assert found.outputs[0].tensor.array.tobytes() == large.array.tobytes()


def test_a_line_is_no_longer_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_process, "MAX_LINE_BYTES", 1000)
    found = error_of(make_answering_command(then="os.write(1, b'x' * 100_000); time.sleep(60)"))
    assert str(found) == "a line of the adapter is longer than 1000 bytes"


def test_one_that_cannot_be_started_is_told_by_its_name() -> None:
    assert str(error_of(("no-such-adapter",))) == (
        "the adapter cannot be started: no-such-adapter: No such file or directory"
    )


ANSWERS = {
    "no JSON": ("connected", "line 2 of the adapter's standard output is not JSON: 'connected'; redirect what"),
    "deep": ("[" * 100_000, "line 2 of the adapter's standard output is not JSON"),
    "another seq": ('{"seq": 1, "results": [{"cannot": "x"}]}', "line 2 of the adapter answers command 1 instead of 2"),
    "no seq": ('{"results": []}', "(results) at $: 'seq' is a required property"),
    "hello again": (HELLO, "(results) at $: 'results' is a required property"),
    "two": ('{"seq": 2, "results": [{"cannot": "x"}, {"cannot": "x"}]}', "has 2 results for 1 inferences"),
    "no reason": ('{"seq": 2, "results": [{"cannot": ""}]}', "$.results[0].cannot"),
    "no shape": (
        '{"seq": 2, "results": [{"outputs": [{"name": "O", "datatype": "INT8", "data": ""}]}]}',
        "$.results[0].outputs[0]",
    ),
    "huge shape": (
        '{"seq": 2, "results": [{"outputs": [{"name": "O", "datatype": "INT8", "shape": [1.0], "data": "AQ=="}]}]}',
        "has an invalid tensor",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_does_not_fit_is_one_sentence_with_line_and_place(name: str) -> None:
    line, expected = ANSWERS[name]
    found = error_of(make_answering_command(HELLO, line, then="time.sleep(60)"))
    assert expected in str(found)
    assert "\n" not in str(found)


def test_an_answer_that_is_no_text_is_shown_as_far_as_it_is() -> None:
    found = error_of(make_answering_command(HELLO, then="os.write(1, b'a\\xff\\x1b[2J\\n'); time.sleep(60)"))
    assert "is not JSON: 'a\ufffd\\\\x1b[2J'" in str(found)


def test_a_bad_introduction_is_told_too() -> None:
    found = error_of(make_answering_command('{"seq": 1, "client": {"name": "x", "transports": ["carrier pigeon"]}}'))
    assert "(introduction) at $.client.transports[0]" in str(found)


def test_one_that_dies_says_its_last_words() -> None:
    found = error_of(make_answering_command(HELLO, then="sys.stderr.write('a\\x1b[31m\\nb\\n'); sys.exit(7)"))
    assert str(found) == "the adapter exited with status 7"
    assert found.stderr == ("a\\x1b[31m", "b")


def test_one_that_is_killed_says_by_what() -> None:
    assert (
        str(error_of(make_answering_command(HELLO, then="os.kill(os.getpid(), 11)")))
        == "the adapter was killed by SIGSEGV"
    )


def test_what_it_writes_to_standard_error_is_read_all_the_time_and_its_end_is_kept() -> None:
    found = error_of(
        make_answering_command(HELLO, then="sys.stderr.write('noise\\n' * 100_000 + 'end\\n'); sys.exit(1)")
    )
    assert len(found.stderr) == line_process.TAIL_LINES
    assert found.stderr[-1] == "end"


def test_one_that_hangs_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    lives = tmp_path / "lives"
    os.mkfifo(lives)
    reader = os.open(lives, os.O_RDONLY | os.O_NONBLOCK)
    child = f"import time; file = open({str(lives)!r}, 'w'); file.write('x'); file.flush(); time.sleep(600)"
    program = f"import subprocess; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(600)"
    process = AdapterProcess(make_answering_command(HELLO, then=program))
    assert process.introduction.name == "odd"
    assert select.select([reader], [], [], 20)[0]
    assert os.read(reader, 1) == b"x"
    with pytest.raises(AdapterHangsError, match=r"the adapter has not answered in 0.5 s"):
        asked(process, timeout=0.2)
    assert select.select([reader], [], [], 20)[0], "what it has started still runs"
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_one_that_does_not_say_who_it_is_has_no_longer_than_its_patience() -> None:
    assert isinstance(
        error_of(make_answering_command(then="time.sleep(600)"), introduction_timeout=0.2), AdapterHangsError
    )


def test_one_that_does_not_end_is_ended() -> None:
    process = AdapterProcess(make_answering_command(HELLO, then="time.sleep(600)"))
    assert process.introduction.name == "odd"
    process.close()
    assert process.introduction.name == "odd"  # what it said is known without it


def test_one_that_broke_is_started_again(tmp_path: Path) -> None:
    life = tmp_path / "life"
    dies_once = f"import os, sys\nif not os.path.exists({str(life)!r}): open({str(life)!r}, 'w'); sys.exit(1)\n{ECHO}"
    with closing(AdapterProcess((sys.executable, "-c", dies_once))) as process:
        with pytest.raises(AdapterError, match="exited with status 1"):
            asked(process, Inference("m", (), id="1"))
        assert asked(process, Inference("m", (), id="1"))


def test_one_that_breaks_again_and_again_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "MAX_SUCCESSIVE_BREAKS", 2)
    with closing(AdapterProcess(make_answering_command(HELLO, then="sys.exit(1)"))) as process:
        for _ in range(2):
            with pytest.raises(AdapterError, match="exited with status 1"):
                asked(process)
        with pytest.raises(AdapterLostError, match="failed 2 times in a row: the adapter exited with status 1"):
            asked(process)


@pytest.mark.parametrize(
    "option", [("--token=sesame-4711-zq7",), ("--api-key", "sesame-4711-zq7"), ("-H", "Auth: sesame-4711-zq7")]
)
def test_credentials_of_the_command_are_masked(option: tuple[str, ...]) -> None:
    """What an adapter writes goes into reports and recordings, and its command does not."""
    program = "import sys; print(sys.argv[-1], file=sys.stderr); print('no JSON:', sys.argv[-1]); sys.stdin.readline()"
    found = error_of((sys.executable, "-c", program, *option))
    assert "no JSON:" in str(found)
    assert "sesame" not in f"{found} {found.stderr}"
