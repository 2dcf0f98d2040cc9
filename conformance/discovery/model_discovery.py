"""Discovery of a target through named deployed models, whatever these compute. The target needs no models for roles.

Reads the signature of each model from its metadata, and guesses inputs until the model answers a plain request
(`discovery.control_answers` defines the term). Probes the extensions of the target with these models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Any

from conformance.discovery import offered_extensions
from conformance.discovery.control_answers import MAX_NOISE, as_tensor, find_differing_outputs, measure_noise
from conformance.discovery.deployed_model import (
    DATA,
    NESTED_DATA,
    NOISE_MARGIN,
    SAMPLES,
    TENSORS,
    DeployedModel,
    derive_role,
    has_json_values,
    is_json_capable,
)
from conformance.discovery.discovery_result import DiscoveryResult, Progress, ignore_progress
from conformance.discovery.offered_extensions import send_request
from conformance.expect.difference import DISTINCT
from conformance.roles.guessed_inputs import UserInputError, UserInputs, build_user_tensors, guess_inputs, scale_inputs
from conformance.roles.roles import TensorSpec
from conformance.spec.extensions import HTTP
from conformance.spec.text import escape_text
from conformance.transport.broken_request import BrokenRequest
from conformance.transport.exchange import FailureKind, Reply
from conformance.transport.settings import SettingsError
from conformance.transport.target import Target
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import format_value
from conformance.wire.grpc_request import make_grpc_call, make_infer_message
from conformance.wire.json_text import parse_json
from conformance.wire.request import InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor

VARIATIONS = 6  # plain requests, including the first, that test whether outputs depend on inputs
ROUNDS = 4  # in which these requests are repeated, the first time alone, then ever more together, to measure the noise
MAX_DIMENSIONS = 32  # of a tensor: the limit of arrays in some versions of numpy
MAX_SCALED = 30  # plain requests with inputs of other ranges, if the model answers all variations alike
MAX_GUESSES = 48  # plain requests before discovery gives up on a model

MAX_EXPLAINING = 4  # inputs to retry with the optional parts of a request if none is answered
# Optional parts of a request, which no server may require.
OPTIONAL_PARTS: Mapping[str, Callable[[InferRequest, DeployedModel], InferRequest]] = {
    "an id": lambda request, _: replace(request, id="conformance"),
    "a list of outputs": lambda request, model: replace(request, outputs=tuple(map(RequestedOutput, model.outputs))),
    "parameters": lambda request, _: replace(request, members={"parameters": {}}),
    NESTED_DATA: lambda request, _: replace(request, inputs=tuple(replace(one, nested=True) for one in request.inputs)),
}

INPUTS_HELP = (
    "give inputs that it accepts in the file for --target-config, a table [models.{model}.inputs.INPUT] for each,"
    " with {members}shape = [...] and data = [...]; `oip-conformance init` writes such a file"
)


class UnknownInputsError(SettingsError):
    """The suite cannot find out the inputs of a model, so that the user has to give them.

    `refusal`: the message without advice.
    """

    def __init__(self, refusal: str, advice: str = "") -> None:
        super().__init__(f"{refusal}{advice}")
        self.refusal = refusal


class WrongMetadataError(SettingsError):
    """The metadata of a model are wrong, so that the suite cannot send requests to the model.

    The checks of metadata report this fault.
    """


def discover_models(
    target: Target,
    names: Sequence[str],
    wanted: Sequence[str] = (),
    given: Mapping[str, UserInputs] | None = None,
    *,
    lenient: bool = False,
    progress: Progress = ignore_progress,
) -> DiscoveryResult:
    """Discover these models of a target, and the extensions of the target.

    `target`: a target before discovery.
    `wanted`: the extensions to judge, whether offered or not; empty: those that the target offers.
    `given`: model -> inputs from the user, used instead of guesses.
    `lenient`: for models that the user has not named: if a model cannot be discovered, return the model with its
    `trouble` instead of raising an error. A model with wrong metadata is always returned.

    Raises:
        TargetLost: the target does not answer.
        SettingsError: a model does not exist, its inputs are unknown, or `given` does not match its metadata.
    """
    result = DiscoveryResult()
    offered_extensions.read_server_metadata(target, result, names)
    transports = target.live_transports
    models = []
    for number, name in enumerate(dict.fromkeys(names), 1):
        progress(f"looking for inputs that models accept: {number}/{len(names)}")
        models.append(_discover_or_describe(target, name, (given or {}).get(name, {}), lenient=lenient))
    target.broken = [one for one in target.broken if not _may_be_caused_by_guess(one)]
    asked = [model for model in models if not model.trouble]
    offered_extensions.record_extensions(target, result, wanted, transports, asked)
    result.models = {model.name: model.to_dict() for model in models}
    return result


def _discover_or_describe(target: Target, name: str, given: UserInputs, *, lenient: bool) -> DeployedModel:
    """Discover a model. After an error, return the model with its `trouble`, or raise the error: see `lenient`."""
    try:
        return discover_model(target, name, given)
    except SettingsError as error:
        if not (lenient or isinstance(error, WrongMetadataError)):
            raise
        refusal, missing = (error.refusal, TENSORS) if isinstance(error, UnknownInputsError) else (str(error), "")
        return DeployedModel(derive_role(name, (), ()), name, trouble=str(error), refusal=refusal, missing=missing)


# --- one model ----------------------------------------------------------------------------------------------------


def discover_model(target: Target, name: str, given: UserInputs) -> DeployedModel:
    """Return a model with inputs that the model accepts, or with the reason why it cannot be used (`trouble`).

    Raises:
        TargetLost: the target does not answer.
        SettingsError: the model does not exist, its metadata are wrong or list no inputs, or `given` does not match.
    """
    inputs, outputs, is_described = _read_signature(target, name, given)
    declared = {spec.name: spec.datatype for spec in outputs}
    model = DeployedModel(derive_role(name, inputs, outputs), name, declared=declared, is_described=is_described)
    try:
        model, reply = _find_working_version(target, _mark_binary_only_datatypes(model), given)
    except UserInputError as error:
        raise SettingsError(f"--target-config: models.{name}.{error}") from None
    return (
        model
        if reply is None
        else _test_variations(
            target, _detect_output_properties(target, _replace_declared_outputs(model, reply), reply), given
        )
    )


def _read_signature(target: Target, name: str, given: UserInputs) -> tuple[list[TensorSpec], list[TensorSpec], bool]:
    """Return the inputs and outputs of a model, and whether the inputs are from its metadata, not from the user."""
    own = [TensorSpec(name, one.datatype, tuple(one.shape)) for name, one in given.items() if one.datatype]
    how = INPUTS_HELP.format(model=escape_text(name, 100), members="datatype = ..., ")
    reply, document = _request_metadata(target, name)
    if document is None:
        if own:
            return own, [], False
        detail = (
            reply.outcome() if not reply.succeeded else f"no metadata: {reply.body[:100].decode('utf-8', 'replace')}"
        )
        what = f"{target.settings.url} does not describe a model {escape_text(name, 100)}: {escape_text(detail)}"
        raise UnknownInputsError(what, f"; if it serves the model, {how}")
    inputs = document.get("inputs")
    if inputs is not None and not isinstance(inputs, list):
        found = f"have inputs {format_value(inputs)}, which is not an array"
        raise WrongMetadataError(f"the metadata of {escape_text(name, 100)} {found}")
    listed = _parse_specs(name, inputs)
    if not listed and not own:
        refusal = f"the metadata of {escape_text(name, 100)} list no inputs"
        raise UnknownInputsError(refusal, f", so the suite does not know what to send: {how}")
    return listed or own, _parse_specs(name, document.get("outputs")), bool(listed)


def _request_metadata(target: Target, name: str) -> tuple[Reply, dict[str, Any] | None]:
    """Request the metadata of a model; return the answer, and its JSON (None if the answer has no metadata)."""
    if HTTP not in target.live_transports:
        reply = target.send(make_grpc_call("ModelMetadata", name=name))
        return reply, reply.answer.document
    reply = target.get(DeployedModel(derive_role(name, (), ()), name).path)
    document, _ = parse_json(reply.body)
    return reply, document if reply.succeeded and isinstance(document, dict) else None


def _parse_specs(name: str, listed: Any) -> list[TensorSpec]:
    return [_parse_spec(name, item) for item in listed] if isinstance(listed, list) else []


def _parse_spec(model: str, item: Any) -> TensorSpec:
    """Parse a tensor in the metadata. A shape that is not a list becomes (), an invalid dimension becomes variable."""
    item = item if isinstance(item, dict) else {}
    name, datatype, shape = item.get("name"), item.get("datatype"), item.get("shape")
    if not isinstance(name, str) or not isinstance(datatype, str) or datatype not in DATATYPES:
        raise WrongMetadataError(
            f"the metadata of {escape_text(model, 100)} have a tensor {format_value(name)}"
            f" of datatype {format_value(datatype)}, which is not in the protocol"
        )
    sizes = shape if isinstance(shape, list) else []
    if len(sizes) > MAX_DIMENSIONS:
        raise SettingsError(
            f"the metadata of {escape_text(model, 100)} give {format_value(name)} {len(sizes)} dimensions;"
            f" the suite can judge at most {MAX_DIMENSIONS}"
        )
    return TensorSpec(name, datatype, tuple(size if type(size) is int and size >= 0 else -1 for size in sizes))


def _mark_binary_only_datatypes(model: DeployedModel) -> DeployedModel:
    """Return the model with `binary_only` set to the outputs whose datatype JSON cannot represent."""
    return replace(model, binary_only=tuple(s.name for s in model.role.outputs if not is_json_capable(s.datatype)))


def _find_working_version(
    target: Target, model: DeployedModel, given: UserInputs
) -> tuple[DeployedModel, Reply | None]:
    """Find working inputs; if a server accepts none without a version, as it may, name one that metadata list."""
    found, reply = _find_working_inputs(target, model, given)
    metadata = offered_extensions.request_model_metadata(target, model) if reply is None else None
    for version in offered_extensions.read_versions(metadata)[:1] if metadata else ():
        named, of_version = _find_working_inputs(target, replace(model, version=version), given)
        if of_version is not None:
            return named, of_version
    return found, reply


def _find_working_inputs(target: Target, model: DeployedModel, given: UserInputs) -> tuple[DeployedModel, Reply | None]:
    """Return the model with inputs that it accepts, and its answer; or the model with its `trouble`, and None."""
    found, refusal = _try_guesses(target, model, given)
    if found is None and any(is_json_capable(spec.datatype) for spec in (*model.role.inputs, *model.role.outputs)):
        found, _ = _try_guesses(target, replace(model, json_trouble=refusal), given)
    if found is not None:
        model, reply = found
        return _find_cause_of_refusals(target, model, [model.tensors]) if model.json_trouble else model, reply
    guesses = islice(guess_inputs(model.role.inputs, given), MAX_EXPLAINING)
    model = _find_cause_of_refusals(target, model, guesses)
    if model.tensors:
        without = f" without {model.demands}" if model.demands else " with a readable answer"
        detail = f"answers no plain request{without}: {refusal}"
        return replace(model, trouble=f"{model.name} {detail}", refusal=detail), None
    inputs = "the given inputs" if given else "inputs made from its metadata"
    how = INPUTS_HELP.format(model=model.name, members="")
    detail = f"answers no plain request with {inputs}: {refusal}"
    return replace(model, trouble=f"{model.name} {detail}; {how}", refusal=detail, missing=DATA), None


def _find_cause_of_refusals(
    target: Target, model: DeployedModel, guesses: Iterable[tuple[Tensor, ...]]
) -> DeployedModel:
    """Send plain JSON requests with guessed inputs again, to find out why the model returns no outputs for them.

    If the model accepts a guess, but its answer is unreadable, return the model with these inputs. If the model accepts
    a guess only with an optional part of the request, return it with these inputs and `demands`. Otherwise return the
    model unchanged.

    """
    for tensors in guesses:
        tried = replace(model, tensors=tensors)
        if send_request(target, tried.build_plain_json_request()).succeeded:
            return tried
        for part, with_part in OPTIONAL_PARTS.items():
            if _has_outputs(send_request(target, with_part(tried.build_plain_json_request(), tried))):
                return replace(tried, demands=part)
    return model


def _try_guesses(
    target: Target, model: DeployedModel, given: UserInputs
) -> tuple[tuple[DeployedModel, Reply] | None, str]:
    """Send plain requests with guessed inputs until the model accepts one.

    Return a pair. First: the model with the accepted inputs, and its answer; None if the model accepts no guess.
    Second: the first refusal, which is the most informative, because the first guess fits the metadata best.
    """
    best: tuple[DeployedModel, Reply] | None = None
    refusal = ""
    for tensors in islice(guess_inputs(model.role.inputs, given), MAX_GUESSES):
        if best and [tensor.shape for tensor in tensors] != [tensor.shape for tensor in best[0].tensors]:
            continue
        tried = replace(model, tensors=tensors)
        reply = send_request(target, tried.build_plain_request())
        if not _has_outputs(reply):
            refusal = refusal or escape_text(reply.outcome())
        elif _has_json_capable_values(reply):
            return (tried, reply), refusal
        else:
            best = best or (tried, reply)
        if _has_timed_out(reply):
            break
    return best, refusal


def _may_be_caused_by_guess(found: BrokenRequest) -> bool:
    """Whether a broken request may be due to guessed inputs: they caused an error in the model, or a timeout.

    After an error in the model, a server may refuse further requests for a while, for example with 503.
    """
    is_server_error = not found.lost and (found.reply.status or 0) >= 500
    is_refused_again = is_server_error and found.second_reply.is_refusal
    return found.is_deliberate or is_refused_again or _has_timed_out(found.reply)


def _has_outputs(reply: Reply) -> bool:
    return reply.succeeded and any(output.name for output in reply.answer.outputs)


def _has_timed_out(reply: Reply) -> bool:
    """Whether the server did not answer the request in time. If so, more guesses would take too long."""
    return reply.status is None and reply.has_failed(FailureKind.TIMEOUT)


def _has_json_capable_values(reply: Reply) -> bool:
    """Whether every output of an answer has elements, all of which JSON can represent."""
    arrays = [output.array for output in reply.answer.outputs]
    return all(array is not None and array.size and has_json_values(array) for array in arrays)


def _replace_declared_outputs(model: DeployedModel, reply: Reply) -> DeployedModel:
    """Replace the outputs in the model's role by those in its answer, if the plain request asked for all outputs."""
    if model.build_plain_request().outputs is None:
        declared = {spec.name: spec for spec in model.role.outputs}
        came = {output.name: output.datatype for output in reply.answer.outputs if output.name}
        shapes = {name: declared[name].shape if name in declared else () for name in came}
        found = tuple(TensorSpec(name, datatype, shapes[name]) for name, datatype in came.items())
        model = replace(model, role=replace(model.role, outputs=found))
    return model


def _detect_output_properties(target: Target, model: DeployedModel, first: Reply) -> DeployedModel:
    """Send a request for binary data and a second plain request; return the model with `binary_only` and `unsteady`."""
    full = send_request(target, model.build_binary_outputs_request())
    binary_only = tuple(
        name for name in model.outputs if name in model.binary_only or not _can_json_represent(full, name)
    )
    if binary_only != model.binary_only:
        fitting = replace(model, binary_only=binary_only, json_trouble="")
        reply = send_request(target, fitting.build_plain_request())
        if _has_outputs(reply):
            model, first = fitting, reply
    again = send_request(target, model.build_plain_request())
    most = dict.fromkeys(model.outputs, MAX_NOISE / NOISE_MARGIN)
    return replace(model, unsteady=tuple(find_differing_outputs(first, again, None, most)) if again.succeeded else ())


def _test_variations(target: Target, model: DeployedModel, given: UserInputs) -> DeployedModel:
    """Test the model with other inputs, another size and another order; set `varies`, `takes_counts`, `by_place`."""
    steady = [name for name in model.outputs if name not in model.unsteady]
    model = replace(model, samples=_build_user_samples(model, given))
    varying = replace(model, varies=True)
    others = [replace(model, tensors=varying.draw(salt)) for salt in range(VARIATIONS)]
    replies = [send_request(target, other.build_plain_request()) for other in others]
    model = replace(model, noise=_measure_noise(target, others, replies, steady))
    accepts = all(map(_has_outputs, replies))
    tells = accepts and any(_are_distinct(replies[0], reply, steady, model) for reply in replies[1:])
    if accepts and steady and not tells:
        samples = _find_distinguishing_samples(target, model, replies[0], steady)
        tells, model = bool(samples), replace(model, samples=samples, missing="" if samples else SAMPLES)
    longer = replace(model, takes_counts=True)
    shapes = [tensor.shape for tensor in model.tensors]
    sized = longer.build_salted_inputs(max((shape[0] for shape in shapes if shape), default=0) + 1, 0)
    takes = [tensor.shape for tensor in sized] != shapes and _has_outputs(
        send_request(target, replace(model, tensors=tuple(sized)).build_plain_request())
    )
    by_place = _is_by_place(target, replace(others[1], noise=model.noise), steady)
    return replace(model, varies=tells, takes_counts=takes, by_place=by_place)


def _is_by_place(target: Target, model: DeployedModel, names: Sequence[str]) -> bool:
    """Whether a model answers inputs in reverse order differently, twice: once may be an answer to another request."""
    orders = [replace(model, tensors=tensors).build_plain_request() for tensors in (model.tensors, model.tensors[::-1])]

    def differs() -> bool:
        first, second = (send_request(target, request) for request in orders)
        return bool(find_differing_outputs(first, second, names, model.noise))

    return len(model.tensors) > 1 and differs() and differs()


def _find_distinguishing_samples(
    target: Target, model: DeployedModel, first: Reply, names: Sequence[str]
) -> tuple[tuple[Tensor, ...], ...]:
    """Return inputs, from other ranges, that the model answers differently from each other; empty if there are none."""
    found = [(model.tensors, first)]
    for tensors in islice(scale_inputs(model.tensors), MAX_SCALED):
        reply = send_request(target, replace(model, tensors=tensors).build_plain_request())
        if _has_outputs(reply) and all(_are_distinct(other, reply, names, model) for _, other in found):
            found.append((tensors, reply))
        if len(found) == VARIATIONS:
            break
    return tuple(tensors for tensors, _ in found) if len(found) > 1 else ()


def _measure_noise(
    target: Target, models: Sequence[DeployedModel], replies: Sequence[Reply], names: Sequence[str]
) -> dict[str, float]:
    """Repeat plain requests alone and in flight together; return by how much outputs differ, see `measure_noise`.

    `replies`: the answers to the plain requests of `models`.
    """
    datatypes = {spec.name: spec.datatype for spec in models[0].role.outputs}
    floats = [name for name in names if datatypes[name] in DATATYPES and DATATYPES[datatypes[name]].is_float]
    over_http = HTTP in target.live_transports
    usual = [reply for reply in replies if _has_outputs(reply)]
    accepted = [model for model, reply in zip(models, replies, strict=True) if _has_outputs(reply)]
    requests = [model.build_plain_request() for model in accepted]
    messages = [request.message() if over_http else make_infer_message(request) for request in requests]
    found: dict[str, float] = {}
    for number in range(ROUNDS if floats else 0):
        again = target.send_together(messages * number) if number else list(map(target.send, messages))
        if not all(map(_has_outputs, again)):
            break
        for first, second in zip(cycle(usual), again, strict=False):
            found |= {
                name: max(noise, found.get(name, 0)) for name, noise in measure_noise(first, second, floats).items()
            }
    return found


def _are_distinct(first: Reply, second: Reply, names: Sequence[str], model: DeployedModel) -> bool:
    """Whether one of these outputs differs between two answers by far more than the noise of the model."""
    wide = {name: DISTINCT * noise for name, noise in model.noise.items()}
    return bool(find_differing_outputs(first, second, names, wide))


def _can_json_represent(full: Reply, name: str) -> bool:
    output = full.answer.output(name) if full.succeeded else None
    tensor = as_tensor(output) if output and output.binary else None
    return tensor is None or is_json_capable(tensor.datatype, tensor.array)


def _build_user_samples(model: DeployedModel, given: UserInputs) -> tuple[tuple[Tensor, ...], ...]:
    """Return the alternative inputs that a user gives, if there are several.

    Inputs that the user does not give are the same in each alternative.
    """
    count = max((len(entry.samples) for entry in given.values()), default=1)
    specs = model.role.inputs
    rows = (build_user_tensors(specs, given, alternative) for alternative in range(count if count > 1 else 0))
    return tuple(tuple(row.get(tensor.name, tensor) for tensor in model.tensors) for row in rows)


def probe_extensions(target: Target, name: str) -> DiscoveryResult:
    """Probe all HTTP extensions with one deployed model, whether or not the server lists them.

    Raises:
        TargetLost: the target does not answer.
        SettingsError: the model does not exist, or its inputs are unknown.
    """
    alone, model = DiscoveryResult(), discover_model(target, name, {})
    offered_extensions.record_extensions(target, alone, (), (HTTP,), [model])
    return alone
