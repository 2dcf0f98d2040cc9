"""The client that checks ask, and what it makes of what an adapter says and the peer has heard."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection, HTTPException
from typing import Any

import pytest
from tritonclient.grpc import InferenceServerClient

from conformance.checks.support.client_rows import (
    derive_model_name,
    expect_scripted_answer_read,
    make_script,
    make_small_inference,
    make_small_script,
    make_tensor,
)
from conformance.clients.adapter import AdapterHangsError, AdapterLostError
from conformance.clients.answers.errors import PLACES, make_truncated_script
from conformance.clients.answers.honest import Style
from conformance.clients.answers.script import Delivery, Ending, HttpAnswer, Script, Tensors
from conformance.clients.client import TIMEOUT, Client
from conformance.clients.inference import ClientOutput, Inference, Introduction, Result
from conformance.clients.liveness import Liveness
from conformance.clients.peer.peer import Peer
from conformance.clients.peer.scenario import ReceivedRequest
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.spec.extensions import GRPC, HTTP
from conformance.transport.exchange import FailureKind, Reply
from conformance.wire.client_request import ClientRequest
from conformance.wire.tensor import Tensor

INFERENCE = make_small_inference("peer", "json")
CLOSED = Style(delivery=Delivery(ending=Ending.CLOSE))
MODEL = f"/v2/models/{derive_model_name('peer')}"
HEAD = f"POST {MODEL}/infer HTTP/1.1\r\nHost: h\r\n".encode()
REQUEST = HEAD + b"Content-Length: 2\r\n\r\n{}"


class ConstantAdapter:
    """An adapter that says one thing whatever it is asked, and sends nothing."""

    introduction = Introduction("said")

    def __init__(self, result: Result | Exception) -> None:
        self.result = result

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        assert (transport, address[:4], at_once) == (HTTP, "http", False)
        assert timeout > 0
        if isinstance(self.result, Exception):
            raise self.result
        return [self.result] * len(inferences)

    def close(self) -> None:
        """Do nothing."""


def test_models_of_inferences_that_are_made_together_differ(peer: Peer) -> None:
    client = Client(ConstantAdapter(Result()), peer, HTTP)
    with pytest.raises(ValueError, match="a model of its own"):
        client.infer_all([INFERENCE, INFERENCE], make_small_script(INFERENCE))


class PostingAdapter(ConstantAdapter):
    """An adapter that sends an empty object to the model of each inference."""

    def infer(
        self, transport: str, address: str, inferences: Sequence[Inference], *, at_once: bool, timeout: float
    ) -> list[Result]:
        connection = HTTPConnection(address.removeprefix("http://"), timeout=timeout)
        for one in inferences:
            with suppress(OSError, HTTPException):
                connection.request("POST", f"/v2/models/{one.model}/infer", b"{}")
                connection.getresponse().read()
        connection.close()
        return super().infer(transport, address, inferences, at_once=at_once, timeout=timeout)


HANGS = AdapterHangsError("no answer")
NO_RAW = r"the client cannot make this inference: no raw\\nrequests"


@pytest.mark.parametrize(
    ("adapter", "error", "reason", "sent"),
    [
        (ConstantAdapter(Result(cannot="no raw\nrequests")), NotApplicableError, NO_RAW, 0),
        (ConstantAdapter(HANGS), AdapterHangsError, "no answer", 0),  # which says nothing of the client
        (PostingAdapter(HANGS), UnmetError, "nothing came: no answer", 1),
    ],
)
def test_without_a_result_the_row_has_a_reason(
    adapter: ConstantAdapter, error: type[Exception], reason: str, sent: int, peer: Peer
) -> None:
    client = Client(adapter, peer, HTTP)
    with pytest.raises(error, match=reason):
        client.infer(INFERENCE, make_small_script(INFERENCE))
    assert len(client.requests) == sent


def test_each_inference_is_seen_with_its_own_requests(peer: Peer) -> None:
    client = Client(PostingAdapter(Result(())), peer, HTTP)
    second = replace(INFERENCE, model="another_model")
    seen = client.infer_all([INFERENCE, second], make_small_script(INFERENCE))
    assert [one.inference.model for one in seen] == [INFERENCE.model, "another_model"]
    assert [[heard.number for heard in one.requests] for one in seen] == [[0], [1]]
    third = client.infer(INFERENCE, make_small_script(INFERENCE))
    assert [heard.number for heard in third.requests] == [2]
    assert len(client.requests) == 3


def test_received_request_becomes_exchange(peer: Peer) -> None:
    seen = Client(PostingAdapter(Result(())), peer, HTTP).infer(INFERENCE, make_small_script(INFERENCE))
    exchange = seen.requests[0].to_exchange()
    assert (exchange.url, exchange.status) == (f"{peer.http_address}{MODEL}/infer", 200)
    assert exchange.message.body == b"{}"
    assert Reply(exchange).answer.names() == ("OUT0",)


def test_an_answer_that_broke_off_is_an_exchange_with_a_failure(peer: Peer) -> None:
    made = (make_tensor("x", "OUT0", "INT32", (2,)),)
    script = make_script(made, make_truncated_script(PLACES["in-the-json"], Ending.CLOSE))
    client = Client(PostingAdapter(Result(error="broken off")), peer, HTTP)
    failure = client.infer(INFERENCE, script).requests[0].to_exchange(7).failure
    assert failure is not None
    assert failure.kind is FailureKind.BROKEN


def test_exception_in_script_is_raised(peer: Peer) -> None:
    def failing(_received: ClientRequest, _inference: Inference, _tensors: Tensors) -> HttpAnswer:
        raise KeyError("no such style")

    with pytest.raises(KeyError, match="no such style"):
        Client(PostingAdapter(Result(())), peer, HTTP).infer(INFERENCE, make_script((), failing))


@pytest.mark.parametrize(
    ("result", "script", "moves"),
    [
        (Result(()), make_small_script(INFERENCE), False),
        (Result(error="broken"), make_small_script(INFERENCE), True),
        (Result(()), make_script((make_tensor("m", "OUT0", "INT32", (2,)),), CLOSED), True),
    ],
)
def test_peer_changes_http_port_after_failure(result: Result, script: Script, moves: bool) -> None:
    with Peer() as opened:
        first = opened.http_address
        client = Client(PostingAdapter(result), opened, HTTP)
        client.infer(INFERENCE, script)
        client.infer(replace(INFERENCE, model="another_model"), script)
        assert opened.http_address == first
        Client(PostingAdapter(result), opened, HTTP)
        assert (opened.http_address != first) == moves


def test_peer_changes_grpc_port_after_failure() -> None:
    with Peer() as opened:
        first = opened.grpc_address
        opened.move_after_failure(GRPC)
        assert opened.grpc_address == first
        opened.note_failure(GRPC)
        opened.move_after_failure(GRPC)
        assert opened.grpc_address not in (first, None)
        client = InferenceServerClient(opened.grpc_address)
        assert client.is_server_live()
        client.close()


OTHER = Tensor.from_values("OUT0", "INT32", [-5, 6])


@pytest.mark.parametrize(("given", "ends"), [(OTHER, BlockedError), (None, UnmetError)])
def test_delivery_is_blamed_only_if_plain_delivery_is_read(
    peer: Peer, given: Tensor | None, ends: type[Exception]
) -> None:
    made = (make_tensor("plain", "OUT0", "INT32", (2,)),)
    script = make_script(made, Style(delivery=Delivery(chunk_bytes=3)))

    class Chunkless(PostingAdapter):
        """An adapter that gives the right tensor of the plain model alone, or never."""

        def infer(self, transport: str, address: str, inferences: Sequence[Inference], **options: Any) -> list[Result]:
            super().infer(transport, address, inferences, **options)
            is_plain = inferences[0].model != INFERENCE.model
            one = made[0] if is_plain and given is None else OTHER
            return [Result((ClientOutput("OUT0", one),))]

    with pytest.raises(ends):
        expect_scripted_answer_read(Client(Chunkless(Result(())), peer, HTTP), INFERENCE, script)


# --- clients that wait ------------------------------------------------------------------------------------------------

WAITED = Result(error="no answer in time", elapsed=TIMEOUT)
AT_ONCE = Result(error="refused", elapsed=0.1)


class WaitingAdapter:
    """An adapter without a client, that gives this result, or hangs, and counts how often it was asked."""

    introduction = Introduction("waiting")

    def __init__(self, plain: Result | None, others: Result | None) -> None:
        self.plain, self.others = plain, others
        self.count = 0

    def infer(self, *asked: Any, **_: Any) -> list[Result]:
        self.count += 1
        inferences: Sequence[Inference] = asked[2]
        given = self.plain if inferences[0].model.startswith("plain_") else self.others
        if given is None:
            raise AdapterHangsError("no answer")
        return [given] * len(inferences)

    def close(self) -> None:
        """Do nothing."""


def ask_until_lost(peer: Peer, adapter: WaitingAdapter, count: int = 12) -> str:
    """Have a client make inferences; return why it is lost, or nothing."""
    liveness = Liveness(TIMEOUT)
    for place in range(count):
        client = Client(adapter, peer, HTTP, liveness)
        try:
            with suppress(AdapterHangsError):
                client.infer(replace(INFERENCE, model=f"waiting-{place}"), make_small_script(INFERENCE))
        except AdapterLostError as lost:
            return str(lost)
    return ""


@pytest.mark.parametrize(("result", "waits"), [(WAITED, 3), (None, 2)])
def test_a_client_that_always_waits_is_lost_after_few_inferences_and_a_plain_one(
    peer: Peer, result: Result | None, waits: int
) -> None:
    adapter = WaitingAdapter(result, result)
    assert ask_until_lost(peer, adapter).startswith(
        f"the client hangs or sends no complete request: {waits} inferences timed out"
    )
    assert adapter.count <= 5  # the plain one in either form


@pytest.mark.parametrize(("plain", "others"), [(AT_ONCE, WAITED), (AT_ONCE, None), (WAITED, AT_ONCE)])
def test_a_client_that_makes_some_inferences_in_time_is_judged_on(
    peer: Peer, plain: Result | None, others: Result | None
) -> None:
    adapter = WaitingAdapter(plain, others)
    assert ask_until_lost(peer, adapter) == ""
    assert adapter.count >= 12


def test_what_a_client_cannot_do_does_not_make_up_for_its_waits() -> None:
    liveness = Liveness(TIMEOUT)
    for _ in range(3):
        liveness.count_inferences([WAITED], [], TIMEOUT)
        liveness.count_inferences([Result(cannot="no JSON")], [], TIMEOUT)

    def wait_again(_: Inference) -> bool:
        liveness.count_inferences([WAITED], [], TIMEOUT)
        return True

    with pytest.raises(AdapterLostError, match="3 inferences timed out"):
        liveness.expect_responsive_client(wait_again)


def test_silence_of_the_peer_is_no_wait_of_the_client() -> None:
    answer = HttpAnswer((), ending=Ending.SILENT)
    heard = ReceivedRequest(ClientRequest("POST", "/v2/models/m/infer"), answer, "http://x")
    liveness = Liveness(TIMEOUT)
    for _ in range(9):
        liveness.count_inferences([WAITED], [heard], TIMEOUT)
    liveness.expect_responsive_client(lambda _: pytest.fail("a plain inference is made"))
