"""Judges a model server's binary tensor data, raw binary request and classification extensions.

    report = conformance.judge("http://host:8000")
    assert report.passed, str(report)

The names that `__init__.pyi` declares, except the version, are imported on first use, because pytest imports this
package wherever it is installed.
"""

from importlib import import_module
from typing import Any

from conformance.spec.version import __version__

__all__ = ["JudgeError", "Report", "UnmetRequirement", "UnmetRow", "__version__", "judge"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("conformance.api"), name)
