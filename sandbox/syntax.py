"""Python source as syntax trees, from any thread."""

from __future__ import annotations

import ast
import gc
import threading

# CPython before 3.11.8 counts the recursion of syntax trees for the whole process, and fails when one is parsed while
# another is: by a second thread, or by a finalizer that the collector runs in between (printing a traceback parses).
_PARSING = threading.Lock()


def parse(source: str) -> ast.Module:
    """The syntax tree of `source`, as `ast.parse` gives it.

    Raises:
        SyntaxError: `source` is not Python.

    """
    with _PARSING:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return ast.parse(source)
        finally:
            if collecting:
                gc.enable()
