"""Deployed models as they are described: guessed inputs, what JSON carries, what differs, and the way to workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from conformance.discovery.config_tables import format_samples
from conformance.discovery.control_answers import ControlAnswers, find_differing_outputs, measure_noise
from conformance.discovery.deployed_model import (
    SAMPLES,
    Change,
    DeployedModel,
    derive_role,
    encode_raw_body,
    from_dict,
    is_classifiable,
    is_json_capable,
)
from conformance.expect.unmet import NotApplicableError
from conformance.judging.selection import Subjects
from conformance.judging.session import Session
from conformance.roles.guessed_inputs import (
    MAX_GUESSED_ELEMENTS,
    UserInputError,
    UserTensor,
    guess_inputs,
    scale_inputs,
    vary_inputs,
)
from conformance.roles.roles import TensorSpec
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor
from reference_server.faults import steps, switch_on
from reference_server.models import Model
from tests.support import unusual_models
from tests.support.deployed_judging import judge_models, list_missed

Shape = tuple[int, ...]


def spec(datatype: str, *shape: int, name: str = "X") -> TensorSpec:
    return TensorSpec(name, datatype, shape)


def deployed(inputs: Sequence[TensorSpec], tensors: Sequence[Tensor], **fields: Any) -> DeployedModel:
    role = derive_role("m", inputs, [spec("FP32", -1, name="Y"), spec("BYTES", 1, name="Z")])
    return DeployedModel(role, "m", tensors=tuple(tensors), **fields)


# --- guesses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "first", "among"),
    [
        ((4,), (4,), {(2, 4), (1, 4)}),
        ((-1,), (3,), {(1,), (16,), (224,), (2, 3), (1, 3), ()}),
        ((-1, 4), (2, 4), {(1, 4), (1, 1, 4), (4,)}),
        ((-1, -1), (2, 3), {(1, 3), (1, 1), (1, 16), (1, 64)}),
        ((-1, 3, -1, -1), (2, 3, 3, 3), {(1, 3, 64, 64), (1, 3, 224, 224), (3, 3, 3)}),
        ((3, -1, -1), (3, 3, 3), {(1, 3, 224, 224), (3, 64, 64)}),
        ((), (), {(1,), (2,)}),
    ],
)
def test_guesses_fit_the_metadata_first(shape: Shape, first: Shape, among: set[Shape]) -> None:
    shapes = [tensors[0].shape for tensors in guess_inputs([TensorSpec("X", "FP32", shape)], {})]
    assert shapes[0] == first
    assert among <= set(shapes)
    assert len(shapes) <= 48


@pytest.mark.parametrize(
    ("datatype", "elements"),
    [
        ("INT64", [[1, 0, 0], [0, 1, 1], [1, 1, 0]]),
        ("UINT8", [[1, 0, 0], [0, 1, 1], [1, 1, 0]]),
        ("BOOL", [[True, False, False], [False, True, True], [True, True, False]]),
        ("FP16", [[0.125, 0.75, 0.375], [0.5, 0.125, 0.75], [0.875, 0.5, 0.125]]),
        ("BYTES", [[f' é "{k}\\{n}"{"x" * k}'.encode() for k in range(3)] for n in range(3)]),
    ],
)
def test_first_guesses_are_small_and_differ_between_inputs(datatype: str, elements: list[list[Any]]) -> None:
    specs = [spec(datatype, -1, name=name) for name in "ABC"]
    first = next(guess_inputs(specs, {}))
    assert [tensor.name for tensor in first] == ["A", "B", "C"]
    assert [tensor.array.tolist() for tensor in first] == elements


def test_other_elements_follow_when_no_shape_was_taken() -> None:
    specs = [spec("INT32", 2, name="A"), spec("FP32", 2, name="B"), spec("BYTES", 2, name="C")]
    values = [[t.array.tolist() for t in tensors] for tensors in guess_inputs(specs, {}) if tensors[0].shape == (2,)]
    assert values[1:] == [
        [[1, 2], [2.0, 3.0], [b"3", b"10"]],
        [[1, 1], [1.0, 1.0], [b"{}", b"{}"]],
        [[0, 0], [0.0, 0.0], [b"0", b"0"]],
    ]


def test_no_guess_is_enormous() -> None:
    found = [tensors[0] for tensors in guess_inputs([spec("FP32", -1, -1, -1, -1)], {})]
    assert max(tensor.elements for tensor in found) <= MAX_GUESSED_ELEMENTS
    assert (1, 224, 224, 224) not in [tensor.shape for tensor in found]


def test_guesses_are_the_same_every_time() -> None:
    runs = [[t.to_bytes() for (t,) in guess_inputs([spec("BYTES", -1, 2)], {})] for _ in range(2)]
    assert runs[0] == runs[1]


def test_given_inputs_are_sent_alone_first_and_then_with_the_others() -> None:
    specs = [spec("INT32", -1, name="A"), spec("FP32", -1, name="B")]
    first, second = islice(guess_inputs(specs, {"B": UserTensor((1, 2), [0.5, 7])}), 2)
    assert [(t.name, t.shape, t.array.tolist()) for t in first] == [("B", (1, 2), [[0.5, 7.0]])]
    assert [t.name for t in second] == ["A", "B"]
    assert len(list(guess_inputs(specs[1:], {"B": UserTensor((1, 2), [0.5, 7])}))) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Z": UserTensor((1,), [1])}, "inputs.Z: the model has no such input; it has A, T"),
        ({"A": UserTensor((1,), [1], "INT64")}, "inputs.A: datatype INT64, but INT32 in the metadata"),
        ({"A": UserTensor((3,), [1, 2])}, "inputs.A: data has 2 elements, which do not fit shape [3]"),
        ({"A": UserTensor((2,), [1, 2.5])}, "inputs.A: data is not INT32"),
        ({"A": UserTensor((1,), [2**40])}, "inputs.A: data is not INT32"),
        ({"A": UserTensor((1,), ["one"])}, "inputs.A: data is not INT32"),
        ({"T": UserTensor((1,), [1])}, "inputs.T: data is not BYTES"),
    ],
)
def test_what_is_given_has_to_fit(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserInputError) as caught:
        next(guess_inputs([spec("INT32", -1, name="A"), spec("BYTES", -1, name="T")], given))
    assert str(caught.value).startswith(message)


# --- tensors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("datatype", "elements", "json_capable", "classes"),
    [
        ("FP32", [1.5], True, True),
        ("FP32", [1.5, float("nan")], False, False),
        ("FP64", [float("-inf")], False, False),
        ("INT64", [2**60], True, True),
        ("BOOL", [True], True, False),
        ("FP16", [1.5], False, False),
        ("BF16", [1.5], False, False),
        ("BYTES", ["é"], True, False),
        ("BYTES", [b"\xff"], False, False),
        ("UINT8", [], True, False),
    ],
)
def test_what_json_carries_and_what_has_classes(
    datatype: str, elements: list[Any], json_capable: bool, classes: bool
) -> None:
    tensor = Tensor.from_values("Y", datatype, elements)
    assert is_json_capable(datatype, tensor.array) == json_capable
    assert is_classifiable(tensor) == classes


@pytest.mark.parametrize(
    ("declared", "sent", "items"),
    [
        ((2, 3), (2, 3), [(2, 3)]),
        ((-1, 3), (2, 3), [(1, 3)]),
        ((-1,), (3,), [(3,), (1,)]),
        ((3,), (2, 3), [(1, 3)]),
        ((2, -1), (2, 3), [(2, 3)]),
        ((), (1,), [(1,)]),
    ],
)
def test_a_raw_request_holds_one_item_wherever_there_may_be_a_batch(
    declared: Shape, sent: Shape, items: list[Shape]
) -> None:
    tensor = Tensor.from_values("X", "INT32", np.arange(np.prod(sent), dtype="<i4"), sent)
    assert [t.shape for t in deployed([spec("INT32", *declared)], [tensor]).items()] == items


def test_raw_bodies() -> None:
    assert encode_raw_body(Tensor.from_values("X", "UINT16", [1, 515])) == bytes.fromhex("0100 0302")
    assert encode_raw_body(Tensor.from_values("X", "BYTES", ["é"])) == b"\xc3\xa9"


# --- requests ---------------------------------------------------------------------------------------------------------

NUMBERS, HALVES = Tensor.from_values("X", "INT32", [1, 2]), Tensor.from_values("H", "FP16", [0.5])


@pytest.mark.parametrize(
    ("fields", "plain"),
    [
        ({}, {"X": "json", "H": "binary", "outputs": None}),
        ({"binary_only": ("Z",)}, {"X": "json", "H": "binary", "outputs": {"Y": None, "Z": True}}),
        ({"json_trouble": "HTTP 400"}, {"X": "binary", "H": "binary", "outputs": {"Y": True, "Z": True}}),
    ],
)
def test_the_plain_request_is_json_as_far_as_json_goes(fields: dict[str, Any], plain: dict[str, Any]) -> None:
    document = (
        deployed([spec("INT32", -1), spec("FP16", -1, name="H")], [NUMBERS, HALVES], **fields)
        .build_plain_request()
        .document()
    )
    forms = {item["name"]: "json" if "data" in item else "binary" for item in document["inputs"]}
    listed = document.get("outputs")
    outputs = None if listed is None else {o["name"]: o.get("parameters", {}).get("binary_data") for o in listed}
    assert {**forms, "outputs": outputs} == plain


def test_a_model_reaches_workers_as_plain_data() -> None:
    texts = Tensor.from_values("T", "BYTES", [["é", b"\xff\x00"]])
    infinite = Tensor.from_values("X", "FP32", [float("inf"), 0.1])
    model = deployed(
        [spec("FP32", -1), spec("BYTES", -1, 2, name="T")],
        [infinite, texts],
        declared={"Y": "FP64"},
        binary_only=("Y",),
        unsteady=("Z",),
        trouble="t",
        refusal="r",
        missing="data",
        json_trouble="j",
        demands="d",
        varies=True,
        takes_counts=True,
        by_place=True,
    )
    back = from_dict(json.loads(json.dumps(model.to_dict())))
    assert (back.role, back.name, back.declared) == (model.role, model.name, model.declared)
    assert (back.binary_only, back.unsteady, back.trouble, back.json_trouble) == (("Y",), ("Z",), "t", "j")
    assert (back.varies, back.takes_counts, back.by_place) == (True, True, True)
    assert (back.refusal, back.missing, back.demands) == ("r", "data", "d")
    assert [t.to_bytes() for t in back.tensors] == [t.to_bytes() for t in model.tensors]
    assert [t.shape for t in back.tensors] == [(2,), (1, 2)]


# --- answers ----------------------------------------------------------------------------------------------------------


def reply(*outputs: tuple[str, list[float]]) -> Reply:
    described = [{"name": n, "datatype": "FP32", "shape": [len(data)], "data": data} for n, data in outputs]
    body = json.dumps({"model_name": "m", "outputs": described}).encode()
    return Reply(Exchange(0, Message("/p"), "http://x/p", 200, (), body))


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        (reply(("A", [1.0]), ("B", [2.0])), reply(("B", [2.0]), ("A", [1.0])), []),
        (reply(("A", [1.0]), ("B", [2.0])), reply(("A", [1.0]), ("B", [2.0001])), ["B"]),
        (reply(("A", [1.0]), ("B", [2.0])), reply(("A", [1.0]), ("B", [2.0000002])), []),  # the last bit
        (reply(("A", [1.0])), reply(("A", [1.0, 1.0])), ["A"]),
        (reply(("A", [1.0])), reply(("B", [1.0])), ["A", "B"]),
    ],
)
def test_outputs_that_differ_between_two_answers(first: Reply, second: Reply, names: list[str]) -> None:
    assert find_differing_outputs(first, second) == names
    assert find_differing_outputs(first, second, ["nobody"]) == []


# --- other inputs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensor", "are_like_it"),
    [
        (
            Tensor.from_values("X", "FP32", [0.5, 0.25, 1.0]),
            lambda values: set(values) <= {k / 8 for k in range(1, 17)},
        ),
        (
            Tensor.from_values("X", "FP32", [0.1, 0.2, 0.3]),
            lambda values: {round(value, 3) for value in values} == {0.1, 0.2, 0.3},
        ),
        (Tensor.from_values("X", "INT64", [0, 1, 1]), lambda values: set(values) <= {0, 1}),
        (Tensor.from_values("X", "INT64", [7, 5, 9]), lambda values: all(5 <= value <= 9 for value in values)),
        (Tensor.from_values("X", "UINT8", [1, 1]), lambda values: set(values) <= {0, 1}),
        (Tensor.from_values("X", "BYTES", [b"12", b"7"]), lambda values: all(value.isdigit() for value in values)),
        (Tensor.from_values("X", "BYTES", [b"a"]), lambda values: all(value.startswith(b"a") for value in values)),
    ],
    ids=["eighths", "given", "bits", "range", "constant", "digits", "text"],
)
def test_other_inputs_are_like_those_that_are_taken(tensor: Tensor, are_like_it: Callable[[Any], bool]) -> None:
    others = [vary_inputs([tensor], salt)[0] for salt in range(1, 40)]
    assert all(other.shape == tensor.shape and are_like_it(other.array.tolist()) for other in others)
    assert len({bytes(other.to_bytes()) for other in others}) > 1
    assert bytes(vary_inputs([tensor], 0)[0].to_bytes()) == bytes(tensor.to_bytes())


def test_many_salts_give_many_inputs() -> None:
    tensor = Tensor.from_values("X", "FP32", np.full((2, 4), 0.5, "<f4"), (2, 4))
    assert len({bytes(vary_inputs([tensor], salt)[0].to_bytes()) for salt in range(256)}) > 250


# --- control ----------------------------------------------------------------------------------------------------------


def test_what_is_right_is_asked_once_and_kept() -> None:
    with unusual_models.serve() as url, Session(Target(Settings(url))) as session:
        session.discover(subjects=Subjects(("add_sub",), with_roles=False))
        model = from_dict(session.discovery_result.models["add_sub"])
        control = ControlAnswers(session.target)
        model = replace(model, control=control)
        first, second = model.draw(1), model.draw(2)
        right = {tensor.name: tensor.array.tolist() for tensor in model.expected(first[::-1])}
        sent = {tensor.name: tensor.array for tensor in first}
        assert right["SUM"] == (sent["A"] + sent["B"]).tolist()
        count = len(control._row_requests)
        assert model.expected(first)[0].is_approximate
        assert len(control._row_requests) == count
        assert model.can_distinguish(first, second)
        assert not model.can_distinguish(first, first)
        assert control.find_change(model) is Change.NONE


@pytest.mark.parametrize(("other", "count"), [(7000.0, 3), (2600.0, 0)], ids=["of-another-request", "later"])
def test_values_that_the_noise_of_a_model_may_reach_are_not_those_of_another_request(other: float, count: int) -> None:
    """The floats of a model may grow with the time, and come to those of another request."""
    spec = TensorSpec("Y", "FP32", (3,))
    model = DeployedModel(derive_role("m", [], [spec]), "m", noise={"Y": 1e-3})
    usual, of_other = (reply(("Y", [start, start + 1, start + 2])) for start in (2500.0, other))
    control = ControlAnswers(Target(Settings("http://127.0.0.1:1")))
    control._answers |= {"control m a": usual, "control m b": of_other}
    assert control._count_values_of_another(model, "control m a", of_other) == count


def discover(found: Model) -> DeployedModel:
    with unusual_models.serve(found) as url, Session(Target(Settings(url))) as session:
        session.discover(subjects=Subjects((found.name,), with_roles=False))
        return from_dict(session.discovery_result.models[found.name])


@pytest.mark.parametrize(("found", "noise"), [(unusual_models.NOISY_FP32, 1e-7), (unusual_models.NOISY_FP16, 1e-3)])
def test_noise_is_measured_between_requests_in_flight(found: Model, noise: float) -> None:
    model = discover(found)
    assert 0.5 * noise < model.noise["Y"] < 1.5 * noise
    assert model.varies
    assert model.unsteady == ()
    assert from_dict(model.to_dict()).noise == model.noise


def test_a_datatype_that_the_protocol_lacks_has_a_verdict() -> None:
    def spell_like_numpy(answer: Any) -> Any:
        return answer | {"outputs": [one | {"datatype": one["datatype"].lower()} for one in answer["outputs"]]}

    fault = steps.ENCODE.before("OIP-MODEL-METADATA", answer=spell_like_numpy)
    with switch_on(fault), unusual_models.serve() as url:
        results = judge_models(url, ["metadata"], "fixed")
    assert list_missed(results) == {"OIP-MODEL-METADATA"}


def test_a_model_that_is_not_deterministic_has_no_noise() -> None:
    assert discover(unusual_models.RARELY).noise == {}


def test_samples_of_other_ranges_are_found_or_asked_for() -> None:
    model = discover(unusual_models.THREE_CLASSES)
    assert model.varies
    assert len(model.samples) > 1
    assert model.missing == ""
    model = discover(unusual_models.CONSTANT)
    assert (model.varies, model.samples, model.missing) == (False, (), SAMPLES)
    assert format_samples("a.b", model.to_dict()) == [
        '[models."a.b".inputs.X]',
        "shape = [3]",
        "data = [[...], [...]]  # FP32, row by row: samples with different answers",
    ]
    with pytest.raises(NotApplicableError, match="give samples that it answers differently"):
        replace(model, control=ControlAnswers(Target(Settings("http://127.0.0.1:1")))).expected(model.tensors)


def test_scaled_inputs_keep_shapes_and_integers() -> None:
    tensors = [Tensor.from_values("X", "FP32", [0.5, 0.25]), Tensor.from_values("N", "INT64", [[0], [1]])]
    scaled = list(islice(scale_inputs(tensors), 30))
    assert {tuple(tensor.shape for tensor in found) for found in scaled} == {((2,), (2, 1))}
    assert {value for _, found in scaled for value in found.array.reshape(-1).tolist()} == {0, 1}
    floats = [value for found, _ in scaled for value in found.array.tolist()]
    assert min(floats) < -100
    assert max(floats) > 1000


@pytest.mark.parametrize(
    ("second", "noise"),
    [
        ([1.0, -2.0, 0.002], {"A": 0.001}),
        ([1.0, -2.0, 0.0], {}),
        ([1.0, -2.0, 1.0], {}),  # too much
        ([1.0, -2.0], {}),
    ],
)
def test_noise_is_relative_to_the_largest_element(second: list[float], noise: dict[str, float]) -> None:
    found = measure_noise(reply(("A", [1.0, -2.0, 0.0])), reply(("A", second)), ["A", "B"])
    assert found == pytest.approx(noise)
    assert find_differing_outputs(reply(("A", [1.0, -2.0, 0.0])), reply(("A", second)), None, noise) == (
        [] if noise or second == [1.0, -2.0, 0.0] else ["A"]
    )


def test_several_samples_of_a_user_are_what_is_sent() -> None:
    samples = UserTensor((2,), [[7.5, 8.25], [1.0, 2.0], [3.0, 0.1]])
    with unusual_models.serve() as url, Session(Target(Settings(url))) as session:
        session.discover((), Subjects(("identity_fp32",), with_roles=False), {"identity_fp32": {"INPUT": samples}})
        model = from_dict(session.discovery_result.models["identity_fp32"])
    assert model.varies
    assert [model.draw(salt)[0].array.tolist()[0] for salt in (0, 1, 2, 3)] == [7.5, 1.0, 3.0, 7.5]
    assert [model.build_ramp(0, 1, salt).tolist() for salt in (1, 3)] == [[1.0], [7.5]]


def test_a_model_of_one_size_takes_no_other() -> None:
    with unusual_models.serve(unusual_models.PICKY) as url, Session(Target(Settings(url))) as session:
        given = {"picky": {"X": UserTensor((2,), [7.5, 8.25])}}
        session.discover((), Subjects(("picky",), with_roles=False), given)
        model = from_dict(session.discovery_result.models["picky"])
    assert (model.varies, model.takes_counts) == (False, False)
    with pytest.raises(NotApplicableError, match="inputs of only one size"):
        model.build_salted_inputs(1000, 1)
    with pytest.raises(NotApplicableError, match="answers every input alike, or accepts only one"):
        replace(model, control=ControlAnswers(Target(Settings(url)))).expected(model.tensors)
