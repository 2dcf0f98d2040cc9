"""How clients read answers in unusual but valid JSON (RFC 8259), and with any valid HTTP framing and headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from conformance.checks.support.client_rows import (
    FORMS,
    expect_scripted_answer_read,
    make_script,
    make_small_inference,
    make_tensor,
)
from conformance.clients.answers.honest import Document, Style
from conformance.clients.answers.script import Delivery, Ending, Script, Tensors
from conformance.clients.client import Client
from conformance.clients.expectations import expect_outputs
from conformance.clients.inference import Inference, RequestedOutput
from conformance.spec.check import Row, check, rows
from conformance.wire.edits import Set
from conformance.wire.json_writing import JsonStyle, write_ascii, write_escaped, write_exponent, write_short_escapes
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

UNKNOWN_REQUIREMENT = "CLIENT-READS-UNKNOWN-MEMBERS"
BLANKS = " \t\r\n  "

# Custom members with values of every JSON type.
OWN_MEMBERS: Final[Document] = {
    "x_timing": {"queue_us": 12, "compute_us": [3, 4.5], "cached": False},
    "x_note": "binary_data_size",
    "x_nothing": None,
}
# Custom parameters, whose values are strings, numbers and booleans.
OWN_PARAMETERS: Final[Document] = {"x_end": True, "x_queue_us": 12, "x_share": 0.5, "x_note": "binary_data_size"}


def add_unknown_members(document: Document) -> None:
    """Add custom members to the answer and to each output, before the others."""
    for part in (document, *document["outputs"]):
        put_first(part, **OWN_MEMBERS)
    for entry in document["outputs"]:
        entry["x_rank"] = len(entry["shape"])


def put_first(part: Document, **members: Any) -> None:
    """Put members before the other members of a JSON object."""
    others = {name: member for name, member in part.items() if name not in members}
    part.clear()
    part.update({**members, **others})


def add_custom_parameters(document: Document) -> None:
    """Add custom parameters to the answer and to each output."""
    for part in (document, *document["outputs"]):
        part["parameters"] = {**OWN_PARAMETERS, **part.get("parameters", {})}


def put_outputs_first(document: Document) -> None:
    """Put the outputs before the other members."""
    put_first(document, outputs=document["outputs"])


def put_size_last(document: Document) -> None:
    """Put the outputs last, and in each output custom parameters before `binary_data_size`, as the last member."""
    document["outputs"] = document.pop("outputs")
    for entry in document["outputs"]:
        own = {"x_layout": "row-major", "x_strides": "[4,1]"}
        entry["parameters"] = {**own, **entry.pop("parameters", {})}


# A custom parameter of 100,000 letters: the length of the JSON has six digits.
LONG_PARAMETER = Set("parameters", {"x_note": "long " * 20_000})
WRITING_STYLES: Mapping[str, Style] = {
    "white-space": Style(writing=JsonStyle(f"{BLANKS},{BLANKS}", f"{BLANKS}:{BLANKS}", BLANKS)),
    "white-space-around": Style(writing=JsonStyle(around=BLANKS)),
    "escaped-texts": Style(writing=JsonStyle(text=write_escaped)),
    "escaped-member-names": Style(writing=JsonStyle(name=write_escaped)),
    "ascii-alone": Style(writing=JsonStyle(text=write_ascii)),
    "short-escapes": Style(writing=JsonStyle(text=write_short_escapes)),
    "long": Style(edit=LONG_PARAMETER),
    "numbers-with-exponents": Style(writing=JsonStyle(number=write_exponent)),
    "members-reversed": Style(writing=JsonStyle(sort=reversed)),
    "outputs-first": Style(edit=put_outputs_first),
    "own-parameters": Style(edit=add_custom_parameters),
    "unknown-members": Style(edit=add_unknown_members),
    "size-last": Style(edit=put_size_last),
}
TRAILERS = (("X-Checksum", "0"), ("Inference-Cost", "1"))
GZIP = Delivery(coding="gzip")
DELIVERIES: Mapping[str, Delivery] = {
    "names-in-lower-case": Delivery(format_name=str.lower),
    "names-in-upper-case": Delivery(format_name=str.upper),
    "no-blank-behind-the-colon": Delivery(separator=":"),
    "chunks-of-1": Delivery(chunk_bytes=1),
    "chunks-of-7": Delivery(chunk_bytes=7),
    "one-chunk": Delivery(chunk_bytes=2**20),
    "chunks-with-extension": Delivery(chunk_bytes=50, extension=";part=1"),
    "chunks-with-trailers": Delivery(chunk_bytes=50, trailers=TRAILERS),
    "dribbled": Delivery(is_slow=True),
    "dribbled-chunks": Delivery(is_slow=True, chunk_bytes=60),
    "connection-closes": Delivery(extra_headers=(("Connection", "close"),), ending=Ending.CLOSE),
    "more-headers": Delivery(extra_headers=tuple((f"X-Own-{k}", "v" * 40) for k in range(40))),
}
CODED_DELIVERIES: Mapping[str, Delivery] = {
    "gzip": GZIP,
    "gzip-chunks": Delivery(coding="gzip", chunk_bytes=20),
    "gzip-dribbled": Delivery(coding="gzip", is_slow=True),
    "deflate": Delivery(coding="deflate"),
}


# Deliveries that are also tested with JSON outputs.
DELIVERED_IN_JSON = (
    "names-in-lower-case",
    "chunks-of-7",
    "chunks-with-trailers",
    "dribbled",
    "connection-closes",
    "gzip",
)


def make_outputs(row: str) -> Tensors:
    """Return outputs with strings and numbers that reveal a faulty parser."""
    texts = Tensor.from_values("OUT1-é-猫", "BYTES", ['say "hi"\n', "é猫😀\\", f"{row}:/"])
    return (make_tensor(row, "OUT0", "INT64", (3,)), texts, make_tensor(row, "OUT2", "FP64", (2,)))


def make_reading_row(name: str, form: Form, style: Style, *requirements: str, accepts: str | None = None) -> Row:
    """Return a row with a correct answer in this style, as JSON or as binary data (`form`).

    The row reports wrong outputs under the first requirement, and an error of the client under the last requirement.
    """
    outputs = make_outputs(name)
    requested = tuple(RequestedOutput(one.name, form) for one in outputs)
    inference = make_small_inference(f"style-{name}", form, outputs=requested, accepts=accepts)
    return Row(name, (inference, make_script(outputs, style), requirements[-1]), requirements=requirements)


def make_json_style_rows() -> Iterator[Row]:
    """Yield rows for each style of JSON, with the outputs as binary data and as JSON."""
    for name, style in WRITING_STYLES.items():
        more = [UNKNOWN_REQUIREMENT] if style.edit is add_unknown_members else []
        yield from (make_reading_row(f"{name}-{form}", form, style, "CLIENT-READS-JSON", *more) for form in FORMS)


def make_delivery_rows() -> Iterator[Row]:
    """Yield a row for each delivery of binary data, and for some deliveries of JSON.

    The request accepts the content coding of the delivery.
    """
    for name, delivery in (*DELIVERIES.items(), *CODED_DELIVERIES.items()):
        for form in FORMS if name in DELIVERED_IN_JSON else FORMS[:1]:
            style = Style(delivery=delivery)
            yield make_reading_row(
                f"{name}-{form}", form, style, "CLIENT-READS-FRAMING", accepts=delivery.coding or None
            )


@check("client.reads-any-json", requirements="CLIENT-READS-JSON")
@rows(*make_json_style_rows())
def reads_any_json(client: Client, inference: Inference, script: Script, unread: str) -> None:
    """The client reads an answer with any white space, escapes, member order and extra members."""
    expect_scripted_answer_read(client, inference, script, unread)


@check("client.reads-any-delivery", requirements="CLIENT-READS-FRAMING")
@rows(*make_delivery_rows())
def reads_any_delivery(client: Client, inference: Inference, script: Script, unread: str) -> None:
    """The client reads an answer with any header spelling, chunking and content coding that it accepts."""
    expect_scripted_answer_read(client, inference, script, unread)


def make_large_answer_row(form: Form, coding: str = "") -> Row:
    """Return a row with a large answer (1 MiB of binary data, or 2^13 JSON elements), in chunks or compressed."""
    name = "-".join(filter(None, ("large", form, coding)))
    count = 2**18 if form == "binary" else 2**13
    tensor = Tensor.from_values("OUT0", "INT32", np.arange(count, dtype="<i4") * 7919 + 0x01020304)
    outputs = (RequestedOutput("OUT0", form),)
    inference = make_small_inference(f"style-{name}", form, outputs=outputs, accepts=coding or None)
    style = Style(delivery=Delivery(chunk_bytes=0 if coding else 40_000, coding=coding))
    return Row(name, (inference, make_script((tensor,), style)), requirements=("CLIENT-READS-FRAMING",))


@check("client.reads-large-answers", requirements="CLIENT-READS-FRAMING")
@rows(
    *map(make_large_answer_row, FORMS),
    *[make_large_answer_row(form, coding) for coding in ("gzip", "deflate") for form in FORMS],
)
def reads_large_answers(client: Client, inference: Inference, script: Script) -> None:
    """The client reads a large answer completely, in chunks or in a content coding that it accepts."""
    expect_outputs(client.infer(inference, script))
