"""Builds a candidate: learns what it wants, compiles it, and says how that went."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from pydantic import Field, JsonValue, ValidationError

from sandbox.extension import nvrtc
from sandbox.extension.calls import MAX_CALLS, Call, DeviceModule
from sandbox.extension.compiler import Compiled, Compiler, Route
from sandbox.extension.diagnostics import own_frames, readable, unknown_to_slim
from sandbox.forkserver import Ended, ForkServer
from sandbox.gate import Gate
from sandbox.limits import Limits
from schemas.candidate import Language, SourceFile
from schemas.evaluation import Build, KernelUsage
from schemas.record import Record

RECORDING_BYTES = 8 << 20
RECORD_SECONDS = 20.0
IMPORT = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.MULTILINE)
IN_PYTHON = (Language.TRITON, Language.CUPY)
"""Languages whose kernels stand in the Python module itself and are compiled when first launched."""


class Artefact(Record):
    """A built extension or binary, and the call that it answers."""

    call_key: str
    name: str
    path: str
    kind: Literal["extension", "cubin"] = "extension"
    names: tuple[tuple[str, str], ...] = ()
    """Of a binary: template instances with their mangled names."""


class BuildOutcome(NamedTuple):
    """The report on a build and what it left in the cache."""

    report: Build
    artefacts: tuple[Artefact, ...]


class Recording(Record):
    """What the recorder wrote: data from a stranger."""

    calls: tuple[Call, ...] = Field(max_length=MAX_CALLS)
    modules: tuple[DeviceModule, ...] = Field(max_length=MAX_CALLS)
    error: str


class Refused(Exception):
    """The candidate cannot be built, for a reason of its own."""

    def __init__(self, diagnostics: str, language: Language = Language.PYTHON, route: Route | None = None) -> None:
        super().__init__(diagnostics)
        self.diagnostics, self.language, self.route = diagnostics, language, route


def build_candidate(
    files: Sequence[SourceFile],
    *,
    server: ForkServer,
    workspace: Path,
    cache: Path,
    limits: Limits,
    deadline_s: float,
    gate: Gate | None = None,
    architecture: str | None = None,
) -> BuildOutcome:
    """Build every extension that the candidate's module asks for. `workspace` is an empty folder for its files.

    `architecture` is that of the CUDA device it will run on (`sm_90`); without one, CUDA sources are refused.
    Raises `SandboxFault` where the infrastructure fails; whatever the candidate does wrong is in the report.
    """
    started = time.monotonic()
    compiler = Compiler(cache, limits, gate, architecture)
    try:
        recording = _record(files, server, workspace, limits, gate)
        language = _language(recording, files)
        built = [_compile(compiler, call, deadline_s) for call in recording.calls]
        built += [_compile_module(compiler, module, deadline_s) for module in recording.modules]
    except Refused as refused:
        return BuildOutcome(_failure(refused, time.monotonic() - started), ())
    reasons = [item.fallback_reason for item in built if item.fallback_reason is not None]
    route: Literal["slim", "full", "none"] = "none" if not recording.calls else "full" if reasons else "slim"
    report = Build(
        ok=True,
        language=language,
        route=route,
        fallback_reason=reasons[0] if reasons else None,
        artefacts=len(built),
        kernels=tuple(kernel for item in built for kernel in item.kernels),
        seconds=time.monotonic() - started,
        diagnostics="",
    )
    return BuildOutcome(report, tuple(item.artefact for item in built))


def _record(
    files: Sequence[SourceFile], server: ForkServer, workspace: Path, limits: Limits, gate: Gate | None
) -> Recording:
    """Run the module in a child and read what it noted. Raises `Refused`."""
    code = workspace / "code"
    for file in files:
        target = code / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.text)
    note = workspace / "recording.json"
    told: dict[str, JsonValue] = {"recording": str(note), "cupy": Language.CUPY.value in _imported(files)}
    child = server.fork("sandbox.extension.recorder:main", told, scratch=code, limits=limits)
    ended = child.wait(RECORD_SECONDS, gate)
    if not note.is_file() or note.is_symlink() or note.stat().st_size > RECORDING_BYTES:
        raise Refused(_ended(ended))
    try:
        recording = Recording.model_validate(json.loads(note.read_text()))
    except (ValueError, ValidationError) as error:
        raise Refused(f"the extensions it asks for cannot be built: {str(error).splitlines()[0]}") from error
    if recording.error:
        raise Refused(own_frames(recording.error), _language(recording, files))
    return recording


class Built(NamedTuple):
    """One extension, and why it needed the full headers if it did."""

    artefact: Artefact
    fallback_reason: str | None
    kernels: tuple[KernelUsage, ...]


def _compile(compiler: Compiler, call: Call, deadline_s: float) -> Built:
    language = Language.CUDA if call.cuda else Language.CPP
    if call.cuda and compiler.architecture is None:
        raise Refused("this machine has no CUDA device: write the kernel in C++", language)
    compiled = compiler.compile(call, "slim", deadline_s)
    if compiled.path is not None:
        return Built(_artefact(call, compiled.path), None, compiled.kernels)
    reason = unknown_to_slim(_messages(compiled))
    if reason is None:
        raise Refused(_explain(compiled, deadline_s), language, "slim")
    if call.cuda and not torch.version.cuda:
        raise Refused(f"{_explain(compiled, deadline_s)}\n(torch's own headers have no CUDA here)", language, "slim")
    compiled = compiler.compile(call, "full", deadline_s)
    if compiled.path is None:
        raise Refused(_explain(compiled, deadline_s), language, "full")
    return Built(_artefact(call, compiled.path), reason, compiled.kernels)


def _compile_module(compiler: Compiler, module: DeviceModule, deadline_s: float) -> Built:
    if compiler.architecture is None:
        raise Refused("this machine has no CUDA device: write the kernel in C++", Language.CUPY)
    compiled = compiler.compile_module(module, deadline_s)
    if compiled.path is None:
        raise Refused(_explain(compiled, deadline_s), Language.CUPY)
    names = tuple(nvrtc.read_answer(compiled.path.parent).names.items())
    artefact = Artefact(call_key=module.key, name="module", path=str(compiled.path), kind="cubin", names=names)
    return Built(artefact, None, compiled.kernels)


def _artefact(call: Call, path: Path) -> Artefact:
    return Artefact(call_key=call.key, name=call.name, path=str(path))


def _messages(compiled: Compiled) -> str:
    return "" if compiled.ended is None else compiled.ended.stderr


def _explain(compiled: Compiled, deadline_s: float) -> str:
    ended = compiled.ended
    if ended is not None and ended.kind == "timed_out":
        return f"the compiler did not finish within {deadline_s:g} s"
    return readable(_messages(compiled)) or f"the compiler ended without a word ({ended.kind if ended else 'unknown'})"


def _language(recording: Recording, files: Sequence[SourceFile]) -> Language:
    if any(call.cuda for call in recording.calls):
        return Language.CUDA
    if recording.calls:
        return Language.CPP
    if recording.modules:
        return Language.CUPY
    return next((language for language in IN_PYTHON if language.value in _imported(files)), Language.PYTHON)


def _imported(files: Sequence[SourceFile]) -> set[str]:
    return {name for file in files for name in IMPORT.findall(file.text)}


def _failure(refused: Refused, seconds: float) -> Build:
    return Build(
        ok=False,
        language=refused.language,
        route=refused.route or "none",
        fallback_reason=None,
        artefacts=0,
        seconds=seconds,
        diagnostics=refused.diagnostics,
    )


def _ended(ended: Ended) -> str:
    if ended.kind == "timed_out":
        return f"importing model_new.py did not finish within {RECORD_SECONDS:g} s"
    how = f"signal {ended.code}" if ended.kind == "signalled" else f"exit status {ended.code}"
    return f"importing model_new.py ended the process ({how})"
