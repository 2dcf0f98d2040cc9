"""JSON faults in requests and answers: encoding, accepted spellings, and values of elements."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import Fault, fault, steps
from reference_server.faults.edits import (
    drop_members,
    dump_json,
    flush_subnormals,
    get_entries,
    get_parameters,
    is_member_after,
    on_elements,
    round_to_single,
    set_elements,
)
from reference_server.faults.families import combine
from reference_server.members import Object
from reference_server.tensors import NUMPY, Tensor

Answer = dict[str, Any]
Change = Callable[[Any], Any]


def change_data(data: Any, change: Change) -> Any:
    """Return JSON data, flat or nested, in which `change` has replaced each element."""
    return [change_data(item, change) for item in data] if isinstance(data, list) else change(data)


def find_integer_range(datatype: str) -> tuple[int, int]:
    """Return the minimum and maximum of an integer datatype."""
    found = np.iinfo(NUMPY[datatype])
    return int(found.min), int(found.max)


def write_as_they_are(breaks: str, dump: Callable[[Any], bytes]) -> Fault:
    """Return a fault: the server writes floating-point numbers that JSON cannot represent; `dump` writes the answer."""
    return combine(
        breaks,
        steps.ENCODE_JSON.instead(
            (), lambda tensor: tensor.elements.tolist(), when=lambda tensor: tensor.datatype in ("FP32", "FP64")
        ),
        steps.ENCODE.instead((), dump),
    )


# --- the text of answers ----------------------------------------------------------------------------------------------

wrong_utf_8_replaced = steps.DECODE_TEXT.instead("OIP-BYTES-EXACT", lambda item: item.decode("utf-8", "replace")).says(
    "The server writes bytes that are not UTF-8 as U+FFFD in JSON strings."
)
wrong_utf_8_dropped = steps.DECODE_TEXT.instead("OIP-BYTES-EXACT", lambda item: item.decode("utf-8", "ignore")).says(
    "The server omits bytes that are not UTF-8 from JSON strings."
)


def _append_error(error: InferenceError, model: Any) -> Response:
    text = f'{{"model_name":"{model.name}","outputs":[' + json.dumps({"error": error.message})
    return Response(text.encode(), error.status, media_type="application/json")


def _encode_in_latin_1(octets: bytes) -> bytes:
    try:
        return octets.decode().encode("latin-1")
    except UnicodeEncodeError:
        return octets


def _write_as_c(answer: Answer) -> bytes:
    text = dump_json(answer)
    for word, written in (("NaN", "nan"), ("Infinity", "inf")):
        text = re.sub(rf"(?<=[\[,-]){word}", written, text)
    return text.encode()


refused_answers_begin_with_their_first_part = steps.BUILD.on_refusal("OIP-ERROR", _append_error).says(
    "If the server cannot write an output, it appends the error object to the JSON written so far."
)
json_in_latin_1 = steps.ENCODE.after("OIP-JSON", _encode_in_latin_1).says(
    "The server encodes the JSON of an answer in Latin-1 if Latin-1 has all characters of the JSON."
)
nul_behind_the_json = steps.FRAME.before(
    "OIP-JSON", head=lambda head: head + b"\0", when=lambda binary: not binary
).says("The server ends an answer without binary data with a NUL byte, like a C string.")
bytes_that_are_no_text_written_into_json = combine(
    "OIP-JSON",
    steps.DECODE_TEXT.instead((), lambda item: item.decode("utf-8", "surrogateescape")),
    steps.ENCODE.instead((), lambda answer: dump_json(answer).encode("utf-8", "surrogateescape")),
).says("The server copies bytes that are not UTF-8 unchanged into JSON strings.")
numbers_among_booleans_are_false = steps.DECODE_JSON.before(
    "OIP-COERCE",
    data=lambda data: [False if type(item) in (int, float) else item for item in data],
    when=lambda datatype, data: datatype == "BOOL" and isinstance(data, list),
).says("The server reads a number in JSON data of BOOL as false.")
nan_written_as_a_bare_word = write_as_they_are("OIP-JSON-NAN", lambda answer: dump_json(answer).encode()).says(
    "The server writes NaN and infinities into JSON data as the bare words NaN and Infinity."
)
nan_written_as_the_c_library_does = write_as_they_are("OIP-JSON", _write_as_c).says(
    "The server writes NaN and infinities into JSON data as `nan` and `inf`, like C's printf."
)

# --- data -------------------------------------------------------------------------------------------------------------


def is_nested(data: Any) -> bool:
    """Whether JSON data are nested."""
    return bool(data) and isinstance(data[0], list)


def _nest(items: list[Any], shape: Sequence[int]) -> list[Any]:
    """Return flat elements nested like a shape, in row-major order."""
    for extent in reversed(shape[1:]):
        items = [items[at : at + extent] for at in range(0, len(items), extent)]
    return items


nested_data_refused = steps.FLATTEN.refuse("OIP-DATA", is_nested).says(
    "The server refuses nested data: it reads only flat arrays."
)
flat_strings_read_by_columns = steps.DECODE_JSON.after(
    ("OIP-DATA", "OIP-ANSWER"),
    lambda tensor, shape: replace(tensor, elements=tensor.elements.reshape(shape[::-1]).T.reshape(-1)),
    when=lambda datatype, shape, data: datatype == "BYTES" and len(shape) == 2 and not is_nested(data),
).says("The server reads flat BYTES data of two dimensions in column-major order.")
data_nested_one_level_too_deep = steps.ENCODE_JSON.after(
    "OIP-DATA",
    lambda items, tensor: [_nest(items, tensor.shape)],
    when=lambda tensor, result: len(tensor.shape) > 1 and result,
).says("The server writes JSON data of two or more dimensions nested in one array too many.")
members_that_are_not_defined_refused = steps.PARSE_OBJECT.refuse(
    "OIP-MEMBERS", lambda result: result.keys() - {"id", "parameters", "inputs", "outputs"}, status=422
).says("The server refuses a request object with a member that the protocol does not define.")
letters_beyond_ascii_refused = steps.PARSE_OBJECT.refuse("OIP-WRITTEN", lambda data: not bytes(data).isascii()).says(
    "The server takes unescaped non-ASCII characters for control characters and refuses the request."
)

# --- elements of requests ---------------------------------------------------------------------------------------------


def _keep_low_bits(data: Any, datatype: str) -> Any:
    least, most = find_integer_range(datatype)
    count = most - least + 1
    return change_data(data, lambda item: (item - least) % count + least if type(item) is int else item)


def _keep_escapes(data: Any) -> bytes:
    strings = re.compile(rb'(?<="data":\[)[^\]]*')
    return strings.sub(lambda found: re.sub(rb"(?<!\\)\\u00(4)", rb"\\\\u00\1", found[0]), bytes(data))


def refuse_text(breaks: str | tuple[str, ...], pattern: bytes) -> Fault:
    """Return a fault: the server refuses JSON that contains a pattern."""
    return steps.PARSE_OBJECT.refuse(breaks, lambda data: re.search(pattern, bytes(data)))


doubles_in_json_read_in_single_precision = steps.DECODE_JSON.after(
    ("BIN-SAME-AS-JSON-I", "OIP-VALUE", "OIP-ANSWER"), on_elements(round_to_single, "FP64")
).says("The server reads FP64 elements of JSON data in single precision.")
integers_in_json_cut_to_their_low_bits = steps.DECODE_JSON.before(
    "OIP-RANGE", data=_keep_low_bits, when=lambda datatype: "INT" in datatype
).says("The server keeps only the low bits of an integer in JSON data that exceeds the range of its datatype.")
decimal_integers_lose_a_digit = steps.DECODE_JSON.before(
    ("OIP-VALUE", "OIP-COERCE"),
    data=lambda data: change_data(data, lambda item: int(item) // 10 if type(item) is float else item),
    when=lambda datatype: "INT" in datatype,
).says("The server drops the last digit of an integer written with a decimal point: 12.0 becomes 1.")
escaped_letters_in_json_data_kept = steps.PARSE_OBJECT.before("OIP-VALUE", data=_keep_escapes).says(
    r"The server does not decode \u escapes of ASCII letters, such as \u0041, in strings of JSON data."
)
string_that_ends_in_a_backslash_refused = refuse_text(
    ("OIP-VALUE", "BIN-SAME-AS-JSON-I", "BIN-SAME-AS-JSON-O"), rb'(?<!\\)(?:\\\\)+"'
).says("The server does not see the end of a JSON string whose last character is an escaped backslash, and refuses it.")
escapes_of_backspace_and_form_feed_refused = refuse_text("OIP-WRITTEN", rb"(?<!\\)(?:\\\\)*\\[bf]").says(
    r"The server does not know the escapes \b and \f in JSON strings, and refuses them."
)
ids_with_an_escaped_quote_refused = refuse_text("OIP-WRITTEN", rb'"id"\s*:\s*"[^"]*\\"').says(
    r"The server refuses an id that is written with the escape \", but accepts \u0022."
)
element_without_dimensions_outside_of_an_array = steps.ENCODE_JSON.after(
    "OIP-DATA", lambda items: items[0], when=lambda tensor: not tensor.shape
).says("The server writes `data` of a tensor with shape [] as a bare element instead of an array.")


@fault(steps.DECODE_JSON, breaks=("OIP-ANSWER", "OIP-ERROR-STATUS"))
def first_element_of_json_data_looked_at(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server reads the first element of JSON data even if the data are empty, and fails."""
    first = data
    while isinstance(first, list):
        first = first[0]
    return original(datatype, shape, data)


empty_json_data_taken_for_no_data = steps.PARSE_INPUT.refuse("OIP-ANSWER", lambda entry: entry.get("data") == []).says(
    "The server refuses an input whose `data` is an empty array, but accepts binary data of 0 bytes."
)

# --- spellings of requests ------------------------------------------------------------------------------------------


def lose_member(name: str, is_lost: Callable[[Object], bool]) -> Fault:
    """Return a fault: the server ignores a member of inputs if it is written in some place."""

    def change(found: Object) -> Object:
        for entry in get_entries(found, "inputs"):
            if is_lost(entry):
                del entry[name]
        return found

    return steps.PARSE_OBJECT.after("OIP-WRITTEN", change)


shape_behind_the_data_not_seen = lose_member("shape", lambda entry: is_member_after(entry, "shape", "data")).says(
    "The server ignores the `shape` of an input if `shape` comes after `data`."
)
sizes_in_front_of_the_name_lost = lose_member(
    "parameters", lambda entry: is_member_after(entry, "name", "parameters")
).says("The server ignores the `parameters` of an input if they come before `name`.")


@fault(steps.PARSE_OBJECT, breaks="OIP-WRITTEN")
def sizes_behind_other_parameters_lost(original: Any, data: Any) -> Object:
    """The server ignores `binary_data_size` if it is not the first parameter of an input."""
    found: Object = original(data)
    for entry in get_entries(found, "inputs"):
        parameters = get_parameters(entry)
        if next(iter(parameters), "") != "binary_data_size":
            parameters.pop("binary_data_size", None)
    return found


id_behind_the_inputs_lost = steps.PARSE_OBJECT.after(
    ("OIP-WRITTEN", "OIP-MEMBER-MISSING"),
    lambda found: drop_members(found, "id"),
    when=lambda result: is_member_after(result, "id", "inputs"),
).says("The server ignores the `id` of a request if `id` comes after `inputs`.")
escaped_names_of_tensors_not_recognised = refuse_text("OIP-WRITTEN", rb'"name"\s*:\s*"[^"]*\\u').says(
    "The server does not recognise a tensor name that contains a Unicode escape."
)
escaped_members_not_recognised = refuse_text("OIP-WRITTEN", rb'\\u[0-9a-fA-F]{4}[^":,]*"\s*:').says(
    "The server does not recognise a member name that contains a Unicode escape."
)
blanks_before_a_colon_refused = refuse_text("OIP-WRITTEN", rb'"\s+:').says(
    "The server refuses white space between the name of a member and its colon."
)


def refuse_unknown_members(owner: str, *known: str) -> Fault:
    """Return a fault: the server refuses an input or a requested output with a member that is not known."""
    return steps.PARSE_OBJECT.refuse(
        "OIP-MEMBERS", lambda result: any(entry.keys() - set(known) for entry in get_entries(result, owner)), status=422
    )


undefined_members_of_inputs_refused = refuse_unknown_members(
    "inputs", "name", "shape", "datatype", "parameters", "data"
).says("The server refuses an input with a member that the protocol does not define.")
undefined_members_of_outputs_refused = refuse_unknown_members("outputs", "name", "parameters").says(
    "The server refuses a requested output with a member that the protocol does not define."
)

# --- names of parameters ----------------------------------------------------------------------------------------------


def list_parameters(found: Object) -> list[Object]:
    """Return the parameters of a request, its inputs and its outputs."""
    return list(map(get_parameters, [found, *get_entries(found, "inputs"), *get_entries(found, "outputs")]))


parameters_named_like_methods_raise = steps.PARSE_OBJECT.refuse(
    "OIP-PARAMETER-NAMES",
    lambda result: any(hasattr(object, name) for given in list_parameters(result) for name in given),
    status=500,
).says("The server answers 500 if a parameter is named like a built-in method, such as `__init__`.")


@fault(steps.PARSE_OBJECT, breaks="OIP-PARAMETER-NAMES")
def parameters_without_a_name_end_the_others(original: Any, data: Any) -> Object:
    """The server ignores a parameter with an empty or blank name, and all parameters that follow."""
    found: Object = original(data)
    for given in list_parameters(found):
        names = list(given)
        blank = next((place for place, name in enumerate(names) if not name.strip()), len(names))
        for name in names[blank:]:
            del given[name]
    return found


parameters_beyond_ascii_are_defaults = steps.GET_FLAG.instead(
    "OIP-PARAMETER-NAMES", lambda: None, when=lambda given: any(not other.isascii() for other in given)
).says("The server ignores boolean parameters if another parameter beside them has a non-ASCII name.")

# --- numbers that lose bits -------------------------------------------------------------------------------------------

FLOATS = ("FP32", "FP64")
negative_zero_written_without_its_sign = steps.ENCODE_JSON.after(
    "OIP-NUMBER-EXACT", lambda items: [item + 0.0 if isinstance(item, float) else item for item in items]
).says("The server writes negative zero into JSON as positive zero.")
negative_zero_read_without_its_sign = steps.DECODE_JSON.after(
    "OIP-NUMBER-EXACT", on_elements(lambda elements: elements + 0.0, *FLOATS)
).says("The server reads negative zero in JSON as positive zero.")
fp32_written_with_seven_digits = steps.ENCODE_JSON.after(
    "OIP-NUMBER-EXACT",
    lambda items: [float(f"{item:.7g}") for item in items],
    when=lambda tensor: tensor.datatype == "FP32",
).says("The server writes FP32 into JSON with seven significant digits, although some elements need nine.")


def _list_numbers_beyond_fp32(datatype: str, data: Any) -> list[bool]:
    """Return for each number of flat FP32 data whether it is larger, as a double, than the largest element."""
    numbers = data if datatype == "FP32" and isinstance(data, list) else []
    return [type(item) is float and abs(item) > float(np.finfo("<f4").max) for item in numbers]


largest_fp32_read_as_infinite = steps.DECODE_JSON.after(
    ("OIP-VALUE", "OIP-NUMBER-EXACT"),
    lambda tensor, datatype, data: replace(
        tensor,
        elements=set_elements(tensor.elements, np.flatnonzero(_list_numbers_beyond_fp32(datatype, data)), math.inf),
    ),
    when=lambda datatype, data: any(_list_numbers_beyond_fp32(datatype, data)),
).says("The server reads numbers of FP32 JSON data as infinity if, as doubles, they exceed the largest element.")
largest_fp32_refused = steps.DECODE_JSON.refuse(
    "OIP-NUMBER-EXACT", lambda datatype, data: any(_list_numbers_beyond_fp32(datatype, data))
).says("The server refuses numbers of FP32 JSON data that, as doubles, exceed the largest element.")
json_subnormals_read_as_zero = steps.DECODE_JSON.after("OIP-NUMBER-EXACT", on_elements(flush_subnormals, *FLOATS)).says(
    "The server reads subnormal numbers in JSON as zero."
)
largest_unsigned_integers_written_as_doubles = steps.ENCODE_JSON.after(
    ("OIP-NUMBER-EXACT", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"),
    lambda items: [min(int(float(item)), 2**64 - 2048) if item >= 2**63 else item for item in items],
    when=lambda tensor: tensor.datatype == "UINT64",
).says("When the server writes JSON, it rounds UINT64 elements of 2^63 or more to doubles.")
