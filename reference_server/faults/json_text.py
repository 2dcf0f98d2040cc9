"""JSON faults in requests and answers: encoding, accepted spellings, and values of elements."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.members import Object
from reference_server.tensors import NUMPY, Tensor

Answer = dict[str, Any]
Change = Callable[[Any], Any]


def _change_elements(data: Any, change: Change) -> Any:
    """Return JSON data, flat or nested, with each element changed."""
    return [_change_elements(item, change) for item in data] if isinstance(data, list) else change(data)


def _find_limits(datatype: str) -> tuple[int, int]:
    """Return the least and the greatest integer of a datatype; (0, 0) for a non-integer datatype."""
    if datatype not in NUMPY or np.dtype(NUMPY[datatype]).kind not in "iu":
        return 0, 0
    found = np.iinfo(NUMPY[datatype])
    return int(found.min), int(found.max)


# --- the text of answers ----------------------------------------------------------------------------------------------


@fault("tensors.text", breaks="OIP-BYTES-EXACT")
def wrong_utf_8_replaced(_original: Any, item: bytes) -> str:
    """Bytes of a string that are no UTF-8 are U+FFFD in JSON."""
    return item.decode("utf-8", "replace")


@fault("tensors.text", breaks="OIP-BYTES-EXACT")
def wrong_utf_8_dropped(_original: Any, item: bytes) -> str:
    """Bytes of a string that are no UTF-8 are left out of JSON."""
    return item.decode("utf-8", "ignore")


@fault("response.build", breaks="OIP-ERROR")
def refused_answers_begin_with_their_first_part(original: Any, model: Any, *rest: Any) -> Response:
    """Where an output is refused half-way, the error stands behind the beginning of the answer."""
    try:
        answer: Response = original(model, *rest)
    except InferenceError as error:
        begun = f'{{"model_name":"{model.name}","outputs":['
        text = begun + json.dumps({"error": error.message})
        return Response(text.encode(), error.status, media_type="application/json")
    return answer


@fault("response.encode", breaks="OIP-JSON")
def json_in_latin_1(original: Any, answer: Answer) -> bytes:
    """The JSON of answers is written in Latin-1 where that has all its letters."""
    octets: bytes = original(answer)
    try:
        return octets.decode().encode("latin-1")
    except UnicodeEncodeError:
        return octets


@fault("response.frame", breaks="OIP-JSON")
def nul_behind_the_json(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """An answer in JSON alone ends with the NUL that ends strings in C."""
    return original(head if binary else head + b"\0", binary)


@fault("tensors.text", "response.encode", breaks="OIP-JSON")
def bytes_that_are_no_text_written_into_json(_original: Any, value: Any) -> Any:
    """BYTES that are not UTF-8 are copied into JSON strings."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogateescape")


@fault("tensors.decode_json", breaks="OIP-COERCE")
def numbers_among_booleans_are_false(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """A number among booleans counts as false, since it is not the word true."""
    if datatype == "BOOL" and isinstance(data, list):
        data = [False if type(item) in (int, float) else item for item in data]
    return original(datatype, shape, data)


@fault("tensors.encode_json", "response.encode", breaks="OIP-JSON-NAN")
def nan_written_as_a_bare_word(original: Any, given: Any) -> Any:
    """NaN and infinities are written into JSON data as bare words."""
    if not isinstance(given, Tensor):
        return json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()
    return given.elements.tolist() if given.datatype in ("FP32", "FP64") else original(given)


@fault("tensors.encode_json", "response.encode", breaks="OIP-JSON")
def nan_written_as_the_c_library_does(original: Any, given: Any) -> Any:
    """NaN and infinities are written into JSON data as `nan` and `inf`."""
    if isinstance(given, Tensor):
        return given.elements.tolist() if given.datatype in ("FP32", "FP64") else original(given)
    text = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    for word, written in (("NaN", "nan"), ("Infinity", "inf")):
        text = (
            text.replace(f"[{word}", f"[{written}")
            .replace(f",{word}", f",{written}")
            .replace(f"-{word}", f"-{written}")
        )
    return text.encode()


# --- data -------------------------------------------------------------------------------------------------------------


@fault("tensors.flatten", breaks=("OIP-DATA", "OIP-ANSWER"))
def nested_data_refused(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Only flat data are read."""
    if data and isinstance(data[0], list):
        raise InferenceError("data must be flat")
    return original(data, shape)


@fault("tensors.decode_json", breaks=("OIP-DATA", "OIP-ANSWER"))
def flat_strings_read_by_columns(original: Any, datatype: str, shape: tuple[int, ...], data: Any) -> Tensor:
    """Flat strings of rank 2 are read column by column, into an array of columns."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "BYTES" or len(shape) != 2 or (data and isinstance(data[0], list)):
        return tensor
    return replace(tensor, elements=tensor.elements.reshape(shape[::-1]).T.reshape(-1))


def _nest(items: list[Any], shape: Sequence[int]) -> list[Any]:
    """Return flat elements nested like a shape, in row-major order."""
    for extent in reversed(shape[1:]):
        items = [items[at : at + extent] for at in range(0, len(items), extent)]
    return items


@fault("tensors.encode_json", breaks="OIP-DATA")
def data_nested_one_level_too_deep(original: Any, tensor: Tensor) -> list[Any]:
    """JSON data of rank 2 and more are returned inside one more array, a batch of one."""
    items: list[Any] = original(tensor)
    return [_nest(items, tensor.shape)] if len(tensor.shape) > 1 and items else items


@fault("strict_json.parse_object", breaks="OIP-MEMBERS")
def members_that_are_not_defined_refused(original: Any, data: Any) -> Any:
    """A request with a member that no request object defines is refused."""
    found = original(data)
    if unknown := found.keys() - {"id", "parameters", "inputs", "outputs"}:
        raise InferenceError(f"unknown members {sorted(unknown)}", 422)
    return found


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def letters_beyond_ascii_refused(original: Any, data: Any) -> Any:
    """Letters beyond ASCII are taken for control characters, since a char is signed, unless they are escaped."""
    if not bytes(data).isascii():
        raise InferenceError("the request is not JSON: control character in a string")
    return original(data)


# --- elements of requests ---------------------------------------------------------------------------------------------


@fault("tensors.decode_json", breaks=("BIN-SAME-AS-JSON-I", "OIP-VALUE", "OIP-ANSWER"))
def doubles_in_json_read_in_single_precision(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """FP64 elements of JSON data are read as FP32."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "FP64":
        return tensor
    with np.errstate(all="ignore"):
        return replace(tensor, elements=tensor.elements.astype("<f4").astype("<f8"))


@fault("tensors.decode_json", breaks="OIP-RANGE")
def integers_in_json_cut_to_their_low_bits(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """An integer of JSON data that its datatype cannot hold keeps its low bits."""
    least, most = _find_limits(datatype)
    if least != most:
        count = most - least + 1
        data = _change_elements(data, lambda item: (item - least) % count + least if type(item) is int else item)
    return original(datatype, shape, data)


@fault("tensors.decode_json", breaks=("OIP-VALUE", "OIP-COERCE"))
def decimal_integers_lose_a_digit(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """An integer of JSON data that is written as a decimal number loses its last digit."""
    if "INT" in datatype:
        data = _change_elements(data, lambda item: int(item) // 10 if type(item) is float else item)
    return original(datatype, shape, data)


@fault("strict_json.parse_object", breaks="OIP-VALUE")
def escaped_letters_in_json_data_kept(original: Any, data: Any) -> Any:
    r"""A \u escape of an ASCII letter in strings of JSON data is not decoded."""
    change = re.compile(rb'(?<="data":\[)[^\]]*')
    return original(change.sub(lambda found: re.sub(rb"(?<!\\)\\u00(4)", rb"\\\\u00\1", found[0]), bytes(data)))


@fault("tensors.encode_json", breaks="OIP-DATA")
def element_without_dimensions_outside_of_an_array(original: Any, tensor: Tensor) -> Any:
    """The one element of a tensor without dimensions is the `data`, without an array around it."""
    items = original(tensor)
    return items if tensor.shape else items[0]


@fault("tensors.decode_json", breaks=("BIN-SAME-AS-JSON-I", "OIP-ERROR-STATUS"))
def first_element_of_json_data_looked_at(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The first element of JSON data, at any depth, is looked at, so that data without elements end in an error."""
    first = data
    while isinstance(first, list):
        first = first[0]
    return original(datatype, shape, data)


# --- spellings of requests ------------------------------------------------------------------------------------------


def _list_inputs(found: Object) -> list[Object]:
    inputs = found.get("inputs")
    return [entry for entry in inputs if isinstance(entry, dict)] if isinstance(inputs, list) else []


def _is_behind(owner: Object, name: str, other: str) -> bool:
    """Whether both members exist and `name` comes after `other`."""
    names = list(owner)
    return name in owner and other in owner and names.index(name) > names.index(other)


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def shape_behind_the_data_not_seen(original: Any, data: Any) -> Object:
    """An input is read up to its `data`, so that a `shape` behind it is missing."""
    found: Object = original(data)
    for entry in _list_inputs(found):
        if _is_behind(entry, "shape", "data"):
            del entry["shape"]
    return found


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def sizes_in_front_of_the_name_lost(original: Any, data: Any) -> Object:
    """`parameters` of an input that stand before its `name` are not looked at."""
    found: Object = original(data)
    for entry in _list_inputs(found):
        if _is_behind(entry, "name", "parameters"):
            del entry["parameters"]
    return found


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def id_behind_the_inputs_lost(original: Any, data: Any) -> Object:
    """An `id` that stands behind `inputs` is not looked at."""
    found: Object = original(data)
    if _is_behind(found, "id", "inputs"):
        del found["id"]
    return found


def _parse_without(original: Any, data: Any, pattern: bytes, what: str) -> Object:
    """Parse JSON, but refuse a text that matches the pattern."""
    if re.search(pattern, bytes(data)):
        raise InferenceError(what)
    return original(data)


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def escaped_names_of_tensors_not_recognised(original: Any, data: Any) -> Object:
    """A tensor whose name is written with an escape is not found."""
    return _parse_without(original, data, rb'"name"\s*:\s*"[^"]*\\u', "no such tensor")


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def escaped_members_not_recognised(original: Any, data: Any) -> Object:
    """A member whose name is written with an escape is not found."""
    return _parse_without(original, data, rb'\\u[0-9a-fA-F]{4}[^":,]*"\s*:', "inputs is missing")


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def blanks_before_a_colon_refused(original: Any, data: Any) -> Object:
    """White space between the name of a member and its colon is refused."""
    return _parse_without(original, data, rb'"\s+:', "a colon is expected")


def _refuse_others(found: Object, owner: str, known: Sequence[str]) -> Object:
    entries = found.get(owner)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.keys() - set(known):
            raise InferenceError(f"unknown members in {owner}", 422)
    return found


@fault("strict_json.parse_object", breaks="OIP-MEMBERS")
def undefined_members_of_inputs_refused(original: Any, data: Any) -> Object:
    """An input with a member that is not defined is refused."""
    return _refuse_others(original(data), "inputs", ("name", "shape", "datatype", "parameters", "data"))


@fault("strict_json.parse_object", breaks="OIP-MEMBERS")
def undefined_members_of_outputs_refused(original: Any, data: Any) -> Object:
    """A requested output with a member that is not defined is refused."""
    return _refuse_others(original(data), "outputs", ("name", "parameters"))


# --- names of parameters ----------------------------------------------------------------------------------------------


def _list_parameters(found: Object) -> list[Object]:
    """Return the parameters of a request, its inputs and its outputs."""
    outputs = found.get("outputs")
    owners = [found, *_list_inputs(found), *(outputs if isinstance(outputs, list) else ())]
    given = [owner.get("parameters") for owner in owners if isinstance(owner, dict)]
    return [each for each in given if isinstance(each, dict)]


@fault("strict_json.parse_object", breaks="OIP-PARAMETER-NAMES")
def parameters_named_like_methods_refused(original: Any, data: Any) -> Object:
    """A parameter with the name of a method that every object has is refused, as given twice."""
    found: Object = original(data)
    if any(hasattr(object, name) for given in _list_parameters(found) for name in given):
        raise InferenceError("a parameter is given twice")
    return found


@fault("strict_json.parse_object", breaks="OIP-PARAMETER-NAMES")
def parameters_without_a_name_end_the_others(original: Any, data: Any) -> Object:
    """Parameters up to one without letters are read, and those behind it are not."""
    found: Object = original(data)
    for given in _list_parameters(found):
        names = list(given)
        blank = next((place for place, name in enumerate(names) if not name.strip()), len(names))
        for name in names[blank:]:
            del given[name]
    return found


@fault("members.flag", breaks="OIP-PARAMETER-NAMES")
def parameters_beyond_ascii_are_defaults(original: Any, given: Object, name: str) -> bool | None:
    """Where a parameter has letters beyond ASCII, flags count as not given."""
    return None if any(not other.isascii() for other in given) else original(given, name)


# --- numbers that lose bits -------------------------------------------------------------------------------------------


@fault("tensors.encode_json", breaks="OIP-NUMBER-EXACT")
def negative_zero_written_without_its_sign(original: Any, tensor: Tensor) -> Any:
    """A zero in the JSON of an answer has no sign."""
    return [item + 0.0 if isinstance(item, float) else item for item in original(tensor)]


@fault("tensors.decode_json", breaks="OIP-NUMBER-EXACT")
def negative_zero_read_without_its_sign(original: Any, datatype: str, *rest: Any) -> Tensor:
    """A zero in the JSON of a request has no sign."""
    tensor: Tensor = original(datatype, *rest)
    return replace(tensor, elements=tensor.elements + 0.0) if datatype in ("FP32", "FP64") else tensor


@fault("tensors.encode_json", breaks="OIP-NUMBER-EXACT")
def fp32_written_with_seven_digits(original: Any, tensor: Tensor) -> Any:
    """FP32 in JSON is written with seven digits, which not every element needs and some exceed."""
    items = original(tensor)
    return [float(f"{item:.7g}") for item in items] if tensor.datatype == "FP32" else items


@fault("tensors.decode_json", breaks="OIP-NUMBER-EXACT")
def json_subnormals_read_as_zero(original: Any, datatype: str, *rest: Any) -> Tensor:
    """Subnormal numbers in the JSON of a request are zero."""
    tensor: Tensor = original(datatype, *rest)
    if datatype not in ("FP32", "FP64"):
        return tensor
    is_subnormal = np.abs(tensor.elements) < np.finfo(tensor.elements.dtype).tiny
    return replace(tensor, elements=np.where(is_subnormal, np.copysign(0, tensor.elements), tensor.elements))


@fault("tensors.encode_json", breaks=("OIP-NUMBER-EXACT", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def largest_unsigned_integers_written_as_doubles(original: Any, tensor: Tensor) -> Any:
    """UINT64 elements beyond INT64 go through doubles on their way into JSON."""
    items = original(tensor)
    if tensor.datatype != "UINT64":
        return items
    return [min(int(float(item)), 2**64 - 2048) if item >= 2**63 else item for item in items]
