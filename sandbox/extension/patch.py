"""Replaces torch's two ways of building an extension by one function of ours, inside a child of foreign code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from torch.utils import cpp_extension

from sandbox.extension.calls import Call, file_call, inline_call


def replace_builders(answer: Callable[[Call], ModuleType]) -> None:
    """Have `load_inline` and `load` return what `answer` gives for their arguments.

    The working folder is the candidate's workspace.
    """
    inline, files = inspect.signature(cpp_extension.load_inline), inspect.signature(cpp_extension.load)

    def load_inline(*args: Any, **kwargs: Any) -> ModuleType:
        return answer(inline_call(inline.bind(*args, **kwargs).arguments))

    def load(*args: Any, **kwargs: Any) -> ModuleType:
        return answer(file_call(files.bind(*args, **kwargs).arguments, Path.cwd()))

    cpp_extension.load_inline, cpp_extension.load = load_inline, load
