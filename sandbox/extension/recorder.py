"""Runs a candidate's module far enough to learn what it wants built. Entry of an untrusted child."""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from sandbox.extension.calls import Call
from sandbox.extension.patch import replace_builders

RECORDING = "recording.json"


class Placeholder(ModuleType):
    """Stands for an extension that has not been built."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def unbuilt(*_args: object, **_kwargs: object) -> NoReturn:
            raise RuntimeError(f"{self.__name__}.{name} was called while the module was being imported")

        return unbuilt


def main(payload: dict[str, Any], _fds: list[int]) -> None:
    """Import `model_new.py` in the working folder, noting every extension it asks for.

    Writes what was noted to `payload["recording"]`, whatever happens; an error of the module is part of it.
    """
    calls: list[Call] = []

    def note(call: Call) -> ModuleType:
        calls.append(call)
        return Placeholder(call.name)

    replace_builders(note)
    error = ""
    try:
        _import(Path("model_new.py"))
    except BaseException:
        error = traceback.format_exc()
    recording = {"calls": [call.model_dump(mode="json") for call in calls], "error": error}
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
