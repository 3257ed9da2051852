"""Python source as syntax trees, from any thread."""

from __future__ import annotations

import ast
import threading

# CPython before 3.11.8 counts the recursion of syntax trees for all threads together, and fails when two threads parse.
_PARSING = threading.Lock()


def parse(source: str) -> ast.Module:
    """The syntax tree of `source`, as `ast.parse` gives it.

    Raises:
        SyntaxError: `source` is not Python.

    """
    with _PARSING:
        return ast.parse(source)
