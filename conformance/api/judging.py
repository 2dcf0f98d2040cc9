"""Implements `judge`, which judges one target in this process, without pytest. An ASGI app is served during the run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike

from conformance.api.arguments import Arguments, AsgiApp, JudgeError, read_arguments
from conformance.api.report import Report
from conformance.discovery.limit_checks import ContradictedLimitError
from conformance.judging.conclusion import Conclusion, conclude_run, find_missing_rows, sort_results
from conformance.judging.coverage import find_coverage
from conformance.judging.quick_rows import sort_for_run
from conformance.judging.run_start import PYTHON_NAMES, start_run
from conformance.judging.selection import list_profile_rows, matches_any_pattern
from conformance.judging.session import Session
from conformance.report import json_report
from conformance.transport import client_names
from conformance.transport.reference import serve_reference
from conformance.transport.settings import Settings
from conformance.transport.target import Target


def judge(
    target: str | AsgiApp | None = None,
    *,
    models: Collection[str] = (),
    profile: str = "quick",
    extensions: Collection[str] = (),
    grpc: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    strict: bool = False,
    config: str | PathLike[str] | None = None,
    robustness: bool = False,
) -> Report:
    """Judge a server and return its report.

    Args:
        target: the URL of a server; or an ASGI app, which is served on a free port of 127.0.0.1 during the run; or
            `reference` for the bundled server. None if `config` names the target, or only gRPC is judged.
        models: deployed models to judge by their own answers to plain requests, in addition to the model roles
            that the target fills; `all` stands for all models that the target lists.
        profile: `quick` for the few rows that reveal most faults, or `certify` for every row.
        extensions: the extensions to judge, whether offered or not; `protocol` is the protocol without extensions.
            Empty selects the offered ones. The names of installed packs are judged in addition.
        grpc: the gRPC address of the server, as `host:port`, to judge gRPC as well.
        headers: sent with every request; their values appear in no report.
        timeout: seconds to wait for a connection, and for the next byte of an answer; the default is 10.
        strict: whether an unmet SHOULD fails.
        config: a target file, as for `--target-config`; other arguments override it.
        robustness: whether to send hostile requests at the end; `Report.robustness` has the results, which do not
            affect the verdict. Do not use it with a server that others need.

    Raises:
        JudgeError: an argument cannot be used, or the app does not start. An unreachable target raises nothing: its
            verdict is `incomplete`.
    """
    arguments = read_arguments(
        target, models, profile, extensions, grpc, headers, timeout, strict, config, robustness=robustness
    )
    return judge_target(arguments)


def judge_target(arguments: Arguments, *, only_packs: bool = False) -> Report:
    """Judge the target of some arguments of `judge`; with `only_packs`, only by the rows of packs.

    Raises:
        JudgeError: see `judge`.
    """
    with _serve_target(arguments) as url:
        return _judge_url(url, arguments, only_packs=only_packs)


@contextmanager
def _serve_target(arguments: Arguments) -> Iterator[str]:
    """Yield the URL of the target; an app, or the bundled server, runs only inside the block."""
    if arguments.app is not None:
        from conformance.api.serving import serve_app  # imports uvicorn

        with serve_app(arguments.app) as url:
            yield url
    else:
        with serve_reference(arguments.target.url or "", arguments.subjects.packs) as url:
            yield url


def _judge_url(url: str, arguments: Arguments, *, only_packs: bool) -> Report:
    target = arguments.target
    settings = target.build_settings(url, target.grpc)
    seed = client_names.choose_seed(arguments.profile, settings)
    with Session(
        Target(settings), placements=target.roles, limits=target.limits, strict=arguments.strict, seed=seed
    ) as session:
        started = _format_now()
        try:
            subjects, conclusion = start_run(
                session, target.extensions, arguments.subjects, target.models, names=PYTHON_NAMES
            )
        except ContradictedLimitError as error:
            raise JudgeError(f"config: {error}") from error
        arguments = replace(arguments, subjects=subjects)
        conclusion = conclusion or _judge_rows(session, arguments, only_packs=only_packs)
        return _build_report(session, conclusion, arguments, settings, started, seed)


def _judge_rows(session: Session, arguments: Arguments, *, only_packs: bool) -> Conclusion:
    subjects, profile, target = arguments.subjects, arguments.profile, arguments.target
    transports = session.target.settings.transports
    discovery_result = session.discovery_result
    rows = list_profile_rows(profile, subjects=subjects, transports=transports, discovery_result=discovery_result)
    rows = [case for case in rows if case.requirement.is_of_pack or not only_packs]
    chosen = [case for case in rows if not matches_any_pattern(case, target.never)]
    results = sort_results([session.judge(case) for case in sort_for_run(chosen)], subjects)
    missing = find_missing_rows(
        results, profile, dangerous=False, subjects=subjects, transports=transports, discovery_result=discovery_result
    )
    coverage = find_coverage(
        results, discovery_result, profile=profile, transports=transports, requested=target.extensions
    )
    return conclude_run(results, missing, None, "", coverage=coverage, packs=subjects.packs)


def _build_report(
    session: Session, conclusion: Conclusion, arguments: Arguments, settings: Settings, started: str, seed: int | None
) -> Report:
    return Report(
        json_report.build(
            conclusion,
            session.discovery_result,
            url=settings.url,
            grpc=settings.grpc.url if settings.grpc else "",
            options=arguments.to_report(name for name, _ in settings.headers),
            seed=seed,
            started=started,
            finished=_format_now(),
            about={} if session.target.answered else {"unreachable": True},
        )
    )


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
