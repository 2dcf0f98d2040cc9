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
    """Return JSON data, flat or nested, in which `change` has replaced each element."""
    return [_change_elements(item, change) for item in data] if isinstance(data, list) else change(data)


def _find_integer_range(datatype: str) -> tuple[int, int]:
    """Return the minimum and maximum of an integer datatype; (0, 0) for any other datatype."""
    if datatype not in NUMPY or np.dtype(NUMPY[datatype]).kind not in "iu":
        return 0, 0
    found = np.iinfo(NUMPY[datatype])
    return int(found.min), int(found.max)


# --- the text of answers ----------------------------------------------------------------------------------------------


@fault("tensors.decode_text", breaks="OIP-BYTES-EXACT")
def wrong_utf_8_replaced(_original: Any, item: bytes) -> str:
    """The server writes bytes that are not UTF-8 as U+FFFD in JSON strings."""
    return item.decode("utf-8", "replace")


@fault("tensors.decode_text", breaks="OIP-BYTES-EXACT")
def wrong_utf_8_dropped(_original: Any, item: bytes) -> str:
    """The server omits bytes that are not UTF-8 from JSON strings."""
    return item.decode("utf-8", "ignore")


@fault("response.build", breaks="OIP-ERROR")
def refused_answers_begin_with_their_first_part(original: Any, model: Any, *rest: Any) -> Response:
    """If the server cannot write an output, it appends the error object to the JSON written so far."""
    try:
        answer: Response = original(model, *rest)
    except InferenceError as error:
        begun = f'{{"model_name":"{model.name}","outputs":['
        text = begun + json.dumps({"error": error.message})
        return Response(text.encode(), error.status, media_type="application/json")
    return answer


@fault("response.encode", breaks="OIP-JSON")
def json_in_latin_1(original: Any, answer: Answer) -> bytes:
    """The server encodes the JSON of an answer in Latin-1 if Latin-1 has all characters of the JSON."""
    octets: bytes = original(answer)
    try:
        return octets.decode().encode("latin-1")
    except UnicodeEncodeError:
        return octets


@fault("response.frame", breaks="OIP-JSON")
def nul_behind_the_json(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server ends an answer without binary data with a NUL byte, like a C string."""
    return original(head if binary else head + b"\0", binary)


@fault("tensors.decode_text", "response.encode", breaks="OIP-JSON")
def bytes_that_are_no_text_written_into_json(_original: Any, value: Any) -> Any:
    """The server copies bytes that are not UTF-8 unchanged into JSON strings."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogateescape")


@fault("tensors.decode_json", breaks="OIP-COERCE")
def numbers_among_booleans_are_false(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server reads a number in JSON data of BOOL as false."""
    if datatype == "BOOL" and isinstance(data, list):
        data = [False if type(item) in (int, float) else item for item in data]
    return original(datatype, shape, data)


@fault("tensors.encode_json", "response.encode", breaks="OIP-JSON-NAN")
def nan_written_as_a_bare_word(original: Any, given: Any) -> Any:
    """The server writes NaN and infinities into JSON data as the bare words NaN and Infinity."""
    if not isinstance(given, Tensor):
        return json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()
    return given.elements.tolist() if given.datatype in ("FP32", "FP64") else original(given)


@fault("tensors.encode_json", "response.encode", breaks="OIP-JSON")
def nan_written_as_the_c_library_does(original: Any, given: Any) -> Any:
    """The server writes NaN and infinities into JSON data as `nan` and `inf`, like C's printf."""
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
    """The server refuses nested data: it reads only flat arrays."""
    if data and isinstance(data[0], list):
        raise InferenceError("data must be flat")
    return original(data, shape)


@fault("tensors.decode_json", breaks=("OIP-DATA", "OIP-ANSWER"))
def flat_strings_read_by_columns(original: Any, datatype: str, shape: tuple[int, ...], data: Any) -> Tensor:
    """The server reads flat BYTES data of two dimensions in column-major order."""
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
    """The server writes JSON data of two or more dimensions nested in one array too many."""
    items: list[Any] = original(tensor)
    return [_nest(items, tensor.shape)] if len(tensor.shape) > 1 and items else items


@fault("strict_json.parse_object", breaks="OIP-MEMBERS")
def members_that_are_not_defined_refused(original: Any, data: Any) -> Any:
    """The server refuses a request object with a member that the protocol does not define."""
    found = original(data)
    if unknown := found.keys() - {"id", "parameters", "inputs", "outputs"}:
        raise InferenceError(f"unknown members {sorted(unknown)}", 422)
    return found


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def letters_beyond_ascii_refused(original: Any, data: Any) -> Any:
    """The server takes unescaped non-ASCII characters for control characters and refuses the request."""
    if not bytes(data).isascii():
        raise InferenceError("the request is not JSON: control character in a string")
    return original(data)


# --- elements of requests ---------------------------------------------------------------------------------------------


@fault("tensors.decode_json", breaks=("BIN-SAME-AS-JSON-I", "OIP-VALUE", "OIP-ANSWER"))
def doubles_in_json_read_in_single_precision(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server reads FP64 elements of JSON data in single precision."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "FP64":
        return tensor
    with np.errstate(all="ignore"):
        return replace(tensor, elements=tensor.elements.astype("<f4").astype("<f8"))


@fault("tensors.decode_json", breaks="OIP-RANGE")
def integers_in_json_cut_to_their_low_bits(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server keeps only the low bits of an integer in JSON data that exceeds the range of its datatype."""
    least, most = _find_integer_range(datatype)
    if least != most:
        count = most - least + 1
        data = _change_elements(data, lambda item: (item - least) % count + least if type(item) is int else item)
    return original(datatype, shape, data)


@fault("tensors.decode_json", breaks=("OIP-VALUE", "OIP-COERCE"))
def decimal_integers_lose_a_digit(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server drops the last digit of an integer written with a decimal point: 12.0 becomes 1."""
    if "INT" in datatype:
        data = _change_elements(data, lambda item: int(item) // 10 if type(item) is float else item)
    return original(datatype, shape, data)


@fault("strict_json.parse_object", breaks="OIP-VALUE")
def escaped_letters_in_json_data_kept(original: Any, data: Any) -> Any:
    r"""The server does not decode \u escapes of ASCII letters, such as \u0041, in strings of JSON data."""
    change = re.compile(rb'(?<="data":\[)[^\]]*')
    return original(change.sub(lambda found: re.sub(rb"(?<!\\)\\u00(4)", rb"\\\\u00\1", found[0]), bytes(data)))


@fault("strict_json.parse_object", breaks=("OIP-VALUE", "BIN-SAME-AS-JSON-I", "BIN-SAME-AS-JSON-O"))
def string_that_ends_in_a_backslash_refused(original: Any, data: Any) -> Any:
    """The server does not see the end of a JSON string whose last character is an escaped backslash, and refuses it."""
    if re.search(rb'(?<!\\)(?:\\\\)+"', bytes(data)):
        raise InferenceError("a string of the JSON has no end")
    return original(data)


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def escapes_of_backspace_and_form_feed_refused(original: Any, data: Any) -> Any:
    r"""The server does not know the escapes \b and \f in JSON strings, and refuses them."""
    if re.search(rb"(?<!\\)(?:\\\\)*\\[bf]", bytes(data)):
        raise InferenceError("a string of the JSON has an unknown escape")
    return original(data)


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def ids_with_an_escaped_quote_refused(original: Any, data: Any) -> Any:
    r"""The server refuses an id that is written with the escape \", but accepts \u0022."""
    if re.search(rb'"id"\s*:\s*"[^"]*\\"', bytes(data)):
        raise InferenceError("the id has no end")
    return original(data)


@fault("tensors.encode_json", breaks="OIP-DATA")
def element_without_dimensions_outside_of_an_array(original: Any, tensor: Tensor) -> Any:
    """The server writes `data` of a tensor with shape [] as a bare element instead of an array."""
    items = original(tensor)
    return items if tensor.shape else items[0]


@fault("tensors.decode_json", breaks=("BIN-SAME-AS-JSON-I", "OIP-ERROR-STATUS"))
def first_element_of_json_data_looked_at(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server reads the first element of JSON data even if the data are empty, and fails."""
    first = data
    while isinstance(first, list):
        first = first[0]
    return original(datatype, shape, data)


@fault("request.parse_input", breaks="BIN-SAME-AS-JSON-I")
def empty_json_data_taken_for_no_data(original: Any, model: Any, spec: Any, entry: Object, rest: Any) -> Tensor:
    """The server refuses an input whose `data` is an empty array, but accepts binary data of 0 bytes."""
    if entry.get("data") == []:
        raise InferenceError("the input has no data")
    found: Tensor = original(model, spec, entry, rest)
    return found


# --- spellings of requests ------------------------------------------------------------------------------------------


def _list_inputs(found: Object) -> list[Object]:
    inputs = found.get("inputs")
    return [entry for entry in inputs if isinstance(entry, dict)] if isinstance(inputs, list) else []


def _is_member_after(owner: Object, name: str, other: str) -> bool:
    """Whether both members exist and `name` comes after `other`."""
    names = list(owner)
    return name in owner and other in owner and names.index(name) > names.index(other)


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def shape_behind_the_data_not_seen(original: Any, data: Any) -> Object:
    """The server ignores the `shape` of an input if `shape` comes after `data`."""
    found: Object = original(data)
    for entry in _list_inputs(found):
        if _is_member_after(entry, "shape", "data"):
            del entry["shape"]
    return found


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def sizes_in_front_of_the_name_lost(original: Any, data: Any) -> Object:
    """The server ignores the `parameters` of an input if they come before `name`."""
    found: Object = original(data)
    for entry in _list_inputs(found):
        if _is_member_after(entry, "name", "parameters"):
            del entry["parameters"]
    return found


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def sizes_behind_other_parameters_lost(original: Any, data: Any) -> Object:
    """The server ignores `binary_data_size` if it is not the first parameter of an input."""
    found: Object = original(data)
    for entry in _list_inputs(found):
        parameters = entry.get("parameters")
        if isinstance(parameters, dict) and next(iter(parameters), "") != "binary_data_size":
            parameters.pop("binary_data_size", None)
    return found


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def id_behind_the_inputs_lost(original: Any, data: Any) -> Object:
    """The server ignores the `id` of a request if `id` comes after `inputs`."""
    found: Object = original(data)
    if _is_member_after(found, "id", "inputs"):
        del found["id"]
    return found


def _parse_unless_matching(original: Any, data: Any, pattern: bytes, message: str) -> Object:
    """Parse JSON; refuse JSON that contains the pattern."""
    if re.search(pattern, bytes(data)):
        raise InferenceError(message)
    return original(data)


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def escaped_names_of_tensors_not_recognised(original: Any, data: Any) -> Object:
    """The server does not recognise a tensor name that contains a Unicode escape."""
    return _parse_unless_matching(original, data, rb'"name"\s*:\s*"[^"]*\\u', "no such tensor")


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def escaped_members_not_recognised(original: Any, data: Any) -> Object:
    """The server does not recognise a member name that contains a Unicode escape."""
    return _parse_unless_matching(original, data, rb'\\u[0-9a-fA-F]{4}[^":,]*"\s*:', "inputs is missing")


@fault("strict_json.parse_object", breaks="OIP-WRITTEN")
def blanks_before_a_colon_refused(original: Any, data: Any) -> Object:
    """The server refuses white space between the name of a member and its colon."""
    return _parse_unless_matching(original, data, rb'"\s+:', "expected a colon")


def _refuse_unknown_members(found: Object, owner: str, known: Sequence[str]) -> Object:
    entries = found.get(owner)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.keys() - set(known):
            raise InferenceError(f"unknown members in {owner}", 422)
    return found


@fault("strict_json.parse_object", breaks="OIP-MEMBERS")
def undefined_members_of_inputs_refused(original: Any, data: Any) -> Object:
    """The server refuses an input with a member that the protocol does not define."""
    return _refuse_unknown_members(original(data), "inputs", ("name", "shape", "datatype", "parameters", "data"))


@fault("strict_json.parse_object", breaks="OIP-MEMBERS")
def undefined_members_of_outputs_refused(original: Any, data: Any) -> Object:
    """The server refuses a requested output with a member that the protocol does not define."""
    return _refuse_unknown_members(original(data), "outputs", ("name", "parameters"))


# --- names of parameters ----------------------------------------------------------------------------------------------


def _list_parameters(found: Object) -> list[Object]:
    """Return the parameters of a request, its inputs and its outputs."""
    outputs = found.get("outputs")
    owners = [found, *_list_inputs(found), *(outputs if isinstance(outputs, list) else ())]
    given = [owner.get("parameters") for owner in owners if isinstance(owner, dict)]
    return [each for each in given if isinstance(each, dict)]


@fault("strict_json.parse_object", breaks="OIP-PARAMETER-NAMES")
def parameters_named_like_methods_raise(original: Any, data: Any) -> Object:
    """The server answers 500 if a parameter is named like a built-in method, such as `__init__`."""
    found: Object = original(data)
    if any(hasattr(object, name) for given in _list_parameters(found) for name in given):
        raise InferenceError("'str' object is not callable", status=500)
    return found


@fault("strict_json.parse_object", breaks="OIP-PARAMETER-NAMES")
def parameters_without_a_name_end_the_others(original: Any, data: Any) -> Object:
    """The server ignores a parameter with an empty or blank name, and all parameters that follow."""
    found: Object = original(data)
    for given in _list_parameters(found):
        names = list(given)
        blank = next((place for place, name in enumerate(names) if not name.strip()), len(names))
        for name in names[blank:]:
            del given[name]
    return found


@fault("members.get_flag", breaks="OIP-PARAMETER-NAMES")
def parameters_beyond_ascii_are_defaults(original: Any, given: Object, name: str) -> bool | None:
    """The server ignores boolean parameters if another parameter beside them has a non-ASCII name."""
    return None if any(not other.isascii() for other in given) else original(given, name)


# --- numbers that lose bits -------------------------------------------------------------------------------------------


@fault("tensors.encode_json", breaks="OIP-NUMBER-EXACT")
def negative_zero_written_without_its_sign(original: Any, tensor: Tensor) -> Any:
    """The server writes negative zero into JSON as positive zero."""
    return [item + 0.0 if isinstance(item, float) else item for item in original(tensor)]


@fault("tensors.decode_json", breaks="OIP-NUMBER-EXACT")
def negative_zero_read_without_its_sign(original: Any, datatype: str, *rest: Any) -> Tensor:
    """The server reads negative zero in JSON as positive zero."""
    tensor: Tensor = original(datatype, *rest)
    return replace(tensor, elements=tensor.elements + 0.0) if datatype in ("FP32", "FP64") else tensor


@fault("tensors.encode_json", breaks="OIP-NUMBER-EXACT")
def fp32_written_with_seven_digits(original: Any, tensor: Tensor) -> Any:
    """The server writes FP32 into JSON with seven significant digits, although some elements need nine."""
    items = original(tensor)
    return [float(f"{item:.7g}") for item in items] if tensor.datatype == "FP32" else items


@fault("tensors.decode_json", breaks="OIP-NUMBER-EXACT")
def json_subnormals_read_as_zero(original: Any, datatype: str, *rest: Any) -> Tensor:
    """The server reads subnormal numbers in JSON as zero."""
    tensor: Tensor = original(datatype, *rest)
    if datatype not in ("FP32", "FP64"):
        return tensor
    is_subnormal = np.abs(tensor.elements) < np.finfo(tensor.elements.dtype).tiny
    return replace(tensor, elements=np.where(is_subnormal, np.copysign(0, tensor.elements), tensor.elements))


@fault("tensors.encode_json", breaks=("OIP-NUMBER-EXACT", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def largest_unsigned_integers_written_as_doubles(original: Any, tensor: Tensor) -> Any:
    """When the server writes JSON, it rounds UINT64 elements of 2^63 or more to doubles."""
    items = original(tensor)
    if tensor.datatype != "UINT64":
        return items
    return [min(int(float(item)), 2**64 - 2048) if item >= 2**63 else item for item in items]
