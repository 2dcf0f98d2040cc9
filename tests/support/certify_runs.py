"""Runs of `certify` as tests want them."""

from __future__ import annotations

from pathlib import Path

from conformance.commands.main import main

LABEL_OPTIONS = ("--vendor=V", "--product=P", "--product-version=1", "--contact=c", "--profile=classification")

SCORES_MODEL = "--model=scores_labelled"  # of a reference server
# What makes it miss a refusal, and nothing else.
MISSES_A_REFUSAL = ("--fault=error-of-unknown-outputs-with-status-200", SCORES_MODEL, "--model=identity_int32")
PRODUCT = (str(Path(__file__).with_name("product_server.py")),)  # one that calls itself as WHO does


def run_certify(folder: Path, *arguments: str) -> int:
    return main(["certify", *arguments, *LABEL_OPTIONS, "-o", str(folder)])
