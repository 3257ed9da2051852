"""Replaces torch's two ways of building an extension by one function of ours, inside a child of foreign code."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from pydantic import ValidationError
from torch.utils import cpp_extension

from sandbox.extension.calls import Call, DeviceModule, device_module, file_call, inline_call


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


def replace_cupy(answer: Callable[[DeviceModule], Callable[[str], Any]]) -> None:
    """Have `cupy.RawKernel` and `cupy.RawModule` take their kernels, by name, from what `answer` gives.

    Where CuPy is not installed, a stand-in takes its place: enough to import a module that only launches later.
    """
    try:
        import cupy
    except ImportError:
        cupy = StandIn("cupy")
        sys.modules["cupy"] = cupy

    def raw_kernel(code: object, name: str, options: object = (), *_: object, **__: object) -> Any:
        return answer(device_module(code, options, ()))(name)

    class RawModule:
        """As CuPy's, from source text only."""

        def __init__(self, code: object = None, options: object = (), **arguments: object) -> None:
            self.get_function = answer(device_module(code, options, arguments.get("name_expressions")))

        def compile(self, *_: object, **__: object) -> None:
            """Done before."""

    cupy.RawKernel, cupy.RawModule = raw_kernel, RawModule


class StandIn(ModuleType):
    """Stands for a module or a function of it that is not there."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self.__name__}.{name}")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Say so when it is used."""
        raise RuntimeError(f"{self.__name__} was called while the module was being imported")


def _understood(read: Callable[..., Call], *arguments: Any) -> Call:
    """The call, or one sentence on what cannot be built. Raises `ValueError`."""
    try:
        return read(*arguments)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"this extension cannot be built: {place}: {first['msg']}") from None
