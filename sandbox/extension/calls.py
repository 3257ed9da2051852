"""What a candidate asks `torch.utils.cpp_extension` to build, as data: the same words on both sides of the fence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from schemas.record import Record

MAX_CALLS = 16
MAX_TEXT = 1 << 20
"""Characters of one source: far above what anybody writes by hand."""


HEADER_SUFFIXES = (".h", ".hpp", ".cuh", ".inc", ".inl")
CUDA_SUFFIXES = (".cu", ".cuh")


RELATIVE = r"^[A-Za-z0-9_][A-Za-z0-9_+-]*([./][A-Za-z0-9_+-]+)*$"
"""Paths without an empty part and without `..`."""


class Source(Record):
    """One C++ or CUDA source text."""

    name: str = Field(max_length=200, pattern=RELATIVE)
    text: str = Field(max_length=MAX_TEXT)


class Call(Record):
    """One call of `load_inline` or `load`."""

    name: str = Field(max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    inline: bool
    """`load_inline`: torch puts its header in front of the first source."""
    cpp: tuple[Source, ...] = Field(max_length=64)
    cuda: tuple[Source, ...] = Field(max_length=64)
    headers: tuple[Source, ...] = Field(max_length=64)
    """Files that the sources of a `load` may include; named, like those, by their place in the workspace."""
    functions: tuple[tuple[str, str], ...] = Field(max_length=256)
    """Name and docstring of each function to bind, for `load_inline(functions=...)`."""
    cflags: tuple[str, ...] = Field(max_length=128)
    cuda_cflags: tuple[str, ...] = Field(max_length=128)
    ldflags: tuple[str, ...] = Field(max_length=128)

    @property
    def key(self) -> str:
        """Identifies the call: whoever asks for the same thing again gets what was built."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class DeviceModule(Record):
    """Device code that a candidate gives to CuPy as text (`RawKernel`, `RawModule`)."""

    code: str = Field(max_length=MAX_TEXT)
    options: tuple[str, ...] = Field(max_length=128)
    names: tuple[str, ...] = Field(max_length=64)
    """Template instances that it wants by name (`name_expressions`)."""

    @property
    def key(self) -> str:
        """Identifies the module: equal code with equal options is compiled once."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def device_module(code: object, options: object, names: object) -> DeviceModule:
    """The module that arguments of `RawKernel` or `RawModule` stand for. Raises `ValueError` for no text."""
    if not isinstance(code, str):
        raise ValueError("a module of CuPy without source text cannot be built")
    return DeviceModule(code=code, options=_strings(options), names=_strings(names))


def inline_call(arguments: Mapping[str, Any]) -> Call:
    """The call that keyword arguments of `load_inline` stand for."""
    functions = arguments.get("functions")
    if isinstance(functions, str):
        functions = [functions]
    if not isinstance(functions, Mapping):
        functions = {name: name for name in functions or ()}
    return Call(
        name=arguments["name"],
        inline=True,
        headers=(),
        cpp=_sources(arguments.get("cpp_sources"), "main", "cpp"),
        cuda=_sources(arguments.get("cuda_sources"), "cuda", "cu"),
        functions=tuple((str(name), str(text)) for name, text in functions.items()),
        cflags=_strings(arguments.get("extra_cflags")),
        cuda_cflags=_strings(arguments.get("extra_cuda_cflags")),
        ldflags=_strings(arguments.get("extra_ldflags")),
    )


def file_call(arguments: Mapping[str, Any], workspace: Path) -> Call:
    """The call that keyword arguments of `load` stand for.

    Raises `ValueError` for a source outside the workspace, `OSError` for one that cannot be read.
    """
    root = workspace.resolve()
    paths = [(root / path).resolve() for path in _strings(arguments.get("sources"))]
    for path in paths:
        if not path.is_relative_to(root):
            raise ValueError(f"{path.name} is not in the candidate's workspace")
    beside = sorted(path for path in root.rglob("*") if path.suffix in HEADER_SUFFIXES and path not in paths)
    return Call(
        name=arguments["name"],
        inline=False,
        headers=tuple(_file(path, root) for path in beside),
        cpp=tuple(_file(path, root) for path in paths if path.suffix not in CUDA_SUFFIXES),
        cuda=tuple(_file(path, root) for path in paths if path.suffix in CUDA_SUFFIXES),
        functions=(),
        cflags=_strings(arguments.get("extra_cflags")),
        cuda_cflags=_strings(arguments.get("extra_cuda_cflags")),
        ldflags=_strings(arguments.get("extra_ldflags")),
    )


def _file(path: Path, root: Path) -> Source:
    return Source(name=path.relative_to(root).as_posix(), text=path.read_text())


def _sources(value: str | Sequence[str] | None, stem: str, suffix: str) -> tuple[Source, ...]:
    texts = [value] if isinstance(value, str) else list(value or ())
    names = [f"{stem}.{suffix}" if len(texts) == 1 else f"{stem}{i}.{suffix}" for i in range(len(texts))]
    return tuple(Source(name=name, text=text) for name, text in zip(names, texts, strict=True))


def _strings(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    return tuple(str(item) for item in value)  # type: ignore[attr-defined]
