"""What has to be sent again to see a failure, the programs that send it, and bodies that are kept for that."""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path

import pytest

from conformance.judging import evidence, reproducers
from conformance.judging.evidence import SavedBodies
from conformance.judging.reproduction import MAX_EARLIER_REQUESTS, build_reproduction, is_single_request
from conformance.transport import settings
from conformance.transport.exchange import Exchange
from conformance.transport.send_options import SendOptions
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import Message

URL = "http://127.0.0.1:9"


def exchange(
    number: int, *, call: int, connection: int = 0, send_options: SendOptions | None = None, grpc: bool = False
) -> Exchange:
    path, method = ("/inference.GRPCInferenceService/ModelInfer", GRPC_METHOD) if grpc else ("/v2/x", "POST")
    message = Message(path, (), b"body %d" % number, method)
    options = send_options or SendOptions()
    return Exchange(number, message, URL + path, 200, send_options=options, connection=connection, call=call)


def numbers(sent: list[Exchange], last: int, *, is_about_state: bool = False) -> list[list[int]]:
    return [
        [one.number for one in step] for step in build_reproduction(sent[last], sent, is_about_state=is_about_state)
    ]


@pytest.mark.parametrize(
    ("sent", "last", "expected"),
    [
        ([exchange(0, call=0), exchange(1, call=1, connection=3), exchange(2, call=2)], 2, [[2]]),
        ([exchange(k, call=k, connection=1 + k % 2) for k in range(3)], 2, [[0], [2]]),
        ([exchange(0, call=0), *(exchange(k, call=1) for k in (1, 2, 3))], 2, [[2, 1, 3]]),
        ([exchange(k, call=0, connection=5, grpc=True) for k in range(3)], 1, [[1, 0, 2]]),
        ([exchange(k, call=0, connection=5) for k in range(3)], 1, [[0], [1]]),
    ],
    ids=[
        "a connection of its own: alone",
        "what came before on the connection: first",
        "what was in flight: at once, the failure first",
        "calls on one connection: in flight at once",
        "requests of one call on one connection: in turn",
    ],
)
def test_what_is_sent_again(sent: list[Exchange], last: int, expected: list[list[int]]) -> None:
    assert numbers(sent, last) == expected
    assert is_single_request(build_reproduction(sent[last], sent, is_about_state=False)) is (expected == [[last]])


def test_a_manner_is_no_plain_course() -> None:
    sent = [exchange(0, call=0, connection=1, send_options=SendOptions(chunked=()))]
    assert not is_single_request(build_reproduction(sent[0], sent, is_about_state=False))


def test_pipelined_requests_are_one_step_in_which_files_keep_the_order_on_the_wire() -> None:
    sent = [exchange(k, call=1, connection=5, send_options=SendOptions(pipelined=True)) for k in range(3)]
    steps = build_reproduction(sent[2], [exchange(0, call=0), *sent])
    assert [[one.number for one in step] for step in steps] == [[2, 0, 1]]
    program = reproducers.build_http_program(steps, settings.make_settings(URL), {})
    assert "PIPELINED = [['01-03', '01-01', '01-02']]\n" in program


def test_what_may_have_left_something_behind_goes_first_where_state_is_judged() -> None:
    sent = [exchange(k, call=k) for k in range(MAX_EARLIER_REQUESTS + 10)]
    found = numbers(sent, MAX_EARLIER_REQUESTS + 9, is_about_state=True)
    assert found == [[k] for k in range(9, MAX_EARLIER_REQUESTS + 10)]


def test_a_way_that_a_check_knows_is_taken_from_its_beginning() -> None:
    sent = [exchange(0, call=0), exchange(1, call=1), exchange(2, call=2), exchange(3, call=2), exchange(4, call=3)]
    assert [[one.number for one in step] for step in build_reproduction(sent[4], sent, since=1)] == [[1], [2, 3], [4]]


@pytest.mark.parametrize("grpc", [False, True])
def test_secrets_are_in_no_file(tmp_path: Path, grpc: bool) -> None:
    headers = ["Authorization: Bearer secret-token", "Host: models.example"]
    given = settings.make_settings(URL, headers=headers, grpc="127.0.0.1:8")
    sent = [exchange(k, call=k, connection=1, grpc=grpc, send_options=SendOptions(segments=(2,))) for k in range(2)]
    steps = build_reproduction(sent[1], sent, is_about_state=False)
    reproducers.write(tmp_path, steps, given)
    make = reproducers.build_grpc_program if grpc else reproducers.build_http_program
    program = make(steps, given, {"Authorization": "AUTHORIZATION"})
    ast.parse(program)
    files = sorted((tmp_path / "course").iterdir())
    assert [path.name for path in files] == ["01", "02"]
    assert b"secret-token" not in b"".join([program.encode(), *(path.read_bytes() for path in files)])
    assert "os.environ['AUTHORIZATION']" in program
    assert grpc or b"\r\nHost: models.example\r\n" in files[0].read_bytes()


# --- saved bodies -----------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_body_is_kept_once(tmp_path: Path) -> None:
    bodies = SavedBodies()
    assert list(tmp_path.iterdir()) == []
    first, again, other = bodies.save(b"a" * 2000), bodies.save(b"a" * 2000), bodies.save(b"b" * 2000)
    assert first is not None
    assert other is not None
    assert first == again != other
    assert (Path(first).read_bytes(), Path(other).read_bytes()) == (b"a" * 2000, b"b" * 2000)


def test_there_is_room_for_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "MAX_SAVED_FILES", 2)
    bodies = SavedBodies()
    assert [bodies.save(bytes([number])) is not None for number in (1, 2, 3, 1)] == [True, True, False, True]
    assert SavedBodies(_room=3).save(b"four") is None


def test_where_nothing_can_be_written_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    assert SavedBodies().save(b"a") is None
