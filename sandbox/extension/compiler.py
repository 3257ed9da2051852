"""The C++ and CUDA compilers, called two ways: against the slim headers, and against torch's own as the fallback.

The slim headers' own code and a precompiled form of them are made once for a compiler and a set of flags and kept
in the cache; a candidate then costs the compiler little more than its kernel.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import TypeAdapter
from torch.utils import cpp_extension

from sandbox.device.toolkit import toolkit
from sandbox.errors import SandboxFault
from sandbox.extension import nvcc, nvrtc
from sandbox.extension.calls import Call, DeviceModule
from sandbox.extension.flags import Flags, sift
from sandbox.gate import Gate
from sandbox.limits import Limits
from sandbox.process import Completed, run
from sandbox.version import build_version
from schemas.evaluation import KernelUsage

HEADERS = Path(__file__).parent / "headers"
BASE = ("-fPIC", "-fvisibility=hidden", "-fopenmp", "-march=native")
DEFAULTS = ("-O3", "-std=c++17")
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
FULL_MEMORY = 12 << 30
PREPARE_SECONDS = 300.0
KERNELS = "kernels.json"
USAGES: TypeAdapter[tuple[KernelUsage, ...]] = TypeAdapter(tuple[KernelUsage, ...])
Route = Literal["slim", "full"]


class Compiled(NamedTuple):
    """How compiling one extension ended."""

    path: Path | None
    """The shared object in the cache; null where there is none."""
    ended: Completed | None
    """How the compiler ended; null where the cache had the object already."""
    kernels: tuple[KernelUsage, ...] = ()
    """What its device kernels take."""


class Compiler:
    """Compiles calls into a cache folder. Safe beside other processes that use the same one."""

    def __init__(self, cache: Path, limits: Limits, gate: Gate | None, architecture: str | None = None) -> None:
        """`architecture` is that of the CUDA device that sources are compiled for, if any are.

        Raises `SandboxFault` where there is no compiler or Python lacks its headers.
        """
        self.architecture = architecture
        self._program = shutil.which("g++") or ""
        if not self._program:
            raise SandboxFault("no C++ compiler: `g++` is not on PATH; install it (Debian: apt-get install g++)")
        include = sysconfig.get_path("include")
        if not (Path(include) / "Python.h").exists():
            raise SandboxFault(
                f"{include} has no Python.h: install Python's headers (Debian: apt-get install python3-dev)"
            )
        self._python = include
        self._cache, self._limits, self._gate = cache, limits, gate
        cache.mkdir(parents=True, exist_ok=True)

    def compile(self, call: Call, route: Route, deadline_s: float) -> Compiled:
        """The call's extension by the given route, from the cache if it was built before."""
        flags = sift(call.cflags, call.ldflags)
        made_by = f"{self._program} {toolkit().nvcc} {self.architecture}" if call.cuda else self._program
        key = hashlib.sha256(f"{call.key} {route} {build_version()} {made_by}".encode()).hexdigest()[:32]
        target = self._cache / f"{call.name}-{key}"
        library = target / "extension.so"
        if library.exists():
            return Compiled(library, None, _read_kernels(target))
        with tempfile.TemporaryDirectory(prefix="quarry-compile-") as folder:
            made = Path(folder) / "made"
            made.mkdir()
            sources = write_sources(call, Path(folder))
            device = self._objects(call, Path(folder), deadline_s, route)
            if device.ended is not None:
                return device
            command = self._command(route, call, flags, [*sources, *(f"{source.name}.o" for source in call.cuda)])
            ended = self._run(command, Path(folder), deadline_s, route)
            if _failed(ended) or not (made / "extension.so").exists():
                return Compiled(None, ended)
            (made / KERNELS).write_bytes(USAGES.dump_json(device.kernels))
            _put(made, target)
        return Compiled(library, ended, device.kernels)

    def compile_module(self, module: DeviceModule, deadline_s: float) -> Compiled:
        """A module of device code as a binary for the architecture, from the cache if it was built before.

        Raises `SandboxFault` where NVRTC cannot be used.
        """
        architecture = self.architecture or ""
        key = hashlib.sha256(f"{module.key} {build_version()} {architecture}".encode()).hexdigest()[:32]
        target = self._cache / f"module-{key}"
        if target.exists():
            return Compiled(target / nvrtc.BINARY, None, _read_kernels(target))
        with tempfile.TemporaryDirectory(prefix="quarry-compile-") as folder:
            made = Path(folder) / "made"
            made.mkdir()
            nvrtc.write_request(
                made, nvrtc.Request(module=module, architecture=architecture, includes=_toolkit_includes())
            )
            ended = self._run(nvrtc.command(), made, deadline_s, "slim")
            if (ended.kind, ended.code) == ("exited", 2):
                raise SandboxFault(ended.stderr.strip()[:500])
            if _failed(ended):
                return Compiled(None, ended._replace(stderr=nvcc.without_usage(ended.stderr)))
            kernels = nvcc.usage(ended.stderr)
            (made / KERNELS).write_bytes(USAGES.dump_json(kernels))
            _put(made, target)
        return Compiled(target / nvrtc.BINARY, ended, kernels)

    def _objects(self, call: Call, folder: Path, deadline_s: float, route: Route) -> Compiled:
        """Compile the device sources to objects beside them: the kernels in them, or how the first failure ended."""
        kernels: tuple[KernelUsage, ...] = ()
        for source in call.cuda:
            includes = [f"-I{HEADERS}", f"-I{self._python}"] if route == "slim" else self._torch_includes("cuda")
            command = nvcc.object_command(
                source.name,
                f"{source.name}.o",
                architecture=self.architecture or "",
                includes=includes,
                flags=[f"-DTORCH_EXTENSION_NAME={call.name}", *nvcc.sift(call.cuda_cflags)],
                inline=call.inline,
            )
            ended = self._run(command, folder, deadline_s, route)
            if _failed(ended):
                return Compiled(None, ended._replace(stderr=nvcc.without_usage(ended.stderr)))
            kernels += nvcc.usage(ended.stderr)
        return Compiled(None, None, kernels)

    def _command(self, route: Route, call: Call, flags: Flags, sources: Sequence[str]) -> list[str]:
        given = [*BASE, *DEFAULTS, f"-DTORCH_EXTENSION_NAME={call.name}", *flags.compile]
        if call.inline and call.cpp:
            given += ["-include", "torch/extension.h"]  # as torch does, but without moving the candidate's lines
        out = ["-shared", "-fmax-errors=8", *sources, "-o", "made/extension.so", *flags.link]
        if call.cuda:
            given.append(f"-isystem{toolkit().include}")
            runtime = toolkit().runtime
            out += [f"-L{runtime.parent}", *nvcc.libraries(call.ldflags), str(runtime)]
        if route == "slim":
            prepared = self._prepare(flags)
            return [self._program, *given, f"-I{prepared}", f"-I{HEADERS}", f"-I{self._python}", "-w", *out,
                    str(prepared / "runtime.o")]  # fmt: skip
        kind = "cuda" if call.cuda else "cpu"
        return [self._program, *given, "-std=c++20", "-w", *self._torch_includes(kind), *out, *_torch_libraries(kind)]

    def _torch_includes(self, kind: str) -> list[str]:
        paths = cpp_extension.include_paths(kind)
        return [*(f"-isystem{path}" for path in paths), f"-I{self._python}"]

    def _prepare(self, flags: Flags) -> Path:
        """A folder with the precompiled header and the runtime's object for these flags, made on first use.

        The extension's name is a macro that the headers do not mention, so it may differ.
        """
        text = " ".join([*BASE, *DEFAULTS, *flags.compile, build_version(), self._program])
        folder = self._cache / "slim" / hashlib.sha256(text.encode()).hexdigest()[:24]
        if folder.exists():
            return folder
        with tempfile.TemporaryDirectory(prefix="quarry-slim-") as scratch:
            made = Path(scratch) / "made"
            (made / "torch").mkdir(parents=True)
            common = [self._program, *BASE, *DEFAULTS, *flags.compile, f"-I{HEADERS}", f"-I{self._python}", "-w"]
            # The header itself has to stand beside its precompiled form, for whoever includes it a second time.
            shutil.copy(HEADERS / "torch/extension.h", made / "torch/extension.h")
            header = ["-x", "c++-header", "made/torch/extension.h", "-o", "made/torch/extension.h.gch"]
            runtime = ["-c", str(HEADERS / "slim/runtime.cpp"), "-o", "made/runtime.o"]
            for step in (runtime, header):
                ended = self._run([*common, *step], Path(scratch), PREPARE_SECONDS, "slim")
                if (ended.kind, ended.code) != ("exited", 0):
                    raise SandboxFault(f"the slim headers do not compile with {self._program}: {ended.stderr[:500]}")
            _put(made, folder)
        return folder

    def _run(self, command: Sequence[str], cwd: Path, deadline_s: float, route: Route) -> Completed:
        limits = self._limits if route == "slim" else self._limits._replace(memory_bytes=FULL_MEMORY)
        environment = {**ENVIRONMENT, "TMPDIR": str(cwd)}
        ended = run(command, cwd=cwd, limits=limits, deadline_s=deadline_s, env=environment, gate=self._gate)
        if re.search(r"No space left on device", ended.stderr):
            raise SandboxFault(f"the disk under {cwd} is full: free space there or set TMPDIR to another folder")
        return ended


def write_sources(call: Call, folder: Path) -> list[str]:
    """Write a call's C++ sources and headers as the compiler should see them; the sources' paths in the folder.

    The candidate's lines keep their numbers; the bindings that `functions` asks for stand behind the first source.
    """
    for source in (*call.headers, *call.cpp, *call.cuda):
        target = folder / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        back = _bindings(call) if call.functions and source is call.cpp[0] else ""
        target.write_text(f"{source.text}\n{back}")
    return [source.name for source in call.cpp]


def _bindings(call: Call) -> str:
    lines = [
        f"  m.def({_quote(name)}, torch::wrap_pybind_function({name}), {_quote(text)});"
        for name, text in call.functions
    ]
    return "\n".join(['#line 1 "bindings"', "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *lines, "}", ""])


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _torch_libraries(kind: str) -> list[str]:
    folders = cpp_extension.library_paths()
    names = ["c10", "torch", "torch_cpu", "torch_python", *(("c10_cuda", "torch_cuda") if kind == "cuda" else ())]
    return [part for f in folders for part in (f"-L{f}", f"-Wl,-rpath,{f}")] + [f"-l{name}" for name in names]


def _toolkit_includes() -> tuple[str, ...]:
    """The toolkit's headers (`cuda_fp16.h`), where there is one: NVRTC itself does without."""
    try:
        return (str(toolkit().include),)
    except SandboxFault:
        return ()


def _failed(ended: Completed) -> bool:
    return (ended.kind, ended.code) != ("exited", 0)


def _read_kernels(folder: Path) -> tuple[KernelUsage, ...]:
    return USAGES.validate_json((folder / KERNELS).read_bytes())


def _put(made: Path, target: Path) -> None:
    """Move a finished file or folder into the cache in one step; whoever comes second keeps the first's."""
    staging = Path(tempfile.mkdtemp(prefix=".staging-", dir=_parent(target)))
    try:
        shutil.move(made, staging / target.name)
        try:
            (staging / target.name).rename(target)
        except OSError:
            if not target.exists():
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _parent(target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return target.parent
