"""Takes one defence out of every process that is started with this folder on its path: see `tests.support.defences`.

The module `WITHOUT_IN` is changed by the code `WITHOUT` as soon as it has been read, before anybody imports from it.
"""

from __future__ import annotations

import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Changed(Loader):
    def __init__(self, loader: Loader, code: str) -> None:
        self._loader, self._code = loader, code

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        exec(self._code, vars(module))  # noqa: S102 - a row of our own table


class _Finder(MetaPathFinder):
    def __init__(self, name: str, code: str) -> None:
        self._name, self._code = name, code

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            spec.loader = _Changed(spec.loader, self._code)
        return spec


if "WITHOUT_IN" in os.environ:
    sys.meta_path.insert(0, _Finder(os.environ["WITHOUT_IN"], os.environ["WITHOUT"]))
