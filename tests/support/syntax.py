"""What modules of this project hold, as far as their syntax tells: each is read once, whichever tests ask."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

Node = ast.Import | ast.ImportFrom | ast.FunctionDef


@cache
def parse_module(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def list_nodes(path: Path) -> tuple[Node, ...]:
    """Return the imports and the functions of a file, wherever in it they are."""
    return tuple(node for node in ast.walk(parse_module(path)) if isinstance(node, Node))
