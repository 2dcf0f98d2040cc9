"""The steps of a walk with a deployed model, whose signature and inputs limit the values of the axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from conformance.checks.support.covering import PairRule, Step, StepSpace
from conformance.checks.support.step_shrinking import Axes
from conformance.checks.walk.axes import KINDS, NEUTRAL, ExclusionRules, find_cost, is_needed
from conformance.checks.walk.axes_over_grpc import CALLS, PLAIN_CALL, is_excluded_call, is_invalid_call
from conformance.checks.walk.single_factor import list_single_values
from conformance.discovery.deployed_model import DeployedModel
from conformance.expect.unmet import NotApplicableError
from conformance.spec.fit import ANY, JSON, SCORE_DATATYPES, SCORED, Fit
from conformance.wire.datatypes import DATATYPES

# kind -> the deployed models that can receive steps of this kind
FITS: Mapping[str, Fit] = {
    "json": JSON,
    "binary": ANY,
    "raw": Fit(max_inputs=1, inputs=frozenset(DATATYPES) - {"BYTES"}),
    "classes": SCORED,
    "calls": ANY,
    "classified-calls": SCORED,
}
PARTS = 4  # the number of rows among which the steps of a kind are divided
# Deployed models receive no tensors without elements and no very large tensors.
_COUNTS = ("own", "1", "2", "3", "7", "8", "9", "16", "17", "33", "64", "65", "257")
_MODEL_AXES = ("send", "want", "count")  # axes whose values depend on the model
_VALUES = ("ramp", "equal")  # a deployed model may not accept others
_Forms = Sequence[Step]


class DeployedSteps:
    """The steps of one kind with one deployed model.

    `model`: the model. For kinds about classes, its outputs are reordered: the first one is classified.
    """

    def __init__(self, kind: str, model: DeployedModel) -> None:
        """Prepare the steps.

        Raises NotApplicableError: the kind is about classes, and the model has no output that can be ranked.
        """
        self.kind = kind
        self.model = _put_rankable_output_first(model) if "class" in kind else model
        self.rules = ExclusionRules({model.name: self.model.role})
        simplest = PLAIN_CALL if kind in CALLS else NEUTRAL
        self.neutral: Step = {**simplest, **self._find_simplest_forms(), "role": model.name}

    def _find_simplest_forms(self) -> Step:
        """Return the forms of tensors that the model needs, where they differ from the forms of the neutral step."""
        if self.kind in CALLS:
            return {}
        if self.kind == "raw":
            return {"send": "raw", "want": "raw"}
        send: Step = {"send": "binary"} if self.model.binary_inputs else {}
        return {**send, "want": "binary"} if self.model.binary_outputs else send

    def list_single_value_steps(self, axis: str, forms: _Forms) -> tuple[Step, ...]:
        """Return steps that are plain except for one value of this axis, in the `forms` that the model supports."""
        plain = [{**self.neutral, **form} for form in forms]
        possible = [step for step in plain if not self._is_invalid(step)]
        return tuple(list_single_values(self._list_axes(), axis, possible, self._is_excluded))

    def list_steps_of_part(self, part: int) -> tuple[Step, ...]:
        """Return the steps of one of the `PARTS` parts of a covering array over the model's axes."""
        model = self.model
        forms = (tuple(model.binary_inputs), tuple(model.binary_outputs), model.takes_counts, model.by_place)
        key = (self.kind, model.name, model.role.inputs, model.role.outputs, *forms)
        steps = _build_array(key, self._list_axes, self._is_excluded)
        whole = [{**self.neutral, **step, "corner": str(k)} for k, step in enumerate(steps)]
        return tuple(whole[part::PARTS])

    def adapt_axes(self, axes: Axes) -> Axes:
        """Return the axes for shrinking with the neutral values and the invalid steps of this model."""
        return replace(axes, neutral=self.neutral, is_invalid=self._is_invalid)

    def _list_axes(self) -> Mapping[str, Sequence[str]]:
        axes = {**(CALLS if self.kind in CALLS else KINDS)[self.kind], "role": (self.model.name,)}
        takes_counts = self.model.takes_counts and self.kind != "raw"
        model_values: dict[str, Sequence[str]] = {
            "count": _COUNTS if takes_counts else ("own",),
            "values": _VALUES,
            "place": ("every",),
            "classified": ("first",),  # other outputs may have no scores
        }
        if self.kind not in CALLS and self.model.binary_inputs:
            model_values["send"] = ("binary",)
        if self.kind not in CALLS and self.model.binary_outputs:
            model_values["want"] = ("binary", "all-binary")
        if self.model.by_place:
            model_values["order"] = ("declared",)
        return {axis: model_values.get(axis, values) for axis, values in axes.items()}

    def _is_excluded(self, axis: str, value: str, other_axis: str, other_value: str) -> bool:
        if self.kind in CALLS:
            return is_excluded_call(self.kind, axis, value, other_axis, other_value, self.rules)
        return self.rules.is_excluded(self.kind, axis, value, other_axis, other_value)

    def _is_invalid(self, step: Step) -> bool:
        # Shrinking may propose counts that this model must not receive: classes of no elements have crashed servers.
        if any(step[axis] not in values for axis, values in self._list_axes().items() if axis in _MODEL_AXES):
            return True
        return is_invalid_call(step, self.rules) if self.kind in CALLS else self.rules.is_invalid(step)


_ARRAYS: dict[tuple[object, ...], tuple[Step, ...]] = {}


def _build_array(
    key: tuple[object, ...], axes: Callable[[], Mapping[str, Sequence[str]]], excluded: PairRule
) -> tuple[Step, ...]:
    """Return the covering array over these axes; cache one array for each key."""
    if key not in _ARRAYS:
        space = StepSpace(axes(), excluded, find_cost, is_needed)
        space.exclude_impossible_pairs()
        _ARRAYS[key] = tuple(space.build_array()[0])
    return _ARRAYS[key]


def _put_rankable_output_first(model: DeployedModel) -> DeployedModel:
    """Return the model with its outputs reordered, so that the elements of the first output can be ranked.

    Raises NotApplicableError: the model has no rankable output whose values can be compared.
    """
    comparable = model.list_comparable_outputs()
    outputs = model.role.outputs
    rankable = [
        spec
        for spec in outputs
        if spec.datatype in SCORE_DATATYPES and spec.name in comparable and spec.name in model.json_outputs
    ]
    if not rankable:
        raise NotApplicableError(f"{model.name} has no output whose classes the suite can predict")
    return replace(
        model, role=replace(model.role, outputs=(rankable[0], *(s for s in outputs if s is not rankable[0])))
    )
