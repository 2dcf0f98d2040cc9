"""How clients ask for classes, and what they give their callers of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from conformance.checks.support.client_rows import (
    get_unread_requirement,
    make_script,
    make_small_inference,
    make_small_script,
    to_raw_grpc_row,
)
from conformance.clients.answers.honest_calls import CallStyle
from conformance.clients.answers.script import Script
from conformance.clients.client import Client
from conformance.clients.expectations import expect_classes, expect_sent
from conformance.clients.inference import Inference, RequestedOutput
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

FORMS: Sequence[Form] = ("binary", "json")
CALLS = {"binary": CallStyle(form="raw"), "json": CallStyle(form="typed")}
TEXTS: Mapping[str, Sequence[str]] = {
    "one": ("0.750000:3",),
    "three": ("0.75:3", "0.5:11", "-0.25:0"),
    "labelled": ("17.5:2:tabby cat", "3.25:0:dog", "-1e-07:1:ibex"),
    "labels-with-colons": ("9:1:a:b", "8:0:http://x:80/:", "7:2::"),
    "labels-not-ascii": ("0.5:0:größe", "0.25:2:猫 😀"),
    "some-labelled": ("4:2:cat", "3:0", "2:1:dog"),
    "integers": ("9007199254740993:1", "-128:0"),
}


def make_sending_rows() -> Iterator[Row]:
    """Yield rows of requests for classes."""
    for count in (1, 5):
        for form in (None, *FORMS):
            asked = (RequestedOutput("OUT0", form, classes=count),)
            name = f"{count}-{form or 'open'}"
            own = ("CLIENT-SENDS-CLASSIFICATION", "CLIENT-SENDS-OUTPUTS", "CLIENT-SENDS-CLASSIFICATION-PLACE")
            yield Row(name, (make_small_inference(f"classes-{name}", "json", outputs=asked), own), answers=own)


@check("client.asks-for-classes", answers="CLIENT-SENDS-CLASSIFICATION")
@rows(*make_sending_rows())
@check("client-grpc.asks-for-classes", answers="CLIENT-SENDS-CLASSIFICATION/grpc", over=(GRPC,))
@rows(*[to_raw_grpc_row(row) for row in make_sending_rows() if row.id.endswith("open")])
def asks_for_classes(client: Client, inference: Inference, own: Sequence[str]) -> None:
    """Classes are asked for by their count, in the parameters of the output."""
    expect_sent(client.infer(inference, make_small_script(inference)), own)


def make_reading_rows() -> Iterator[Row]:
    """Yield a row for each kind of classes in each form."""
    for name, texts in TEXTS.items():
        for form in FORMS:
            asked = (RequestedOutput("OUT0", form, classes=len(texts)),)
            script = make_script((Tensor.of("OUT0", "BYTES", list(texts)),), grpc=CALLS[form])
            made = make_small_inference(f"read-classes-{name}-{form}", form, outputs=asked)
            yield Row(f"{name}-{form}", (made, script, texts), answers=("CLIENT-READS-CLASSES",))


@check("client.reads-classes", answers="CLIENT-READS-CLASSES")
@rows(*make_reading_rows())
@check("client-grpc.reads-classes", answers="CLIENT-READS-CLASSES/grpc", over=(GRPC,))
@rows(*map(to_raw_grpc_row, make_reading_rows()))
def reads_classes(client: Client, inference: Inference, script: Script, texts: Sequence[str]) -> None:
    """The caller is given value, index and the whole label of each class."""
    expect_classes(client.infer(inference, script), texts, unread=get_unread_requirement(client, inference))
