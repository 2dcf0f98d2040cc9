"""What the terminal says of rows that no model fills the role of, and which models it asks for."""

from __future__ import annotations

import pytest

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.conclusion import Conclusion
from conformance.report import terminal
from conformance.spec.coverage import Coverage, Deployment
from conformance.spec.verdict import Verdict


@pytest.mark.parametrize(
    ("deployments", "count", "models"),
    [
        ((Deployment("multi", ("BIN-ORDER-O",), 1),), "1", [f"      {'multi':28}BIN-ORDER-O"]),
        ((Deployment("multi", (), 1),), "none", ["      for more rows: multi"]),
        (
            (Deployment("multi", ("BIN-ORDER-O", "BIN-MIXED-O"), 2), Deployment("emit", (), 1)),
            "2",
            [f"      {'multi':28}BIN-ORDER-O, BIN-MIXED-O", "      and for more rows: emit"],
        ),
        (
            tuple(Deployment(f"role{number}", (), 1) for number in range(9)),
            "none",
            ["      for more rows: role0, role1, role2, role3, role4, role5 and 3 more"],
        ),
    ],
    ids=["a MUST", "rows alone", "both", "many"],
)
def test_rows_without_a_model_are_counted_with_the_musts_that_stay_unjudged(
    deployments: tuple[Deployment, ...], count: str, models: list[str]
) -> None:
    coverage = Coverage(deployments=deployments, waiting=7)
    assert list(terminal.format_unjudged(Conclusion(Verdict("partial"), coverage=coverage), DiscoveryResult())) == [
        "Rows of MUSTs whose role no model fills, in this profile and beyond: 7. "
        f"MUSTs that these rows leave unjudged: {count}.",
        "Deploy these roles to run them (`oip-conformance models export` writes them for several servers), or declare",
        "what the server cannot do under [limits] in the target file (`oip-conformance init` proposes limits):",
        *models,
    ]


def test_a_narrowed_run_asks_for_no_model() -> None:
    coverage = Coverage(deployments=(Deployment("multi", ("BIN-ORDER-O",), 1),), waiting=7)
    conclusion = Conclusion(Verdict("narrowed"), coverage=coverage, is_narrowed=True)
    assert list(terminal.format_unjudged(conclusion, DiscoveryResult())) == []
