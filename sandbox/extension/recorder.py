"""Runs a candidate's module far enough to learn what it wants built. Entry of an untrusted child."""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from sandbox.extension.calls import Call, DeviceModule
from sandbox.extension.patch import StandIn, replace_builders, replace_cupy

RECORDING = "recording.json"


def main(payload: dict[str, Any], _fds: list[int]) -> None:
    """Import `model_new.py` in the working folder, noting every extension it asks for.

    Writes what was noted to `payload["recording"]`, whatever happens; an error of the module is part of it.
    """
    calls: list[Call] = []
    modules: list[DeviceModule] = []

    def note(call: Call) -> ModuleType:
        calls.append(call)
        return StandIn(call.name)

    def note_module(module: DeviceModule) -> Callable[[str], StandIn]:
        modules.append(module)
        return StandIn

    replace_builders(note)
    if payload["cupy"]:
        replace_cupy(note_module)
    error = ""
    try:
        _import(Path("model_new.py"))
    except BaseException:
        error = traceback.format_exc()
    recording = {
        "calls": [call.model_dump(mode="json") for call in calls],
        "modules": [module.model_dump(mode="json") for module in modules],
        "error": error,
    }
    Path(payload["recording"]).write_text(json.dumps(recording))


def _import(path: Path) -> None:
    sys.path.insert(0, str(Path.cwd()))
    spec = importlib.util.spec_from_file_location("model_new", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["model_new"] = module
    spec.loader.exec_module(module)
    if not hasattr(module, "ModelNew"):
        raise AttributeError("model_new.py defines no ModelNew")
