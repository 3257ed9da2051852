"""Replaces torch's two ways of building an extension by one function of ours, inside a child of foreign code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError
from torch.utils import cpp_extension

from sandbox.extension.calls import Call, file_call, inline_call


def replace_builders(answer: Callable[[Call], ModuleType]) -> None:
    """Have `load_inline` and `load` return what `answer` gives for their arguments.

    The working folder is the candidate's workspace.
    """
    inline, files = inspect.signature(cpp_extension.load_inline), inspect.signature(cpp_extension.load)

    def load_inline(*args: Any, **kwargs: Any) -> ModuleType:
        return answer(_understood(inline_call, inline.bind(*args, **kwargs).arguments))

    def load(*args: Any, **kwargs: Any) -> ModuleType:
        return answer(_understood(file_call, files.bind(*args, **kwargs).arguments, Path.cwd()))

    cpp_extension.load_inline, cpp_extension.load = load_inline, load


def _understood(read: Callable[..., Call], *arguments: Any) -> Call:
    """The call, or one sentence on what cannot be built. Raises `ValueError`."""
    try:
        return read(*arguments)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"this extension cannot be built: {place}: {first['msg']}") from None
