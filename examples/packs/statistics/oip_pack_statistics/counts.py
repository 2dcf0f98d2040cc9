"""The counts follow from what was just sent."""

from collections.abc import Callable, Mapping
from functools import partial

from conformance.checks.support.documents import find_other_role
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.transport.target import Target
from oip_pack_statistics.reading import PAUSES_S, ask, measure, read_quiet_counts

FEW, MORE = 1, 3  # odd numbers: replicas that share the requests show different counts then
TRIALS = 3  # a count that is wrong by requests of others is not wrong each time
EARLIEST, LATEST = 1_500_000_000_000, 4_102_444_800_000  # 2017 and 2100, in milliseconds


def expect_rise(target: Target, model: Model, by: Mapping[str, int], send: Callable[[int], None]) -> None:
    """Expect that counts rise by as much as the requests account for that `send` sends in a trial."""
    for trial in range(TRIALS):
        risen, reply = measure(target, model, partial(send, trial), by if trial == TRIALS - 1 else {})
        if risen["cache_hit.count"]:
            raise NotApplicableError("the server answers from a cache, although the requests differ")
        wrong = [name for name, count in by.items() if risen[name] != count]
        if not wrong:
            return
    read_quiet_counts(target, model, pause_s=PAUSES_S[-1])  # others may use the model now and then
    raise UnmetError(f"{wrong[0]} to rise by {by[wrong[0]]}", f"a rise by {risen[wrong[0]]}", reply)


def send_plain(target: Target, model: Model, batch: int, requests: int, trial: int) -> None:
    """Send plain requests one after the other, with other values each time, so that no cache answers."""
    for number in range(requests):
        request = model.request(model.build_salted_inputs(batch, 16 * trial + number), send="json")
        if not target.infer(request).succeeded:
            raise BlockedError(f"{model.name} refuses a plain request")


@check("statistics.counts-successes", requirements="STATISTICS-SUCCESS", role="identity_int32")
@rows(("one", FEW), ("several", MORE))
def counts_successes(target: Target, model: Model, requests: int) -> None:
    """The count of successes rises by the number of successful requests."""
    expect_rise(target, model, {"success.count": requests}, partial(send_plain, target, model, 4, requests))


@check("statistics.counts-nothing-else", requirements="STATISTICS-SUCCESS", role="identity_int32")
def counts_nothing_else(target: Target, model: Model) -> None:
    """A refused request is no success, and neither is one to another model."""

    def send_others(_trial: int) -> None:
        if target.infer(model.request(send="json", outputs=["NO_SUCH_OUTPUT"])).succeeded:
            raise NotApplicableError("the server answers a request for an output that does not exist")
        if other := target.model(find_other_role(model)):
            target.infer(other.request(send="json"))

    expect_rise(target, model, {"success.count": 0}, send_others)


@check("statistics.counts-items-of-batches", requirements="STATISTICS-INFERENCES", role="batching")
@rows(("one-item", 1), ("three-items", 3))
def counts_items_of_batches(target: Target, model: Model, items: int) -> None:
    """The count of inferences rises by the number of items of each batch."""
    expect_rise(target, model, {"inference_count": MORE * items}, partial(send_plain, target, model, items, MORE))


@check("statistics.counts-executions", requirements="STATISTICS-EXECUTIONS", role="identity_int32")
@rows(("in-all", "execution_count"), ("by-batch-size", "batch_stats"))
def counts_executions(target: Target, model: Model, name: str) -> None:
    """Each of successive requests is an execution of its own."""
    expect_rise(target, model, {name: MORE}, partial(send_plain, target, model, 4, MORE))


@check("statistics.dates-the-last-request", requirements="STATISTICS-LAST-INFERENCE", role="identity_int32")
def dates_the_last_request(target: Target, model: Model) -> None:
    """The time of the last request is in milliseconds since the epoch, and later after another request."""
    times = []
    for number in range(2):
        measure(target, model, partial(send_plain, target, model, 4, 1, number), {"success.count": 1})
        entries, reply = ask(target, model.path)
        times.append(max(entry["last_inference"] for entry in entries))
    if not EARLIEST <= times[1] < LATEST or times[1] <= times[0]:
        raise UnmetError(f"milliseconds since the epoch, later than {times[0]}", str(times[1]), reply)
