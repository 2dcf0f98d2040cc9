"""The search by Hypothesis: known inputs with pieces replaced, and the smallest one that breaks a property."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from typing import Final, NamedTuple

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.guided import MAX_INPUT_S
from tests.fuzz.targets import Target

BATCH: Final = 100  # inputs between two looks at the clock
# What messages are made of: bytes changed at random seldom get past the JSON of a request.
WORDS: Final = (
    *(b"BOOL", b"UINT8", b"INT32", b"UINT64", b"FP16", b"FP64", b"BF16", b"BYTES", b"STRING"),
    *(b'"inputs"', b'"outputs"', b'"name"', b'"datatype"', b'"shape"', b'"data"', b'"parameters"'),
    *(b'"binary_data_size"', b'"binary_data"', b'"classification"', b'"shared_memory_region"'),
    *(b"null", b"true", b"false", b"NaN", b"-Infinity", b"1e400", b"-0.0", b"9007199254740993", b"[]", b"{}", b'""'),
    *(b'"\\ud800"', b'"\\u0000"', b"\xff", b"\xef\xbb\xbf", b"\r\n", b"\0", b"\x1b[31m", b"\xe2\x80\xae"),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Length: 3\r\n", b"Expect: 100-continue\r\n", b"0\r\n\r\n"),
    *(str(number).encode() for number in (*range(-1, 9), 255, 65536, 2**31, 2**32, 2**63 - 1, 2**64)),
)


class SearchResult(NamedTuple):
    """How many inputs were tried, and the smallest that breaks the property, if there is one, with its traceback."""

    tried: int
    broken: bytes | None = None
    traceback: str = ""


@st.composite
def changed_inputs(draw: st.DrawFn, known: Sequence[bytes], largest: int) -> bytes:
    """Draw a known input with up to four of its pieces replaced by words, by bytes, or by pieces of its own."""
    data = draw(st.sampled_from(known))
    for _ in range(draw(st.integers(0, 4))):
        places = st.integers(0, len(data))
        start, begin = draw(places), draw(places)
        pieces = st.sampled_from(WORDS) | st.binary(max_size=8) | st.just(data[begin : begin + 32])
        data = data[:start] + draw(pieces) + data[start + draw(st.integers(0, 8)) :]
    return data[:largest]


def search(target: Target, seconds: float, chosen_seed: int, inputs: int = 0) -> SearchResult:
    """Try so many inputs or, for 0, for so many seconds: the same ones for the same seed, others each time for 0."""
    tried, broken = 0, b""

    @settings(
        max_examples=BATCH,
        database=None,
        deadline=timedelta(seconds=MAX_INPUT_S),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(changed_inputs([b"", *target.inputs()], target.largest))
    def holds(data: bytes) -> None:
        nonlocal tried, broken
        tried += 1
        try:
            target.holds(data)
        except Exception:
            broken = data  # the last one is the smallest
            raise

    end, salt = time.monotonic() + seconds, str(chosen_seed) if chosen_seed else os.urandom(8).hex()
    for batch in count():
        if (tried >= inputs) if inputs else (batch and time.monotonic() >= end):
            return SearchResult(tried)
        try:
            seed(f"{salt}-{batch}")(holds)()
        except Exception:  # whatever is raised is a finding
            return SearchResult(tried, broken, traceback.format_exc())
    raise AssertionError
