"""Gives a candidate, inside its runner, the extensions that were built for it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from sandbox.extension.calls import Call, DeviceModule
from sandbox.extension.patch import replace_builders, replace_cupy


def install(artefacts: list[dict[str, Any]]) -> None:
    """Have `load_inline` and `load` return the artefact whose key fits the call.

    A call that nothing was built for raises `RuntimeError`: building happens before, never here.
    """
    built = {artefact["call_key"]: artefact for artefact in artefacts}
    if any(artefact["kind"] == "cubin" for artefact in artefacts):
        _install_modules(built)

    def answer(call: Call) -> ModuleType:
        if call.key not in built:
            raise RuntimeError(f"extension {call.name} was not built: it differs from what the module asked for first")
        return _load(call.name, built[call.key]["path"])

    replace_builders(answer)


def _install_modules(built: dict[str, dict[str, Any]]) -> None:
    """Have CuPy load the binaries that were compiled from a candidate's texts."""
    import cupy

    load = cupy.RawModule

    def answer(module: DeviceModule) -> Callable[[str], Any]:
        if module.key not in built:
            raise RuntimeError("this module of CuPy was not built: it differs from what was asked for first")
        binary, names = load(path=built[module.key]["path"]), dict(built[module.key]["names"])
        return lambda name: binary.get_function(names.get(name, name))

    replace_cupy(answer)


def _load(name: str, path: str) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ImportError(f"extension {name} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[name] = module
    return module
