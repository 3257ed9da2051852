"""Gives a candidate, inside its runner, the extensions that were built for it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

from sandbox.extension.calls import Call
from sandbox.extension.patch import replace_builders


def install(artefacts: list[dict[str, Any]]) -> None:
    """Have `load_inline` and `load` return the artefact whose key fits the call.

    A call that nothing was built for raises `RuntimeError`: building happens before, never here.
    """
    built = {artefact["call_key"]: artefact for artefact in artefacts}

    def answer(call: Call) -> ModuleType:
        if call.key not in built:
            raise RuntimeError(f"extension {call.name} was not built: it differs from what the module asked for first")
        return _load(call.name, built[call.key]["path"])

    replace_builders(answer)


def _load(name: str, path: str) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ImportError(f"extension {name} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[name] = module
    return module
