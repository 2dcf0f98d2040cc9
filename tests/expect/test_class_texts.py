"""Texts of classes, written by hand: what is accepted, what is refused and in which words, and what a list says."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from conformance.expect import class_texts
from conformance.expect.class_texts import ClassText

ACCEPTED = [
    ("10:2", ClassText("10", 2)),
    ("3.3:1:index_1_label", ClassText("3.3", 1, "index_1_label")),
    ("3.300000:0", ClassText("3.300000", 0)),
    ("3.3e0:0", ClassText("3.3e0", 0)),
    ("-1E-07:12", ClassText("-1E-07", 12)),
    ("5.:0", ClassText("5.", 0)),
    (".5:0", ClassText(".5", 0)),
    ("-inf:3", ClassText("-inf", 3)),
    ("nan:3:x", ClassText("nan", 3, "x")),
    ("1:0:a:b:c", ClassText("1", 0, "a:b:c")),
    ("1:0: two words ", ClassText("1", 0, " two words ")),
    ("1:0:猫", ClassText("1", 0, "猫")),
    ("1:0:", ClassText("1", 0, "")),
    ("1:9999999999999999999", ClassText("1", 9999999999999999999)),
]

REFUSED = [
    ("", 'no colon in ""'),
    ("10", 'no colon in "10"'),
    ("10;2", 'no colon in "10;2"'),
    (":2", 'value "" is not a number'),
    ("cat:2", 'value "cat" is not a number'),
    ("3,5:2", 'value "3,5" is not a number: the decimal separator is a point, not a comma'),
    ("-3,50e1:2", 'value "-3,50e1" is not a number: the decimal separator is a point, not a comma'),
    ("1,234,567:2", 'value "1,234,567" is not a number'),
    ("0x10:2", 'value "0x10" is not a number'),
    ("1_0:2", 'value "1_0" is not a number'),
    ("e5:2", 'value "e5" is not a number'),
    (" 10:2", 'value " 10" is not a number'),
    ("٣:2", 'value "\\u0663" is not a number'),
    ("10:", 'index "" is not a decimal integer'),
    ("10::cat", 'index "" is not a decimal integer'),
    ("10:-1", 'index "-1" is not a decimal integer'),
    ("10: 2", 'index " 2" is not a decimal integer'),
    ("10:2.0", 'index "2.0" is not a decimal integer'),
    ("10:cat:2", 'index "cat" is not a decimal integer'),
    ("10:٣", 'index "\\u0663" is not a decimal integer'),
    ("10:12345678901234567890", 'index "12345678901234567890" is not a decimal integer'),
]


@pytest.mark.parametrize(("text", "expected"), ACCEPTED)
def test_a_class_is_parsed(text: str, expected: ClassText) -> None:
    assert class_texts.parse(text) == expected
    assert class_texts.parse_leniently(text) == expected


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_no_class_is_refused(text: str, message: str) -> None:
    with pytest.raises(class_texts.ClassTextError) as refusal:
        class_texts.parse(text)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2:0.75", ClassText("0.75", 2)),
        ("0.75,2", ClassText("0.75", 2)),
        ("3,5:2", ClassText("3.5", 2)),
        ("-3,50e1:2:cat", ClassText("-3.50e1", 2, "cat")),
        ("0.75 : 2 : cat", ClassText("0.75", 2, "cat")),
        (" 0.75:2", ClassText("0.75", 2)),
        ("0.75;2;cat", ClassText("0.75", 2, "cat")),
        ("cat:2", None),
        ("0.75", None),
        ("", None),
        ("cat:dog", None),
    ],
)
def test_a_class_written_wrongly_is_understood(text: str, expected: ClassText | None) -> None:
    assert class_texts.parse_leniently(text) == expected


@pytest.mark.parametrize(
    ("text", "score", "same"),
    [
        ("3", 3, True),
        ("-128", -128, True),
        ("18446744073709551615", 2**64 - 1, True),
        ("18446744073709551616", 2**64 - 1, False),
        ("9007199254740992", 2**53 + 1, False),
        ("3.0", 3, True),
        ("3e0", 3, True),
        ("3.5", 3, False),
        ("1", True, True),
        ("3.3", 3.3, True),
        ("3.300000", 3.3, True),
        ("3.3e0", 3.3, True),
        ("3.3", float(np.float32(3.3)), True),
        ("10", 10.0, True),
        ("3.30001", 3.3, True),
        ("3.30002", 3.3, False),
        ("0.007812", 0.0078125, True),
        ("0.007811", 0.0078125, False),
        ("0.000000", 1e-9, True),
        ("0.000001", 1e-9, False),
        ("-0.000000", 0.0, True),
        ("1000001", 1e6, True),
        ("1000005", 1e6, True),
        ("1000006", 1e6, False),
        ("inf", math.inf, True),
        ("-inf", math.inf, False),
        ("Infinity", math.inf, True),
        ("1e400", 1e300, False),
        ("1.797693135e+308", sys.float_info.max, True),  # rounded up to ten digits, more than a double can hold
        ("-1.79770e+308", -sys.float_info.max, True),
        ("1.79771e+308", sys.float_info.max, False),
        ("-1.79770e+308", sys.float_info.max, False),
        ("inf", sys.float_info.max, False),
        ("inf", 1e300, False),
        ("nan", math.nan, True),
        ("nan", 1.0, False),
        ("1.0", math.nan, False),
        ("one", 1.0, False),
    ],
)
def test_a_text_is_the_value_of_a_score(text: str, score: float, same: bool) -> None:
    assert class_texts.is_same_value(text, score) is same


@pytest.mark.parametrize(
    ("text", "score", "datatype", "exact"),
    [
        ("3", 3, "<i4", True),
        ("3.0", 3, "<i4", False),
        ("3e0", 3, "<i4", False),
        ("0.1", float(np.float32(0.1)), "<f4", True),
        ("0.100000", float(np.float32(0.1)), "<f4", True),
        ("0.1", float(np.float32(0.1)), "<f8", False),
        ("0.10000000149011612", float(np.float32(0.1)), "<f8", True),
        ("123457", 123456.75, "<f4", False),
        ("nan", math.nan, "<f4", True),
        ("inf", math.inf, "<f8", True),
    ],
)
def test_a_text_says_all_of_a_score_or_less(text: str, score: float, datatype: str, exact: bool) -> None:
    assert class_texts.is_exact_value(text, score, np.dtype(datatype)) is exact


HIGHEST: list[tuple[str, list[Any], int, list[int]]] = [
    ("<f4", [1, 5, 10, 4], 2, [2, 1]),
    ("<f4", [1, 5, 10, 4], 9, [2, 1, 3, 0]),
    ("<f4", [-1, -math.inf, -0.5, -2], 4, [2, 0, 3, 1]),
    ("i1", [-1, -128, 127], 3, [2, 0, 1]),
    ("u1", [127, 255, 128], 3, [1, 2, 0]),
    ("<u8", [2**63, 2**64 - 1, 2**53, 2**53 + 1], 4, [1, 0, 3, 2]),
    ("<i8", [-1, -(2**63), 2**63 - 1, 0], 4, [2, 3, 0, 1]),
    ("<f8", [1.0, 1.0 + 2**-52], 2, [1, 0]),
    ("<f4", [2, 2, 3], 3, [2, 0, 1]),
]


@pytest.mark.parametrize(("dtype", "scores", "count", "expected"), HIGHEST)
def test_the_highest_scores(dtype: str, scores: list[Any], count: int, expected: list[int]) -> None:
    assert class_texts.find_highest(np.array(scores, dtype), count) == expected


SCORES = np.array([1.5, 5.25, 10.0, 4.0], "<f4")

# text of the classes, and which of the questions below is answered with yes
LISTS = [
    (["10:2", "5.25:1"], "agree values index value"),
    (["10:3", "5.25:2"], "values value"),
    (["10:0", "5.25:1"], "values value"),
    (["10:2", "5:1"], "index value"),
    (["5.25:2", "4:1"], "index"),
    (["1.5:0", "4:3"], "agree"),
    (["10:2", "5.25:9"], "values value"),
    (["10:2", "5.25:1", "4:3", "1.5:0"], "agree values index value"),
    (["10:2", "5.25:1", "4:3", "1.5:0", "0:4"], ""),
]


@pytest.mark.parametrize(("texts", "yes"), LISTS)
def test_what_a_list_of_classes_says(texts: list[str], yes: str) -> None:
    listed = [class_texts.parse(text) for text in texts]
    answers = {
        "agree": class_texts.has_matching_indices(listed, SCORES),
        "values": class_texts.has_highest_values(listed, SCORES),
        "index": class_texts.are_highest(class_texts.find_scores_by_index(listed, SCORES), SCORES),
        "value": class_texts.are_highest(class_texts.find_scores_by_value(listed, SCORES), SCORES),
    }
    assert [name for name, answer in answers.items() if answer] == yes.split()


def test_indices_can_be_counted_from_one() -> None:
    listed = [class_texts.parse(text) for text in ("10:3", "5.25:2", "4:4", "1.5:1")]
    assert class_texts.find_scores_by_index(listed, SCORES, first=1) == [10.0, 5.25, 4.0, 1.5]


def test_large_integers_are_told_apart() -> None:
    scores = np.array([2**53, 2**53 + 1, 2**64 - 1], "<u8")
    assert class_texts.find_index_of_nearest_score(class_texts.parse("9007199254740993:0"), scores) == 1
    assert class_texts.find_index_of_nearest_score(class_texts.parse("18446744073709551615:0"), scores) == 2


def test_nan_and_infinities_have_a_nearest_score() -> None:
    scores = np.array([1, -np.inf, np.inf], "<f4")
    assert [
        class_texts.find_index_of_nearest_score(class_texts.parse(f"{value}:0"), scores)
        for value in ("inf", "-inf", "2", "nan")
    ] == [2, 1, 0, 0]


# Lists of all four classes of SCORES with one fault, and the rules that they keep: each fault breaks one rule alone.
FAULTS = [
    (["10:2", "5.25:1", "4:3", "1.5:0"], "order values indices"),
    (["1.5:0", "4:3", "5.25:1", "10:2"], "values indices"),
    (["10:3", "5.25:2", "4:4", "1.5:1"], "order values"),
    (["10:0", "5.25:1", "4:2", "1.5:3"], "order values"),
    (["10:2", "5:1", "4:3", "1:0"], "order indices"),
    (["5.25:2", "4:1", "1.5:3", "10:0"], "order indices"),
    (["5.25:1", "10:0", "1.5:2", "4:3"], ""),
]


@pytest.mark.parametrize(("texts", "kept"), FAULTS)
def test_rules_tell_faults_apart(texts: list[str], kept: str) -> None:
    listed = [class_texts.parse(text) for text in texts]
    rules = {
        "order": class_texts.is_in_order,
        "values": class_texts.has_right_values,
        "indices": class_texts.has_right_indices,
    }
    assert [name for name, rule in rules.items() if rule(listed, SCORES)] == kept.split()


@pytest.mark.parametrize(
    ("texts", "broken"),
    [
        (["2.005:3", "0.998:2", "0.003:0", "-0.004:1"], ""),
        (["2:3", "1:2", "0.005:1", "-0.005:0"], ""),  # two scores that noise may exchange
        (["2:3", "1:2", "0.05:1", "0:0"], "values"),
        (["2:2", "1:3", "0:0", "0:1"], "indices"),
        (["1:2", "2:3", "0:0", "0:1"], "order"),
    ],
)
def test_noise_changes_no_ranking(texts: list[str], broken: str) -> None:
    scores = np.array([0.001, -0.002, 1, 2], "<f4")
    listed, settled = class_texts.remove_noise([class_texts.parse(text) for text in texts], scores, 0.01)
    rules = {
        "order": class_texts.is_ordered_without_repeats,
        "values": class_texts.has_right_values,
        "indices": class_texts.has_right_indices,
    }
    assert [name for name, rule in rules.items() if not rule(listed, settled)] == broken.split()
    assert class_texts.remove_noise(listed, scores, 0) == (listed, scores)


@pytest.mark.parametrize(
    ("texts", "right"),
    [
        (["2:1", "2:3", "1:0", "1:2"], True),
        (["2:3", "2:1", "1:2", "1:0"], True),
        (["2:3", "2:3", "1:2", "1:0"], False),
        (["2:3", "1:2", "2:1", "1:0"], False),
        (["1:2", "1:0"], False),
    ],
)
def test_ties_may_stand_in_any_order(texts: list[str], right: bool) -> None:
    scores = np.array([1, 2, 1, 2], "<i4")
    assert class_texts.is_ordered_without_repeats([class_texts.parse(text) for text in texts], scores) is right


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        (["4:1", "3:0"], ["9:0", "8:1"], True),
        (["3:0", "4:1"], ["8:1", "9:0"], True),
        (["4:2", "3:1"], ["9:1", "8:2"], True),
        (["4:1", "3:0"], ["9:2", "8:3"], False),
        (["4:0", "3:1"], ["9:0", "8:1"], True),
        (["9:1", "8:0"], ["9:0", "8:1"], False),
        (["9:0", "8:1"], ["4:1", "3:0"], False),
        (["9:2", "8:3"], ["4:1", "3:0"], False),
    ],
)
def test_indices_of_a_batch_count_alike(first: list[str], second: list[str], alike: bool) -> None:
    scores = np.array([[3, 4], [9, 8]], "<f4")
    items = [
        ([class_texts.parse(text) for text in texts], row) for texts, row in zip((first, second), scores, strict=True)
    ]
    assert class_texts.is_ranked_per_item(items) is alike
