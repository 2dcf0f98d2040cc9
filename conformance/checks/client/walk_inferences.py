"""Builds the inference of a step of the walk, and the script that answers it, from the values of the axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from conformance.checks.client.deliveries import BLANKS, add_custom_parameters, add_unknown_members, put_outputs_first
from conformance.checks.client.deliveries import put_size_last as put_sizes_last
from conformance.checks.support.client_rows import derive_model_name, make_script, make_tensor
from conformance.checks.support.covering import Step
from conformance.clients.answers import errors
from conformance.clients.answers.honest import Document, Style
from conformance.clients.answers.honest_calls import UNKNOWN, CallStyle, encode_packed, encode_unpacked
from conformance.clients.answers.script import Delivery, Ending, Script, Tensors
from conformance.clients.inference import Inference, RequestedOutput
from conformance.wire.json_writing import JsonStyle, write_ascii, write_escaped, write_exponent, write_plain
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

CLASS_TEXTS = ("17.5:2:tabby:cat", "3.25:0:größe", "-0.5:1")
_IDS: Mapping[str, str] = {"ascii": "walk", "not-ascii": "schlüssel-猫-😀", "long": "x" * 200}
_MIXED_ENCODINGS: tuple[Form, ...] = ("binary", "json")
CLOSE = (("Connection", "close"),)


def make_inference(step: Step, name: str) -> Inference:
    """Return the inference of a step; tensors and model are derived from `name`."""
    datatypes = step["datatypes"].split("-")[: 1 if step["send"] == "raw" else None]
    inputs = tuple(make_tensor(name, f"IN{k}", one, _get_shape(step)) for k, one in enumerate(datatypes))
    return Inference(
        derive_model_name(name),
        inputs,
        tuple(_choose_encoding(step["send"], k) for k in range(len(inputs))),
        outputs=_list_requested_outputs(step),
        all_outputs="binary" if step["want"] == "all-binary" else None,
        id=f"{_IDS[step['id']]}-{derive_model_name(name)}" if step["id"] in _IDS else None,
        version=None if step["version"] == "none" else step["version"],
        is_raw=step["send"] == "raw",
        coding=None if step["coding"] == "none" else step["coding"],
        accepts=None if step.get("accepts", "none") == "none" else step["accepts"],
    )


def make_outputs(step: Step, name: str) -> Tensors:
    """Return the outputs that answer a step; the first consists of classes if the step asks for classes."""
    outputs = tuple(
        make_tensor(name, f"OUT{k}", one, _get_shape(step)) for k, one in enumerate(step["datatypes"].split("-"))
    )
    classes = Tensor.from_values("OUT0", "BYTES", list(CLASS_TEXTS))
    return (classes, *outputs[1:]) if step["classes"] != "none" else outputs


def _get_shape(step: Step) -> tuple[int, ...]:
    return tuple(map(int, step["shape"].split("x")))


def _choose_encoding(value: str, index: int) -> Form:
    if value == "mixed":
        return _MIXED_ENCODINGS[index % 2]
    return "json" if value == "json" else "binary"


def _list_requested_outputs(step: Step) -> tuple[RequestedOutput, ...] | None:
    want = step["want"]
    if want in ("unlisted", "all-binary"):
        return None
    classes = len(CLASS_TEXTS) if step["classes"] != "none" else None
    return tuple(
        RequestedOutput(
            f"OUT{k}", None if want == "listed" else _choose_encoding(want, k), classes=classes if k == 0 else None
        )
        for k in range(len(step["datatypes"].split("-")))
    )


# --- the answer -------------------------------------------------------------------------------------------------------

_SPACES: Mapping[str, JsonStyle] = {
    "none": JsonStyle(),
    "blanks": JsonStyle(f"{BLANKS},{BLANKS}", f"{BLANKS}:{BLANKS}", BLANKS),
    "around": JsonStyle(around=BLANKS),
}
_ESCAPES = {
    "none": (write_plain, write_plain),
    "ascii": (write_ascii, write_ascii),
    "names": (write_escaped, write_plain),
    "every": (write_escaped, write_escaped),
}
_DOCUMENT_CHANGES = {
    "parameters": add_custom_parameters,
    "unknown": add_unknown_members,
    "outputs-first": put_outputs_first,
    "size-last": put_sizes_last,
}
_FRAMINGS: Mapping[str, Delivery] = {
    "length": Delivery(),
    "one-chunk": Delivery(chunk_bytes=2**20),
    "small-chunks": Delivery(chunk_bytes=7),
    "extensions": Delivery(chunk_bytes=50, extension=";part=1"),
    "trailers": Delivery(chunk_bytes=50, trailers=(("X-Checksum", "0"), ("Inference-Cost", "1"))),
    "until-close": Delivery(until_close=True, extra_headers=CLOSE, ending=Ending.CLOSE),
}
_SPELLINGS: Mapping[str, Callable[[str], str]] = {"usual": str, "lower": str.lower, "upper": str.upper}


def _reorder(outputs: Tensors, order: str) -> Tensors:
    if order == "reversed":
        return outputs[::-1]
    return outputs[1:] + outputs[:1] if order == "rotated" else outputs


def make_style(step: Step) -> Style:
    """Return the style of a step's answer over HTTP."""
    names, texts = _ESCAPES[step["escapes"]]
    writing = replace(_SPACES[step["spaces"]], name=names, text=texts)
    if step["numbers"] == "exponents":
        writing = replace(writing, number=write_exponent)
    if step["members"] == "reversed":
        writing = replace(writing, sort=reversed)
    return Style(
        order=lambda outputs: _reorder(outputs, step["order"]),
        edit=lambda document: _modify_document(document, step),
        writing=writing,
        delivery=_make_delivery(step),
        nested=step["nesting"] == "nested",
        header="always" if step["header"] == "always" else "usual",
    )


def _modify_document(document: Document, step: Step) -> None:
    if step["absent"] == "version":
        del document["model_version"]
    for axis in ("extra", "members"):
        if step[axis] in _DOCUMENT_CHANGES:
            _DOCUMENT_CHANGES[step[axis]](document)


def _make_delivery(step: Step) -> Delivery:
    framing = _FRAMINGS[step["framing"]]
    delivery = replace(
        framing,
        format_name=_SPELLINGS[step["header_case"]],
        is_slow=step["pieces"] == "small",
        coding="" if step["accepts"] == "none" else step["accepts"],
    )
    return replace(delivery, extra_headers=CLOSE, ending=Ending.CLOSE) if step["connection"] == "closing" else delivery


def make_call_style(step: Step) -> CallStyle:
    """Return the style of a step's answer over gRPC."""
    return CallStyle(
        form="typed" if step["contents"] == "typed" else "raw",
        order=lambda outputs: _reorder(outputs, step["order"]),
        integers=encode_unpacked if step["integers"] == "unpacked" else encode_packed,
        extra_fields=UNKNOWN if step["fields"] == "unknown" else b"",
        raw_first=step["fields"] == "raw-first",
    )


# --- the earlier inference --------------------------------------------------------------------------------------------


def make_earlier_inference(step: Step, name: str, neutral: Step) -> tuple[Inference, Script]:
    """Return the earlier inference of a step, and the script that answers it."""
    kind, plain = step["before"], {**neutral, "datatypes": step["datatypes"], "shape": step["shape"]}
    for axis in ("send", "want", "contents"):
        if axis in step:
            plain[axis] = step[axis]
    if kind == "other-form":
        plain = {**plain, **_choose_other_encodings(step)}
    if kind == "larger":
        plain["shape"] = "900"
    inference = make_inference(plain, f"{name}-before")
    if kind == "error":
        return inference, errors.ERRORS["400-object"].build_script()
    outputs = make_outputs(plain, f"{name}-before")
    if "contents" in step:
        return inference, make_script(outputs, grpc=make_call_style(plain))
    delivery = Delivery(ending=Ending.CLOSE) if kind == "closed" else Delivery()
    return inference, make_script(outputs, replace(make_style(plain), delivery=delivery))


def _choose_other_encodings(step: Step) -> Step:
    """Return values for the earlier inference that differ from the step: other encodings, or INT32 in place of FP16."""
    if "FP16" in step["datatypes"]:
        return {"datatypes": "INT32"} if "contents" in step else {"datatypes": "INT32", "send": "json", "want": "json"}
    if "contents" in step:
        return {"contents": "raw" if step["contents"] == "typed" else "typed"}
    other = "json" if step["want"] in ("binary", "all-binary", "mixed") else "binary"
    return {"want": other, "send": other}
